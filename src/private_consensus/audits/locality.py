"""Test that agents use values of other agents only if messages bring them."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.handlers import Running
from private_consensus.core.networks import Network
from private_consensus.core.randomness import Streams
from private_consensus.privacy.mechanisms import SecureSum

from .execution import Event, run_recorded

Deliver = Callable[[Any], Any]
"""Function of a received value that returns the value which agents receive instead."""
UNCHANGED = 1e-9
"""Largest difference, relative to the largest value of a state, that counts as rounding."""


def unsent_dependence(
    algorithm: Algorithm,
    problem: Any,
    network: Network,
    horizon: int,
    streams: Streams,
    agent: int,
) -> str:
    """Return the first state that depends on another agent without a message; empty if none does.

    A run is repeated with other outputs of ``agent``, while all agents receive the values of the
    first run. The states of the other agents must then be equal. The sentence names the state, the
    agents and the iteration.
    """

    def states(deliver: Deliver, changed: int | None = None) -> list[Event]:
        events: list[Event] = []
        mechanisms = algorithm.mechanisms(problem, network, horizon)
        handler = Changing(mechanisms, problem, streams, np.array([horizon]))
        handler.deliver, handler.agent = deliver, changed
        # Other outputs may end an execution, for example outside of the domain of a solver.
        with suppress(Exception):
            run_recorded(algorithm, problem, network, horizon, handler, events, deliver)
        return [event for event in events if event.kind == "state"]

    received: list[Any] = []

    def keep(value: Any) -> Any:
        received.append(np.array(value))
        return value

    first = states(keep)
    messages = iter(received)
    second = states(lambda value: next(messages), agent)
    for event, changed in zip(first, second, strict=False):
        if readers := _readers(event.value, changed.value, agent, network.n_agents):
            return (
                f"the state {event.name!r} of agent {readers[0]} after iteration {event.t} depends "
                f"on agent {agent} without a message"
            )
    return ""


class Changing(Running):
    """Handler that changes all outputs of one agent, and delivers the results of secure sums."""

    deliver: Deliver
    agent: int | None

    def release(self, name, query, where):
        output = super().release(name, query, where)
        if isinstance(self.mechanisms[name], SecureSum):
            return self.deliver(output)
        if self.agent is None or not _has_agents(output, self.problem.n_agents):
            return output
        changed = output.copy()
        changed[:, :, self.agent] += 1.0
        return changed


def _has_agents(value: Any, agents: int) -> bool:
    """Return True for an array of numbers per agent."""
    is_real = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return is_real and value.shape[2:3] == (agents,)


def _readers(value: Any, changed: Any, agent: int, agents: int) -> list[int]:
    """Return the other agents at which two values of a state differ."""
    if not _has_agents(value, agents) or np.shape(value) != np.shape(changed):
        return []
    rounding = UNCHANGED * np.abs(value).max(initial=0.0)
    differs = ~np.isclose(value, changed, rtol=0.0, atol=rounding, equal_nan=True)
    differs[:, :, agent] = False
    return sorted({int(index[2]) for index in np.argwhere(differs)})
