r"""Noisy means of random batches: amplification by subsampling, by formula and numerically.

An agent with m records samples a batch S, clips each gradient to l2 norm K, and releases the mean
with noise. The size of the batch may itself be random, :math:`|S| = \lfloor V T_d\rfloor`, but it
does not depend on the data. The numerical accountant reveals it to the observer: a
release is the pair (size, noisy mean) and its Renyi divergence is the *mixture's*,

.. math:: \epsilon(\alpha) = \frac{1}{\alpha-1}\ln\sum_s p_s\,e^{(\alpha-1)\epsilon_s(\alpha)},

not the mean of :math:`\epsilon_s`. With s the size, :math:`\gamma=s/m`, and :math:`\mu_s` the
sensitivity over the standard deviation of the noise:

``fixed_size``
    A uniform subset of s records without replacement; *replace* one record.
    :mod:`.loss_distributions` states the dominating pair. :math:`\mu_s = 2/(s\sigma)` for noise
    :math:`\sigma K` on the mean.
``poisson``
    Every record independently with probability gamma, the sum divided by s; *add or remove* one
    record (Mironov, Talwar, Zhang, "Renyi differential privacy of the sampled Gaussian mechanism",
    2019). :math:`\mu_s = 1/(s\sigma)`.

If the noise is not Gaussian but only known to be :math:`\mu^2/2`-zCDP, as the discrete Gaussian
in many dimensions, a general bound holds for samples of fixed size: Wang, Balle, Kasiviswanathan,
"Subsampled Renyi differential privacy and analytical moments accountant", 2019, Theorem 9.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp

from private_consensus.common.errors import arguments, require

from .budget import Budget
from .calibration import calibrate
from .loss_distributions import Pair
from .releases import MAX_COUNT, PrivacyProfile, Release

SAMPLINGS = ("poisson", "fixed_size")
SLOWEST, FASTEST = 10.0, 90.0
"""Limits of the number of gradients that an agent computes per second."""
MAX_BATCH = 10**4
"""Largest batch whose distribution of sizes is enumerated; bounds on epsilon need ms per size."""
MAX_ORDER = 256
"""Largest order of a Renyi divergence that is bounded by a sum over smaller orders."""


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


def fixed_batches(size: int) -> Batches:
    """Return batches of exactly ``size`` records."""
    return Batches((arguments.whole("size", size, 0),), (1.0,))


def deadline_batches(deadline: float) -> Batches:
    r"""Return batches of :math:`\lfloor V T_d\rfloor` records with V uniform in [10, 90].

    (Ding, sections 4.4.1 and 4.5; 4 to 35 records, each with probability 1/32, for the ``deadline``
    :math:`T_d=0.4`.)
    """
    expected = f"a number above 0 at which a batch has at most {MAX_BATCH:,} records"
    arguments.number("deadline", deadline, expected, lambda v: 0 < FASTEST * v <= MAX_BATCH)
    low, high = SLOWEST * deadline, FASTEST * deadline
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
        sigma 1. :func:`noisy_mean` and :func:`noisy_sum` set it.
    sampling : {"fixed_size", "poisson"}
        It determines the neighbouring relation: replace, or add and remove, one record.
    gaussian : bool
        True if the noise is Gaussian, False if it is only as concentrated as a Gaussian, which
        requires a fixed size.

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
        arguments.whole("problem.records", self.records, 1)
        arguments.choice("sampling", self.sampling, SAMPLINGS)
        largest = max(self.batches.sizes)
        expected = f"at least {largest}, the largest batch"
        require(self.records >= largest, "problem.records", self.records, expected)

    @property
    def rates(self) -> np.ndarray:
        return np.asarray(self.batches.sizes) / self.records

    def releases(self, sigma: float, count: int) -> list[Release]:
        """Return ``count`` noisy batches as releases; exact values at sigma 0."""
        expected = "a finite number >= 0"
        arguments.number("sigma", sigma, expected, lambda v: 0 <= v < math.inf)
        if sigma == 0:
            return [Release("exact", count=count)]
        return [
            Release(
                "profile",
                profile=NoisedBatch(self, float(sigma)),
                count=count,
                attained=1.0 if self.gaussian else None,
            )
        ]

    def sigma(self, budget: Budget, count: int) -> float:
        """Return the smallest sigma at which ``count`` batches together stay within ``budget``."""
        arguments.instance("budget", budget, Budget, "a Budget")
        return _numerical_sigma(self, budget, arguments.whole("count", count, 0, MAX_COUNT))


@dataclass(frozen=True)
class NoisedBatch(PrivacyProfile):
    """Privacy profile of a noisy batch with known size, at one noise multiplier ``sigma``."""

    noise: SampledNoise
    sigma: float

    def pair(self) -> Pair | None:
        r"""Return the dominating pair of Gaussian noise.

        All records of an agent have one gradient of length K. One of them has the opposite gradient
        (replace), or is present or absent (add and remove). Along that gradient the noisy batch is
        :math:`(1-\gamma)N(0,1)+\gamma N(\mu_s,1)` or :math:`N(0,1)`.
        """
        if not self.noise.gaussian:
            return None
        return Pair("gaussian", self.components, self.noise.sampling)

    def divergence(self, order: float) -> float:
        """Return a bound on the Renyi divergence, for noise as concentrated as a Gaussian.

        ``order - 1`` times the divergence is convex in the order, hence at most its chord between
        two integers.
        """
        below, above = math.floor(order), math.ceil(order)
        if above > MAX_ORDER:
            return math.inf
        ends = [_log_moments(self.noise, self.sigma, end) for end in (below, above)]
        chord = ends[0] + (order - below) * (ends[1] - ends[0])
        mu = np.asarray(self.noise.losses) / self.sigma
        # sampling never increases the loss
        moments = np.minimum(chord, (order - 1) * order * mu**2 / 2)
        law = np.asarray(self.noise.batches.probabilities)
        law = law / law.sum()
        if moments.max() < 1:  # without a rounding error near 1
            return math.log1p(law @ np.expm1(moments)) / (order - 1)
        return float(logsumexp(moments, b=law)) / (order - 1)

    def mu_if_sampled(self) -> float:
        r"""Return the largest :math:`\mu_s` over the batch sizes."""
        return float(np.max(self.noise.losses)) / self.sigma

    @property
    def components(self) -> tuple[tuple[float, float, float], ...]:
        r"""Weight, :math:`\gamma` and :math:`\mu_s` of each size."""
        losses = (loss / self.sigma for loss in self.noise.losses)
        rates = self.noise.rates.tolist()
        return tuple(zip(self.noise.batches.probabilities, rates, losses, strict=True))


def noisy_mean(batches: Batches, records: int, *, sampling: str = "fixed_size") -> SampledNoise:
    r"""Return noise :math:`N(0,\sigma^2K^2)` on the mean of the clipped gradients.

    (Ding, Algorithm 4.) Its sensitivity 2K/s (replace; K/s add or remove) grows as the batch
    shrinks; the noise does not. The number of ``records`` is that of one agent, and ``sampling``
    determines the neighbouring relation. An empty batch has no mean and is refused.
    """
    arguments.instance("batches", batches, Batches, "a Batches object")
    smallest = min(batches.sizes)
    require(smallest >= 1, "batches.sizes", smallest, "1 or more: an empty batch has no mean")
    change = _change(sampling)
    return SampledNoise(batches, records, tuple(change / s for s in batches.sizes), sampling)


def noisy_sum(batches: Batches, records: int, *, sampling: str = "fixed_size") -> SampledNoise:
    r"""Return noise :math:`N(0,\sigma^2K^2)` on the *sum* of the clipped gradients, divided by s.

    See :func:`noisy_mean`.
    """
    arguments.instance("batches", batches, Batches, "a Batches object")
    losses = tuple(_change(sampling) if s else 0.0 for s in batches.sizes)
    return SampledNoise(batches, records, losses, sampling)


# --- Renyi divergences ---------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _log_moments(noise: SampledNoise, sigma: float, order: int) -> np.ndarray:
    r"""Bound :math:`(\alpha-1)\epsilon(\alpha)` of noise that is :math:`\mu^2/2`-zCDP, per size."""
    moments = np.zeros(len(noise.losses))
    informative = np.asarray(noise.losses) > 0
    if order > 1:
        mu, rates = np.asarray(noise.losses)[informative] / sigma, noise.rates[informative]
        moments[informative] = (order - 1) * wang_balle_kasiviswanathan(order, rates, mu)
    return moments


def wang_balle_kasiviswanathan(order: int, rate: Any, mu: Any) -> np.ndarray:
    r"""Bound the Renyi divergence of a :math:`\mu^2/2`-zCDP mechanism on a fixed-size sample.

    Theorem 9, for replacing one record, order :math:`\alpha \ge 2` and rate :math:`\gamma`:

    .. math:: \epsilon'(\alpha) \le \frac{1}{\alpha-1}\ln\Big(1
        + \gamma^2\tbinom\alpha2\min\{4(e^{\epsilon(2)}-1), 2e^{\epsilon(2)}\}
        + \sum_{j=3}^\alpha 2\gamma^j\tbinom\alpha j e^{(j-1)\epsilon(j)}\Big)
    """
    rate, mu = (np.asarray(value, float)[..., None] for value in (rate, mu))
    j = np.arange(2, order + 1)
    losses = (j - 1) * j * mu**2 / 2  # (j - 1) epsilon(j)
    log_binomials = gammaln(order + 1) - gammaln(j + 1) - gammaln(order - j + 1)
    terms = log_binomials + j * np.log(rate) + losses + math.log(2)
    terms[..., 0] += np.minimum(0.0, math.log(2) + np.log(-np.expm1(-(mu**2))))[..., 0]
    return np.logaddexp(0.0, logsumexp(terms, axis=-1)) / (order - 1)


def _change(sampling: str) -> float:
    """Return the sensitivity of a sum of clipped gradients, in units of the clipping norm.

    The sampling determines the neighbouring relation.
    """
    return 2.0 if sampling == "fixed_size" else 1.0


@lru_cache(maxsize=256)
def _numerical_sigma(noise: SampledNoise, budget: Budget, count: int) -> float:
    return calibrate(lambda sigma: noise.releases(sigma, count), budget, tolerance=1e-4)
