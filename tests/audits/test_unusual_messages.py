"""Test audits of messages with NaN, other shapes, repeated values, and of outcomes."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest

from private_consensus import audit
from private_consensus.audits.evidence import observed
from private_consensus.audits.exact_costs import _distinct_numbers, exact_costs
from private_consensus.audits.examples import complete, logistic_regression
from private_consensus.audits.execution import execute
from private_consensus.audits.judging import DeclaredSetting
from private_consensus.audits.outputs import audit_outputs
from private_consensus.audits.probing import find_attacks, pairs_of_agents
from private_consensus.audits.streams import AuditStreams
from private_consensus.common.errors import InvalidInput
from toys import BUDGET, NoisyRounds, State, calibrated, mean_attack

HORIZON, RUNS = 3, 400
SLOPE = 20.0
"""Factor in the exponent of a message."""


class Sums(NamedTuple):
    """Messages, their sum, and the noise of the last one; [settings, runs, agents, dim]."""

    x: np.ndarray
    total: np.ndarray
    noise: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Summed(NoisyRounds):
    """Noisy rounds that also keep the sum of the messages."""

    def start(self, problem, network, streams, settings):
        zero = super().start(problem, network, streams, settings).x
        return Sums(zero, zero, zero)

    def step(self, state, problem, network, draw, t):
        noise = self.noise(draw)
        x = self.exact(state, problem, network, t) + noise
        return Sums(x, state.total + x, noise)

    def final(self, state, problem, t):
        return state.total / t

    def outcome(self, state, problem, network, t):
        return {"released": self.final(state, problem, t)}


class OverAgents(Summed):
    def final(self, state, problem, t):
        return np.broadcast_to(state.x.mean(axis=-2, keepdims=True), state.x.shape)


class Clipped(Summed):
    def final(self, state, problem, t):
        return np.clip(state.x, -0.1, 0.1)


class NewNoise(Summed):
    """Fault: the outcome has a fifth of the noise of the last message."""

    def final(self, state, problem, t):
        return state.x - 0.8 * state.noise


class WithoutNoise(Summed):
    def final(self, state, problem, t):
        return state.x - state.noise


class PrivateChoice(Summed):
    """Fault: a private mean selects the last message or the mean of all messages."""

    def final(self, state, problem, t):
        return np.where(problem.means[..., :1] > 0, state.x, state.total / t)


@pytest.mark.parametrize("kind", [Summed, OverAgents, Clipped])
def test_an_outcome_that_is_a_function_of_messages_is_no_finding(kind):
    attack = mean_attack()
    result = audit(
        kind(), attack.pair[0], attack.network, BUDGET, HORIZON,
        runs=RUNS, confidence=0.9999, delta=BUDGET.delta,
    )  # fmt: skip
    assert not result.findings and result.verdict == "not contradicted", result.lines()


@pytest.mark.parametrize("kind", [NewNoise, WithoutNoise])
def test_an_outcome_with_less_noise_is_found(kind):
    attack = mean_attack()
    result = audit(
        kind(), attack.pair[0], attack.network, BUDGET, HORIZON,
        runs=RUNS, confidence=0.9999, delta=BUDGET.delta,
    )  # fmt: skip
    assert result.privacy_verdict in ("differs from its declaration", "violated")


@pytest.mark.parametrize(("kind", "is_fault"), [(Summed, False), (PrivateChoice, True)])
def test_the_released_outcome_is_compared_for_equal_messages(kind, is_fault):
    attack = mean_attack()
    attack = attack._replace(pair=tuple(_centred(problem, attack.agent) for problem in attack.pair))
    report = audit_outputs(calibrated(kind, attack, HORIZON), attack, HORIZON, level=1e-3, seed=0)
    assert report.outputs == ("released",)
    assert bool(report.findings) == is_fault


def _centred(problem, agent):
    """Return a problem whose agent has a mean that is positive or negative by one record."""
    means = problem.means.copy()
    means[0, agent] = np.sign(means[0, agent]) / problem.records
    return replace(problem, means=means)


def test_an_outcome_does_not_replace_the_last_message():
    attack = mean_attack()
    algorithm = calibrated(Clipped, attack, HORIZON)
    streams = AuditStreams.labelled("outcome", 8)
    execution = execute(algorithm, attack.pair[0], attack.network, streams, HORIZON)
    assert np.abs(execution.sent[:, -1]).max() > 0.1
    assert np.array_equal(np.clip(execution.sent[:, -1:], -0.1, 0.1), execution.outcome)


class SometimesClipped(Summed):
    """Correct: the outcome differs from the last message in few runs."""

    def final(self, state, problem, t):
        return np.clip(state.x, -np.inf, 3.5 * self.sigma.scale)


def test_an_outcome_that_mostly_equals_the_last_message_is_no_finding():
    attack = mean_attack()
    algorithm = calibrated(SometimesClipped, attack, HORIZON)
    streams = AuditStreams.labelled("outcome", 8)
    for problem in attack.pair:
        execution = execute(algorithm, problem, attack.network, streams, HORIZON)
        assert execution.released.shape[1] == HORIZON + 1


@dataclass(frozen=True, kw_only=True)
class Rows(NoisyRounds):
    """Half of the mixture, and the mean of rows, for a norm of at most 1."""

    def change(self, problem):
        return 2.0 / problem.records

    def received(self, network, state):
        return network.mix(state.x)

    def sent(self, values, problem):
        return values

    def step(self, state, problem, network, draw, t):
        mean = problem.features.mean(axis=-2)
        value = 0.5 * self.received(network, state) + mean + self.noise(draw)
        return State(self.sent(value, problem))


class Modulo(Rows):
    def sent(self, values, problem):
        return values % 1.0


class ModuloWithLessNoise(Modulo):
    def noise(self, draw):
        return 0.4 * super().noise(draw)


class ModuloWithSign(Modulo):
    """Noise with the sign of a private label: no shift of the noise is the same for all draws."""

    def step(self, state, problem, network, draw, t):
        signs = np.broadcast_to(problem.labels[..., :1], draw.shape)
        return super().step(state, problem, network, signs * draw, t)


class Exponential(Rows):
    def received(self, network, state):
        return np.log1p(super().received(network, state)) / SLOPE

    def sent(self, values, problem):
        return np.exp(np.clip(SLOPE * values, -300, 300))


class ExponentialWithLessNoise(Exponential):
    def noise(self, draw):
        return 0.99 * super().noise(draw)


def _exact(kind):
    problem = logistic_regression()
    network = complete(problem.n_agents)
    algorithm = kind().calibrate(BUDGET, problem, network, HORIZON)
    pairs = pairs_of_agents(algorithm, problem, network, HORIZON)
    pairs = [pair for of_agent in pairs.values() for pair in of_agent]
    setting = DeclaredSetting(algorithm, problem, network, HORIZON, BUDGET.delta)
    return exact_costs(setting, pairs, seed=0)


@pytest.mark.parametrize("kind", [Modulo, Exponential])
def test_the_smallest_equivalent_shift_decides(kind):
    report = _exact(kind)
    assert not report.findings and not report.untested


@pytest.mark.parametrize("kind", [ModuloWithLessNoise, ExponentialWithLessNoise])
def test_less_noise_before_a_nonlinear_function_is_found(kind):
    assert _exact(kind).findings


def test_messages_that_repeat_values_are_not_accused():
    report = _exact(ModuloWithSign)
    assert not report.findings
    assert any("equal values for different noise" in gap.reason for gap in report.untested)


def test_printed_numbers_differ():
    assert _distinct_numbers(0.57664, 0.57658) == ("0.57664", "0.57658")
    assert _distinct_numbers(2.0, 1.0) == ("2", "1")


class NaN(Rows):
    """Fault: messages are NaN if all labels of an agent are positive."""

    def sent(self, values, problem):
        negative = (problem.labels < 0).sum(axis=-1)[..., None]
        return np.nan_to_num(values) * (negative / negative)

    def received(self, network, state):
        return np.nan_to_num(super().received(network, state))


class UnitRows(Rows):
    """Fault: the norm of an empty row is 0."""

    def step(self, state, problem, network, draw, t):
        lengths = np.linalg.norm(problem.features, axis=-1, keepdims=True)
        mean = (problem.features / lengths).mean(axis=-2)
        return State(0.5 * network.mix(state.x) + mean + self.noise(draw))

    def change(self, problem):
        return 2.0 / problem.records


class MoreCoordinates(Rows):
    """Fault: a message has one more coordinate if most labels of agent 0 are positive."""

    def observables(self, state, problem, t):
        x = state.x
        if problem.labels[..., 0, :].sum() > 0:
            x = np.concatenate([x, 0 * x[..., :1]], axis=-1)
        return {"released": x}


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (NaN, "the message of agent 0 in iteration 1 has NaN or infinite numbers in all runs"),
        (UnitRows, "the message of agent 0 in iteration 1 has NaN or infinite numbers in all runs"),
        (MoreCoordinates, "the shape of messages changes with a record of agent 0"),
    ],
)
def test_messages_of_another_form_on_one_data_set_are_a_finding(kind, text):
    problem = logistic_regression()
    result = audit(
        kind(), problem, complete(problem.n_agents), BUDGET, HORIZON,
        runs=RUNS, confidence=0.9999, delta=BUDGET.delta,
    )  # fmt: skip
    assert any(text in finding.text for finding in result.findings), result.lines()


class RareNaN(Rows):
    """Messages are NaN in runs whose first noise is positive, on any data set."""

    def step(self, state, problem, network, draw, t):
        sent = super().step(state, problem, network, draw, t).x
        return State(np.where(draw[..., :1, :1] > 0, np.nan, np.nan_to_num(sent)))


def test_statistics_count_numbers_that_are_not_finite():
    problem = logistic_regression()
    network = complete(problem.n_agents)
    algorithm = RareNaN().calibrate(BUDGET, problem, network, HORIZON)
    attack = find_attacks(algorithm, problem, network, HORIZON)[0]
    evidence = observed(algorithm, attack, HORIZON, 0, 40, 0, seed=0)
    assert 0 < np.count_nonzero(evidence.not_finite) <= 40
    assert evidence.missing.max() < 40
    assert np.isfinite(evidence.whole).all() and np.isfinite(evidence.projected).all()


class LostAxis(Summed):
    """Fault: an array of the state loses the axis of settings."""

    def step(self, state, problem, network, draw, t):
        return super().step(state, problem, network, draw, t)._replace(noise=draw)


def test_a_state_without_the_axis_of_settings_is_refused():
    attack = mean_attack()
    algorithm = calibrated(LostAxis, attack, HORIZON)
    streams = AuditStreams.labelled("axis", 8)
    with pytest.raises(InvalidInput, match=r"state\.noise"):
        execute(algorithm, attack.pair[0], attack.network, streams, HORIZON)
