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

from private_consensus.privacy.conversions import gaussian_epsilons
from private_consensus.privacy.observers import Coalition, Inputs, Observer
from private_consensus.privacy.observers.adaptivity import Statement, statements
from private_consensus.privacy.observers.laplace import laplace_epsilons

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
    observation: Observation, observer: Observer, victim: int, delta: float
) -> ObservedEpsilon:
    """Compute the privacy loss of one agent to an observer.

    Parameters
    ----------
    observation : Observation
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
    return epsilons(observation, observer, delta, [victim])[victim]


def epsilons(
    observation: Observation, observer: Observer, delta: float, victims: Sequence[int] | None = None
) -> dict[int, ObservedEpsilon]:
    """Compute the privacy loss of target agents to an observer.

    Parameters
    ----------
    observation : Observation
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
    return all_epsilons(observation, [observer], delta, victims)[0]


def all_epsilons(
    observation: Observation,
    observers: Sequence[Observer],
    delta: float,
    victims: Sequence[int] | None = None,
    *,
    apart: bool = False,
) -> list[dict[int, ObservedEpsilon]]:
    """Compute the privacy losses to many observers, with joint conversions of their mu.

    Parameters
    ----------
    observation : Observation
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
    return of_several([(observation, observers)], delta, victims, apart=apart)[0]


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
    requests = [
        [(observer, _victims(observation, observer, victims)) for observer in observers]
        for observation, observers in cases
    ]
    statements_by_case = [
        _by_formula(observation, case_requests)
        for (observation, _), case_requests in zip(cases, requests, strict=True)
    ]
    converted = _converted(statements_by_case, delta, apart)
    return [
        [
            {u: _with_causal(observation, observer, u, delta, loss) for u, loss in losses.items()}
            for observer, losses in zip(observers, losses_by_observer, strict=True)
        ]
        for (observation, observers), losses_by_observer in zip(cases, converted, strict=True)
    ]


def _victims(
    observation: Observation, observer: Observer, victims: Sequence[int] | None
) -> Sequence[int]:
    observer.check(observation.network.n_agents)
    if victims is not None:
        return victims
    return [u for u in range(observation.network.n_agents) if u not in observer.members]


def _by_formula(observation: Observation, requests: Sequence[Asked]) -> list[Found]:
    refused = ObservedEpsilon(np.nan, np.nan, np.inf, "refused")
    system = observation.system
    if system is not None and system.law == "gaussian":
        return _gaussian(system, requests)
    if system is None or system.inputs.react:
        return [dict.fromkeys(victims, refused) for _, victims in requests]
    return [_laplace(system, observer, victims) for observer, victims in requests]


def _gaussian(observed: ObservedSystem, requests: Sequence[Asked]) -> list[Found]:
    (system,) = observed.channels
    inputs = observed.inputs
    if system.horizon * system.n_agents > MOST_BUDGETS:
        inputs = Inputs(react=inputs.react)
    return [
        statements(system, observer, observed.changes, inputs, victims)
        for observer, victims in requests
    ]


def _converted(
    statements_by_case: Sequence[list[Found]], delta: float, is_separate: bool
) -> list[list[dict[int, ObservedEpsilon]]]:
    """Convert statements on mu to epsilons, for all observers of a case jointly or separately."""
    groups = [
        group
        for case_statements in statements_by_case
        for group in (
            map(_sides, case_statements)
            if is_separate
            else [itertools.chain.from_iterable(map(_sides, case_statements))]
        )
    ]
    mus = [np.reshape([*group], (-1, 3)) for group in groups]
    values = iter(np.concatenate(gaussian_epsilons(mus, delta)))
    return [
        [
            {u: _epsilon(statement, values) for u, statement in pair_statements.items()}
            for pair_statements in case_statements
        ]
        for case_statements in statements_by_case
    ]


def _sides(pair_statements: Found) -> list[tuple[float, float, float]]:
    """Return lower and upper bound and guarantee of mu, for each target agent with a statement."""
    stated = [
        statement for statement in pair_statements.values() if isinstance(statement, Statement)
    ]
    return [
        (statement.open_loop.lower, statement.open_loop.upper, statement.mu) for statement in stated
    ]


def _epsilon(
    statement: Statement | ObservedEpsilon, values: Iterator[np.ndarray]
) -> ObservedEpsilon:
    if isinstance(statement, ObservedEpsilon):
        return statement
    return ObservedEpsilon(*map(float, next(values)), statement.rule)


def _laplace(
    observed: ObservedSystem, observer: Observer, victims: Sequence[int]
) -> dict[int, ObservedEpsilon]:
    channel_losses = [
        laplace_epsilons(channel, observer, victims, observed.changes)
        for channel in observed.channels
    ]
    largest = {u: max(losses[u] for losses in channel_losses) for u in victims}
    return {u: ObservedEpsilon(np.nan, cost, cost, "exact") for u, cost in largest.items()}


def _with_causal(
    observation: Observation, observer: Observer, victim: int, delta: float, loss: ObservedEpsilon
) -> ObservedEpsilon:
    """Return the smaller of the guarantees from the statement and from distance."""
    causal = observation.causal_guarantee(observer, victim, delta)
    bound = causal.epsilon if causal.proven else np.inf
    if bound < loss.guarantee * (1 - _WORTH):
        return ObservedEpsilon(loss.lower, loss.formula, float(bound), "light_cone")
    return loss


def by_distance(observation: Observation, delta: float, observer: int) -> list[dict[str, object]]:
    """Compute the privacy loss of every other agent to one agent, nearest first.

    Parameters
    ----------
    observation : Observation
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
    view = Coalition((observer,), last_states=observation.last_states)
    losses = epsilons(observation, view, delta)
    distances = observation.distances[observer]
    agents = sorted(losses, key=lambda u: (distances[u], u))
    return [{"agent": u, "distance": int(distances[u]), **vars(losses[u])} for u in agents]
