"""Test the check of values that continuous noise repeats."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from private_consensus import Budget, Release, audit
from private_consensus.audits.examples import complete, mean_estimation
from private_consensus.audits.repeated_values import audit_repeated_later_values, repeated
from private_consensus.core.algorithms.base import column
from private_consensus.core.algorithms.parameters import positive
from toys import BUDGET, NoisyRounds, State, mean_attack

RUNS = 4000
rng = np.random.default_rng(3)


@pytest.mark.parametrize("seed", range(20))
def test_continuous_and_rounded_noise_have_no_repeated_values(seed):
    values = np.random.default_rng(seed).standard_normal(RUNS)
    assert list(repeated(values)) == []
    assert list(repeated(values.astype(np.float32))) == []
    for step in (1e-5, 1e-4, 1e-3, 1e-2, 0.1):
        assert list(repeated(np.round(values / step) * step)) == [], step


@pytest.mark.parametrize("step", [0.0, 1e-5])
def test_a_value_repeated_in_few_runs_is_found(step):
    values = rng.standard_normal(RUNS)
    values[:12] = 0.25
    values = np.round(values / step) * step if step else values
    ((value, count),) = repeated(values)
    assert value == pytest.approx(0.25, abs=1e-4) and count >= 12


class FailOpen(NoisyRounds):
    """Fault: one message in 200 has no noise, on average."""

    def draws(self, problem, streams):
        shape = (problem.n_agents, problem.dim)
        normal = streams.sequence("noise", "normal", shape)
        return zip(normal, streams.sequence("sampling", "uniform", (problem.n_agents, 1), "coin"),
                   strict=False)  # fmt: skip

    def noise(self, draw):
        noise, coin = draw
        return super().noise(noise) * (coin > 0.005)


class CutTails(NoisyRounds):
    """Fault: noise is clipped at 2.7 standard deviations."""

    def noise(self, draw):
        return super().noise(np.clip(draw, -2.7, 2.7))


class Clipped(NoisyRounds):
    """Correct: noisy messages are projected to the box."""

    def step(self, state, problem, network, draw, t):
        return State(problem.project(super().step(state, problem, network, draw, t).x))


class FailLate(FailOpen):
    """Fault: the noise of one message in 25 is missing, in iteration 3 only."""

    def step(self, state, problem, network, draw, t):
        noise, coin = draw
        kept = (coin > 0.04) | (t != 3)
        return State(self.exact(state, problem, network, t) + NoisyRounds.noise(self, noise) * kept)


class RepeatedHalf(NoisyRounds):
    """Correct: half of the last message is sent again if the noisy candidate is close to it."""

    def step(self, state, problem, network, draw, t):
        candidate = super().step(state, problem, network, draw, t).x
        distance = np.linalg.norm(candidate - state.x, axis=-1, keepdims=True)
        is_close = (distance < 0.3 * column(self.sigma.scale)) & (t > 1)
        return State(np.where(is_close, 0.5 * state.x, candidate))


@dataclass(frozen=True, kw_only=True)
class Levels(NoisyRounds):
    """Correct: means on a grid with discrete Laplace noise."""

    rate: float = positive(1.0)

    def draws(self, problem, streams):
        shape = problem.n_agents, problem.dim
        return zip(
            streams.sequence("noise", "uniform", shape, "up"),
            streams.sequence("noise", "uniform", shape, "down"),
            strict=False,
        )

    def calibrate(self, budget, problem, network, horizon):
        return replace(self, rate=budget.epsilon / (2 * horizon * problem.dim))

    def releases(self, problem, network, horizon):
        return [Release("pure", epsilon=2 * self.rate, count=horizon * problem.dim)]

    def step(self, state, problem, network, draw, t):
        grid = 2 * problem.box / problem.records
        up, down = (np.floor(-np.log1p(-uniform) / column(self.rate)) for uniform in draw)
        return State((np.round(problem.means / grid) + up - down) * grid)


@pytest.mark.parametrize("seed", range(3))
def test_discrete_noise_is_not_flagged(seed):
    problem = mean_estimation()
    audit_result = audit(
        Levels(), problem, complete(problem.n_agents), Budget(24.0, 0.0), 2,
        runs=400, confidence=0.9999, delta=0.0, seed=seed,
    )  # fmt: skip
    assert not audit_result.flagged, audit_result.findings


@pytest.mark.parametrize("kind", [FailLate, Clipped, RepeatedHalf, NoisyRounds])
def test_repeated_values_of_later_messages_are_found_unless_messages_determine_them(kind):
    attack = mean_attack()
    noisy = kind().calibrate(BUDGET, attack.pair[0], attack.network, 3)
    report = audit_repeated_later_values(noisy, attack, 3, seed=0)
    assert not report.untested
    texts = [finding.text for finding in report.findings]
    assert ["iteration 3" in text for text in texts] == [True] * (kind is FailLate)


@pytest.mark.parametrize("kind, is_broken", [(FailOpen, True), (CutTails, True), (Clipped, False)])
def test_rare_messages_without_continuous_noise_are_flagged(kind, is_broken):
    problem = mean_estimation()
    audit_result = audit(
        kind(), problem, complete(problem.n_agents), BUDGET, 3,
        runs=RUNS, confidence=0.9999, delta=BUDGET.delta,
    )  # fmt: skip
    assert audit_result.flagged is is_broken, audit_result.findings
