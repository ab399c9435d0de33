r"""Noisy means of random batches: amplification by subsampling, by formula and numerically.

An agent with m records samples a batch S, clips each gradient to l2 norm K, and releases the mean
with noise. The size of the batch may itself be random, :math:`|S| = \lfloor V T_d\rfloor`, but it
does not depend on the data. The numerical accountant reveals it to the observer: a
release is the pair (size, noisy mean) and its Renyi divergence is the *mixture's*,

.. math:: \epsilon(\alpha) = \frac{1}{\alpha-1}\ln\sum_s p_s\,e^{(\alpha-1)\epsilon_s(\alpha)},

not the mean of :math:`\epsilon_s`. With s the size, :math:`\gamma=s/m`, and :math:`\mu_s` the
sensitivity over the standard deviation of the noise:

``fixed_size``
    A uniform subset of s records without replacement; *replace* one record. The whole batch
    dominates ((1-gamma) N(0,1) + gamma N(mu,1), N(0,1)) where the loss is positive (Balle, Barthe,
    Gaboardi, "Privacy amplification by subsampling", 2018, Theorem 9) and its mirror image where it
    is negative. The joined curve is convex, hence a dominating pair that composes (Zhu, Dong, Wang,
    "Optimal accounting of differential privacy via characteristic function", 2022, Theorem 10).
    :math:`\mu_s = 2/(s\sigma)` for noise :math:`\sigma K` on the mean.
``poisson``
    Every record independently with probability gamma, the sum divided by s; *add or remove* one
    record (Mironov, Talwar, Zhang, "Renyi differential privacy of the sampled Gaussian mechanism",
    2019). :math:`\mu_s = 1/(s\sigma)`.

If the noise is not Gaussian but only known to be :math:`\mu^2/2`-zCDP, as the discrete Gaussian
in many dimensions, the general bounds hold: Wang, Balle, Kasiviswanathan, "Subsampled Renyi
differential privacy and analytical moments accountant", 2019, Theorem 9 (``fixed_size``), and Zhu,
Wang, "Poisson subsampled Renyi differential privacy", 2019, Theorem 6 (``poisson``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import gammaln, log_ndtr, logsumexp, ndtr

from private_consensus.common.errors import arguments, require

from .budget import Budget
from .calibration import calibrate
from .releases import MAX_COUNT, RENYI_ORDERS, SAMPLINGS, Release, Sampling

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)
_REACH = 12.0
MAX_BATCH = 10**4
"""Largest batch whose distribution of sizes is enumerated; bounds on epsilon need ms per size."""
_LARGEST_SHIFT = 35.0  # order times mu beyond which a divergence counts as infinite


SMALL_MOMENT = 1e-9
"""Excess of a moment over 1 below which it is computed from a series."""
LARGE_LOSS = 500.0
"""Loss from which on its exponential is not evaluated, to avoid overflow."""


@dataclass(frozen=True)
class Batches:
    """Distribution of a batch's size, independent of the data.

    Parameters
    ----------
    sizes : tuple of int
        Possible sizes.
    probabilities : tuple of float
        Probability of each size; their sum is 1.
    """

    sizes: tuple[int, ...]
    probabilities: tuple[float, ...]

    def __post_init__(self):
        key, expected = "batches.sizes", "at least one whole number >= 0"
        sizes = arguments.items(key, self.sizes, (int, np.integer), expected)
        require(bool(sizes) and min(sizes) >= 0, key, self.sizes, expected)
        object.__setattr__(self, "sizes", tuple(arguments.whole(key, s, 0) for s in sizes))
        key, expected = "batches.probabilities", "one number in [0, 1] per size, with sum 1"
        law = arguments.array(key, self.probabilities, expected, lambda v: (v >= 0) & (v <= 1))
        require(law.shape == (len(sizes),), key, self.probabilities, expected)
        require(abs(math.fsum(law) - 1) < 1e-9, key, self.probabilities, expected)
        object.__setattr__(self, "probabilities", tuple(law.tolist()))

    @property
    def mean(self) -> float:
        return math.fsum(np.multiply(self.sizes, self.probabilities))


def fixed_batches(size: int) -> Batches:
    """Return batches of exactly ``size`` records."""
    return Batches((arguments.whole("size", size, 0),), (1.0,))


def deadline_batches(deadline: float, slowest: float = 10.0, fastest: float = 90.0) -> Batches:
    r"""Return batches of :math:`\lfloor V T_d\rfloor` records with V uniform.

    (Ding, sections 4.4.1 and 4.5; 4 to 35 records, each with probability 1/32, for
    :math:`T_d=0.4`.)

    Parameters
    ----------
    deadline : float
        :math:`T_d > 0`.
    slowest, fastest : float
        Limits of V, in records per unit of time.

    Returns
    -------
    Batches
    """
    key, positive = "deadline", "a finite number above 0"
    deadline = arguments.number(key, deadline, positive, lambda v: 0 < v < math.inf)
    nonnegative = "a finite number >= 0"
    slowest = arguments.number("slowest", slowest, nonnegative, lambda v: 0 <= v < math.inf)
    above = f"a finite number above slowest = {slowest:g}"
    fastest = arguments.number("fastest", fastest, above, lambda v: slowest < v < math.inf)
    expected = f"a deadline at which a batch has at most {MAX_BATCH:,} records"
    require(fastest * deadline <= MAX_BATCH, key, deadline, expected)
    return _deadline_batches(deadline, slowest, fastest)


@lru_cache(maxsize=64)
def _deadline_batches(deadline: float, slowest: float, fastest: float) -> Batches:
    low, high = slowest * deadline, fastest * deadline
    # a product such as 10 x 0.4 may miss the exact integer by rounding
    sizes = np.arange(math.floor(low + 1e-9), math.ceil(high - 1e-9))
    covered = np.minimum(sizes + 1, high) - np.maximum(sizes, low)
    return Batches(tuple(sizes.tolist()), tuple((covered / covered.sum()).tolist()))


@dataclass(frozen=True)
class SampledNoise:
    r"""Noise on a sampled batch, in units of a noise multiplier ``sigma``.

    Parameters
    ----------
    batches : Batches
        Distribution of the batch size.
    records : int
        m, number of records of one agent.
    losses : tuple of float
        :math:`\mu_s\sigma` of every size: sensitivity over the noise's standard deviation at
        sigma 1. :func:`noisy_mean`, :func:`noisy_sum` and :func:`noisy_message` set it.
    sampling : {"fixed_size", "poisson"}
        It determines the neighbouring relation: replace, or add and remove, one record.
    gaussian : bool
        True if the noise is Gaussian, False if it is only as concentrated as a Gaussian.

    Raises
    ------
    InvalidInput
        If a batch may be larger than the number of records of an agent.
    """

    batches: Batches
    records: int
    losses: tuple[float, ...]
    sampling: str = "fixed_size"
    gaussian: bool = True

    def __post_init__(self):
        _check_batches(self.batches, self.records, self.sampling)
        arguments.flag("gaussian", self.gaussian)
        expected = "one finite number >= 0 per size of a batch"
        finite = arguments.array("losses", self.losses, expected, lambda v: (v >= 0) & (v < np.inf))
        require(finite.shape == (len(self.batches.sizes),), "losses", self.losses, expected)
        object.__setattr__(self, "losses", tuple(finite.tolist()))
        largest = max(self.batches.sizes)
        expected = f"at least {largest}, the largest batch"
        require(self.records >= largest, "problem.records", self.records, expected)

    @property
    def rates(self) -> np.ndarray:
        return np.asarray(self.batches.sizes) / self.records

    def releases(self, sigma: float, count: int) -> list[Release]:
        """Return ``count`` noisy batches as releases; exact values at sigma 0.

        Parameters
        ----------
        sigma : float
            Noise multiplier, at least 0.
        count : int
            Number of batches.

        Returns
        -------
        list of Release
        """
        expected = "a finite number >= 0"
        arguments.number("sigma", sigma, expected, lambda v: 0 <= v < math.inf)
        if sigma == 0:
            return [Release("exact", count=count)]
        sampling = Sampling(self.sampling, self.batches.mean / self.records)
        return [
            Release(
                "profile",
                profile=NoisedBatch(self, float(sigma)),
                count=count,
                sampling=sampling,
                attained=1.0 if self.gaussian else None,
            )
        ]

    def sigma(self, budget: Budget, count: int) -> float:
        """Return the smallest sigma at which ``count`` batches stay within ``budget``.

        Parameters
        ----------
        budget : Budget
            Budget of all batches together.
        count : int
            Number of batches.

        Returns
        -------
        float
        """
        arguments.instance("budget", budget, Budget, "a Budget")
        return _numerical_sigma(self, budget, arguments.whole("count", count, 0, MAX_COUNT))


@dataclass(frozen=True)
class NoisedBatch:
    """Privacy profile of a noisy batch with known size, at one noise multiplier ``sigma``."""

    noise: SampledNoise
    sigma: float

    def renyi(self) -> tuple[float, ...]:
        """Return the Renyi divergence at each of ``RENYI_ORDERS``."""
        return renyi_curve(self.noise, self.sigma)

    def deltas(self, epsilon: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return delta(epsilon) of the dominating pair, or of the pairs for removing and adding."""
        if not self.noise.gaussian:
            return ()
        removed = self._mixed(_removed, np.abs(epsilon))
        if self.noise.sampling == "fixed_size":
            negative = np.minimum(epsilon, 0.0)
            mirrored = -np.expm1(negative) + np.exp(negative) * removed
            return (np.where(epsilon >= 0, removed, mirrored),)
        return self._mixed(_removed, epsilon), self._mixed(_added, epsilon)

    def largest(self) -> float:
        """Return the loss of a record in the batch at eight standard deviations of its noise."""
        mu = np.asarray(self.noise.losses) / self.sigma
        rates = self.noise.rates
        with np.errstate(divide="ignore"):  # rates of 0 and 1
            losses = np.logaddexp(np.log1p(-rates), np.log(rates) + mu * (8 + mu / 2))
        return float(losses.max())

    def mu_if_sampled(self) -> float:
        r"""Return the largest :math:`\mu_s` over the batch sizes."""
        return float(np.max(self.noise.losses)) / self.sigma

    def attained(self) -> tuple[tuple[float, float, float], ...]:
        r"""Return weight, :math:`\gamma` and :math:`\mu_s` of each size.

        The pair: all records of an agent have one gradient of length K. One of them has the
        opposite gradient (replace), or is present or absent (add and remove). Along that gradient
        the noisy batch is :math:`(1-\gamma)N(0,1)+\gamma N(\mu_s,1)` or :math:`N(0,1)`.
        """
        if not self.noise.gaussian:
            return ()
        law, rates = self.noise.batches.probabilities, self.noise.rates.tolist()
        mus = (loss / self.sigma for loss in self.noise.losses)
        return tuple(zip(law, rates, mus, strict=True))

    def _mixed(self, profile, epsilon: np.ndarray) -> np.ndarray:
        """Return the mean of a profile over the batch size."""
        law = self.noise.batches.probabilities
        components = zip(law, self.noise.rates, self.noise.losses, strict=True)
        return sum(p * profile(epsilon, rate, loss / self.sigma) for p, rate, loss in components)


@dataclass(frozen=True)
class SentInPart(NoisedBatch):
    """Privacy profile of a noisy batch of which only some coordinates are sent.

    Parameters
    ----------
    share : float
        Smallest sent fraction of the coordinates, for a gradient that is equal in all coordinates.
    missed : float
        Probability that fewer coordinates are sent.
    """

    share: float = 1.0
    missed: float = 0.0

    def attained(self) -> tuple[tuple[float, float, float], ...]:
        r"""Return weight, :math:`\gamma` and reduced :math:`\mu_s` of each size.

        The reduction is the square root of ``share``. Batches of which fewer coordinates are sent
        are not counted.
        """
        sent, factor = 1.0 - self.missed, math.sqrt(self.share)
        return tuple((p * sent, rate, mu * factor) for p, rate, mu in super().attained())


def noisy_mean(batches: Batches, records: int, *, sampling: str = "fixed_size") -> SampledNoise:
    r"""Return noise :math:`N(0,\sigma^2K^2)` on the mean of the clipped gradients.

    (Ding, Algorithm 4.) Its sensitivity 2K/s (replace; K/s add or remove) grows as the
    batch shrinks; the noise does not.

    Parameters
    ----------
    batches : Batches
        Distribution of the batch size s.
    records : int
        Number of records of one agent.
    sampling : {"fixed_size", "poisson"}
        It determines the neighbouring relation: replace, or add and remove, one record.

    Returns
    -------
    SampledNoise

    Raises
    ------
    InvalidInput
        With key ``batches.sizes`` if a batch may be empty: it has no mean.
    """
    _check_batches(batches, records, sampling)
    _require_records(batches)
    change = _change(sampling)
    return SampledNoise(batches, records, tuple(change / s for s in batches.sizes), sampling)


def _check_batches(batches: Batches, records: int, sampling: str) -> None:
    arguments.instance("batches", batches, Batches, "a Batches object")
    arguments.whole("problem.records", records, 1)
    arguments.choice("sampling", sampling, SAMPLINGS)


def _require_records(batches: Batches) -> None:
    min_size = min(batches.sizes)
    require(min_size >= 1, "batches.sizes", min_size, "1 or more: an empty batch has no mean")


def noisy_sum(batches: Batches, records: int, *, sampling: str = "fixed_size") -> SampledNoise:
    r"""Return noise :math:`N(0,\sigma^2K^2)` on the *sum* of the clipped gradients, divided by s.

    Parameters
    ----------
    batches : Batches
        Distribution of the batch size s.
    records : int
        Number of records of one agent.
    sampling : {"fixed_size", "poisson"}
        It determines the neighbouring relation: replace, or add and remove, one record.

    Returns
    -------
    SampledNoise
    """
    _check_batches(batches, records, sampling)
    losses = tuple(_change(sampling) if s else 0.0 for s in batches.sizes)
    return SampledNoise(batches, records, losses, sampling)


def noisy_message(
    batches: Batches,
    records: int,
    *,
    step: float,
    resolution: float,
    dim: int,
    clip: float,
    sampling: str = "fixed_size",
) -> SampledNoise:
    r"""Return discrete Gaussian noise :math:`\sigma K` on the quantised model.

    (Ding, Algorithm 5.) For an agent whose model is a function of its earlier broadcasts
    and of one batch:

    .. math:: \mu_s\sigma = \frac{2\alpha\varepsilon}{s} + \frac{\eta\sqrt p}{K}

    (half the first term for add and remove). Given the uniforms of the rounding, two models at
    distance d are rounded to grid points at distance at most :math:`d+\eta\sqrt p`.

    Parameters
    ----------
    batches : Batches
        Distribution of the batch size s.
    records : int
        Number of records of one agent.
    step : float
        :math:`\alpha\varepsilon`, factor of the gradient in a step.
    resolution : float
        :math:`\eta`, spacing of the quantisation grid.
    dim : int
        p, number of coordinates.
    clip : float
        K, l2 norm to which gradients are clipped.
    sampling : {"fixed_size", "poisson"}
        It determines the neighbouring relation: replace, or add and remove, one record.

    Returns
    -------
    SampledNoise

    Raises
    ------
    InvalidInput
        With key ``batches.sizes`` if a batch may be empty: it has no mean.
    """
    _check_batches(batches, records, sampling)
    for key, value in (("step", step), ("resolution", resolution)):
        arguments.number(key, value, "a finite number >= 0", lambda v: 0 <= v < math.inf)
    arguments.number("clip", clip, "a finite number above 0", lambda v: 0 < v < math.inf)
    arguments.whole("dim", dim, 1)
    _require_records(batches)
    jump = resolution * math.sqrt(dim) / clip
    losses = tuple(_change(sampling) * step / s + jump for s in batches.sizes)
    return SampledNoise(batches, records, losses, sampling, gaussian=False)


# --- Renyi divergences ---------------------------------------------------------------------------


@lru_cache(maxsize=4096)  # used by a release, by its grouping and by each accountant
def renyi_curve(noise: SampledNoise, sigma: float) -> tuple[float, ...]:
    """Return the Renyi divergence of one noisy batch, with its size revealed, per ``RENYI_ORDERS``.

    ``sigma`` is the noise multiplier.
    """
    moment = (_gaussian_moments if noise.gaussian else _concentrated_moments)(noise, sigma)
    orders = np.asarray(RENYI_ORDERS)
    with np.errstate(invalid="ignore"):
        mixed = np.asarray(noise.batches.probabilities) @ np.where(
            np.asarray(noise.losses)[:, None] > 0, moment, 0.0
        )
    return tuple((np.log1p(np.maximum(mixed, 0.0)) / (orders - 1)).tolist())


def _gaussian_moments(noise: SampledNoise, sigma: float) -> np.ndarray:
    r"""Return :math:`e^{(\alpha-1)\epsilon_s(\alpha)} - 1` of the dominating pairs.

    Shape [sizes, orders].
    """
    mu = np.asarray(noise.losses)[:, None, None] / sigma
    gamma = noise.rates[:, None, None]
    order = np.asarray(RENYI_ORDERS)[:, None]
    fixed = noise.sampling == "fixed_size"
    low, high = (mu / 2 if fixed else -_REACH), order * mu + _REACH
    x = low + (high - low) * (_NODES + 1) / 2
    width = (high - low)[..., 0] / 2
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        density = -(x**2) / 2 - math.log(2 * math.pi) / 2
        loss = np.logaddexp(np.log1p(-gamma), np.log(gamma) + mu * x - mu**2 / 2)
        if fixed:
            excess = np.exp(order * loss + density) - np.exp(loss + density)
            excess += np.exp((1 - order) * loss + density) - np.exp(density)
        else:
            excess = np.exp(order * loss + density) - order * np.exp(loss + density)
            excess += (order - 1) * np.exp(density)
        total = width * (excess @ _WEIGHTS)
        if np.any(total < SMALL_MOMENT):
            # Rounding of terms near 1 exceeds small results. These come from small changes u of the
            # likelihood ratio; terms of higher order in u are omitted.
            u = gamma * np.expm1(mu * x - mu**2 / 2)
            series = (
                order * (order - 1) * u**2 * (1 - u / 2 if fixed else (1 + (order - 2) * u / 3) / 2)
            )
            near = np.where(np.abs(order * u) < 1e-4, series * np.exp(density), excess)
            total = np.where(total < SMALL_MOMENT, width * (near @ _WEIGHTS), total)
    return np.where((order * mu)[..., 0] > _LARGEST_SHIFT, np.inf, total)


def _concentrated_moments(noise: SampledNoise, sigma: float) -> np.ndarray:
    r"""Return :math:`e^{(\alpha-1)\epsilon_s(\alpha)} - 1`, [sizes, orders], of zCDP noise."""
    mu = np.asarray(noise.losses) / sigma
    bound = wang_balle_kasiviswanathan if noise.sampling == "fixed_size" else zhu_wang
    # Bounds at integer orders, rounded up in between; sampling never increases the loss.
    by_order = {
        order: bound(order, noise.rates, mu) for order in {math.ceil(o) for o in RENYI_ORDERS}
    }
    logs = [
        (order - 1) * np.minimum(by_order[math.ceil(order)], order * mu**2 / 2)
        for order in RENYI_ORDERS
    ]
    with np.errstate(over="ignore"):
        return np.expm1(np.stack(logs, axis=-1))


def _removed(epsilon: np.ndarray, rate: float, mu: float) -> np.ndarray:
    r"""Compute :math:`H_{e^\epsilon}((1-\gamma)N(0,1)+\gamma N(\mu,1)\,\|\,N(0,1))`.

    It is :math:`\gamma H_{e^{\epsilon'}}(N(\mu,1)\|N(0,1))` with
    :math:`\epsilon'=\ln(1+(e^\epsilon-1)/\gamma)`.
    """
    if rate == 0 or mu == 0:
        return np.maximum(-np.expm1(epsilon), 0.0)
    if rate == 1:
        return _gaussian_delta(epsilon, mu)
    excess = np.expm1(np.minimum(epsilon, LARGE_LOSS)) / rate
    inside = excess > -1
    loss = np.log1p(np.where(inside, excess, 0.0))
    # (e^eps - 1)/rate + 1 is e^eps/rate within rounding where e^eps is close to overflow.
    loss = np.where(epsilon > LARGE_LOSS, epsilon - math.log(rate), loss)
    return np.where(inside, rate * _gaussian_delta(loss, mu), -np.expm1(np.minimum(epsilon, 0)))


def _added(epsilon: np.ndarray, rate: float, mu: float) -> np.ndarray:
    r"""Compute :math:`H_{e^\epsilon}(N(0,1)\,\|\,(1-\gamma)N(0,1)+\gamma N(\mu,1))`.

    It is :math:`a\,H_{e^\epsilon\gamma/a}(N(0,1)\|N(\mu,1))` with
    :math:`a=1-(1-\gamma)e^\epsilon`, and 0 for a <= 0.
    """
    if rate == 0 or mu == 0:
        return np.maximum(-np.expm1(epsilon), 0.0)
    if rate == 1:
        return _gaussian_delta(epsilon, mu)
    epsilon = np.minimum(epsilon, LARGE_LOSS)  # delta is 0 from -ln(1 - rate) on
    weight = rate * np.exp(epsilon) - np.expm1(epsilon)
    inside = weight > 0
    loss = epsilon + np.log(rate) - np.log(np.where(inside, weight, 1.0))
    return np.where(inside, weight * _gaussian_delta(loss, mu), 0.0)


def _gaussian_delta(loss: np.ndarray, mu: float) -> np.ndarray:
    delta = ndtr(mu / 2 - loss / mu) - np.exp(loss + log_ndtr(-mu / 2 - loss / mu))
    return np.maximum(delta, 0.0)


def wang_balle_kasiviswanathan(order: int, rate: Any, mu: Any) -> np.ndarray:
    r"""Bound the Renyi divergence of a :math:`\mu^2/2`-zCDP mechanism on a fixed-size sample.

    Theorem 9, for replacing one record, order :math:`\alpha \ge 2` and rate :math:`\gamma`:

    .. math:: \epsilon'(\alpha) \le \frac{1}{\alpha-1}\ln\Big(1
        + \gamma^2\tbinom\alpha2\min\{4(e^{\epsilon(2)}-1), 2e^{\epsilon(2)}\}
        + \sum_{j=3}^\alpha 2\gamma^j\tbinom\alpha j e^{(j-1)\epsilon(j)}\Big)
    """
    rate, mu = (np.asarray(value, float)[..., None] for value in (rate, mu))
    j = np.arange(2, order + 1)
    terms = _log_binomial(order, j) + j * np.log(rate) + _power(j, mu) + math.log(2)
    terms[..., 0] += np.minimum(0.0, math.log(2) + np.log(-np.expm1(-(mu**2))))[..., 0]
    return np.logaddexp(0.0, logsumexp(terms, axis=-1)) / (order - 1)


def zhu_wang(order: int, rate: Any, mu: Any) -> np.ndarray:
    r"""Bound the Renyi divergence of a :math:`\mu^2/2`-zCDP mechanism on a Poisson sample.

    Theorem 6, for adding or removing one record, order :math:`\alpha \ge 2` and rate
    :math:`\gamma`:

    .. math:: \epsilon'(\alpha) \le \frac{1}{\alpha-1}\ln\Big(
        (1-\gamma)^{\alpha-1}(\alpha\gamma-\gamma+1)
        + \tbinom\alpha2\gamma^2(1-\gamma)^{\alpha-2}e^{\epsilon(2)}
        + 3\sum_{l=3}^\alpha\tbinom\alpha l(1-\gamma)^{\alpha-l}\gamma^l e^{(l-1)\epsilon(l)}\Big)
    """
    rate, mu = (np.asarray(value, float)[..., None] for value in (rate, mu))
    log_complement = np.log1p(-np.minimum(rate, 1 - 1e-15))
    j = np.arange(2, order + 1)
    terms = (
        _log_binomial(order, j) + j * np.log(rate) + (order - j) * log_complement + _power(j, mu)
    )
    terms[..., 1:] += math.log(3)
    first = ((order - 1) * log_complement + np.log1p((order - 1) * rate))[..., 0]
    bound = np.logaddexp(first, logsumexp(terms, axis=-1)) / (order - 1)
    return np.where(rate[..., 0] < 1, bound, order * mu[..., 0] ** 2 / 2)


def _power(j: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Return (j - 1) epsilon(j), with the Renyi divergence epsilon(j) of mu^2/2-zCDP noise."""
    return (j - 1) * j * mu**2 / 2


def _log_binomial(n: int, k):
    return gammaln(n + 1) - gammaln(np.add(k, 1)) - gammaln(np.subtract(n, k) + 1)


def _change(sampling: str) -> float:
    """Return the sensitivity of a sum of clipped gradients, in units of the clipping norm.

    The sampling determines the neighbouring relation.
    """
    return 2.0 if sampling == "fixed_size" else 1.0


@lru_cache(maxsize=256)
def _numerical_sigma(noise: SampledNoise, budget: Budget, count: int) -> float:
    return calibrate(lambda sigma: noise.releases(sigma, count), budget, tolerance=1e-4)
