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

    received: list[Any] = []

    def keep(value: Any) -> Any:
        received.append(np.array(value))
        return value

    def states(deliver: Deliver, changed: int | None = None) -> list[Event]:
        events: list[Event] = []
        mechanisms = algorithm.mechanisms(problem, network, horizon)
        handler = Changing(mechanisms, problem, streams, np.array([horizon]))
        handler.deliver, handler.agent = deliver, changed
        # Other outputs may end an execution, for example outside of the domain of a solver.
        with suppress(Exception):
            run_recorded(algorithm, problem, network, horizon, handler, events, deliver)
        return [event for event in events if event.kind == "state"]

    first, messages = states(keep), iter(received)
    second = states(lambda value: next(messages), agent)
    for (_, t, name, a), (*_, b) in zip(first, second, strict=False):
        if _has_agents(a, network.n_agents) and np.shape(a) == np.shape(b):
            rounding = UNCHANGED * np.abs(a).max(initial=0.0)
            differs = ~np.isclose(a, b, rtol=0.0, atol=rounding, equal_nan=True)
            differs[:, :, agent] = False
            if differs.any():
                of_agent = f"the state {name!r} of agent {np.argwhere(differs)[0][2]}"
                return f"{of_agent} after iteration {t} depends on agent {agent} without a message"
    return ""


class Changing(Running):
    """Handler that changes all outputs of one agent, and delivers the results of secure sums."""

    deliver: Deliver
    agent: int | None

    def release(self, name, query, where):
        output = super().release(name, query, where)
        if isinstance(self.mechanisms[name], SecureSum):
            return self.deliver(output)
        if self.agent is not None and _has_agents(output, self.problem.n_agents):
            output = output.copy()
            output[:, :, self.agent] += 1.0
        return output


def _has_agents(value: Any, agents: int) -> bool:
    """Return True for an array of numbers per agent."""
    is_real = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return is_real and value.shape[2:3] == (agents,)
