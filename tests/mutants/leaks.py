"""Faults: values that leave an agent other than by messages, and branches that depend on data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .messages import SENT, own_slope
from .steps import gradients_at_0

SHARE = 0.1
"""Factor of an exact value that is added to the receiver's iterate."""
STOPPED = 0.05
"""Gradient at 0, in changes of a record, below which an agent stops."""


def exact_slope(problem, state) -> np.ndarray:
    """Return gradients at 0, which depend on data only; measurements of linear observations."""
    if hasattr(problem, "observation_noise"):
        return own_slope(problem, state)
    return problem.gradient(np.zeros((1, 1, problem.n_agents, problem.dim)))


def field_of(state) -> str:
    """Return the name of the field of a state that contains the iterates."""
    return next(name for name in SENT if name in state._fields)


Bypass = Callable[[np.ndarray, object], np.ndarray]
"""Function of exact values [..., agents, dim] and network; returns what each agent receives."""


def bypasses(received: Bypass) -> type:
    """Return a class whose steps read values of other agents without `network.mix`."""

    class Bypasses:
        def step(self, state, problem, network, draw, t):
            after = super().step(state, problem, network, draw, t)
            name = field_of(after)
            value = getattr(after, name)
            values = received(exact_slope(problem, state), network)
            return after._replace(**{name: value + SHARE * values})

    return Bypasses


def indexed(exact, network):
    """Return the value of the preceding agent, read by index."""
    return exact[..., np.arange(exact.shape[-2]) - 1, :]


def rolled(exact, network):
    return np.roll(exact, 1, axis=-2)


def multiplied(exact, network):
    """Return the mean of all agents, by a matrix product outside of the network."""
    agents = exact.shape[-2]
    weights = np.full((agents, agents), 1.0 / agents)
    return np.einsum("ij,...jk->...ik", weights, exact)


def one_edge(exact, network):
    """Return the value of the last agent for agent 0, and zeros for all other agents."""
    values = np.zeros_like(exact)
    values[..., 0, :] = exact[..., -1, :]
    return values


class ExactOutcome:
    """Fault: the outcome of a run contains the exact gradient of the last agent."""

    def outcome(self, state, problem, network, t):
        exact = exact_slope(problem, state)[..., -1, :]
        settings, runs = getattr(state, field_of(state)).shape[:2]
        repeated_gradient = np.broadcast_to(exact, (settings, runs, exact.shape[-1]))
        honest_outcome = super().outcome(state, problem, network, t)
        return {**honest_outcome, "summary": repeated_gradient}


class ExactMeasure:
    """Fault: an observable contains the norm of the exact gradient of the last agent."""

    def observables(self, state, problem, t):
        length = np.linalg.norm(exact_slope(problem, state)[..., -1, :], axis=-1)
        settings, runs = getattr(state, field_of(state)).shape[:2]
        honest_observables = super().observables(state, problem, t)
        return {**honest_observables, "gradient_length": np.broadcast_to(length, (settings, runs))}


class CostFromData:
    """Fault: the reported solver time depends on the data of the last agent."""

    def outcome(self, state, problem, network, t):
        length = np.linalg.norm(exact_slope(problem, state)[..., -1, :], axis=-1)
        settings, runs = getattr(state, field_of(state)).shape[:2]
        honest_outcome = super().outcome(state, problem, network, t)
        return {**honest_outcome, "solver_seconds": np.broadcast_to(1.0 + length, (settings, runs))}


class StopsOnVanishingGradients:
    """Fault: an agent whose gradient at 0 vanishes repeats its last message."""

    def step(self, state, problem, network, draw, t):
        before = {n: np.array(getattr(state, n)) for n in SENT if n in state._fields}
        after = super().step(state, problem, network, draw, t)
        stopped = gradients_at_0(problem) < STOPPED * problem.record_gradient_change
        repeated_values = {
            name: np.where(stopped, value, getattr(after, name))
            for name, value in before.items()
            if value.ndim == 4 and value.shape == getattr(after, name).shape
        }
        return after._replace(**repeated_values)
