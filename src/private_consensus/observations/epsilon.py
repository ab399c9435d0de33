"""Epsilon of one pair: by the formula for fixed inputs, and the guarantee.

============  =======  ================================================================
rule          label    reason for the guarantee
============  =======  ================================================================
exact         exact    inputs react to no noise, or linearly with public curvature
adaptive      exact    the observer receives everything to which inputs react
contraction   F1       local steps expand no distances; hidden noise shrinks differences
light_cone    F0       the target's rounds that can still arrive, by the accountant
refused       refused  the accountant guarantees nothing
============  =======  ================================================================
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..privacy.conversions import gaussian_epsilons
from ..privacy.observers import Coalition, Inputs, Observer
from ..privacy.observers.adaptivity import Statement, statements
from ..privacy.observers.laplace import laplace_epsilons
from .causal import Observation
from .linear import ObservedSystem

LABELS = {
    "exact": "exact",
    "adaptive": "exact",
    "contraction": "F1",
    "light_cone": "F0",
    "refused": "refused",
}
MOST_BUDGETS = 3000
"""Maximum of rounds times agents for which the contraction bound is minimised."""
Asked = tuple[Observer, Sequence[int]]
"""Observer and the target agents whose loss to it is requested."""
_WORTH = 1e-6
"""Relative amount by which another bound must be smaller to replace the rule."""


@dataclass(frozen=True)
class ObservedEpsilon:
    """Epsilon of one pair of target agent and observer.

    Parameters
    ----------
    lower, formula : float
        Lower and upper bound on the formula's value for fixed inputs; NaN without a formula.
    guarantee : float
        Guaranteed epsilon; may be infinite.
    rule : str
        Rule of the guarantee; a key of ``LABELS``.
    """

    lower: float
    formula: float
    guarantee: float
    rule: str

    @property
    def label(self) -> str:
        """Label of the rule: exact, F1, F0 or refused."""
        return LABELS[self.rule]


Found = Mapping[int, Statement | ObservedEpsilon]
"""Statement on mu for each target agent, or its epsilon if there is none."""


def epsilon_for(
    seen: Observation, observer: Observer, victim: int, delta: float
) -> ObservedEpsilon:
    """Compute the privacy loss of one agent to an observer.

    Parameters
    ----------
    seen : Observation
        Calibrated algorithm on a problem and graph.
    observer : Observer
        Observer of messages.
    victim : int
        Target agent.
    delta : float
        Delta of the guarantee. The linear program for Laplace noise gives pure privacy for any
        delta.

    Returns
    -------
    ObservedEpsilon
    """
    return epsilons(seen, observer, delta, [victim])[victim]


def epsilons(
    seen: Observation, observer: Observer, delta: float, victims: Sequence[int] | None = None
) -> dict[int, ObservedEpsilon]:
    """Compute the privacy loss of target agents to an observer.

    Parameters
    ----------
    seen : Observation
        Calibrated algorithm on a problem and graph.
    observer : Observer
        Observer of messages.
    delta : float
        Delta of the guarantee.
    victims : sequence of int, optional
        Target agents; by default all agents that are not members of the observer.

    Returns
    -------
    dict of int to ObservedEpsilon
    """
    return all_epsilons(seen, [observer], delta, victims)[0]


def all_epsilons(
    seen: Observation,
    observers: Sequence[Observer],
    delta: float,
    victims: Sequence[int] | None = None,
    *,
    apart: bool = False,
) -> list[dict[int, ObservedEpsilon]]:
    """Compute the privacy losses to many observers, with joint conversions of their mu.

    Parameters
    ----------
    seen : Observation
        Calibrated algorithm on a problem and graph.
    observers : sequence of Observer
        Observers of messages.
    delta : float
        Delta of the guarantee.
    victims : sequence of int, optional
        Target agents; by default all agents that are not members of the observer.
    apart : bool, default False
        True to convert each observer's mu separately. Results then equal those of
        :func:`epsilons` to the last digit.

    Returns
    -------
    list of dict of int to ObservedEpsilon
        One mapping per observer.
    """
    return of_several([(seen, observers)], delta, victims, apart=apart)[0]


def of_several(
    cases: Sequence[tuple[Observation, Sequence[Observer]]],
    delta: float,
    victims: Sequence[int] | None = None,
    *,
    apart: bool = False,
) -> list[list[dict[int, ObservedEpsilon]]]:
    """Compute the privacy losses of several settings; conversions of equal size share calls.

    The results equal those of :func:`all_epsilons` for each setting.

    Parameters
    ----------
    cases : sequence of tuple
        Settings with their observers.
    delta : float
        Delta of the guarantee.
    victims : sequence of int, optional
        Target agents; by default all agents that are not members of the observer.
    apart : bool, default False
        True to convert each observer's mu separately.

    Returns
    -------
    list of list of dict of int to ObservedEpsilon
        One list per setting, with one mapping per observer.
    """
    asked = [
        [(observer, _victims(seen, observer, victims)) for observer in observers]
        for seen, observers in cases
    ]
    found = [_by_formula(seen, one) for (seen, _), one in zip(cases, asked, strict=True)]
    converted = _converted(found, delta, apart)
    return [
        [
            {u: _with_causal(seen, observer, u, delta, one) for u, one in part.items()}
            for observer, part in zip(observers, parts, strict=True)
        ]
        for (seen, observers), parts in zip(cases, converted, strict=True)
    ]


def _victims(seen: Observation, observer: Observer, victims: Sequence[int] | None) -> Sequence[int]:
    observer.check(seen.network.n_agents)
    if victims is not None:
        return victims
    return [u for u in range(seen.network.n_agents) if u not in observer.members]


def _by_formula(seen: Observation, asked: Sequence[Asked]) -> list[Found]:
    nothing = ObservedEpsilon(np.nan, np.nan, np.inf, "refused")
    system = seen.system
    if system is not None and system.law == "gaussian":
        return _gaussian(system, asked)
    if system is None or system.inputs.react:
        return [dict.fromkeys(victims, nothing) for _, victims in asked]
    return [_laplace(system, observer, victims) for observer, victims in asked]


def _gaussian(observed: ObservedSystem, asked: Sequence[Asked]) -> list[Found]:
    (system,) = observed.channels
    inputs = observed.inputs
    if system.horizon * system.n_agents > MOST_BUDGETS:
        inputs = Inputs(react=inputs.react)
    return [
        statements(system, observer, observed.changes, inputs, victims)
        for observer, victims in asked
    ]


def _converted(
    found: Sequence[list[Found]], delta: float, apart: bool
) -> list[list[dict[int, ObservedEpsilon]]]:
    """Convert statements on mu to epsilons, for all observers of a case jointly or separately."""
    groups = [
        group
        for parts in found
        for group in (
            map(_sides, parts) if apart else [itertools.chain.from_iterable(map(_sides, parts))]
        )
    ]
    mus = [np.reshape([*group], (-1, 3)) for group in groups]
    values = iter(np.concatenate(gaussian_epsilons(mus, delta)))
    return [
        [{u: _epsilon(one, values) for u, one in part.items()} for part in parts] for parts in found
    ]


def _sides(part: Found) -> list[tuple[float, float, float]]:
    """Return lower and upper bound and guarantee of mu, for each target agent with a statement."""
    stated = [one for one in part.values() if isinstance(one, Statement)]
    return [(one.open_loop.lower, one.open_loop.upper, one.mu) for one in stated]


def _epsilon(one: Statement | ObservedEpsilon, values: Iterator[np.ndarray]) -> ObservedEpsilon:
    if isinstance(one, ObservedEpsilon):
        return one
    return ObservedEpsilon(*map(float, next(values)), one.rule)


def _laplace(
    observed: ObservedSystem, observer: Observer, victims: Sequence[int]
) -> dict[int, ObservedEpsilon]:
    parts = [
        laplace_epsilons(one, observer, victims, observed.changes) for one in observed.channels
    ]
    largest = {u: max(part[u] for part in parts) for u in victims}
    return {u: ObservedEpsilon(np.nan, cost, cost, "exact") for u, cost in largest.items()}


def _with_causal(
    seen: Observation, observer: Observer, victim: int, delta: float, found: ObservedEpsilon
) -> ObservedEpsilon:
    """Return the smaller of the guarantees from the statement and from distance."""
    causal = seen.causal_guarantee(observer, victim, delta)
    bound = causal.epsilon if causal.proven else np.inf
    if bound < found.guarantee * (1 - _WORTH):
        return ObservedEpsilon(found.lower, found.formula, float(bound), "light_cone")
    return found


def by_distance(seen: Observation, delta: float, observer: int) -> list[dict[str, object]]:
    """Compute the privacy loss of every other agent to one agent, nearest first.

    Parameters
    ----------
    seen : Observation
        Calibrated algorithm on a problem and graph.
    delta : float
        Delta of the guarantees.
    observer : int
        Observing agent.

    Returns
    -------
    list of dict
        ``agent``, ``distance``, ``lower``, ``formula``, ``guarantee``, ``rule``.
    """
    view = Coalition((observer,), last_states=seen.last_states)
    found = epsilons(seen, view, delta)
    apart = seen.distances[observer]
    others = sorted(found, key=lambda u: (apart[u], u))
    return [{"agent": u, "distance": int(apart[u]), **vars(found[u])} for u in others]
