r"""Noise distributions of unit scale, with the statistics that :mod:`.noise` tests.

``gaussian``
    standard deviation 1: :math:`\sum y^2/2` is Gamma with half the number of values.
``laplace``
    density :math:`e^{-|y|}/2`: :math:`\sum|y|` is Gamma with the number of values.
``gamma_norm``
    density proportional to :math:`e^{-\|y\|_2}` on d coordinates: :math:`\sum\|y\|_2` is Gamma
    with the number of values.
``uniform``
    on [-1, 1], so that the scale is half the width: :math:`-\sum\ln|y|` is Gamma with the number of
    values, and decreases as the scale grows.
``discrete_gaussian``
    integers, pmf proportional to :math:`e^{-k^2/2\sigma^2}`, in units of sigma. The mean of
    :math:`y^2` has the tail bound of Chernoff, whose tilted distributions are of the same family.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats
from scipy.special import gammainc, gammaincc, ndtr

from private_consensus.common.errors import arguments

from ..mechanisms import gamma_norm_noise

LAWS = ("gaussian", "laplace", "gamma_norm", "uniform", "discrete_gaussian")
LARGEST_DENSITY = 0.5
"""Upper bound on the density of one coordinate, for each continuous distribution of unit scale."""

_TILTS = np.geomspace(1e-2, 1e2, 801)  # standard deviations of tilted distributions over sigma
_MIN_UNIFORM = 2.0**-24  # smaller values of a uniform float32 may round to 0


def energy(unit: np.ndarray, law: str) -> np.ndarray:
    """Compute the terms whose sum is the test statistic of the scale, for noise of unit scale.

    One value per coordinate; for ``gamma_norm`` one per release, with a last axis of length 1.
    """
    if law == "gamma_norm":
        return np.linalg.norm(unit, axis=-1, keepdims=True)
    if law == "laplace":
        return np.abs(unit)
    if law == "uniform":
        return -np.log(np.maximum(np.abs(unit), _MIN_UNIFORM))
    return unit**2


def scale_p_values(
    total: np.ndarray, count: int, law: str, sigma: float, ratio: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return p-values of the hypotheses that the scale is at least, and at most, ``ratio``.

    ``total`` are sums of :func:`energy` over ``count`` coordinates. ``sigma`` is the parameter of
    ``discrete_gaussian``.
    """
    total = np.asarray(total, float)
    if law == "gaussian":
        half = total / (2 * ratio**2)
        return gammainc(count / 2, half), gammaincc(count / 2, half)
    if law == "uniform":
        shifted = np.maximum(total + count * math.log(ratio), 0.0)
        return gammaincc(count, shifted), gammainc(count, shifted)
    if law == "discrete_gaussian":
        return _chernoff(total / (count * ratio**2), count, sigma * ratio)
    return gammainc(count, total / ratio), gammaincc(count, total / ratio)


def _chernoff(mean: np.ndarray, count: int, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the tails of a mean of k^2/sigma^2: exp(-n sup_t (t m - ln E e^(t k^2/sigma^2)))."""
    t = (1 - _TILTS**-2) / 2
    cumulants = _log_theta(_TILTS * sigma) - _log_theta(np.array([sigma]))
    rates = mean[..., None] * t - cumulants
    low, high = rates[..., t <= 0].max(axis=-1), rates[..., t >= 0].max(axis=-1)
    return np.exp(-count * np.maximum(low, 0.0)), np.exp(-count * np.maximum(high, 0.0))


def _log_theta(sigma: np.ndarray) -> np.ndarray:
    r"""Return :math:`\ln\sum_k e^{-k^2/2\sigma^2}`.

    From sigma 1.5 on Poisson's formula is used (error 1e-19).
    """
    log_sums = np.log(sigma * math.sqrt(2 * math.pi))
    narrow = sigma < 1.5
    squares = np.arange(1, 20) ** 2
    log_sums[narrow] = np.log1p(2 * np.exp(-squares / (2 * sigma[narrow, None] ** 2)).sum(axis=1))
    return log_sums


def discrete_pmf(sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return integers and their probabilities under the discrete Gaussian."""
    reach = math.ceil(40 * sigma) + 1
    k = np.arange(-reach, reach + 1)
    mass = np.exp(-(k**2) / (2 * sigma**2))
    return k, mass / mass.sum()


def distance_to_law(unit: np.ndarray, law: str, sigma: float) -> tuple[float, int]:
    """Return Kolmogorov's distance of the values to their distribution, and the number of values.

    The values have unit scale. For ``gamma_norm`` the norms are tested. ``sigma`` is the parameter
    of ``discrete_gaussian``.
    """
    if law == "discrete_gaussian":
        k, mass = discrete_pmf(sigma)
        values = np.sort(np.rint(unit.ravel() * sigma))
        empirical = np.searchsorted(values, k, side="right") / values.size
        return float(np.max(np.abs(empirical - np.cumsum(mass)))), values.size
    values = np.linalg.norm(unit, axis=-1) if law == "gamma_norm" else unit
    u = np.sort(_cdf(values.ravel(), law, unit.shape[-1]))
    rank = np.arange(u.size)
    return float(max(np.max((rank + 1) / u.size - u), np.max(u - rank / u.size))), u.size


def _cdf(values: np.ndarray, law: str, dim: int) -> np.ndarray:
    if law == "gaussian":
        return ndtr(values)
    if law == "laplace":
        return stats.laplace.cdf(values)
    if law == "uniform":
        return np.clip((values + 1) / 2, 0.0, 1.0)
    return gammainc(dim, values)


def size(unit: np.ndarray, law: str) -> np.ndarray:
    """Compute the norm of each release, which does not depend on order and signs of coordinates.

    ``laplace`` and ``uniform`` use l1, all others l2, such that the norm has a gamma or chi
    distribution.
    """
    order = 1 if law in ("laplace", "uniform") else 2
    return np.linalg.norm(unit, ord=order, axis=-1)


def cumulative_size(length: np.ndarray, law: str, dim: int) -> np.ndarray:
    """Return the probability that the :func:`size` of a release is at most ``length``."""
    if law == "gaussian":
        return gammainc(dim / 2, length**2 / 2)
    return gammainc(dim, length)  # valid for l1 norms of Laplace vectors, too


def largest_p_values(unit: np.ndarray, law: str, sigma: float) -> tuple[float, float]:
    """Return p-values of a largest length that is too small, and of one that is too large.

    With n lengths and F(m) the probability that a length is at most the largest, m, these are
    :math:`F(m)^n` and :math:`1 - F(m^-)^n`. The noise has unit scale.
    """
    if law == "discrete_gaussian":
        k, mass = discrete_pmf(sigma)
        largest, number = np.abs(np.rint(unit * sigma)).max(), unit.size
        beyond, at_least = (float(mass[far].sum()) for far in (abs(k) > largest, abs(k) >= largest))
    else:
        lengths = np.linalg.norm(unit, axis=-1) if law == "gamma_norm" else np.abs(unit)
        number = lengths.size
        beyond = at_least = _beyond(float(lengths.max()), law, unit.shape[-1])
    with np.errstate(divide="ignore"):  # a largest length of 0
        shorter = float(np.exp(number * np.log1p(-min(beyond, 1.0))))
        longer = float(-np.expm1(number * np.log1p(-min(at_least, 1.0))))
    return shorter, longer


def _beyond(length: float, law: str, dim: int) -> float:
    """Return the probability of a length above ``length``."""
    if law == "gaussian":
        return 2 * float(ndtr(-length))
    if law == "laplace":
        return math.exp(-length)
    if law == "uniform":
        return max(1.0 - length, 0.0)
    return float(gammaincc(dim, length))


def coincidence(law: str, sigma: float, resolution: float) -> tuple[float, float]:
    """Return the probabilities of a 0 and of two equal lengths, for coordinates on a grid.

    For continuous distributions they are bounds: a cell of the grid has at most its width times the
    largest density; equal lengths of two coordinates have a sum or a difference within a cell.
    ``resolution`` is the spacing in units of the scale, which ``discrete_gaussian`` does not use.
    """
    if law == "discrete_gaussian":
        k, mass = discrete_pmf(sigma)
        lengths = np.where(k == 0, mass, mass + mass[::-1])[k >= 0]
        return float(mass[k == 0][0]), float(np.sum(lengths**2))
    cell = resolution * LARGEST_DENSITY
    return min(1.0, 2 * cell), min(1.0, 4 * cell)


def drawn(law: str, generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Sample noise of unit scale from a continuous distribution with unbounded support.

    The last axis of the shape is that of coordinates.
    """
    if law == "gaussian":
        return generator.standard_normal(shape)
    if law == "laplace":
        return generator.laplace(size=shape)
    radius = generator.standard_gamma(shape[-1], shape[:-1])
    return gamma_norm_noise(generator.standard_normal(shape), radius, 1.0)


def check_law(law: str) -> None:
    """Raise an error unless the distribution is known."""
    arguments.choice("law", law, LAWS)
