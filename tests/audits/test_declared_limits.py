"""Test that audits run until declared limits take effect, or state that they did not."""

import sys
from dataclasses import dataclass
from math import ceil
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest

from private_consensus import algorithms
from private_consensus.audits.declared_limits import MARGIN, MAX_ITERATIONS, audit_horizon
from private_consensus.audits.examples import example_names, examples
from private_consensus.core.algorithms.base import column
from private_consensus.core.algorithms.parameters import positive_integer
from private_consensus.privacy import Release
from toys import NoisyRounds, calibrated, mean_attack, registry_attacks


@dataclass(frozen=True, kw_only=True)
class Capped(NoisyRounds):
    """Algorithm that declares at most ``limit`` releases and does not stop."""

    limit: int = positive_integer(10)

    def releases(self, problem, network, horizon):
        count = min(horizon, int(np.max(self.limit)))
        return [Release("gaussian", self.change(problem), self.sigma.scale, count=count)]


@dataclass(frozen=True, kw_only=True)
class Declared(NoisyRounds):
    """Algorithm that declares at most eight releases; a helper function sets the limit."""

    def releases(self, problem, network, horizon):
        count = eight_at_most(horizon)
        return [Release("gaussian", self.change(problem), self.sigma.scale, count=count)]


def eight_at_most(number):
    return min(number, 8)


@dataclass(frozen=True, kw_only=True)
class Decreasing(NoisyRounds):
    """Algorithm that declares geometrically smaller releases, the last ones below rounding."""

    def releases(self, problem, network, horizon):
        return [Release("gaussian", self.change(problem) * 0.8 ** np.arange(horizon), 1.0)]


@dataclass(frozen=True, kw_only=True)
class Quiet(NoisyRounds):
    """Algorithm without noise after iteration 5."""

    def step(self, state, problem, network, draw, t):
        return super().step(state, problem, network, draw if t <= 5 else 0.0 * draw, t)


@dataclass(frozen=True, kw_only=True)
class Periodic(NoisyRounds):
    """Algorithm that uses data in every seventh iteration."""

    period: int = positive_integer(7)

    def releases(self, problem, network, horizon):
        count = ceil(horizon / int(np.max(self.period)))
        return [Release("gaussian", self.change(problem), self.sigma.scale, count=count)]

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        return after if (t - 1) % int(np.max(self.period)) == 0 else state


class Counted(NamedTuple):
    """Messages, and the number of messages that each agent has sent."""

    x: np.ndarray
    sent: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Counting(NoisyRounds):
    """Algorithm that stops after ``budget`` messages, which it counts in its state."""

    budget: int = positive_integer(9)

    def start(self, problem, network, streams, settings):
        x = super().start(problem, network, streams, settings).x
        return Counted(x, np.zeros((*x.shape[:-1], 1)))

    def step(self, state, problem, network, draw, t):
        number = state.sent
        after = super().step(state, problem, network, draw, t).x
        active = goes_on(number, column(self.budget))
        return Counted(np.where(active, after, state.x), number + active)


def goes_on(number, limit):
    return number < limit


CASES = [(Capped, 12), (Declared, 9 + MARGIN), (Quiet, 5 + MARGIN), (Periodic, 14 + MARGIN),
         (Counting, 10 + MARGIN)]  # fmt: skip


@pytest.mark.parametrize("kind, least", CASES)
def test_the_audit_horizon_extends_beyond_a_limit(kind, least):
    attack = mean_attack()
    algorithm = calibrated(kind, attack, 3)
    horizon, untested = audit_horizon(algorithm, 3, attack.pair[0], attack.network)
    assert least <= horizon <= least + 4
    assert not untested


def test_a_limit_that_is_not_reached_is_reported():
    attack = mean_attack()
    algorithm = calibrated(Capped, attack, 3, limit=1000)
    horizon, untested = audit_horizon(algorithm, 3, attack.pair[0], attack.network)
    assert horizon <= MAX_ITERATIONS
    text = (
        f"parameter limit = 1000: {horizon} iterations were executed, their messages are equal for "
        "limit = 1001 and 1"
    )
    assert text in map(str, untested)
    assert all(gap.decisive for gap in untested)


@dataclass(frozen=True, kw_only=True)
class Miscounting(Counting):
    """Algorithm that does not count its messages and sends more than ``budget``."""

    def step(self, state, problem, network, draw, t):
        after = NoisyRounds.step(self, state, problem, network, draw, t).x
        active = state.sent < column(self.budget)
        return Counted(np.where(active, after, state.x), state.sent)


def test_the_note_on_an_exceeded_limit_states_the_executed_iterations():
    attack = mean_attack()
    algorithm = calibrated(Miscounting, attack, 3, budget=80)
    horizon, (note,) = audit_horizon(algorithm, 70, attack.pair[0], attack.network)
    text = "70 iterations were executed, their messages are equal for budget = 81 and 1"
    assert horizon == 70 and str(note) == f"parameter budget = 80: {text}"


@pytest.mark.parametrize("kind", [NoisyRounds, Decreasing])
def test_an_algorithm_without_limits_keeps_its_horizon(kind):
    attack = mean_attack()
    algorithm = calibrated(kind, attack, 3)
    assert audit_horizon(algorithm, 3, attack.pair[0], attack.network) == (3, ())


@pytest.mark.parametrize("name", example_names())
def test_limits_of_registered_algorithms_are_reached(name):
    algorithm, attack, horizon = next(registry_attacks(name))
    extended, untested = audit_horizon(algorithm, horizon, attack.pair[0], attack.network)
    assert horizon <= extended <= MAX_ITERATIONS
    assert not untested


@pytest.fixture
def outside(monkeypatch):
    """Return a function that registers a module with an example."""

    def enter(example):
        module = ModuleType("outside_capped")
        module.ALGORITHM, module.EXAMPLE = Capped, example
        monkeypatch.setitem(sys.modules, "outside_capped", module)
        monkeypatch.setattr(algorithms, "names", lambda: ("outside_capped",))
        monkeypatch.setattr(algorithms, "module_of", lambda name: "outside_capped")
        monkeypatch.setattr(algorithms, "load", lambda name: Capped)
        return examples("outside_capped")[0]

    return enter


def test_an_example_sets_sizes_and_parameters(outside):
    stated = {"problem": "mean_estimation", "agents": 5, "horizon": 6, "parameters": {"limit": 4}}
    example = outside(stated)
    assert (example.problem.n_agents, example.network.n_agents, example.horizon) == (5, 5, 6)
    assert example.algorithm.limit == 4
    assert outside("mean_estimation").horizon == 3
