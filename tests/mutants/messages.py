"""Faults: messages that release more than declared, and incomplete declarations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .tampering import fingerprint

SENT = ("x", "y", "sent", "noisy", "b")
"""Fields of states that are sent, or from which the first message is computed."""


MOST_REPEATED = 13
"""Number of different counts of repetitions, of which the data select one."""


class StartsFromData:
    """Fault: the first iterate of an agent is a step along its exact gradient."""

    def start(self, problem, network, streams, settings):
        state = super().start(problem, network, streams, settings)
        exact_gradients = own_slope(problem, state)
        iterates = {name: getattr(state, name) for name in SENT if name in state._fields}
        moved = {
            name: array + exact_gradients
            for name, array in iterates.items()
            if array.ndim == exact_gradients.ndim
        }
        state = state._replace(**moved)
        if "received_sum" in state._fields:
            state = state._replace(received_sum=self.receive(state, network).received_sum)
        return state


def own_slope(problem, state) -> np.ndarray:
    """Return the exact gradient of each agent at its first iterate."""
    x = next(getattr(state, name) for name in SENT if name in state._fields)
    if hasattr(problem, "observation_noise"):
        unit = np.full((1, *problem.constant.shape[:2]), 0.5)
        return np.einsum("imk,srim->srik", problem.matrices(0), problem.data(0, unit)[None])
    return -problem.gradient(x)


def tells(rounds: Callable[[int], bool], exact: Callable) -> type:
    """Return a class that exchanges an exact value after selected iterations."""

    class Tells:
        def step(self, state, problem, network, draw, t):
            before = type(state)(*(np.array(field) for field in state))
            after = super().step(state, problem, network, draw, t)
            if rounds(t):
                network.mix(exact(problem, before, after))
            return after

    return Tells


def iterate(state) -> np.ndarray:
    """Return the iterates of a state, [settings, runs, agents, dim]."""
    return next(getattr(state, name) for name in SENT if name in state._fields)


def gradient(problem, before, after):
    if hasattr(problem, "observation_noise"):
        return own_slope(problem, before)
    return problem.gradient(iterate(before))


def minimiser(problem, before, after):
    return after.minimiser


class TellsTheCoefficients:
    """Fault: the noisy release is followed by the exact coefficients."""

    def run(self, problem, network, streams, horizon, observe):
        super().run(problem, network, streams, horizon, observe)
        exact = problem.coefficients.linear[:, None, :]
        shape = (len(horizon), len(streams.runs), *exact.shape[1:])
        observables = {"released": np.broadcast_to(exact, shape)}
        observe(2, np.arange(len(horizon)), observables)


class StopsByData:
    """Fault: the number of repetitions of the last message depends on the data."""

    def run(self, problem, network, streams, horizon, observe):
        last: dict[str, Any] = {}

        def noted(t, active, observables):
            observe(t, active, observables)
            last.update(observables)

        super().run(problem, network, streams, horizon, noted)
        last_observables = {name: last[name] for name in ("released", "internal") if name in last}
        for repetition in range(1, 1 + fingerprint(problem) % MOST_REPEATED):
            network.mix(next(iter(last_observables.values())))
            observe(int(np.max(horizon)) + repetition, np.arange(len(horizon)), last_observables)


class RunsOn:
    """Fault: the algorithm runs twice the declared number of iterations."""

    def run(self, problem, network, streams, horizon, observe):
        super().run(problem, network, streams, 2 * np.asarray(horizon), observe)


class AccountOfTheFirst:
    """Fault: the account contains the first iteration only."""

    def releases(self, problem, network, horizon):
        return super().releases(problem, network, 1)
