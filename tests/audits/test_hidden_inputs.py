"""Test faults of single agents, of calibration, and of variables shared by executions."""

import ast
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from private_consensus import algorithms, audit
from private_consensus.audits.examples import complete, logistic_regression, mean_estimation
from private_consensus.audits.finders import universe_of
from private_consensus.audits.hidden_inputs import (
    _changed_variables,
    _run_at_import,
    audit_calibration,
    kept_variables,
)
from private_consensus.audits.probing import (
    POSITIONS,
    REVIEWED,
    is_foreign,
    positions_tried,
    untried_positions,
)
from private_consensus.core.algorithms.base import column
from toys import BUDGET, NoisyRounds, State, mean_attack

T, ONLY = 4, 2
"""Iterations, and the agent that has a fault; all agents of the complete graph are in one class."""


def audited(kind, problem=mean_estimation, runs=1600):
    problem = problem()
    options = {"runs": runs, "confidence": 0.9999, "delta": BUDGET.delta}
    return audit(kind(), problem, complete(problem.n_agents), BUDGET, T, **options)


def only(values):
    """Return one factor per agent, which is 1 for all agents except ``ONLY``."""
    factor = np.ones((*values.shape[:-1], 1))
    factor[..., ONLY, :] = values[..., ONLY, :1]
    return factor


class LoudOutlier(NoisyRounds):
    """Fault: one agent triples its noise if its mean is far from 0."""

    def step(self, state, problem, network, draw, t):
        length = np.linalg.norm(problem.means, axis=-1, keepdims=True)
        loud = only(np.where(length > 0.5 * problem.box, 3.0, 1.0))
        return State(self.exact(state, problem, network, t) + loud * self.noise(draw))


class OwnGrid(NoisyRounds):
    """Fault: one agent rounds its noisy message to a grid whose step depends on its mean."""

    def step(self, state, problem, network, draw, t):
        message = super().step(state, problem, network, draw, t).x
        grid = np.abs(problem.means).max(-1, keepdims=True) / 50 + 1e-3
        rounded = np.round(message / grid) * grid
        is_only = np.arange(problem.n_agents)[:, None] == ONLY
        return State(np.where(is_only, rounded, message))


@pytest.mark.parametrize("kind", [LoudOutlier, OwnGrid])
def test_a_fault_of_one_of_several_equal_agents_is_found(kind):
    findings = audited(kind).findings
    assert any(f"agent {ONLY}" in finding.text and finding.weakens_privacy for finding in findings)


class Weighted(NoisyRounds):
    """Descent in which one record of one agent has four times the weight."""

    position: ClassVar[int] = 1

    def change(self, problem):
        return 0.5 * problem.record_change("l2") / problem.smoothness

    def exact(self, state, problem, network, t):
        z = network.mix(state.x)
        record = problem.part(slice(self.position, self.position + 1))
        extra = 3.0 * record.gradient(z) * (np.arange(z.shape[-2]) == ONLY)[:, None]
        return z - 0.5 / problem.smoothness * (problem.gradient(z) + extra)


class LastWeighted(Weighted):
    position = logistic_regression().records - 1


@pytest.mark.parametrize("kind", [Weighted, LastWeighted])
def test_a_record_of_one_agent_with_a_larger_weight_is_found(kind):
    findings = audited(kind, logistic_regression).findings
    assert any(f"agent {ONLY}" in finding.text for finding in findings)


def test_reviewed_algorithms_are_built_in_and_new_ones_are_treated_as_foreign():
    assert set(algorithms.names()) >= REVIEWED
    kind = algorithms.load("gradient_descent")
    new = type("NewMethod", (kind,), {"__module__": "private_consensus.core.algorithms.new_method"})
    assert is_foreign(new()) and not is_foreign(kind())


def test_record_positions_are_tried_or_listed_as_untried():
    assert positions_tried(POSITIONS) == list(range(POSITIONS))
    tried = positions_tried(10 * POSITIONS)
    assert len(tried) == POSITIONS and (tried[0], tried[-1]) == (0, 10 * POSITIONS - 1)
    assert untried_positions(logistic_regression()) == ()
    problem = logistic_regression()
    rows = {
        name: np.repeat(getattr(problem, name), 200, axis=1 + problem.features.ndim - 3)
        for name in ("features", "labels")
    }
    (untried,) = untried_positions(replace(problem, **rows))
    assert f"of {200 * problem.records} positions" in untried.item and not untried.decisive


@pytest.mark.parametrize("problem", [mean_estimation, logistic_regression])
def test_joint_and_per_agent_replacement_of_records_give_equal_gradients(problem):
    universe = universe_of(problem())
    pair = next(iter(universe.records().values()))
    background = universe.backgrounds(pair[0], np.random.default_rng(0))["own records"]
    together = universe.problem_with_records(background, pair[1], 0)
    z = np.random.default_rng(1).standard_normal((1, 1, together.n_agents, together.dim))
    for agent in range(together.n_agents):
        alone = universe.problem_with(background, pair[1], agent)
        np.testing.assert_allclose(
            together.gradient(z)[..., agent, :], alone.gradient(z)[..., agent, :], rtol=1e-12
        )


@dataclass(frozen=True, kw_only=True)
class TunedOnData(NoisyRounds):
    """Fault: calibrate sets a parameter from the largest mean."""

    rate: float = 1.0

    def calibrate(self, budget, problem, network, horizon):
        rate = 1.0 / (1.0 + float(np.linalg.norm(problem.means, axis=-1).max()))
        return replace(super().calibrate(budget, problem, network, horizon), rate=rate)

    def noise(self, draw):
        return super().noise(draw) * np.maximum(column(self.rate), 1.0)


def test_calibration_on_private_data_is_a_finding():
    finding = next(f for f in audited(TunedOnData, runs=100).findings if "calibrate" in f.text)
    assert finding.weakens_privacy and "of rate" in finding.text
    report = audit_calibration(NoisyRounds(), [mean_attack()], BUDGET, T)
    assert not report.findings and not report.untested


KEPT = """
CACHE = {}
SCALE = 0.0
TABLE = (1, 2)
class Method:
    calls = 0
    def step(self, state, draw):
        %s
"""


@pytest.mark.parametrize(
    "statement, names",
    {
        "CACHE['x'] = state": ["CACHE"],
        "CACHE.setdefault('x', state)": ["CACHE"],
        "global SCALE; SCALE = draw": ["SCALE"],
        "Method.calls += 1": ["Method"],
        "CACHE = {}; CACHE['x'] = state": [],
        "state.x[0] = TABLE[0]": [],
        "return CACHE.get('x')": [],
    }.items(),
)
def test_changed_variables_of_modules_and_classes_are_listed(statement, names):
    tree = ast.parse(KEPT % statement)
    assert [name for name, _ in _changed_variables(tree)] == names


REGISTERED = """
NAMES = []
def register(kind):
    NAMES.append(kind)
    return kind
%s
class Method:
    def step(self, state, draw):
        %s
"""
REGISTERED_BY_NAME = """
NAMES = {}
def register(name):
    def decorate(kind):
        def wrapped(*arguments):
            %s
            return kind(*arguments)
        NAMES[name] = kind
        return wrapped
    return decorate
@register("method")
class Method:
    pass
"""


@pytest.mark.parametrize(
    "code, names",
    {
        REGISTERED % ("@register", "return state"): [],
        REGISTERED % ("@register", "register(state)"): ["NAMES"],
        REGISTERED % ("", "return state"): ["NAMES"],
        REGISTERED % ("handler = register", "handler(state)"): ["NAMES"],
        REGISTERED_BY_NAME % "pass": [],
        REGISTERED_BY_NAME % "NAMES['last'] = arguments": ["NAMES"],
    }.items(),
)
def test_variables_that_only_decorators_change_during_the_import_are_not_listed(code, names):
    tree = ast.parse(code)
    assert [name for name, _ in _changed_variables(tree, _run_at_import([tree]))] == names


FIRST_MEANS = {}


class KeepsMeans(NoisyRounds):
    """Fault: every execution of a process uses the means of the first execution."""

    def exact(self, state, problem, network, t):
        FIRST_MEANS.setdefault("means", np.array(problem.means[:1]))
        return 0.5 * network.mix(state.x) + FIRST_MEANS["means"]


def test_a_variable_that_keeps_values_of_earlier_executions_is_named():
    (kept,) = kept_variables(KeepsMeans)
    assert "variable FIRST_MEANS" in kept.item and kept.decisive
    audit_result = audited(KeepsMeans, runs=100)
    assert audit_result.verdict != "not contradicted"
