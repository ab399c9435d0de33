"""Test that the checks of a new algorithm find its faults."""

import sys
from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np
import pytest

from private_consensus import algorithms
from private_consensus.audits import conformance
from private_consensus.audits.examples import PROBLEMS, examples
from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.local_training import ClippedDescentState, LocalTraining

OWN = np.random.default_rng(0)


@dataclass(frozen=True, kw_only=True)
class OwnNoise(LocalTraining):
    """Algorithm whose noise comes from a generator that does not use the seed of the run."""

    def step(self, state, problem, network, draw, t):
        return super().step(state, problem, network, OWN.standard_normal(draw.shape), t)


@dataclass(frozen=True, kw_only=True)
class MeanOverRuns(LocalTraining):
    """Algorithm whose runs depend on each other."""

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        return ClippedDescentState(after.x + 0.01 * after.x.mean(1, keepdims=True))


@dataclass(frozen=True, kw_only=True)
class FirstOfBatch(LocalTraining):
    """Algorithm that uses the step size of the first setting for all settings."""

    def step(self, state, problem, network, draw, t):
        eta = np.full_like(self.eta, np.ravel(self.eta)[0])
        return LocalTraining.step(replace(self, eta=eta), state, problem, network, draw, t)


@dataclass(frozen=True, kw_only=True)
class Silent(LocalTraining):
    """Algorithm that declares noise and adds none."""

    def step(self, state, problem, network, draw, t):
        return super().step(state, problem, network, 0.0 * draw, t)


def world(kind):
    instance = conformance.world_of("local_training")
    values = {key: getattr(instance.algorithm, key) for key in ("eta", "clip", "noise")}
    return instance._replace(algorithm=kind(**values))


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (OwnNoise, conformance.seeds_are_all_randomness),
        (MeanOverRuns, conformance.more_runs_change_nothing),
        (FirstOfBatch, conformance.batch_equals_its_settings),
        (Silent, conformance.seeds_are_all_randomness),
    ],
)
def test_each_conformance_check_finds_its_fault(kind, check):
    check(world(LocalTraining))
    with pytest.raises(AssertionError):
        check(world(kind))


def test_the_example_of_a_new_algorithm_sets_its_test_problem(monkeypatch):
    # Error messages list the first names only; no name of the registry sorts before this name.
    name = f"a{min(algorithms.names())}"
    assert name < min(algorithms.names())
    module = ModuleType(name)
    module.ALGORITHM, module.EXAMPLE = LocalTraining, "mean_estimation"
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(algorithms, "_elsewhere", lambda: {name: name})
    (example,) = examples(name)
    assert type(example.problem) is type(PROBLEMS["mean_estimation"]())
    conformance.check(name)
    module.EXAMPLE = "nothing"
    for requested, message in {
        name: rf"{name}\.EXAMPLE: .* the small problems are mean_estimation",
        "nobody": rf"algorithm\.name: found 'nobody', expected one of {name}, ",
    }.items():
        with pytest.raises(InvalidInput, match=message):
            examples(requested)
