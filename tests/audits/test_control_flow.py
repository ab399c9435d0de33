"""Test that audits find iterations and exchanges that depend on data, but not on messages."""

from dataclasses import dataclass

import numpy as np
import pytest

from private_consensus.audits.control_flow import audit_control_flow
from private_consensus.audits.examples import example_names
from toys import HORIZON, NoisyRounds, State, calibrated, mean_attack, registry_attacks


def _report(kind, agent=1):
    attack = mean_attack(agent)
    return audit_control_flow(calibrated(kind, attack), attack, HORIZON, seed=3)


def test_a_data_dependent_number_of_iterations_is_found():
    @dataclass(frozen=True, kw_only=True)
    class Stopping(NoisyRounds):
        def run(self, problem, network, streams, horizon, observe):
            enough = problem.means[..., 1, 0].mean() > 0
            super().run(problem, network, streams, np.minimum(horizon, 2 if enough else 9), observe)

    (finding,) = _report(Stopping).findings
    expected = "the number of iterations (2 and 4) depends on the data of agent 1 although all"
    assert finding.weakens_privacy and finding.text.startswith(expected)


def test_a_data_dependent_number_of_exchanges_is_found():
    @dataclass(frozen=True, kw_only=True)
    class Repeating(NoisyRounds):
        def step(self, state, problem, network, draw, t):
            after = super().step(state, problem, network, draw, t)
            if t == 3 and problem.means[..., 1, 0].mean() > 0:
                network.mix(state.x)
            return after

    (finding,) = _report(Repeating).findings
    expected = "the number of exchanges of iteration 3 (2 and 1) depends on the data of agent 1"
    assert finding.text.startswith(expected)


def test_an_error_on_one_of_two_data_sets_is_found():
    @dataclass(frozen=True, kw_only=True)
    class Failing(NoisyRounds):
        def step(self, state, problem, network, draw, t):
            if problem.means[..., 1, 0].mean() < 0:
                raise ArithmeticError("negative mean")
            return super().step(state, problem, network, draw, t)

    (finding,) = _report(Failing).findings
    assert "ends with an error on one of two data sets" in finding.text
    assert "negative mean" in finding.text


def test_a_branch_on_private_data_is_listed_without_deciding_the_verdict():
    @dataclass(frozen=True, kw_only=True)
    class Branching(NoisyRounds):
        def exact(self, state, problem, network, t):
            if t == 2 and problem.means[..., 1, 0].mean() > 0:
                return 0.5 * network.mix(state.x) + 0.5 * problem.means + 0.0
            return super().exact(state, problem, network, t)

    report = _report(Branching)
    assert not report.findings
    (gap,) = report.untested
    assert gap.item.startswith("branch test_control_flow.py:") and "iteration 2" in gap.item
    assert not gap.decisive


def test_a_branch_on_messages_is_not_listed():
    @dataclass(frozen=True, kw_only=True)
    class Public(NoisyRounds):
        def exact(self, state, problem, network, t):
            if state.x.mean() > 0:
                return 0.5 * network.mix(state.x) + 0.5 * problem.means
            return State(super().exact(state, problem, network, t)).x

    report = _report(Public)
    assert not report.findings and not report.untested


@pytest.mark.parametrize("name", example_names())
def test_control_flow_audits_of_registered_algorithms_have_no_findings(name):
    for algorithm, attack, horizon in registry_attacks(name):
        report = audit_control_flow(algorithm, attack, horizon, seed=0)
        assert not report.findings and not report.untested
