r"""Privacy accounting: the provable guarantee of a list of releases.

Composition is adaptive throughout: a release may depend on the earlier ones, as long as its
sensitivity and scale hold for all of their outcomes.

Reasons why a shift in one dimension dominates each mechanism:

* A Gaussian vector is rotated so that the shift lies along one axis. It is mu-GDP with mu the ratio
  of l2 sensitivity to standard deviation. Adaptive composition adds mu squared (Dong, Roth, Su,
  "Gaussian differential privacy", JRSS-B 2022).
* ``laplace`` and ``gamma_norm`` have log-density ratios of at most distance over scale for *every*
  two points. The path from f(D) to f(D') can be cut into k steps, each of which is
  (epsilon/k)-DP. Group privacy over those steps tends to the trade-off of the scalar Laplace pair
  at distance epsilon (ibid., the limit in their section on group privacy). That pair therefore
  dominates both, in any dimension.
* The discrete Gaussian on the grid is mu^2/2-zCDP in any dimension (Canonne, Kamath, Steinke,
  2020), but not mu-GDP.
* Sampling: a pure release on a random part of the data amplifies to ln(1 + rate (e^epsilon - 1)),
  by Poisson sampling for adding or removing a record and by fixed-size sampling for replacing one
  (Balle, Barthe, Gaboardi, "Privacy amplification by subsampling", 2018). For Gaussians the
  numerical accountants are used; if none applies, sampling is not credited, which is safe.
* A mechanism known by its privacy profile composes by its Renyi divergences, and by the loss
  distribution of its dominating pair if it has one;
  :mod:`private_consensus.privacy.subsampling` defines some.

Reasons why merged releases give an upper bound:

* Equal mechanisms with equal losses are counted: composition does not depend on their order.
* ``gamma_norm`` is counted with ``laplace``: both are dominated by the same scalar pair, and
  sampling preserves domination (Zhu, Dong, Wang, "Optimal accounting of differential privacy via
  characteristic function", 2022, Theorem 11).
* Gaussians that credit no sampling are merged exactly: their pairs compose to that of the root of
  the sum of mu squared.
* All rho-zCDP mechanisms are merged in Renyi accounting: the bounds are linear in the order.
* A loss is rounded up to the largest of its level: it is a sensitivity over a scale, or a pure
  epsilon, and every larger sensitivity (or epsilon) is valid, too. This holds for every mechanism,
  with identical sampling before it.
* Privacy profiles are not ordered by a single number: each is composed separately.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

import numpy as np
from scipy.special import expit

from private_consensus.common.errors import arguments, require
from private_consensus.common.grouping import grouped

from .budget import Budget
from .conversions import (
    CONVERSIONS,
    gaussian_epsilon,
    gaussian_rho,
    laplace_rho,
    pure_rho,
    zcdp_epsilon,
)
from .releases import RENYI_ORDERS, PrivacyProfile, Release, Sampling
from .sampled_gaussian import log_moment

METHODS = ("pure", "gaussian", "gaussian+pure", "zcdp", "rdp", "pld")

# Below this delta, rounding errors of the Fourier transforms dominate the result.
PLD_SMALLEST_DELTA = 1e-10
# Allowance for the error of delta by rounding in these transforms, per composed release. The
# largest measured error is 2e-17.
FFT_ERROR = 1e-16
# Number of levels to which different losses of one mechanism and sampling are rounded up before a
# numerical accountant composes them.
LEVELS = 48
# Largest number of equal releases whose loss distributions are composed: the grid grows with it.
MAX_COMPOSED = 1_000_000
# Largest loss for which the exponential of one step of a grid of losses does not overflow.
MAX_LOSS = 5e5
# Number of decimals of the result that the grid of a loss distribution resolves.
GRID_DECIMALS = 3
# If epsilon is below the expected value by more than this factor, it is recomputed on a finer grid.
REFINEMENT_FACTOR = 4.0
# Logarithm of a moment below which the library loses digits to rounding; it is computed again.
SMALL_LOG_MOMENT = 1e-6
# Smallest mu of a Gaussian on a sample of fixed size for which the library is accurate. It is used
# in place of smaller values, for which it is valid.
SMALLEST_FIXED_MU = 1e-4
# Largest loss of a sampled Laplace mechanism whose exponential does not overflow in the library.
MAX_SAMPLED_LOSS = 700.0
# Largest number of grid steps up to the largest loss of one release, which bounds time and memory.
MAX_STEPS = 1e6

_RDP_ORDERS = (
    *(1 + tenth / 10 for tenth in range(1, 100)),
    *range(11, 64),
    *(2**power for power in range(6, 11)),
)
_LARGE_ORDERS = tuple(float(2**power) for power in range(11, 31))


@dataclass(frozen=True)
class Guarantee:
    """Privacy guarantee computed by an accountant.

    Parameters
    ----------
    epsilon, delta : float
        Parameters of the guarantee; ``epsilon`` is infinite if no guarantee is known.
    method : str
        Accountant: one of :data:`METHODS`, or ``none`` if nothing private was released.
    proven : bool
        True if every release's sensitivity is proven; the composition itself always is.
    note : str
        Reason why a sensitivity is not proven, or another remark.
    derivation : str
        Steps from the releases to epsilon; empty if they were not requested.
    """

    epsilon: float
    delta: float
    method: str
    proven: bool = True
    note: str = ""
    derivation: str = field(default="", repr=False, compare=False)

    def __post_init__(self):
        nonnegative = "a number >= 0"
        epsilon = arguments.number("guarantee.epsilon", self.epsilon, nonnegative, lambda v: v >= 0)
        object.__setattr__(self, "epsilon", epsilon)
        delta = _checked_delta(self.delta, "guarantee.delta")
        object.__setattr__(self, "delta", delta)
        arguments.choice("guarantee.method", self.method, ("none", *METHODS))
        arguments.flag("guarantee.proven", self.proven)
        arguments.text("guarantee.note", self.note)

    def within(self, budget: Budget) -> bool:
        """Return True if this guarantee is at least as strong as ``budget``."""
        arguments.instance("budget", budget, Budget, "a Budget")
        return self.epsilon <= budget.epsilon and self.delta <= budget.delta


def account(releases: Iterable[Release], delta: float) -> Guarantee:
    """Return the tightest guarantee that can be proven for ``releases`` at ``delta``.

    Parameters
    ----------
    releases : iterable of Release
        All releases of one agent, with sensitivities for one neighbouring relation.
    delta : float
        delta of the guarantee, in [0, 1).

    Returns
    -------
    Guarantee
        With the smallest epsilon among the methods that apply.

    Raises
    ------
    InvalidInput
        If samplings with different neighbouring relations are combined, or delta is out of range.
    """
    releases, delta = _checked(releases), _checked_delta(delta)
    groups = _groups(releases)
    proven = all(release.proven for release in releases)
    notes = list(dict.fromkeys(release.note for release in releases if release.note))
    if groups is None:
        notes.insert(0, "a value that depends on the data is released without noise")
        return Guarantee(math.inf, delta, "none", proven, "; ".join(notes))
    if not groups:
        return Guarantee(0.0, delta, "none", proven, "; ".join(notes))
    epsilons = _epsilons(groups, delta)
    method = min(epsilons, key=epsilons.__getitem__)
    return Guarantee(epsilons[method], delta, method, proven, "; ".join(notes))


def epsilon_by_method(releases: Iterable[Release], delta: float) -> dict[str, float]:
    """Return the epsilon of each accountant that applies to all releases.

    Parameters
    ----------
    delta : float
        delta of the guarantee, in [0, 1).

    Returns
    -------
    dict of str to float
        Keys are among :data:`METHODS`. Empty without a release that depends on private data, and if
        a value is released without noise.
    """
    delta = _checked_delta(delta)
    groups = _groups(releases)
    return _epsilons(groups, delta) if groups else {}


def _epsilons(groups: tuple[_Group, ...], delta: float) -> dict[str, float]:
    return {method: _BY_METHOD[method](groups, delta) for method in _applicable(groups, delta)}


def epsilon(
    releases: Iterable[Release], delta: float, method: str = "best", *, conversion: str = "cks"
) -> float:
    """Return the epsilon of ``releases`` at ``delta`` by one accountant.

    Parameters
    ----------
    releases : iterable of Release
        All releases of one agent, with sensitivities for one neighbouring relation.
    delta : float
        delta of the guarantee, in [0, 1).
    method : {"best", "pure", "gaussian", "gaussian+pure", "zcdp", "rdp", "pld"}
        ``best`` is :func:`account`. ``gaussian`` is exact GDP, ``gaussian+pure`` adds the pure
        losses to it, ``rdp`` and ``pld`` compose numerically.
    conversion : {"cks", "safe", "shortcut"}
        Used by ``zcdp`` only; see :func:`private_consensus.privacy.conversions.zcdp_epsilon`.

    Returns
    -------
    float
        An upper bound (except for ``shortcut``); ``inf`` if the method gives no bound.
    """
    arguments.choice("method", method, ("best", *METHODS))
    arguments.choice("conversion", conversion, CONVERSIONS)
    if method == "best":
        return account(releases, delta).epsilon
    delta = _checked_delta(delta)
    groups = _groups(releases)
    if groups is None:
        return math.inf
    if method == "zcdp":
        return _zcdp(groups, delta, conversion)
    return _BY_METHOD[method](groups, delta) if groups else 0.0


def zcdp(releases: Iterable[Release]) -> float:
    """Return the zCDP parameter rho of releases, without amplification of Gaussians by sampling."""
    groups = _groups(releases)
    return math.inf if groups is None else _rho(groups)


def gaussian_dp(releases: Iterable[Release]) -> float:
    """Return the GDP parameter mu of releases if all are Gaussian, else infinity.

    Amplification by sampling is not used.
    """
    groups = _groups(releases)
    return math.inf if groups is None else _mu(groups)


def dp_events(releases: Iterable[Release]):
    r"""Return the releases as one event of the library ``dp_accounting``, for its accountants.

    ===================== =========================================================================
    ``gaussian``          ``GaussianDpEvent``: noise multiplier :math:`1/\mu`
    ``laplace``           ``LaplaceDpEvent``: scale over sensitivity
    ``gamma_norm``        ``LaplaceDpEvent``, which dominates it
    ``discrete_gaussian`` ``ZCDpEvent`` of :math:`\mu^2/2`
    ``pure``              ``ZCDpEvent`` of :math:`\epsilon\tanh(\epsilon/2)`, sampling credited to
                          epsilon
    ``profile``           ``UnsupportedDpEvent``: no event describes a mechanism by its profile
    without noise         ``NonPrivateDpEvent`` for all releases together
    ===================== =========================================================================

    Sampling wraps an event in ``PoissonSampledDpEvent``, or in ``SampledWithoutReplacementDpEvent``
    with one. An accountant that does not support an event raises ``UnsupportedEventError``.

    Parameters
    ----------
    releases : iterable of Release
        All releases of one agent, with sensitivities for one neighbouring relation.

    Returns
    -------
    dp_accounting.DpEvent
        An epsilon that an accountant of that library computes for it is an upper bound for the
        releases.
    """
    import dp_accounting as dp  # slow to import

    groups = _groups(releases)
    if groups is None:
        return dp.NonPrivateDpEvent()
    if not groups:
        return dp.NoOpDpEvent()
    return dp.ComposedDpEvent(
        [dp.SelfComposedDpEvent(_event(group), group.count) for group in groups]
    )


# --- Grouping: equal losses are composed together --------------------------------------------


@dataclass(frozen=True)
class _Group:
    kind: str  # gaussian, concentrated, laplace, pure or profile
    loss: float
    count: int
    sampling: Sampling | None
    profile: PrivacyProfile | None = None

    @property
    def pure(self) -> float:
        """Pure epsilon of one release, with sampling credited."""
        if self.kind not in ("laplace", "pure"):
            return math.inf
        if self.sampling is None:
            return self.loss
        return _amplified(self.loss, self.sampling.rate)


_KINDS = {
    "gaussian": "gaussian",
    "discrete_gaussian": "concentrated",
    "laplace": "laplace",
    "gamma_norm": "laplace",
    "pure": "pure",
    "profile": "profile",
}


def _groups(releases: Iterable[Release]) -> tuple[_Group, ...] | None:
    """Group releases by mechanism and loss; return None if a loss is infinite."""
    counts: dict[tuple, int] = defaultdict(int)
    releases = _checked(releases)
    _check_samplings(releases)
    for release in releases:
        sampling = release.sampling
        if release.count == 0 or (sampling is not None and sampling.rate == 0):
            continue
        if sampling is not None and sampling.rate == 1:
            sampling = None
        losses, times = np.unique(release.losses(), return_counts=True)
        if np.isinf(losses).any() and not _has_loss_distribution(release.profile):
            return None
        for loss, repetitions in zip(losses.tolist(), times.tolist(), strict=True):
            # one order of a profile may underflow to 0 where others do not
            if loss > 0 or release.profile is not None:
                kind = _KINDS[release.mechanism]
                counts[kind, loss, sampling, release.profile] += repetitions * release.count
    return tuple(
        _Group(kind, loss, count, sampling, profile)
        for (kind, loss, sampling, profile), count in counts.items()
    )


def _has_loss_distribution(profile: PrivacyProfile | None) -> bool:
    """Return True if the profile bounds losses although its Renyi divergences overflow."""
    if profile is None or not profile.deltas(np.zeros(1)):
        return False
    return math.isfinite(profile.largest())


def _check_samplings(releases: Sequence[Release]) -> None:
    changes = {release.sampling.change for release in releases if release.sampling is not None}
    expected = "one neighbouring relation for all sampled releases of a guarantee"
    require(len(changes) <= 1, "release.sampling", sorted(changes), expected)


def _checked(releases: Iterable[Release]) -> tuple[Release, ...]:
    return arguments.items("releases", releases, Release, "an iterable of Release objects")


def _checked_delta(delta: float, key: str = "delta") -> float:
    return arguments.number(key, delta, "a number in [0, 1)", lambda v: 0 <= v < 1)


def _applicable(groups: Sequence[_Group], delta: float) -> list[str]:
    kinds = {group.kind for group in groups}
    sampled = any(group.sampling is not None for group in groups)
    if kinds == {"gaussian"} and not sampled:
        return ["gaussian"]
    if delta == 0:
        return ["pure"]
    return [method for method in METHODS if method != "pld" or delta >= PLD_SMALLEST_DELTA]


def _levelled(groups: Sequence[_Group]) -> list[_Group]:
    """Round the losses of groups up to at most ``LEVELS`` values; keep privacy profiles."""
    if len(groups) <= LEVELS:
        return list(groups)
    by_kind = grouped(groups, lambda group: (group.kind, group.sampling))
    levels: list[_Group] = []
    for (kind, _), members in by_kind.items():
        levels += members if kind == "profile" else _levels_of(members)
    return levels


def _levels_of(groups: Sequence[_Group]) -> list[_Group]:
    """Replace similar losses of one mechanism and sampling by the largest loss of each level.

    Every level contains an approximately equal fraction of the sum of losses.
    """
    ordered = sorted(groups, key=lambda group: group.loss)
    weight = np.cumsum([group.count * group.loss for group in ordered])
    level = np.floor((LEVELS - 1) * weight / weight[-1]).astype(int)
    joined = []
    for level_index in np.unique(level):
        members = [ordered[index] for index in np.flatnonzero(level == level_index)]
        count = sum(group.count for group in members)
        joined.append(replace(members[-1], count=count))
    return joined


# --- Accountants ------------------------------------------------------------------------------


def _pure(groups: Sequence[_Group], delta: float) -> float:
    return math.fsum(group.count * group.pure for group in groups)


def _mu(groups: Sequence[_Group]) -> float:
    if any(group.kind != "gaussian" for group in groups):
        return math.inf
    return math.hypot(*(math.sqrt(group.count) * group.loss for group in groups))


# Many settings of a grid have equal privacy parameters.
_zcdp_epsilon = lru_cache(maxsize=4096)(zcdp_epsilon)


def _gaussian(groups: Sequence[_Group], delta: float) -> float:
    mu = _mu(groups)
    return gaussian_epsilon(mu, delta) if math.isfinite(mu) else math.inf


def _gaussian_plus_pure(groups: Sequence[_Group], delta: float) -> float:
    """Add the pure losses to the Gaussian epsilon, which uses all of delta (basic composition)."""
    gaussian = [group for group in groups if group.kind == "gaussian"]
    non_gaussian = [group for group in groups if group.kind != "gaussian"]
    return _gaussian(gaussian, delta) + _pure(non_gaussian, delta)


def _rho(groups: Sequence[_Group]) -> float:
    return math.fsum(group.count * _rho_of(group) for group in groups)


def _rho_of(group: _Group) -> float:
    if group.kind in ("gaussian", "concentrated"):
        return gaussian_rho(group.loss)
    if group.kind == "laplace" and group.sampling is None:
        return laplace_rho(group.loss)
    if group.kind == "profile":
        return math.inf
    return pure_rho(group.pure)


def _zcdp(groups: Sequence[_Group], delta: float, conversion: str = "cks") -> float:
    return _zcdp_epsilon(_rho(groups), delta, conversion=conversion)


@lru_cache(maxsize=4096)  # used twice: as a method, and to select a grid of losses
def _rdp(groups: tuple[_Group, ...], delta: float) -> float:
    """Compute epsilon by the Renyi accountant of ``dp_accounting``, with sampling of Gaussians.

    Conversion: Canonne, Kamath, Steinke 2020, Proposition 12.
    """
    from dp_accounting import rdp  # slow to import

    orders = _orders(groups)
    total = _renyi([group for group in groups if group.profile is None], orders)
    for group in groups:
        if group.profile is not None:
            total = total + group.count * _divergences(group.profile)
    return float(rdp.compute_epsilon(orders, total.tolist(), delta)[0])


def _divergences(profile: PrivacyProfile) -> np.ndarray:
    """Return the Renyi divergence at each order, corrected for underflow.

    A divergence that underflowed to 0 is bounded by the smallest positive one. A divergence that is
    not a number becomes infinite.
    """
    divergences = np.nan_to_num(profile.renyi(), nan=math.inf, posinf=math.inf)
    return np.maximum(
        divergences,
        divergences.min(where=divergences > 0, initial=math.inf) if divergences.any() else 0.0,
    )


def _orders(groups: Sequence[_Group]) -> tuple[float, ...]:
    """Return the orders at which every group has a divergence."""
    if any(group.kind == "profile" for group in groups):
        return RENYI_ORDERS
    sampled = any(group.kind == "gaussian" and group.sampling for group in groups)
    # the cost of a sampled Gaussian grows with the order; that of all others does not
    return _RDP_ORDERS if sampled else _RDP_ORDERS + _LARGE_ORDERS


def _renyi(groups: Sequence[_Group], orders: Sequence[float]) -> np.ndarray:
    """Compose the Renyi divergences, at each order, of all groups without a privacy profile."""
    import dp_accounting  # slow to import

    relation = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    if any(group.sampling and group.sampling.change == "replace" for group in groups):
        relation = dp_accounting.NeighboringRelation.REPLACE_ONE

    def divergences(event) -> np.ndarray:
        accountant = dp_accounting.rdp.RdpAccountant(orders, relation)
        log = logging.getLogger("absl")
        log.addFilter(_is_no_excluded_order)
        try:
            return accountant.compose(event).rdp
        finally:
            log.removeFilter(_is_no_excluded_order)

    concentrated = [group for group in groups if not _has_renyi_curve(group)]
    with np.errstate(over="ignore"):
        total = divergences(dp_accounting.ZCDpEvent(_rho(concentrated)))
        for group in _levelled([group for group in groups if _has_renyi_curve(group)]):
            if _fixed_gaussian(group):
                group = replace(group, loss=max(group.loss, SMALLEST_FIXED_MU))
            sampling, by_library = group.sampling, partial(divergences, _event(group))
            if group.kind == "gaussian" and sampling is not None and sampling.kind == "poisson":
                single = _sampled_gaussian(sampling.rate, group.loss, orders, by_library)
            else:
                single = by_library()
            total = total + group.count * single
    return total


def _is_no_excluded_order(record: logging.LogRecord) -> bool:
    """Return False for warnings of an order without a divergence, which a bound does not need."""
    return "_compute_log_a_frac failed to converge" not in record.getMessage()


def _sampled_gaussian(
    rate: float, mu: float, orders: Sequence[float], divergences: Callable[[], np.ndarray]
) -> np.ndarray:
    """Return the Renyi divergences of a Gaussian on a Poisson sample, small ones by own formula.

    ``divergences`` computes those of the library, which subtracts numbers near 1. Rounding may even
    make them negative.
    """
    result = np.zeros(len(orders))
    if log_moment(max(orders), rate, mu) > SMALL_LOG_MOMENT:
        result = divergences()
    for index, order in enumerate(orders):
        if result[index] * (order - 1) <= SMALL_LOG_MOMENT:
            result[index] = log_moment(order, rate, mu) / (order - 1)
    return result


def _has_renyi_curve(group: _Group) -> bool:
    """Return True if the Renyi divergences of a group are known beyond its rho."""
    if group.kind == "laplace":
        return group.sampling is None
    return group.kind == "gaussian" and group.sampling is not None


def _event(group: _Group):
    """Convert a release to an event of ``dp_accounting``, see :func:`dp_events`."""
    import dp_accounting as dp

    if group.kind == "profile":
        return dp.UnsupportedDpEvent()
    if group.kind == "pure":
        return dp.ZCDpEvent(_rho_of(group))
    if group.kind == "concentrated":
        event = dp.ZCDpEvent(gaussian_rho(group.loss))
    elif group.kind == "laplace":
        event = dp.LaplaceDpEvent(1 / group.loss)
    else:
        event = dp.GaussianDpEvent(1 / group.loss)
    if group.sampling is None:
        return event
    rate = group.sampling.rate
    if group.sampling.kind == "poisson":
        return dp.PoissonSampledDpEvent(rate, event)
    # Accountants use the quotient of the sizes only.
    return dp.SampledWithoutReplacementDpEvent(1.0, rate, event)  # ty: ignore[invalid-argument-type]


@lru_cache(maxsize=4096)  # a setting is calibrated for each block of runs, and once for its table
def _pld(groups: tuple[_Group, ...], delta: float) -> float:
    """Compute a pessimistic epsilon from privacy loss distributions of ``dp_accounting``.

    The result is infinite if no one-dimensional dominating pair is known: for discrete Gaussian
    vectors and for Gaussians on a sample of fixed size. It is also infinite for more than
    ``MAX_COMPOSED`` equal releases.
    """
    unknown = any(
        group.kind == "concentrated"
        or _fixed_gaussian(group)
        or _without_pair(group)
        or (group.kind == "laplace" and group.sampling and group.loss > MAX_SAMPLED_LOSS)
        for group in groups
    )
    if delta < PLD_SMALLEST_DELTA or unknown or _too_many(groups):
        return math.inf
    methods = (_pure, _gaussian, _gaussian_plus_pure, _zcdp, _rdp)
    bound = min(method(groups, delta) for method in methods)
    if math.isinf(bound) and all(group.kind == "profile" for group in groups):
        bound = math.fsum(g.count * g.profile.largest() for g in groups if g.profile is not None)
    if bound == 0:
        return 0.0
    if bound > MAX_LOSS:
        return math.inf
    smaller_delta = delta - FFT_ERROR * sum(group.count for group in _merged_gaussians(groups))
    if smaller_delta <= 0:
        return math.inf
    finest = max(map(_largest_loss, groups)) / MAX_STEPS
    while True:
        step = max(10.0 ** (math.floor(math.log10(bound)) - GRID_DECIMALS), finest)
        epsilon = float(_composed(groups, step).get_epsilon_for_delta(smaller_delta))
        if step == finest or not 0 < epsilon < bound / REFINEMENT_FACTOR:
            return epsilon
        bound = epsilon


def _largest_loss(group: _Group) -> float:
    """Return the largest loss of a release; Gaussian ones exceed it with probability 1e-23."""
    if group.kind == "gaussian":
        mu = group.loss * math.sqrt(group.count)
        return mu * (mu / 2 + 10.0)
    return group.profile.largest() if group.profile else group.loss


@lru_cache(maxsize=1)  # calls at several deltas are consecutive
def _composed(groups: tuple[_Group, ...], step: float):
    distributions = [
        _loss_distribution(group, step) for group in _levelled(_merged_gaussians(groups))
    ]
    return _convolved(distributions)


def _convolved(distributions: list):
    """Compose loss distributions pairwise, so that short arrays are convolved with short arrays."""
    while len(distributions) > 1:
        pairs = zip(distributions[::2], distributions[1::2], strict=False)
        unpaired = distributions[len(distributions) // 2 * 2 :]
        distributions = [first.compose(second) for first, second in pairs] + unpaired
    return distributions[0]


def _too_many(groups: Sequence[_Group]) -> bool:
    """Return True if a grid of losses would be too large; unsampled Gaussians are one release."""
    return any(
        group.count > MAX_COMPOSED and (group.kind != "gaussian" or group.sampling is not None)
        for group in groups
    )


def _merged_gaussians(groups: Sequence[_Group]) -> list[_Group]:
    """Merge all Gaussians that credit no sampling into one, which is exact."""
    unsampled = [group for group in groups if group.kind == "gaussian" and group.sampling is None]
    unmerged = [group for group in groups if group.kind != "gaussian" or group.sampling is not None]
    return unmerged + ([_Group("gaussian", _mu(unsampled), 1, None)] if unsampled else [])


def _fixed_gaussian(group: _Group) -> bool:
    sampling = group.sampling
    return group.kind == "gaussian" and sampling is not None and sampling.kind == "fixed_size"


def _without_pair(group: _Group) -> bool:
    return group.profile is not None and not group.profile.deltas(np.zeros(1))


def _loss_distribution(group: _Group, step: float):
    from dp_accounting.pld import privacy_loss_distribution as pld

    library = {"gaussian": pld.from_gaussian_mechanism, "laplace": pld.from_laplace_mechanism}
    sampling = group.sampling
    if group.profile is not None:
        single = _from_profile(group.profile, step)
    elif group.kind in library and (sampling is None or sampling.kind == "poisson"):
        rate = 1.0 if sampling is None else sampling.rate
        single = library[group.kind](
            1 / group.loss, value_discretization_interval=step, sampling_prob=rate
        )
    else:
        masses = _response_masses(group.pure, step)
        single = pld.PrivacyLossDistribution.create_from_rounded_probability(masses, 0.0, step)
    return single.self_compose(group.count) if group.count > 1 else single


def _from_profile(profile: PrivacyProfile, step: float):
    """Build the loss distribution of a dominating pair from its profile, by connecting the dots."""
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    max_steps = math.ceil(profile.largest() / step) + 1
    profiles = profile.deltas(np.arange(-max_steps, max_steps + 1) * step)
    # Rounding errors may let delta increase with epsilon.
    profiles = [np.maximum.accumulate(deltas[::-1])[::-1] for deltas in profiles]
    dots = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap
    masses = [dots(step, -max_steps, max_steps, np.clip(deltas, 0, 1)) for deltas in profiles]
    return privacy_loss_distribution.PrivacyLossDistribution(*masses)


def _response_masses(loss: float, step: float) -> dict[int, float]:
    r"""Return the masses, on a loss grid, of randomised response, which dominates pure releases.

    Its hockey-stick curve is :math:`p - e^t(1-p)` for :math:`|t| \le \epsilon`, with p the
    probability of a true response. The mixture of the responses at the two neighbouring grid
    points, with p as mean, has the same curve up to the lower of them. Beyond it the mixture lies
    above, being convex in :math:`e^t`. The rounding is pessimistic, and its error falls as the
    square of the step.
    """
    low = math.floor(loss / step)
    # For large losses a true response has probability 1 in floating point; a false one is accurate.
    false = [float(expit(-value)) for value in (low * step, (low + 1) * step, loss)]
    gap = false[0] - false[1]
    upper = min(1.0, max(0.0, (false[0] - false[2]) / gap)) if gap > 0 else 1.0
    masses: dict[int, float] = defaultdict(float)
    for grid_index, weight, probability in ((low, 1 - upper, false[0]), (low + 1, upper, false[1])):
        masses[grid_index] += weight * (1 - probability)
        masses[-grid_index] += weight * probability
    return dict(masses)


def _amplified(loss: float, rate: float) -> float:
    """Compute ln(1 + rate (e^loss - 1)) without overflow."""
    if loss > 30:
        return loss + math.log(rate + (1 - rate) * math.exp(-loss))
    return math.log1p(rate * math.expm1(loss))


_BY_METHOD = {
    "pure": _pure,
    "gaussian": _gaussian,
    "gaussian+pure": _gaussian_plus_pure,
    "zcdp": _zcdp,
    "rdp": _rdp,
    "pld": _pld,
}
