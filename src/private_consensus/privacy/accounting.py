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
* A mechanism known by its privacy profile has a dominating pair, or bounds on its Renyi
  divergences; :mod:`private_consensus.privacy.subsampling` defines those of sampled batches.

One numerical accountant applies to a list of releases: privacy loss distributions if all releases
have a dominating pair, zCDP for discrete Gaussians alone, and Renyi divergences for other lists. A
sum of pure epsilons is smaller than its result in rare cases, as for one release.

Reasons why merged releases give an upper bound:

* Equal mechanisms with equal losses are counted: composition does not depend on their order.
* ``gamma_norm`` is counted with ``laplace``: both are dominated by the same scalar pair.
* Gaussians are merged exactly: their pairs compose to that of the root of the sum of mu squared.
* All rho-zCDP mechanisms are merged in Renyi accounting: the bounds are linear in the order.
* A loss is rounded up to the largest of its level: it is a sensitivity over a scale, or a pure
  epsilon, and every larger sensitivity (or epsilon) is valid, too.
* Privacy profiles are not ordered by a single number: each is composed separately.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from private_consensus.common.errors import arguments
from private_consensus.common.grouping import grouped

from . import loss_distributions
from .conversions import gaussian_epsilon, zcdp_epsilon
from .loss_distributions import Pair
from .releases import PrivacyProfile, Release
from .safe_digits import rounded_up

LEVELS = 48
"""Number of levels to which different losses of one mechanism are rounded up."""


@dataclass(frozen=True)
class Guarantee:
    """Privacy guarantee computed by an accountant.

    Parameters
    ----------
    epsilon, delta : float
        Parameters of the guarantee; ``epsilon`` is infinite if no guarantee is known.
    method : str
        Accountant: ``pure``, ``gaussian``, ``zcdp``, ``rdp`` or ``pld``; ``none`` if nothing
        private was released.
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
        If delta is out of range.
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
    """Return the epsilon at ``delta`` of each accountant that applies to the releases.

    Empty without a release that depends on private data, and if a value is released without noise.
    """
    groups = _groups(releases)
    return _epsilons(groups, _checked_delta(delta)) if groups else {}


def gaussian_dp(releases: Iterable[Release]) -> float:
    """Return the GDP parameter mu of releases if all are Gaussian, else infinity."""
    groups = _groups(releases)
    return math.inf if groups is None else _mu(groups)


# --- Grouping: equal losses are composed together --------------------------------------------


@dataclass(frozen=True)
class _Group:
    kind: str  # gaussian, concentrated, laplace, pure or profile
    loss: float
    count: int
    profile: PrivacyProfile | None = None

    @property
    def pure(self) -> float:
        """Pure epsilon of one release."""
        return self.loss if self.kind in ("laplace", "pure") else math.inf

    @property
    def pair(self) -> Pair | None:
        """Dominating pair of one release, if one is known."""
        if self.profile is not None:
            return self.profile.pair()
        if self.kind == "concentrated":
            return None
        kind = "response" if self.kind == "pure" else self.kind
        return Pair(kind, ((1.0, 1.0, self.loss),))


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
    for release in _checked(releases):
        losses, times = np.unique(release.losses(), return_counts=True)
        if release.count and np.isinf(losses).any():
            return None
        for loss, repetitions in zip(losses.tolist(), times.tolist(), strict=True):
            if release.count and loss > 0:
                kind = _KINDS[release.mechanism]
                counts[kind, loss, release.profile] += repetitions * release.count
    return tuple(
        _Group(kind, loss, count, profile) for (kind, loss, profile), count in counts.items()
    )


def _checked(releases: Iterable[Release]) -> tuple[Release, ...]:
    return arguments.items("releases", releases, Release, "an iterable of Release objects")


def _checked_delta(delta: float) -> float:
    return arguments.number("delta", delta, "a number in [0, 1)", lambda v: 0 <= v < 1)


def _levelled(groups: Sequence[_Group]) -> list[_Group]:
    """Round the losses of groups up to at most ``LEVELS`` values; keep privacy profiles."""
    if len(groups) <= LEVELS:
        return list(groups)
    by_kind = grouped(groups, lambda group: group.kind)
    levels: list[_Group] = []
    for kind, members in by_kind.items():
        levels += members if kind == "profile" else _levels_of(members)
    return levels


def _levels_of(groups: Sequence[_Group]) -> list[_Group]:
    """Replace similar losses of one mechanism by the largest loss of each level.

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


def _epsilons(groups: tuple[_Group, ...], delta: float) -> dict[str, float]:
    """Return the epsilon of each accountant that applies to the groups."""
    kinds = {group.kind for group in groups}
    if kinds == {"gaussian"}:
        return {"gaussian": gaussian_epsilon(_mu(groups), delta)}
    pure = math.fsum(group.count * group.pure for group in groups)
    if delta == 0:
        return {"pure": pure}
    if kinds == {"concentrated"}:
        return {"zcdp": zcdp_epsilon(_rho(groups), delta)}
    if all(group.pair for group in groups):
        return {"pure": pure, "pld": _pld(groups, delta)}
    return {"pure": pure, "rdp": _rdp(groups, delta)}


def _mu(groups: Sequence[_Group]) -> float:
    if any(group.kind != "gaussian" for group in groups):
        return math.inf
    return math.hypot(*(math.sqrt(group.count) * group.loss for group in groups))


def _rho(groups: Sequence[_Group]) -> float:
    return math.fsum(group.count * (group.loss * group.loss / 2) for group in groups)


@lru_cache(maxsize=4096)  # random graphs and tables of privacy ask for equal groups
def _rdp(groups: tuple[_Group, ...], delta: float) -> float:
    """Compute epsilon from Renyi divergences, if a release has no dominating pair."""
    paired = [group for group in groups if group.pair]
    unpaired = [group for group in groups if not group.pair]
    rho = _rho([group for group in unpaired if group.kind == "concentrated"])
    profiles = [(group.profile, group.count) for group in unpaired if group.profile is not None]

    def log_moment(theta: float) -> float:
        divergences = (count * profile.divergence(1 + theta) for profile, count in profiles)
        return theta * math.fsum([rho * (1 + theta), *divergences])

    return loss_distributions.renyi_epsilon(_composition(paired), delta, log_moment)


@lru_cache(maxsize=4096)
def _pld(groups: tuple[_Group, ...], delta: float) -> float:
    """Compute epsilon from privacy loss distributions."""
    return loss_distributions.epsilon(_composition(groups), delta)


def _composition(groups: Sequence[_Group]) -> list[tuple[Pair, int]]:
    """Return dominating pairs and numbers of releases, with all Gaussians merged into one."""
    gaussians = [group for group in groups if group.kind == "gaussian"]
    merged = [group for group in groups if group.kind != "gaussian"]
    merged += [_Group("gaussian", _mu(gaussians), 1)] if gaussians else []
    return [(group.pair, group.count) for group in _levelled(merged)]  # ty: ignore
