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
* Randomised response dominates every pure mechanism of its epsilon.
* A sample of the records changes the dominating pair of a mechanism
  (:mod:`private_consensus.privacy.loss_distributions`): by Poisson sampling for adding or removing
  a record, and by fixed-size sampling for replacing one. A pure epsilon amplifies to ln(1 + rate
  (e^epsilon - 1)) (Balle, Barthe, Gaboardi, "Privacy amplification by subsampling", 2018). The
  other accountants do not credit the sampling of Gaussians.
* A mechanism known by its privacy profile has a dominating pair, or bounds on its Renyi
  divergences; :mod:`private_consensus.privacy.subsampling` defines some.

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

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from private_consensus.common.errors import arguments, require
from private_consensus.common.grouping import grouped

from . import loss_distributions
from .conversions import (
    amplified,
    gaussian_epsilon,
    gaussian_rho,
    laplace_rho,
    pure_rho,
    zcdp_epsilon,
)
from .loss_distributions import Pair
from .releases import PrivacyProfile, Release, Sampling
from .safe_digits import rounded_up

METHODS = ("pure", "gaussian", "zcdp", "rdp", "pld")

THETAS = np.unique([*np.arange(0.05, 2, 0.05), *range(2, 64), *range(64, 256, 4), 255])
"""Orders minus 1 of the Renyi divergences of mechanisms without a dominating pair."""
LEVELS = 48
"""Number of levels to which different losses of one mechanism and sampling are rounded up."""


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

    def __str__(self) -> str:
        if self.derivation:
            return self.derivation.partition("\n")[0]
        remark = f" ({self.note})" if self.note else ""
        return f"epsilon {rounded_up(self.epsilon)} at delta {self.delta:g}{remark}"


@arguments.known_keywords
def account(releases: Iterable[Release], delta: float) -> Guarantee:
    """Return the smallest of several upper bounds on epsilon at ``delta``.

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


def epsilon(releases: Iterable[Release], delta: float, method: str = "best") -> float:
    """Return the epsilon of ``releases`` at ``delta`` by one accountant.

    Parameters
    ----------
    releases : iterable of Release
        All releases of one agent, with sensitivities for one neighbouring relation.
    delta : float
        delta of the guarantee, in [0, 1).
    method : {"best", "pure", "gaussian", "zcdp", "rdp", "pld"}
        ``best`` is :func:`account`. ``gaussian`` is exact GDP, ``rdp`` composes Renyi divergences,
        ``pld`` privacy loss distributions.

    Returns
    -------
    float
        An upper bound; ``inf`` if the method gives no bound.
    """
    arguments.choice("method", method, ("best", *METHODS))
    if method == "best":
        return account(releases, delta).epsilon
    delta = _checked_delta(delta)
    groups = _groups(releases)
    if groups is None:
        return math.inf
    return _BY_METHOD[method](groups, delta) if groups else 0.0


def gaussian_dp(releases: Iterable[Release]) -> float:
    """Return the GDP parameter mu of releases if all are Gaussian, else infinity.

    Amplification by sampling is not used.
    """
    groups = _groups(releases)
    return math.inf if groups is None else _mu(groups)


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
        return float(amplified(self.loss, self.sampling.rate))


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
        if np.isinf(losses).any():
            return None
        for loss, repetitions in zip(losses.tolist(), times.tolist(), strict=True):
            if loss > 0:
                kind = _KINDS[release.mechanism]
                counts[kind, loss, sampling, release.profile] += repetitions * release.count
    return tuple(
        _Group(kind, loss, count, sampling, profile)
        for (kind, loss, sampling, profile), count in counts.items()
    )


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
    return list(METHODS) if delta > 0 else ["pure"]


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
    # the small term makes levels independent of rounding errors
    level = np.floor((LEVELS - 1) * weight / weight[-1] + 1e-9).astype(int)
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


def _zcdp(groups: Sequence[_Group], delta: float) -> float:
    return _zcdp_epsilon(_rho(groups), delta)


@lru_cache(maxsize=4096)  # a setting is calibrated for each block of runs, and once for its table
def _rdp(groups: tuple[_Group, ...], delta: float) -> float:
    """Compute epsilon from Renyi divergences of arbitrary order."""
    groups = tuple(_merged_gaussians(groups))
    pairs = _pairs(_levelled([group for group in groups if _pair(group)]))
    profiles = [
        (group.profile, group.count)
        for group in groups
        if group.profile is not None and group.profile.pair() is None
    ]
    rho = _rho([group for group in groups if group.kind == "concentrated"])

    def log_moment(theta: float) -> float:
        divergences = (count * profile.divergence(1 + theta) for profile, count in profiles)
        return theta * math.fsum([rho * (1 + theta), *divergences])

    thetas = THETAS if profiles else None
    return loss_distributions.renyi_epsilon(pairs, delta, log_moment, thetas)


@lru_cache(maxsize=4096)
def _pld(groups: tuple[_Group, ...], delta: float) -> float:
    """Compute epsilon from privacy loss distributions.

    The result is infinite if a release has no dominating pair in one dimension, as discrete
    Gaussian vectors.
    """
    levelled = _levelled(_merged_gaussians(groups))
    pairs = _pairs(levelled)
    return loss_distributions.epsilon(pairs, delta) if len(pairs) == len(levelled) else math.inf


def _merged_gaussians(groups: Sequence[_Group]) -> list[_Group]:
    """Merge all Gaussians that credit no sampling into one, which is exact."""
    unsampled = [group for group in groups if group.kind == "gaussian" and group.sampling is None]
    unmerged = [group for group in groups if group.kind != "gaussian" or group.sampling is not None]
    return unmerged + ([_Group("gaussian", _mu(unsampled), 1, None)] if unsampled else [])


def _pairs(groups: Sequence[_Group]) -> list[tuple[Pair, int]]:
    """Return the known dominating pairs and their numbers of releases."""
    pairs = [(_pair(group), group.count) for group in groups]
    return [(pair, count) for pair, count in pairs if pair is not None]


def _pair(group: _Group) -> Pair | None:
    """Return the dominating pair of a release, if one is known."""
    if group.profile is not None:
        return group.profile.pair()
    kind = {"pure": "response", "concentrated": None}.get(group.kind, group.kind)
    if kind is None:
        return None
    if group.sampling is None:
        return Pair(kind, ((1.0, 1.0, group.loss),))
    return Pair(kind, ((1.0, group.sampling.rate, group.loss),), group.sampling.kind)


_BY_METHOD = {
    "pure": _pure,
    "gaussian": _gaussian,
    "zcdp": _zcdp,
    "rdp": _rdp,
    "pld": _pld,
}
