"""Discretised privacy loss distributions for accounting, computed in vectorised form.

``dp_accounting`` builds the same distributions point by point, in loops that take nearly all of the
accounting time. Rounding is pessimistic, as in that library: the hockey-stick curve of the result
lies nowhere below that of the mechanism, except for floating-point rounding.

References
----------
Doroshenko, Ghazi, Kamath, Kumar, Manurangsi, "Connect the dots: tighter discrete approximations of
privacy loss distributions", PETS 2022, Algorithm 1.
Koskela, Jaelkoe, Honkela, "Computing tight differential privacy guarantees using FFT", AISTATS
2020.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy import fft
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri

CUT = 0.5 * math.exp(-50)
"""Tail probability of the noise that counts as an infinite loss."""
TAIL = 1e-15
"""Mass that a composition may truncate; all of it counts as an infinite loss."""
MAX_DIRECT_TERMS = 1000
"""Largest number of product terms for which a composition uses no Fourier transform."""
EXPONENTS = np.concatenate([np.arange(-20, 0), np.arange(1, 21)])
"""Exponents of the moments that bound tails, relative to the length of the grid."""


def of_gaussian(mu: float, step: float):
    r"""Build the loss distribution of :math:`N(\mu, 1)` against :math:`N(0, 1)`.

    It connects the dots of the curve

    .. math:: \delta(\epsilon) = \Phi(\mu/2-\epsilon/\mu) - e^\epsilon\Phi(-\mu/2-\epsilon/\mu).

    Parameters
    ----------
    mu : float
        Sensitivity over standard deviation, above 0.
    step : float
        Spacing of the grid of losses.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
    """
    sigma = 1 / mu
    # Outcomes of the largest and of the smallest loss.
    ends = ndtri(CUT) * sigma - 1, -(ndtri(CUT) * sigma)
    largest, smallest = ((-0.5 - end) / sigma**2 / step for end in ends)
    lowest, highest = math.floor(smallest), math.ceil(largest)
    epsilon = np.arange(lowest, highest + 1) * step
    outcome = -0.5 - epsilon * sigma**2
    deltas = ndtr((outcome + 1) / sigma) - np.exp(epsilon + log_ndtr(outcome / sigma))
    return _distribution(*_connected(np.clip(deltas, 0, 1), step), lowest, step)


def of_laplace(loss: float, count: int, step: float):
    r"""Build the loss distribution of ``count`` Laplace mechanisms with equal largest ``loss``.

    It connects the dots of the curve

    .. math:: \delta(\epsilon) = F(x+1) - e^\epsilon F(x), \quad
        x = -\tfrac12(1 + \epsilon/\ell), \quad F(x) = \Pr[Y/\ell \le x],

    Y with density :math:`e^{-|y|}/2`.

    Parameters
    ----------
    loss : float
        Sensitivity over scale, :math:`\ell`.
    count : int
        Number of mechanisms.
    step : float
        Spacing of the grid of losses.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
    """
    scale = 1 / loss
    max_steps = math.ceil(1 / scale / step)
    epsilon = np.arange(-max_steps, max_steps + 1) * step
    scaled = epsilon * scale
    outcome = np.where(scaled > 1, -np.inf, np.where(scaled <= -1, np.inf, -0.5 * (1 + scaled)))
    with np.errstate(divide="ignore"):
        below = np.log(_laplace_below(outcome / scale))
    deltas = np.clip(_laplace_below((outcome + 1) / scale) - np.exp(epsilon + below), 0, 1)
    masses, infinite = _connected(deltas, step)
    if count == 1 or len(masses) ** count <= MAX_DIRECT_TERMS:
        single = _distribution(masses, infinite, -max_steps, step)
        return single.self_compose(count) if count > 1 else single
    total, low = _convolved(np.arange(len(masses)), masses, len(masses), count)
    # A sum is infinite if one of its terms is infinite, or if it was truncated.
    infinite_mass = TAIL - math.expm1(count * math.log1p(-infinite))
    return _distribution(total, infinite_mass, -max_steps * count + low, step)


def _laplace_below(y: np.ndarray) -> np.ndarray:
    """Return the distribution function of the density exp(-abs(y))/2."""
    half = 0.5 * np.exp(-np.abs(y))
    return np.where(y > 0, 1 - half, half)


def _connected(deltas: np.ndarray, step: float) -> tuple[np.ndarray, float]:
    """Return masses on the grid and at infinity whose hockey-stick curve passes through deltas."""
    deltas = np.minimum.accumulate(deltas)
    falls = np.diff(deltas)
    masses = np.empty_like(deltas)
    masses[0] = 1 - deltas[0] + falls[0] / math.expm1(step)
    masses[1:-1] = (falls[1:] - falls[:-1] * math.exp(step)) / math.expm1(step)
    masses[-1] = falls[-1] / math.expm1(-step)
    return np.maximum(0.0, masses), deltas[-1]


def composed(masses: Mapping[int, float], count: int, step: float):
    """Compose ``count`` equal mechanisms whose losses have a few masses on the grid.

    Parameters
    ----------
    masses : mapping of int to float
        Probability by number of grid steps.
    count : int
        Number of mechanisms.
    step : float
        Spacing of the grid of losses.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
    """
    from dp_accounting.pld import privacy_loss_distribution as pld  # slow to import

    if len(masses) ** count <= MAX_DIRECT_TERMS:
        direct = pld.PrivacyLossDistribution.create_from_rounded_probability(masses, 0.0, step)
        return direct.self_compose(count) if count > 1 else direct
    lowest, length = min(masses), max(masses) - min(masses) + 1
    indices = np.array([*masses]) - lowest
    total, low = _convolved(indices, np.array([*masses.values()]), length, count)
    return _distribution(total, TAIL, lowest * count + low, step)


def _convolved(
    indices: np.ndarray, masses: np.ndarray, length: int, count: int
) -> tuple[np.ndarray, int]:
    """Return the masses of a sum of ``count`` losses on a grid, and the index of the first mass."""
    dense = np.zeros(length)
    dense[indices] = masses
    low, high = _truncation_range(indices, masses, length, count)
    points = fft.next_fast_len(max(high - low + 1, length))
    total = np.real(fft.ifft(fft.fft(dense, points) ** count))
    return np.roll(total, -low)[: high - low + 1], low


def _truncation_range(
    indices: np.ndarray, masses: np.ndarray, length: int, count: int
) -> tuple[int, int]:
    """Return a range of grid points that a sum leaves with probability at most :data:`TAIL`."""
    orders = EXPONENTS / length
    moments = logsumexp(indices * orders[:, None], b=masses, axis=1)
    bounds = (count * moments + math.log(2 / TAIL)) / orders
    low = max(0, *(math.floor(bound) for bound in bounds[orders < 0].tolist()))
    high = min((length - 1) * count, *(math.ceil(bound) for bound in bounds[orders > 0].tolist()))
    return low, high


def _distribution(masses: np.ndarray, infinite: float, lowest: int, step: float):
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution  # slow to import

    dense = pld_pmf.DensePLDPmf(step, lowest, masses, infinite, True)
    return privacy_loss_distribution.PrivacyLossDistribution(dense)
