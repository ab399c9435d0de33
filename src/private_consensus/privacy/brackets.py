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
* Otherwise the distributions of the losses are convolved. Outcomes with similar losses are joined,
  which is post-processing, and the losses of the joined outcomes are rounded *down*: with
  L' <= L, :math:`E(1-e^{\epsilon-L'})_+ \le E(1-e^{\epsilon-L})_+ = \delta(\epsilon)`, and sums of
  rounded losses stay below the sums of the true ones. Most joined losses lie in the middle of their
  cells, so that a grid of these middles hardly changes them.
* If the distributions are those of an attack up to factors within :math:`[e^{-b}, e^b]`
  (``Release.log_tolerance``), :math:`P(S)-e^\epsilon Q(S) \ge
  e^{-b}(P'(S)-e^{\epsilon+2b}Q'(S))`: the bound is the epsilon that the attack attains at
  :math:`\delta e^b`, minus 2b.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from private_consensus.common.errors import require

from .conversions import gaussian_epsilon
from .loss_distributions import Losses, Pair, composed, even_edges, pair_outcomes, tilt
from .releases import Release

MARGIN = 1e-6
"""Bound on floating-point errors of delta, and omitted mass, relative to delta."""
ROUNDING_MARGIN = 1e-9
"""Relative reduction of a bound for its own rounding errors."""
COARSE = 4e-3
"""Approximate relative cost of rounding losses."""
MAX_GRID_POINTS = 2**21
"""Approximate maximum number of points of a loss distribution."""
TAIL = 8.0
"""Number of standard deviations of the total loss."""
FAR, MAX_STEPS = 10.0, 2**18
"""Multiple of an estimate of epsilon, and number of steps, to which larger losses are reduced."""
MAX_PARAMETER = 1e3
"""Larger losses of one release, in standard deviations of a Gaussian, are reduced to this one."""
LENGTHS, COSINES = 24, 2500
"""Numbers of cells of the length of radial noise, and of its cosine with a shift."""


@dataclass(frozen=True)
class LowerBound:
    """Lower bound on the epsilon of every valid guarantee.

    Parameters
    ----------
    epsilon : float
        Lower bound; 0 if no attack is known.
    method : str
        ``exact``, ``gaussian``, ``largest loss``, ``losses rounded down`` or ``none``.
    """

    epsilon: float
    method: str


@dataclass(frozen=True)
class _EqualLosses:
    r"""Several releases whose privacy losses have one distribution.

    Kinds: ``gaussian``; ``laplace``; ``radial`` (:math:`e^{-\|b\|}` in ``dim`` coordinates);
    ``mixture`` of Gaussians against one Gaussian.
    """

    kind: str
    loss: float
    count: int
    mixture: tuple[tuple[float, float, float], ...] = ()
    dim: int = 1


def lower_bound(releases: Iterable[Release], delta: float) -> LowerBound:
    """Return a lower bound on the epsilon of releases at ``delta``, from known attacks.

    It is at most the epsilon of :func:`private_consensus.privacy.account`.
    """
    require(0 <= delta < 1, "delta", delta, "a number in [0, 1)")
    releases = [release for release in releases if release.count]
    attacked = [release.attack or release for release in releases]
    if any(_certain(release) for release in attacked):
        return LowerBound(math.inf, "exact")
    tolerance = math.fsum(release.count * release.log_tolerance for release in attacked)
    if tolerance == math.inf or (delta > 0 and tolerance >= -math.log(delta)):
        epsilon, method = 0.0, "none"
    elif delta == 0:
        epsilon, method = math.fsum(map(_largest_loss, attacked)), "largest loss"
    else:
        epsilon, method = _attained_epsilon(_parts(attacked), float(delta) * math.exp(tolerance))
    epsilon = max(epsilon - 2 * tolerance, 0.0)
    return LowerBound(epsilon, method if epsilon else "none")


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
    return (1 - ROUNDING_MARGIN) * release.count * math.fsum(losses)


def _parts(releases: Sequence[Release]) -> tuple[_EqualLosses, ...]:
    """Group equal losses of known distribution; combine all Gaussians into one."""
    square, counts = 0.0, defaultdict(int)
    for release in releases:
        losses = _attained_losses(release, 1.0)
        if release.profile is not None:
            pair = release.profile.pair()
            if release.attained and pair and pair.informative:
                counts["mixture", 1.0, pair.components, 1] += release.count
        elif release.mechanism == "gaussian":
            square += release.count * math.fsum(losses**2)
        elif release.mechanism == "laplace" or (
            release.mechanism == "gamma_norm" and release.dim is not None
        ):
            kind = "laplace" if release.mechanism == "laplace" else "radial"
            for loss in losses[losses > 0].tolist():
                counts[kind, loss, (), release.dim or 1] += release.count
    loss_groups = [
        _EqualLosses(kind, loss, count, mixture, dim)
        for (kind, loss, mixture, dim), count in counts.items()
    ]
    gaussian = [_EqualLosses("gaussian", math.sqrt(square), 1)] if square > 0 else []
    return (*gaussian, *sorted(loss_groups, key=repr))


# --- Epsilon of a pair ------------------------------------------------------------------------


@lru_cache(maxsize=4096)  # many settings of a grid have equal privacy parameters
def _attained_epsilon(groups: tuple[_EqualLosses, ...], delta: float) -> tuple[float, str]:
    if not groups:
        return 0.0, "none"
    if len(groups) == 1 and groups[0].kind == "gaussian":
        return (1 - ROUNDING_MARGIN) * float(gaussian_epsilon(groups[0].loss, delta)), "gaussian"
    mean, variance = np.sum([group.count * np.array(_moments(group)) for group in groups], axis=0)
    mean, deviation = float(mean), math.sqrt(variance)
    # An estimate of epsilon from mean and variance of the total loss selects the grid.
    guess = max(mean - deviation * ndtri(min(delta, 0.5)), 1e-6)
    epsilon = _on_grid(groups, delta, guess, mean, deviation)
    if 0 < epsilon < guess / 1.5:
        epsilon = max(epsilon, _on_grid(groups, delta, epsilon, mean, deviation))
    return (1 - ROUNDING_MARGIN) * epsilon, "losses rounded down"


def _on_grid(
    groups: Sequence[_EqualLosses], delta: float, guess: float, mean: float, deviation: float
) -> float:
    """Compute epsilon with losses rounded down to a grid whose step depends on a ``guess``.

    ``mean`` and standard ``deviation`` are those of the total loss. A coarse grid determines the
    tilt. Coarse grids also reach the rare, large losses of sampled Gaussians.
    """
    count = sum(group.count for group in groups)
    shortest = (2 * mean + 2 * TAIL * deviation) / MAX_GRID_POINTS
    # joined losses of a smooth distribution are nearly in the middle of their cells
    rounded = sum(group.count * (0.5 if group.kind == "mixture" else 1.0) for group in groups)
    step = max(COARSE * guess * min(2 / rounded, 0.25), shortest)
    theta, proxy, epsilon = 0.0, None, 0.0
    for factor in (256.0, 16.0, 1.0):
        losses = _joined_losses(groups, factor * step, guess, MARGIN * delta / count)
        if factor > 1:
            proxy = losses
            theta, _ = tilt(losses.log_moment, delta, deviation, losses.largest)
        bound = _rounded_epsilon(losses, factor * step, delta, theta, proxy or losses)
        epsilon = max(epsilon, bound)
    return epsilon


def _joined_losses(
    groups: Sequence[_EqualLosses], step: float, guess: float, tail: float
) -> Losses:
    limit = min(max(math.ceil(FAR * guess / step), MAX_STEPS), MAX_GRID_POINTS)
    outcomes = (_outcomes(group, step, tail, limit) for group in groups)
    joined = (_joined(*distribution, step, limit) for distribution in outcomes)
    return Losses([(*losses, group.count) for losses, group in zip(joined, groups, strict=True)])


def _rounded_epsilon(
    joined: Losses, step: float, delta: float, theta: float, proxy: Losses
) -> float:
    lowered = [(*_rounded_down(v, m, step, theta), count) for v, m, count in joined.distributions]
    shift = sum(offset * count for *_, offset, count in lowered)
    rounded = Losses([(values, masses, count) for values, masses, _, count in lowered])
    total = composed(rounded, step, theta, delta, proxy)
    moved = replace(total, values=total.values + shift, moment=total.moment + total.theta * shift)
    return moved.epsilon(delta * (1 + MARGIN), lower=True)


def _moments(group: _EqualLosses) -> tuple[float, float]:
    """Estimate the mean and the variance of a loss."""
    if group.kind == "laplace":
        loss = min(group.loss, 30.0)
        return loss + math.expm1(-loss), loss * min(loss, 2.0)
    if group.kind == "radial":
        square = group.loss**2 / group.dim
        return square / 2, square
    mixture = ((1.0, 1.0, group.loss),) if group.kind == "gaussian" else group.mixture
    second_moments = [p * min(math.expm1(min(mu**2, 30.0)) * g * g, mu**2) for p, g, mu in mixture]
    return sum(second_moments) / 2, sum(second_moments)


def _outcomes(
    group: _EqualLosses, step: float, tail: float, limit: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return losses and masses of the outcomes of a group."""
    if group.kind == "radial" and group.dim > 1:
        return _radial_losses(group.loss, group.dim)
    mixture = group.mixture or ((1.0, 1.0, group.loss),)
    # a smaller loss is attained, too
    mixture = tuple((p, rate, min(loss, MAX_PARAMETER)) for p, rate, loss in mixture)
    kind = "laplace" if group.kind in ("laplace", "radial") else "gaussian"
    # the interval of a sample contains the outcomes of both data sets
    pair = Pair(kind, mixture, "poisson")
    edges = even_edges(pair, tail, step, limit)
    losses, log_q = map(np.concatenate, zip(*pair_outcomes(pair, edges, tail), strict=True))
    return losses, np.exp(losses + log_q)


def _joined(
    losses: np.ndarray, masses: np.ndarray, step: float, limit: int
) -> tuple[np.ndarray, np.ndarray]:
    """Join the outcomes whose losses have one multiple of ``step`` below them.

    Losses above ``limit`` steps are reduced to that number, and losses below its negative are
    omitted.
    """
    index = np.minimum(np.floor(losses / step - MARGIN), limit)
    near = index >= -limit
    losses, masses, index = losses[near], masses[near], index[near].astype(np.int64)
    lowest = int(index.min())
    joined = np.bincount(index - lowest, masses)
    # mass under Q minus mass under P, of cells whose losses are shifted to 0
    change = np.bincount(index - lowest, masses * np.expm1(index * step - losses))
    present = np.flatnonzero(joined)
    with np.errstate(divide="ignore"):
        excess = -np.log1p(np.clip(change[present] / joined[present], -1.0, 0.0))
    return step * (lowest + present) + np.minimum(excess, step), joined[present]


def _rounded_down(
    losses: np.ndarray, masses: np.ndarray, step: float, theta: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Round losses down to multiples of ``step`` plus an offset; return the three.

    The offset loses least on average over the distribution with the tilt ``theta``.
    """
    index = np.floor(losses / step)
    excess = losses - step * index
    log_weights = theta * losses + np.log(masses)
    weights = np.exp(log_weights - log_weights.max())
    order = np.argsort(excess)
    below = np.cumsum(weights[order]) - weights[order]
    offset = float(excess[order][np.argmin(below * step - excess[order] * weights.sum())])
    index = (index - (excess < offset)).astype(np.int64)
    rounded = np.bincount(index - index.min(), masses)
    return step * (index.min() + np.arange(rounded.size)), rounded, offset


def _radial_losses(loss: float, dim: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Return losses and masses of noise of density :math:`e^{-\|b\|}`, shifted by ``loss``.

    With r the length of b and c the cosine between b and the shift s, the loss is
    :math:`\sqrt{r^2 + 2rsc + s^2} - r`. It increases with c and decreases with r: a cell of (r, c)
    counts with its smallest loss. r has a gamma distribution of shape d, :math:`(1+c)/2` a beta
    distribution.
    """
    upper, c, masses = _radial_cells(dim)
    losses = np.sqrt(upper**2 + 2 * upper * loss * c + loss**2) - upper
    return losses.ravel(), masses


@lru_cache(maxsize=8)
def _radial_cells(dim: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return upper ends of length [cells, 1], lower ends of the cosine, and masses of all pairs."""
    from scipy.stats import beta, gamma  # slow to import, and rarely needed

    half = (dim - 1) / 2
    far = np.linspace(0.0, 1.0, LENGTHS + 1)[:-1]
    longest = gamma.isf(1e-16, dim)  # larger lengths are omitted
    r = np.append(gamma.ppf(far, dim), longest)
    c = 2 * np.unique(beta.ppf(np.linspace(0.0, 1.0, COSINES + 1), half, half)) - 1
    angles = np.diff(beta.cdf((1 + c) / 2, half, half))
    return r[1:, None], c[:-1], np.outer(np.diff(gamma.cdf(r, dim)), angles).ravel()
