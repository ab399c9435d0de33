"""Epsilon of one pair of target agent and observer: formula for fixed inputs, and guarantee.

============  =======  ================================================================
rule          label    reason for the guarantee
============  =======  ================================================================
exact         exact    inputs react to no noise, or linearly with public curvature
upper_bound   bound    the same, if the formula has different lower and upper bounds
adaptive      exact    the observer receives everything to which inputs react
contraction   F1       local steps expand no distances; hidden noise shrinks differences
light_cone    F0       the target's rounds that can still arrive, by the accountant
refused       refused  the accountant guarantees nothing
============  =======  ================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from private_consensus.privacy.conversions import gaussian_epsilons
from private_consensus.privacy.observers import Coalition, Inputs, Observer
from private_consensus.privacy.observers.adaptivity import statements
from private_consensus.privacy.observers.laplace import laplace_epsilons

from .causal import Observation
from .linear import ObservedSystem

LABELS = {
    "exact": "exact",
    "upper_bound": "bound",
    "adaptive": "exact",
    "contraction": "F1",
    "light_cone": "F0",
    "refused": "refused",
}
MOST_BUDGETS = 3000
"""Maximum of rounds times agents for which the contraction bound is minimised."""
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
        """Label of the rule that proves the guarantee: exact, bound, F1, F0 or refused."""
        return LABELS[self.rule]


def epsilon_for(
    observation: Observation, observer: Observer, target: int, delta: float
) -> ObservedEpsilon:
    """Compute the privacy loss of one agent to an observer.

    Parameters
    ----------
    observation : Observation
        Calibrated algorithm on a problem and graph.
    observer : Observer
        Observer of messages.
    target : int
        Target agent.
    delta : float
        Delta of the guarantee. The linear program for Laplace noise gives pure privacy for any
        delta.

    Returns
    -------
    ObservedEpsilon
    """
    return epsilons(observation, observer, delta, [target])[target]


def epsilons(
    observation: Observation, observer: Observer, delta: float, targets: Sequence[int] | None = None
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
    targets : sequence of int, optional
        Target agents; by default all agents that are not members of the observer.

    Returns
    -------
    dict of int to ObservedEpsilon
    """
    observer.check(observation.network.n_agents)
    if targets is None:
        targets = [u for u in range(observation.network.n_agents) if u not in observer.members]
    losses = _by_formula(observation, observer, targets, delta)
    return {u: _with_causal(observation, observer, u, delta, loss) for u, loss in losses.items()}


def _by_formula(
    observation: Observation, observer: Observer, targets: Sequence[int], delta: float
) -> dict[int, ObservedEpsilon]:
    system = observation.system
    if system is not None and system.law == "gaussian":
        return _gaussian(system, observer, targets, delta)
    if system is None or system.inputs.react:
        return dict.fromkeys(targets, ObservedEpsilon(np.nan, np.nan, np.inf, "refused"))
    return _laplace(system, observer, targets)


def _gaussian(
    observed: ObservedSystem, observer: Observer, targets: Sequence[int], delta: float
) -> dict[int, ObservedEpsilon]:
    (system,) = observed.channels
    inputs = observed.inputs
    if system.horizon * system.n_agents > MOST_BUDGETS:
        inputs = Inputs(react=inputs.react)
    by_agent = statements(system, observer, observed.changes, inputs, targets)
    mus = [(s.open_loop.lower, s.open_loop.upper, s.mu) for s in by_agent.values()]
    (values,) = gaussian_epsilons([np.reshape(mus, (-1, 3))], delta)
    return {
        u: ObservedEpsilon(*map(float, row), statement.rule)
        for (u, statement), row in zip(by_agent.items(), values, strict=True)
    }


def _laplace(
    observed: ObservedSystem, observer: Observer, targets: Sequence[int]
) -> dict[int, ObservedEpsilon]:
    costs = laplace_epsilons(observed.channels, observer, targets, observed.changes)
    return {u: ObservedEpsilon(np.nan, cost, cost, "exact") for u, cost in costs.items()}


def _with_causal(
    observation: Observation, observer: Observer, target: int, delta: float, loss: ObservedEpsilon
) -> ObservedEpsilon:
    """Return the smaller of the guarantees from the statement and from distance."""
    causal = observation.causal_guarantee(observer, target, delta)
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
