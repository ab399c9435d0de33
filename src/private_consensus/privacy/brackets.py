r"""Lower bounds on epsilon, computed for attacks whose loss distribution is known.

An accountant bounds the loss of every pair of neighbours from above. This module follows one pair
whose losses are known, because it attains a fraction of every stated sensitivity
(``Release.attained``). Releases without such a pair are omitted. This can only lower the bound,
by post-processing: given all earlier outcomes, an observer can simulate the outcomes of the pair
that is followed (Blackwell). Accountant and lower bound together enclose the true epsilon of the
declared releases.

* Gaussians whose sensitivities are attained at each step, for all earlier outcomes, are one
  Gaussian with :math:`\mu^2 = \sum_t (s_t\Delta_t/\sigma_t)^2`: exact (Dong, Roth, Su, "Gaussian
  differential privacy", JRSS-B 2022). A larger shift can be reduced by adding noise, so that
  fractions may be lower bounds.
* At delta 0 epsilon is the largest loss, a sum over releases that share one sequence of events
  (``Release.reached``). A Gaussian's is unbounded.
* Otherwise the distributions of the losses are convolved with every loss rounded *down*: with
  L' <= L, :math:`E(1-e^{\epsilon-L'})_+ \le E(1-e^{\epsilon-L})_+ = \delta(\epsilon)`, and sums of
  rounded losses stay below the sums of the true ones. (``dp_accounting`` rounds down too, but
  counts the truncated tails as infinite losses, and takes ten times as long.)
* The outcomes of a sampled Gaussian are first joined in cells, which is post-processing.
* If the distributions are those of an attack up to factors within :math:`[e^{-b}, e^b]`
  (``Release.log_tolerance``), :math:`P(S)-e^\epsilon Q(S) \ge
  e^{-b}(P'(S)-e^{\epsilon+2b}Q'(S))`: the bound is the epsilon that the attack attains at
  :math:`\delta e^b`, minus 2b.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtri

from private_consensus.common.errors import require

from .conversions import gaussian_epsilon
from .discrete import discrete_gaussian_pmf
from .releases import Release

SMALLEST_DELTA = 1e-10
"""A smaller delta is replaced by this one, at which Fourier transforms are accurate enough."""
MARGIN = 1e-6
"""Bound on floating-point errors of delta, relative to delta."""
NEARLY = 1e-3
"""An attained fraction is reported if it is below 1 by more than this."""
ROUNDING_MARGIN = 1e-9
"""Relative reduction of a bound for its own rounding errors."""
COARSE = 4e-3
"""Approximate relative cost of rounding the losses."""
MAX_GRID_POINTS = 2**21
"""Approximate maximum number of points of a loss distribution."""
CELLS, REACH = 20_000, 12.0
"""Number of cells of outcomes of a sampled Gaussian, and their reach in standard deviations."""
TAIL = 8.0
"""Number of standard deviations of the total loss that a grid must cover."""
LENGTHS, COSINES = 24, 2500
"""Numbers of cells of the length of radial noise, and of its cosine with a shift."""
EXPONENTS = tuple(4.0**k for k in range(-4, 7))


@dataclass(frozen=True)
class LowerBound:
    """Lower bound on the epsilon of every valid guarantee.

    Parameters
    ----------
    epsilon : float
        Lower bound; 0 if no attack is known.
    method : str
        ``exact``, ``gaussian``, ``largest loss``, ``losses rounded down`` or ``none``.
    because : str
        Reasons why the bound may be too low: fractions of sensitivities that are attained, and
        releases without a known attack. Empty if there are none.
    """

    epsilon: float
    method: str
    because: str = ""


@dataclass(frozen=True)
class _EqualLosses:
    r"""Several releases whose privacy losses have one distribution.

    Kinds: ``gaussian``; ``laplace``; ``radial`` (:math:`e^{-\|b\|}` in ``dim`` coordinates);
    ``discrete`` (loss is sigma, and the mixture contains the steps); ``mixture`` of Gaussians
    against one Gaussian.
    """

    kind: str
    loss: float
    count: int
    rate: float = 1.0
    mixture: tuple[tuple[float, float, float], ...] = ()
    dim: int = 1


def lower_bound(releases: Iterable[Release], delta: float) -> LowerBound:
    """Return a lower bound on the epsilon of releases at ``delta``, from known attacks.

    It is at most the epsilon of :func:`private_consensus.privacy.account`.
    """
    require(0 <= delta < 1, "delta", delta, "a number in [0, 1)")
    releases = [release for release in releases if release.count]
    attacked = [release.attack or release for release in releases]
    reasons = [*map(_shortfall(delta), attacked), *map(_vacuous, releases)]
    because = "; ".join(dict.fromkeys(filter(None, reasons)))
    if any(_certain(release) for release in attacked):
        return LowerBound(math.inf, "exact", because)
    tolerance = math.fsum(release.count * release.log_tolerance for release in attacked)
    if tolerance == math.inf or (delta > 0 and tolerance >= -math.log(delta)):
        epsilon, method = 0.0, "none"
    elif delta == 0:
        epsilon, method = math.fsum(map(_largest_loss, attacked)), "largest loss"
    else:
        epsilon, method = _attained_epsilon(_parts(attacked), float(delta) * math.exp(tolerance))
    epsilon = max(epsilon - 2 * tolerance, 0.0)
    return LowerBound(epsilon, method if epsilon else "none", because)


# --- What is attained -------------------------------------------------------------------------


def _attained_fractions(release: Release, delta: float) -> np.ndarray:
    """Return the attained fraction of each release of a series; 0 if it is unknown."""
    fraction = release.attained
    if delta == 0 and release.reached is not None:
        fraction = release.reached
    return np.broadcast_to(0.0 if fraction is None else fraction, release.losses().shape)


def _attained_losses(release: Release, delta: float) -> np.ndarray:
    """Return the loss parameters that the pair attains."""
    fractions = _attained_fractions(release, delta)
    return fractions * np.where(fractions > 0, release.losses(), 0.0)


def _shortfall(delta: float):
    """Explain in words why a lower bound is below the accountant's epsilon."""

    def describe(release: Release) -> str:
        if not np.any(release.losses() > 0):
            return ""
        if release.mechanism == "pure" and delta > 0:
            return "the distribution of a pure mechanism is not known"
        fractions = _attained_fractions(release, delta)
        if release.profile is not None and not release.profile.attained():
            fractions = np.zeros(1)
        if not np.any(fractions):
            return _unknown(release)
        if np.all(fractions > 1 - NEARLY):
            tolerance = release.log_tolerance
            return f"the attack is known up to factors of e^{tolerance:.2g}" if tolerance else ""
        min_fraction, max_fraction = f"{fractions.min():.2g}", f"{fractions.max():.2g}"
        fraction_text = (
            min_fraction if min_fraction == max_fraction else f"{min_fraction} to {max_fraction}"
        )
        return f"a known pair attains {fraction_text} of the sensitivity"

    return describe


def _vacuous(release: Release) -> str:
    """Explain why the attack on a release gives no bound."""
    attack = release.attack
    return "" if attack is None or np.any(attack.losses() > 0) else attack.note


def _unknown(release: Release) -> str:
    """Explain why the attained loss of a release is unknown."""
    if release.mechanism == "exact":
        reason = "values sent without added noise have no known distribution"
        return f"{release.note}: {reason}" if release.note else reason
    return release.note or f"no pair is known that attains the sensitivity of {release.mechanism}"


def _certain(release: Release) -> bool:
    """Return True if some pair of neighbours is distinguished with certainty.

    This is so for different values without noise, and for an unbounded change. Overflow of a
    PrivacyProfile does not count.
    """
    if release.mechanism == "profile":
        return False
    return bool(np.any(np.isinf(release.losses()) & (_attained_fractions(release, 1.0) > 0)))


def _largest_loss(release: Release) -> float:
    """Return the supremum of the loss of a series, at delta 0."""
    losses = _attained_losses(release, 0.0)
    if release.mechanism in ("gaussian", "discrete_gaussian", "profile"):
        return math.inf if np.any(losses > 0) else 0.0
    if release.sampling is not None:
        rate = release.sampling.rate
        losses = np.where(
            losses > 1,  # expm1 overflows for large losses
            losses + np.log(rate + (1 - rate) * np.exp(-losses)),
            np.log1p(rate * np.expm1(np.minimum(losses, 1))),
        )
    return (1 - ROUNDING_MARGIN) * release.count * math.fsum(losses)


def _parts(releases: Sequence[Release]) -> tuple[_EqualLosses, ...]:
    """Group equal losses of known distribution; combine all Gaussians into one."""
    square, counts = 0.0, defaultdict(int)
    for release in releases:
        losses = _attained_losses(release, 1.0)
        rate = 1.0 if release.sampling is None else release.sampling.rate
        if release.profile is not None:
            if release.attained and release.profile.attained():
                counts["mixture", 1.0, 1.0, release.profile.attained(), 1] += release.count
        elif release.mechanism == "gaussian" and rate == 1:
            square += release.count * math.fsum(losses**2)
        elif release.mechanism in ("gaussian", "laplace"):
            for loss in losses[losses > 0].tolist():
                mixture = ((1.0, rate, loss),) if release.mechanism == "gaussian" else ()
                kind = "mixture" if mixture else "laplace"
                counts[kind, loss, rate, mixture, 1] += release.count
        elif release.mechanism == "gamma_norm" and rate == 1 and release.dim is not None:
            for loss in losses[losses > 0].tolist():
                counts["radial", loss, 1.0, (), release.dim] += release.count
        elif release.mechanism == "discrete_gaussian" and rate == 1:
            for steps, sigma in _whole_steps(release):
                counts["discrete", sigma, 1.0, ((1.0, 1.0, steps),), 1] += release.count
    loss_groups = [_EqualLosses(*key[:2], n, *key[2:]) for key, n in counts.items()]
    gaussian = [_EqualLosses("gaussian", math.sqrt(square), 1)] if square > 0 else []
    return (*gaussian, *sorted(loss_groups, key=repr))


def _whole_steps(release: Release):
    """Yield the shift of a coordinate in whole grid steps, and sigma, per discrete Gaussian."""
    change = _attained_fractions(release, 1.0) * release.sensitivity
    sigmas = np.broadcast_to(release.scale, change.shape)
    for steps, sigma in zip(np.floor(change + ROUNDING_MARGIN), sigmas, strict=True):
        if steps >= 1:
            yield float(steps), float(sigma)


# --- Epsilon of a pair ------------------------------------------------------------------------


@lru_cache(maxsize=4096)  # many settings of a grid have equal privacy parameters
def _attained_epsilon(groups: tuple[_EqualLosses, ...], delta: float) -> tuple[float, str]:
    if not groups:
        return 0.0, "none"
    if len(groups) == 1 and groups[0].kind == "gaussian":
        return (1 - ROUNDING_MARGIN) * float(gaussian_epsilon(groups[0].loss, delta)), "gaussian"
    within = max(delta, SMALLEST_DELTA) * (1 + MARGIN)
    guess = _estimated_epsilon(groups, within)
    epsilon = _on_grid(groups, within, guess)
    if 0 < epsilon < guess / 1.5:
        epsilon = max(epsilon, _on_grid(groups, within, epsilon))
    return (1 - ROUNDING_MARGIN) * epsilon, "losses rounded down"


def _estimated_epsilon(groups: Sequence[_EqualLosses], delta: float) -> float:
    """Estimate epsilon from mean and variance of the total loss, to select the grid."""
    mean, variance = _total(groups)
    return max(mean - math.sqrt(variance) * ndtri(min(delta, 0.5)), 1e-6)


def _on_grid(groups: Sequence[_EqualLosses], delta: float, guess: float) -> float:
    """Compute epsilon with losses rounded down to a grid.

    The rounding costs about :data:`COARSE` of ``guess``: a loss is rounded by half a step on
    average.
    """
    mean, variance = _total(groups)
    rounded = sum(group.count for group in groups)
    shortest = (2 * mean + 2 * TAIL * math.sqrt(variance)) / MAX_GRID_POINTS
    step = max(2 * COARSE * guess / rounded, shortest)
    laws = [(_rounded_down(group, step), group.count) for group in groups]
    lowest, masses, misplaced = _sum_of_losses(laws, step, MARGIN * delta)
    return _epsilon_of(lowest, masses, step, delta + misplaced)


def _total(groups: Sequence[_EqualLosses]) -> tuple[float, float]:
    mean, variance = np.sum([group.count * np.array(_moments(group)) for group in groups], axis=0)
    return float(mean), float(variance)


def _moments(group: _EqualLosses) -> tuple[float, float]:
    """Estimate the mean and the variance of a loss."""
    if group.kind == "laplace":
        loss = math.log1p(group.rate * math.expm1(min(group.loss, 30.0)))
        return loss + math.expm1(-loss), loss * min(loss, 2.0)
    if group.kind == "radial":
        square = group.loss**2 / group.dim
        return square / 2, square
    mixture = ((1.0, 1.0, group.loss),) if group.kind == "gaussian" else group.mixture
    if group.kind == "discrete":
        mixture = ((1.0, 1.0, group.mixture[0][2] / group.loss),)
    second_moments = [p * min(math.expm1(min(mu**2, 30.0)) * g * g, mu**2) for p, g, mu in mixture]
    return sum(second_moments) / 2, sum(second_moments)


def _rounded_down(group: _EqualLosses, step: float) -> tuple[int, np.ndarray]:
    """Return the distribution of one loss, rounded down to multiples of ``step``.

    The result is the lowest multiple and the masses. Losses above
    :data:`MAX_GRID_POINTS` steps are reduced to that number, and losses below its negative are
    omitted.
    """
    if group.kind == "gaussian":
        law = _mixture_losses(((1.0, 1.0, group.loss),))
    elif group.kind == "laplace":
        law = _laplace_losses(group.loss, group.rate, step)
    elif group.kind == "radial":
        law = _radial_losses(group.loss, group.dim)
    elif group.kind == "discrete":
        law = _discrete_losses(group.mixture[0][2], group.loss)
    else:
        law = _mixture_losses(group.mixture)
    losses, masses = law
    grid_indices = np.floor(losses / step - MARGIN).astype(np.int64)
    near = grid_indices >= -MAX_GRID_POINTS
    grid_indices, masses = np.minimum(grid_indices[near], MAX_GRID_POINTS), masses[near]
    lowest = int(grid_indices.min())
    return lowest, np.bincount(grid_indices - lowest, masses)


def _mixture_losses(mixture) -> tuple[np.ndarray, np.ndarray]:
    """Return losses and masses of a sampled Gaussian, with its outcomes joined in cells.

    Outcomes farther out than :data:`REACH` are omitted.
    """
    losses, masses = [], []
    for weight, rate, mu in mixture:
        edges = np.linspace(-REACH, REACH + mu, CELLS + 1)
        base, mixed = _log_masses(edges), _log_masses(edges - mu)
        if rate != 1:
            with np.errstate(divide="ignore"):  # a rate of 0
                mixed = np.logaddexp(np.log1p(-rate) + base, np.log(rate) + mixed)
        losses.append(mixed - base)
        masses.append(weight * np.exp(mixed))
    return np.concatenate(losses), np.concatenate(masses)


def _laplace_losses(loss: float, rate: float, step: float) -> tuple[np.ndarray, np.ndarray]:
    r"""Return losses and masses of Laplace noise at distance ``loss``, sampled at ``rate``.

    With :math:`\ell = |x| - |x-\text{loss}|` for noise of scale 1, the unsampled loss has the
    distribution :math:`P(\ell \le t) = \frac12e^{(t-\text{loss})/2}` below its largest value if the
    record takes part, :math:`1-\frac12e^{-(t+\text{loss})/2}` if not. The sampled loss is
    :math:`\ln(1-\gamma+\gamma e^\ell)`. An interval counts with its lower end.
    """
    cells = min(max(math.ceil(4 * loss / step), 2), CELLS)
    ends = np.linspace(-loss, loss, cells + 1)
    present = np.concatenate([0.5 * np.exp((ends[:-1] - loss) / 2), [0.5, 1.0]])
    absent = np.concatenate(
        [1 - 0.5 * np.exp(-(ends[:-1] + loss) / 2), [1 - 0.5 * np.exp(-loss), 1.0]]
    )
    cumulative = rate * present + (1 - rate) * absent
    masses = np.diff(cumulative, prepend=0.0)
    lower = np.concatenate([ends[:1], ends[:-1], ends[-1:]])
    return np.log1p(rate * np.expm1(lower)), masses


def _radial_losses(loss: float, dim: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Return losses and masses of noise of density :math:`e^{-\|b\|}`, shifted by ``loss``.

    With r the length of b and c the cosine between b and the shift s, the loss is
    :math:`\sqrt{r^2 + 2rsc + s^2} - r`. It increases with c and decreases with r: a cell of (r, c)
    counts with its smallest loss. r has a gamma distribution of shape d, :math:`(1+c)/2` a beta
    distribution.
    """
    if dim == 1:
        return _laplace_losses(loss, 1.0, loss / CELLS)
    upper, c, masses = _radial_cells(dim)
    losses = np.sqrt(upper**2 + 2 * upper * loss * c + loss**2) - upper
    return losses.ravel(), masses


@lru_cache(maxsize=8)
def _radial_cells(dim: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return upper ends of length [cells, 1], lower ends of the cosine, and masses of all pairs."""
    from scipy.stats import beta, gamma  # slow to import, and rarely needed

    half = (dim - 1) / 2
    far = np.linspace(0.0, 1.0, LENGTHS + 1)[:-1]
    longest = gamma.isf(MARGIN * SMALLEST_DELTA, dim)  # larger lengths are omitted
    r = np.append(gamma.ppf(far, dim), longest)
    c = 2 * np.unique(beta.ppf(np.linspace(0.0, 1.0, COSINES + 1), half, half)) - 1
    angles = np.diff(beta.cdf((1 + c) / 2, half, half))
    return r[1:, None], c[:-1], np.outer(np.diff(gamma.cdf(r, dim)), angles).ravel()


def _discrete_losses(steps: float, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return losses and masses of a discrete Gaussian shifted by whole steps.

    A cell of several integers counts with the smallest loss and the smallest mass of its integers,
    which are those at its ends.
    """
    reach = math.ceil(REACH * sigma)
    width = math.ceil((2 * reach + 1) / MAX_GRID_POINTS)
    first = np.arange(-reach, reach + 1, width, dtype=float)
    last = first + (width - 1)
    masses = width * np.minimum(*(discrete_gaussian_pmf(k, sigma**2) for k in (first, last)))
    return (steps**2 - 2 * last * steps) / (2 * sigma**2), masses


def _sum_of_losses(laws, step: float, tail_mass: float) -> tuple[int, np.ndarray, float]:
    """Return the distribution of a sum of rounded losses, by a Fourier transform.

    It has the first grid point in steps, the masses, and the mass that may be misplaced: that
    outside
    the grid (Chernoff), and rounding errors, estimated from the negative masses.
    """
    low, high = _span(laws, step, tail_mass)
    size = 2 ** math.ceil(math.log2(high - low + 1))
    spectrum = np.ones(size // 2 + 1, complex)
    shift = 0
    for (lowest, masses), count in laws:
        indices = np.arange(masses.size) % size
        spectrum *= np.fft.rfft(np.bincount(indices, masses, size), size) ** count
        shift += count * lowest
    wrapped = np.fft.irfft(spectrum, size)
    masses_of_sum = np.roll(wrapped, (shift - low) % size)
    negative = -float(masses_of_sum[masses_of_sum < 0].sum())
    return low, np.maximum(masses_of_sum, 0.0), 2 * tail_mass + 4 * negative


def _span(laws, step: float, tail_mass: float) -> tuple[int, int]:
    """Return the smallest and largest multiple of ``step`` for a sum of losses.

    On either side the sum lies outside with probability ``tail_mass`` at most: Chernoff's bound,
    minimised over some exponents.
    """
    low = sum(count * lowest for (lowest, _), count in laws)
    high = sum(count * (lowest + masses.size - 1) for (lowest, masses), count in laws)
    present = [np.flatnonzero(masses) for (_, masses), _ in laws]
    laws = [
        (step * (lowest + support), masses[support], count)
        for ((lowest, masses), count), support in zip(laws, present, strict=True)
    ]
    for exponent in EXPONENTS:
        for sign in (1.0, -1.0):
            total = sum(
                count * _log_moment(sign * exponent * losses, p) for losses, p, count in laws
            )
            end = (total - math.log(tail_mass)) / (exponent * step)
            if sign > 0:
                high = min(high, math.ceil(end))
            else:
                low = max(low, math.floor(-end))
    return int(low), int(high)


def _log_moment(exponents: np.ndarray, masses: np.ndarray) -> float:
    """Return ln of the mean of exp, without overflow."""
    max_exponent = float(exponents.max())
    return max_exponent + math.log(float(masses @ np.exp(exponents - max_exponent)))


def _epsilon_of(lowest: int, masses: np.ndarray, step: float, delta: float) -> float:
    r"""Return the smallest epsilon >= 0 of a loss distribution at ``delta``.

    It satisfies :math:`\sum_\ell p_\ell(1-e^{\epsilon-\ell})_+ \le \delta`.

    At the k-th loss of a grid the sum is :math:`\sum_{j\ge k} p_j - q_k` with
    :math:`q_k = p_k + e^{-\text{step}}q_{k+1}`, which does not overflow for large losses.
    """
    from scipy.signal import lfilter  # slow to import, and rarely needed

    first = max(1 - lowest, 0)
    masses = masses[first:]
    if not masses.size:
        return 0.0
    losses = step * (lowest + first + np.arange(masses.size))
    above = np.cumsum(masses[::-1])[::-1]
    discounted = lfilter([1.0], [1.0, -math.exp(-step)], masses[::-1])[::-1]
    if above[0] - discounted[0] * math.exp(-losses[0]) <= delta:
        return 0.0
    at = above - discounted
    index = int(np.argmax(at <= delta))
    if at[index] > delta or above[index] <= delta:
        return float(losses[index])
    return float(losses[index] + min(math.log((above[index] - delta) / discounted[index]), 0.0))


def _log_masses(edges: np.ndarray) -> np.ndarray:
    """Return the logarithm of a standard normal's mass in each cell, without underflow."""
    positive = int(np.count_nonzero(edges[1:] + edges[:-1] <= 0))
    lower, upper = log_ndtr(edges[: positive + 1]), log_ndtr(-edges[positive:])
    larger = np.concatenate([lower[1:], upper[:-1]])
    smaller = np.concatenate([lower[:-1], upper[1:]])
    return larger + np.log1p(-np.exp(smaller - larger))
