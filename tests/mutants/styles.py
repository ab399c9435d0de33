"""Correct algorithms in styles that differ from this package; audits must flag none of them.

Each follows ``docs/how-to/add_an_algorithm.md`` in a style of its own: where the noise is drawn
and in which unit it is stated, what is kept with the message, and what is done to a message that is
already private. All are calibrated by exact Gaussian (or basic Laplace) composition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from private_consensus.core.algorithms.base import Algorithm, Iterative, column
from private_consensus.privacy import Budget, Relation, Release, gaussian_epsilon, gaussian_mu

from .cases import Case, of_means

BUDGET, HORIZON = Budget(2.0, 1e-4), 4


class Message(NamedTuple):
    """Messages, [settings, runs, agents, dim]."""

    y: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Descent(Algorithm):
    r"""Gradient descent with mixing first and a noisy mean gradient.

    :math:`y \leftarrow Wy - \eta(\nabla f_i(Wy)/N_i + N(0, \sigma^2))`."""

    eta: float = 0.5
    sigma: float = 0.0

    def calibrate(self, budget, problem, network, horizon):
        mu = gaussian_mu(budget.epsilon, budget.delta) / np.sqrt(horizon)
        return replace(self, sigma=self.change(problem) / mu)

    def change(self, problem) -> float:
        """Return the largest change of a mean gradient by a replaced record."""
        return problem.record_gradient_change / problem.records

    def releases(self, problem, network, horizon):
        change, scale = self.eta * self.change(problem), self.eta * self.sigma
        return [Release("gaussian", change, scale, count=horizon)]

    def claimed_epsilon(self, delta, problem, network, horizon):
        return gaussian_epsilon(np.sqrt(horizon) * self.change(problem) / self.sigma, delta)

    def start(self, problem, network, streams, settings):
        return Message(np.zeros((settings, len(streams.runs), problem.n_agents, problem.dim)))

    def draws(self, problem, streams):
        return streams.sequence("noise", "normal", (problem.n_agents, problem.dim))

    def noised_step(self, problem, x, draw):
        """Return the negative noisy gradient times the step size."""
        slope = problem.gradient(x) / problem.records
        return -column(self.eta) * (slope + column(self.sigma) * draw)

    def step(self, state, problem, network, draw, t):
        mixed = network.mix(state.y)
        return Message(mixed + self.noised_step(problem, mixed, draw))

    def observables(self, state, problem, t):
        return {"released": state.y}


@dataclass(frozen=True, kw_only=True)
class InUnitsOfTheGradient(Descent):
    """Descent that declares sensitivity and noise of the gradient instead of the message."""

    def releases(self, problem, network, horizon):
        return [Release("gaussian", self.change(problem), self.sigma, count=horizon)]


@dataclass(frozen=True, kw_only=True)
class DividedByAgents(Descent):
    """Descent whose step size is divided by the number of agents, as for a sum of objectives."""

    def noised_step(self, problem, x, draw):
        return super().noised_step(problem, x, draw) / problem.n_agents

    def releases(self, problem, network, horizon):
        share = self.eta / problem.n_agents
        return [
            Release("gaussian", share * self.change(problem), share * self.sigma, count=horizon)
        ]


class Remembered(NamedTuple):
    """Message, mean of all messages so far, and number of steps."""

    y: np.ndarray
    mean: np.ndarray
    steps: np.ndarray


@dataclass(frozen=True, kw_only=True)
class OwnState(Descent):
    """Descent that continues from the mean of its messages."""

    def start(self, problem, network, streams, settings):
        zero = np.zeros((settings, len(streams.runs), problem.n_agents, problem.dim))
        return Remembered(zero, zero, np.zeros(zero.shape[:2]))

    def step(self, state, problem, network, draw, t):
        mixed = network.mix(state.mean)
        y = mixed + self.noised_step(problem, mixed, draw)
        return Remembered(y, state.mean + (y - state.mean) / t, state.steps + 1)


class Velocity(NamedTuple):
    """Message and its last change."""

    y: np.ndarray
    v: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Momentum(Descent):
    """Heavy-ball momentum, computed from messages."""

    beta: float = 0.5

    def start(self, problem, network, streams, settings):
        zero = np.zeros((settings, len(streams.runs), problem.n_agents, problem.dim))
        return Velocity(zero, zero)

    def step(self, state, problem, network, draw, t):
        mixed = network.mix(state.y)
        v = column(self.beta) * state.v + self.noised_step(problem, mixed, draw)
        return Velocity(mixed + v, v)


@dataclass(frozen=True, kw_only=True)
class NoisedGradientSum(Descent):
    """Dual averaging: the message is the start minus the sum of all noisy gradients."""

    def start(self, problem, network, streams, settings):
        zero = np.zeros((settings, len(streams.runs), problem.n_agents, problem.dim))
        return Velocity(zero, zero)

    def step(self, state, problem, network, draw, t):
        total = state.v + self.noised_step(problem, network.mix(state.y), draw)
        return Velocity(total, total)


class Two(NamedTuple):
    """Iterate and gradient message of an iteration, which are both released."""

    y: np.ndarray
    slope: np.ndarray


@dataclass(frozen=True, kw_only=True)
class TwoReleases(Descent):
    """Gradient exchange: a noisy gradient is averaged over neighbours, then an iterate is sent."""

    def calibrate(self, budget, problem, network, horizon):
        mu = gaussian_mu(budget.epsilon, budget.delta) / np.sqrt(2 * horizon)
        return replace(self, sigma=self.change(problem) / mu)

    def releases(self, problem, network, horizon):
        change = self.change(problem)
        return [
            Release("gaussian", change, self.sigma, count=horizon),
            Release("gaussian", self.eta * change, self.eta * self.sigma, count=horizon),
        ]

    def claimed_epsilon(self, delta, problem, network, horizon):
        return gaussian_epsilon(np.sqrt(2 * horizon) * self.change(problem) / self.sigma, delta)

    def start(self, problem, network, streams, settings):
        zero = np.zeros((settings, len(streams.runs), problem.n_agents, problem.dim))
        return Two(zero, zero)

    def draws(self, problem, streams) -> Iterator[tuple]:
        shape = (problem.n_agents, problem.dim)
        first, second = (
            streams.sequence("noise", "normal", shape, name) for name in ("slope", "iterate")
        )
        return zip(first, second, strict=True)

    def step(self, state, problem, network, draw, t):
        slope = problem.gradient(state.y) / problem.records + column(self.sigma) * draw[0]
        ahead = network.mix(state.y) - column(self.eta) * network.mix(slope)
        return Two(ahead + self.noised_step(problem, ahead, draw[1]), slope)


@dataclass(frozen=True, kw_only=True)
class NoiseInStart(Descent):
    """Consensus after one noisy mean of the records, which ``start`` computes."""

    def calibrate(self, budget, problem, network, horizon):
        mu = gaussian_mu(budget.epsilon, budget.delta)
        return replace(self, sigma=self.change(problem) / mu)

    def releases(self, problem, network, horizon):
        return [Release("gaussian", self.change(problem), self.sigma)]

    def claimed_epsilon(self, delta, problem, network, horizon):
        return gaussian_epsilon(self.change(problem) / self.sigma, delta)

    def start(self, problem, network, streams, settings):
        unit = streams.draw("noise", "normal", (problem.n_agents, problem.dim))
        at_zero = np.zeros((settings, *unit.shape))
        mean = -problem.gradient(at_zero) / problem.records
        return Message(mean + column(self.sigma) * unit)

    def draws(self, problem, streams):
        while True:
            yield None

    def step(self, state, problem, network, draw, t):
        return Message(network.mix(state.y))


class Ahead(NamedTuple):
    """Message, and noise of all rounds; [settings, runs, T, agents, dim]."""

    y: np.ndarray
    noise: np.ndarray


@dataclass(frozen=True, kw_only=True)
class AllNoiseInStart(Descent):
    """Descent that draws the noise of all ``rounds`` iterations before the first iteration."""

    rounds: int = HORIZON

    def start(self, problem, network, streams, settings):
        shape = (int(np.max(self.rounds)), problem.n_agents, problem.dim)
        unit = np.stack([g.standard_normal(shape) for g in streams.generators("noise")])
        noise = np.broadcast_to(unit, (settings, *unit.shape))
        return Ahead(np.zeros((settings, len(unit), *shape[1:])), noise)

    def draws(self, problem, streams):
        while True:
            yield None

    def step(self, state, problem, network, draw, t):
        mixed = network.mix(state.y)
        moved = self.noised_step(problem, mixed, state.noise[:, :, t - 1])
        return state._replace(y=mixed + moved)


@dataclass(frozen=True, kw_only=True)
class Projected(Descent):
    """Descent whose messages are projected to the box after the noise."""

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        return Message(problem.project(after.y))


@dataclass(frozen=True, kw_only=True)
class Rounded(Descent):
    """Descent whose messages are rounded to a coarse grid after the noise."""

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        return Message(np.round(after.y, 1))


@dataclass(frozen=True, kw_only=True)
class SinglePrecision(Descent):
    """Descent in float32 arithmetic."""

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw.astype(np.float32), t)
        return Message(after.y.astype(np.float32))


@dataclass(frozen=True, kw_only=True)
class FallingNoise(Descent):
    """Descent with less noise and a larger privacy cost in later iterations."""

    def calibrate(self, budget, problem, network, horizon):
        mu = gaussian_mu(budget.epsilon, budget.delta)
        mu_factor = np.sqrt((self.shares(horizon) ** -2).sum())
        return replace(self, sigma=self.change(problem) * mu_factor / mu)

    def shares(self, horizon: int) -> np.ndarray:
        """Return the noise scale of each iteration over that of the first one."""
        return np.arange(1, horizon + 1) ** -0.25

    def releases(self, problem, network, horizon):
        scale = self.eta * self.sigma * self.shares(horizon)
        return [Release("gaussian", self.eta * self.change(problem), scale)]

    def claimed_epsilon(self, delta, problem, network, horizon):
        mu_factor = np.sqrt((self.shares(horizon) ** -2).sum())
        return gaussian_epsilon(mu_factor * self.change(problem) / self.sigma, delta)

    def step(self, state, problem, network, draw, t):
        return super().step(state, problem, network, draw * t**-0.25, t)


@dataclass(frozen=True, kw_only=True)
class LaplaceOnce(Algorithm):
    """Method with its own ``run``: every agent releases its noisy mean once."""

    scale: float = 0.0

    def calibrate(self, budget, problem, network, horizon):
        return replace(self, scale=self._change(problem) / budget.epsilon)

    def _change(self, problem) -> float:
        return 2.0 * problem.box * problem.dim / problem.records

    def releases(self, problem, network, horizon):
        return [Release("laplace", self._change(problem), self.scale)]

    def claimed_epsilon(self, delta, problem, network, horizon):
        return self._change(problem) / self.scale

    def run(self, problem, network, streams, horizon, observe):
        unit = streams.draw("noise", "laplace", (problem.n_agents, problem.dim))
        at_zero = np.zeros((len(horizon), *unit.shape))
        mean = -problem.gradient(at_zero) / problem.records
        observe(1, np.arange(len(horizon)), {"released": mean + column(self.scale) * unit})


@dataclass(frozen=True, kw_only=True)
class OwnLoop(Descent):
    """Descent with its own ``run``, which executes one run and one agent after the other."""

    def run(self, problem, network, streams, horizon, observe):
        generators = streams.generators("noise", "own loop")
        settings, T = len(horizon), int(np.max(horizon))
        y = np.zeros((settings, len(generators), problem.n_agents, problem.dim))
        for t in range(1, T + 1):
            mixed = network.mix(y)
            unit = np.stack([g.standard_normal(y.shape[2:]) for g in generators])
            y = mixed + self.noised_step(problem, mixed, unit)
            observe(t, np.arange(settings), {"released": y})


@dataclass(frozen=True, kw_only=True)
class Lazy(Descent):
    """Descent in every second iteration; the others only mix, and have no declared release."""

    relation = Relation("record", "replace")

    def calibrate(self, budget, problem, network, horizon):
        mu = gaussian_mu(budget.epsilon, budget.delta) / np.sqrt(self.paid(horizon))
        return replace(self, sigma=self.change(problem) / mu)

    def paid(self, horizon: int) -> int:
        """Return the number of iterations that use data."""
        return (horizon + 1) // 2

    def releases(self, problem, network, horizon):
        change, scale = self.eta * self.change(problem), self.eta * self.sigma
        return [Release("gaussian", change, scale, count=self.paid(horizon))]

    def claimed_epsilon(self, delta, problem, network, horizon):
        root = np.sqrt(self.paid(horizon))
        return gaussian_epsilon(root * self.change(problem) / self.sigma, delta)

    def step(self, state, problem, network, draw, t):
        if t % 2 == 0:
            return Message(network.mix(state.y))
        return super().step(state, problem, network, draw, t)


STYLES: dict[str, Any] = {
    "divided by records": Descent(),
    "in units of the gradient": InUnitsOfTheGradient(),
    "divided by agents": DividedByAgents(),
    "own state": OwnState(),
    "momentum": Momentum(),
    "sum of noised gradients": NoisedGradientSum(),
    "two releases an iteration": TwoReleases(),
    "noise in start": NoiseInStart(),
    "all noise in start": AllNoiseInStart(),
    "projected messages": Projected(),
    "rounded messages": Rounded(),
    "single precision": SinglePrecision(),
    "falling noise": FallingNoise(),
    "laplace once": LaplaceOnce(),
    "own loop": OwnLoop(),
    "every second iteration": Lazy(),
}


def style(name: str) -> Case:
    """Return the case of a style on mean estimation."""
    algorithm = STYLES[name]
    horizon = HORIZON if isinstance(algorithm, Iterative) else 1
    budget = BUDGET if isinstance(algorithm, Iterative) else Budget(2.0)
    return of_means(name, algorithm, budget, horizon)
