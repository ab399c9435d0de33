"""Test that audits name outputs that depend on data although all messages are equal."""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
import pytest

from private_consensus.audits import audit as module
from private_consensus.audits.examples import complete, example_names, mean_estimation
from private_consensus.audits.outputs import audit_outputs, pairs_of_outputs
from private_consensus.audits.result import CheckReport
from private_consensus.core.algorithms.base import column
from toys import BUDGET, HORIZON, NoisyRounds, calibrated, mean_attack, registry_attacks


class CountedState(NamedTuple):
    """Messages, and a number per run that a step computes."""

    x: np.ndarray
    number: np.ndarray


def _with_number(compute):
    """Return an algorithm whose step stores a number per run as the output ``number``."""

    @dataclass(frozen=True, kw_only=True)
    class Numbered(NoisyRounds):
        def start(self, problem, network, streams, settings):
            x = super().start(problem, network, streams, settings).x
            return CountedState(x, np.zeros(x.shape[:2]))

        def step(self, state, problem, network, draw, t):
            exact = self.exact(state, problem, network, t)
            x = exact + self.noise(draw)
            return CountedState(x, compute(exact, x, problem, draw, self) + np.zeros(x.shape[:2]))

        def observables(self, state, problem, t):
            return {"released": state.x, "number": state.number}

    return Numbered


def _report(kind, agent=1):
    attack = mean_attack(agent)
    return audit_outputs(calibrated(kind, attack), attack, HORIZON, level=1e-5, seed=3)


EXACT_NUMBERS = {
    "sum before noise": lambda exact, x, problem, draw, algorithm: exact.sum((-1, -2)),
    "count of data": lambda exact, x, problem, draw, algorithm: (problem.means > 0).sum((-1, -2)),
    "small part of a cost": lambda exact, x, problem, draw, algorithm: (
        100 + 1e-2 * exact[..., 1, 0]
    ),
    "residual": lambda exact, x, problem, draw, algorithm: ((x - problem.means) ** 2).sum((-1, -2)),
}


@pytest.mark.parametrize("name", EXACT_NUMBERS)
def test_an_output_without_noise_is_found_at_the_first_iteration(name):
    report = _report(_with_number(EXACT_NUMBERS[name]))
    (finding,) = report.findings
    expected = "the output 'number' of iteration 1 depends on the data of agent 1 although all"
    assert finding.weakens_privacy and finding.text.startswith(expected)


FUNCTIONS_OF_MESSAGES = {
    "spread": lambda exact, x, problem, draw, algorithm: x.var((-1, -2)),
    "count": lambda exact, x, problem, draw, algorithm: (x > 0).sum((-1, -2)),
    "public constant": lambda exact, x, problem, draw, algorithm: 7.0 * problem.records,
}


@pytest.mark.parametrize("name", FUNCTIONS_OF_MESSAGES)
def test_functions_of_messages_are_tested_without_findings(name):
    report = _report(_with_number(FUNCTIONS_OF_MESSAGES[name]))
    assert not report.findings and not report.untested
    assert report.outputs == ("number",)


def test_the_final_outcome_is_audited():
    @dataclass(frozen=True, kw_only=True)
    class ExactOutcome(NoisyRounds):
        def outcome(self, state, problem, network, t):
            return {"average": problem.means.mean(-2, keepdims=True) + np.zeros_like(state.x)}

    (finding,) = _report(ExactOutcome).findings
    assert "the output 'average' of iteration 4 depends on the data of agent 1" in finding.text


class TwoDraws(NamedTuple):
    """Unit noise of messages and unit noise of an output."""

    noise: np.ndarray
    second: np.ndarray


def _with_noisy_output(factor):
    """Return an algorithm that also outputs an exact mean plus noise of another stream."""

    @dataclass(frozen=True, kw_only=True)
    class Noisy(_with_number(lambda exact, x, problem, draw, algorithm: 0.0)):
        def draws(self, problem, streams):
            seconds = streams.sequence("noise", "normal", (1,), "second")
            for noise in super().draws(problem, streams):
                yield TwoDraws(noise, next(seconds))

        def step(self, state, problem, network, draw, t):
            x = self.exact(state, problem, network, t) + self.noise(draw.noise)
            scale = factor * column(self.sigma.scale)[..., 0, 0]
            return CountedState(x, problem.means[..., 1, 0] + scale * draw.second[None, :, 0])

    return Noisy


def test_an_output_with_independent_noise_is_compared_by_its_distribution():
    assert not _report(_with_noisy_output(5.0)).findings
    (finding,) = _report(_with_noisy_output(0.01)).findings
    assert "the output 'number' reveals more about the data of agent 1 than" in finding.text


def test_outputs_that_are_declared_internal_are_listed_as_untested():
    @dataclass(frozen=True, kw_only=True)
    class Internal(_with_number(EXACT_NUMBERS["sum before noise"])):
        internal_outputs: ClassVar = ("internal", "number")

    report = _report(Internal)
    assert not report.findings
    assert [str(gap) for gap in report.untested] == ["output 'number': it is declared internal"]
    assert not any(gap.decisive for gap in report.untested)


@pytest.mark.parametrize("name", example_names())
def test_output_audits_of_registered_algorithms_have_no_decisive_gap_or_finding(name):
    for algorithm, attack, horizon in registry_attacks(name):
        report = audit_outputs(algorithm, attack, horizon, level=1e-5, seed=0)
        assert not report.findings
        assert not any(gap.decisive for gap in report.untested)


@dataclass(frozen=True, kw_only=True)
class ShowsLength(NoisyRounds):
    """Algorithm with the norm of a mean as output, which opposite records do not change."""

    def observables(self, state, problem, t):
        length = np.linalg.norm(problem.means[..., 1, :], axis=-1) + np.zeros(state.x.shape[:2])
        return {"released": state.x, "length": length}


def _means(*records):
    """Return two data sets in which the mean of agent 1 is one of ``records``."""
    attack = mean_attack(1)
    pair = []
    for record in records:
        means = attack.pair[0].means.copy()
        means[0, 1] = record
        pair.append(replace(attack.pair[0], means=means))
    return attack._replace(pair=tuple(pair), name=str(records))


def test_outputs_are_tested_on_a_pair_that_changes_them():
    opposite, shorter = _means((0.1, 0.1), (-0.1, -0.1)), _means((0.1, 0.1), (0.05, 0.05))
    algorithm = calibrated(ShowsLength, opposite)
    level = {"level": 1e-5, "seed": 0}
    assert not audit_outputs(algorithm, opposite, HORIZON, **level).findings
    (pair,) = pairs_of_outputs(algorithm, [shorter, opposite], opposite, HORIZON)
    assert pair is shorter
    (finding,) = audit_outputs(algorithm, pair, HORIZON, **level).findings
    assert "the output 'length' of iteration 1" in finding.text


def test_no_second_pair_is_selected_without_outputs():
    opposite, shorter = _means((0.1, 0.1), (-0.1, -0.1)), _means((0.1, 0.1), (0.05, 0.05))
    algorithm = calibrated(NoisyRounds, opposite)
    assert pairs_of_outputs(algorithm, [shorter, opposite], opposite, HORIZON) == []


def test_output_audits_use_at_most_a_twentieth_of_the_error_level(monkeypatch):
    """The levels of all pairs add up to at most a tenth of half of the error level."""
    levels = []

    def recorded(*arguments, level, **options):
        levels.append(level)
        return CheckReport()

    monkeypatch.setattr(module, "audit_outputs", recorded)
    problem, network = mean_estimation(3), complete(3)
    module.audit(
        ShowsLength(), problem, network, BUDGET, 1, runs=40, confidence=0.9999, delta=BUDGET.delta
    )
    assert len(levels) == 4 and sum(levels) <= 0.1 * 1e-4 / 2 * (1 + 1e-9)
