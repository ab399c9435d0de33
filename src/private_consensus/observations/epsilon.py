r"""Epsilon of one pair: by the formula for inputs as given, and what is guaranteed.

============  =======  ================================================================
rule          label    the guarantee holds because
============  =======  ================================================================
exact         exact    inputs react to no noise, or linearly with public curvature
adaptive      exact    the observer sees all that inputs react to
contraction   F1       local steps expand no distances; hidden noise shrinks differences
light_cone    F0       the victim's rounds that can still arrive, by the accountant
refused       refused  the accountant guarantees nothing
============  =======  ================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..privacy import gaussian_epsilon
from ..privacy.observers import Coalition, Inputs, Observer, laplace_epsilon
from ..privacy.observers.adaptivity import statements
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
"""Rounds times agents up to which the contraction bound is minimised."""
_WORTH = 1e-6
"""What another bound has to be smaller by, relatively, to be the one that is named."""


@dataclass(frozen=True)
class ObservedEpsilon:
    """Epsilon of one pair.

    Parameters
    ----------
    lower, formula : float
        The formula's value for inputs as given, from below and from above; NaN where there is
        none.
    guarantee : float
    rule : str
    """

    lower: float
    formula: float
    guarantee: float
    rule: str

    @property
    def label(self) -> str:
        """exact, F1, F0 or refused."""
        return LABELS[self.rule]


def epsilon_for(
    seen: Observation, observer: Observer, victim: int, delta: float
) -> ObservedEpsilon:
    """Epsilon of one agent's data against an observer.

    Parameters
    ----------
    delta : float
        Of the guarantee. The linear program for Laplace noise gives pure privacy, whatever delta.
    """
    return epsilons(seen, observer, delta, [victim])[victim]


def epsilons(
    seen: Observation, observer: Observer, delta: float, victims: Sequence[int] | None = None
) -> dict[int, ObservedEpsilon]:
    """:func:`epsilon_for` of every victim, or of some."""
    observer.check(seen.network.n_agents)
    if victims is None:
        victims = [u for u in range(seen.network.n_agents) if u not in observer.members]
    found = _by_formula(seen, observer, delta, victims)
    return {u: _with_causal(seen, observer, u, delta, found[u]) for u in victims}


def _by_formula(
    seen: Observation, observer: Observer, delta: float, victims: Sequence[int]
) -> dict[int, ObservedEpsilon]:
    nothing = ObservedEpsilon(np.nan, np.nan, np.inf, "refused")
    if seen.system is None:
        return dict.fromkeys(victims, nothing)
    if seen.system.law == "gaussian":
        return _gaussian(seen.system, observer, delta, victims)
    if seen.system.inputs.react:
        return dict.fromkeys(victims, nothing)
    return {u: _laplace(seen.system, observer, u) for u in victims}


def _gaussian(
    observed: ObservedSystem, observer: Observer, delta: float, victims: Sequence[int]
) -> dict[int, ObservedEpsilon]:
    (system,) = observed.channels
    inputs = observed.inputs
    if system.horizon * system.n_agents > MOST_BUDGETS:
        inputs = Inputs(react=inputs.react)
    found = statements(system, observer, observed.changes, inputs, victims)
    sides = [(one.open_loop.lower, one.open_loop.upper, one.mu) for one in found.values()]
    values = gaussian_epsilon(np.reshape(sides, (-1, 3)), delta)
    return {
        u: ObservedEpsilon(*map(float, row), one.rule)
        for (u, one), row in zip(found.items(), values, strict=True)
    }


def _laplace(observed: ObservedSystem, observer: Observer, victim: int) -> ObservedEpsilon:
    parts = [laplace_epsilon(one, observer, victim, observed.changes) for one in observed.channels]
    return ObservedEpsilon(np.nan, max(parts), max(parts), "exact")


def _with_causal(
    seen: Observation, observer: Observer, victim: int, delta: float, found: ObservedEpsilon
) -> ObservedEpsilon:
    """The better of what the statement and what distance guarantees."""
    causal = seen.causal_guarantee(observer, victim, delta)
    bound = causal.epsilon if causal.proven else np.inf
    if bound < found.guarantee * (1 - _WORTH):
        return ObservedEpsilon(found.lower, found.formula, float(bound), "light_cone")
    return found


def by_distance(seen: Observation, delta: float, observer: int) -> list[dict[str, object]]:
    """What one agent learns about every other one, the nearest first.

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
