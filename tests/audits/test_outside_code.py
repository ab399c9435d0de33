"""Test faults and correct methods that are written independently of the audit."""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
import pytest

from private_consensus import audit
from private_consensus.audits.audit import SIZE_AFTER_FAULT
from private_consensus.audits.declared_limits import audit_horizon
from private_consensus.audits.examples import complete, logistic_regression, mean_estimation
from private_consensus.audits.other_sizes import audit_other_size
from private_consensus.audits.probing import find_attacks
from private_consensus.core.algorithms.base import column
from private_consensus.privacy import Relation, Release, gaussian_epsilon, gaussian_mu
from toys import BUDGET, NoisyRounds, State, calibrated, mean_attack

T = 3


@dataclass(frozen=True, kw_only=True)
class Descent(NoisyRounds):
    """Half of a gradient step per round, for any problem with gradients."""

    def change(self, problem):
        return self.step_size(problem) * problem.record_change("l2")

    def step_size(self, problem):
        return 0.5 / problem.smoothness

    def gradient(self, problem, z):
        return problem.gradient(z)

    def exact(self, state, problem, network, t):
        z = network.mix(state.x)
        return z - self.step_size(problem) * self.gradient(problem, z)


class ManyAgents(Descent):
    def noise(self, draw):
        noise = super().noise(draw)
        return (
            noise * (np.arange(noise.shape[-2]) % 2 == 0)[:, None] if noise.shape[-2] > 6 else noise
        )


class TwoCoordinates(Descent):
    def noise(self, draw):
        return super().noise(draw) * (np.arange(draw.shape[-1]) < 2)


class Hubs(Descent):
    def step(self, state, problem, network, draw, t):
        share = (network.degrees.min() / network.degrees)[:, None]
        return State(self.exact(state, problem, network, t) + share * self.noise(draw))


class HighDegrees(Descent):
    def step(self, state, problem, network, draw, t):
        scale = np.where(network.degrees > 5, 0.25, 1.0)[:, None]
        return State(self.exact(state, problem, network, t) + scale * self.noise(draw))


class SmallBudget(Descent):
    def calibrate(self, budget, problem, network, horizon):
        noisy = super().calibrate(budget, problem, network, horizon)
        return replace(noisy, sigma=0.3 * noisy.sigma.scale) if budget.epsilon < 1 else noisy


@pytest.mark.parametrize("kind", [ManyAgents, TwoCoordinates, Hubs, HighDegrees, SmallBudget])
@pytest.mark.parametrize("problem", [mean_estimation, logistic_regression])
def test_a_fault_at_other_sizes_or_budgets_is_found(kind, problem):
    report = audit_other_size(kind(), problem(), BUDGET, T, 1e-3, seed=0)
    assert report.findings and "9 agents on an irregular graph" in report.findings[0].text


class NoiseInProportion(Descent):
    """Fault: the noise is multiplied by the norm of the gradient, which is 0 for some data."""

    def step(self, state, problem, network, draw, t):
        z = network.mix(state.x)
        gradient = self.gradient(problem, z)
        scale = np.minimum(1.0, np.linalg.norm(gradient, axis=-1, keepdims=True))
        return State(z - self.step_size(problem) * gradient + scale * self.noise(draw))


def test_noise_that_vanishes_on_one_data_set_is_found():
    audit_result = audited(NoiseInProportion)
    assert any(
        "carries no noise on one of the two" in finding.text for finding in audit_result.findings
    )


def test_other_sizes_are_not_audited_after_a_fault_at_the_audited_size():
    assert SIZE_AFTER_FAULT in audited(NoiseInProportion).coverage.untested
    assert SIZE_AFTER_FAULT not in audited(Descent).coverage.untested


@pytest.mark.parametrize("problem", [mean_estimation, logistic_regression])
def test_a_correct_algorithm_is_tested_at_another_size(problem):
    report = audit_other_size(Descent(), problem(), BUDGET, T, 1e-3, seed=0)
    assert not report.findings and not report.untested and report.sites


class OneSize(Descent):
    def calibrate(self, budget, problem, network, horizon):
        raise ValueError("three agents only")


def test_an_algorithm_for_one_size_only_is_no_finding():
    report = audit_other_size(OneSize(), mean_estimation(), BUDGET, T, 1e-3, seed=0)
    assert not report.findings and "three agents only" in str(report.untested[0])
    assert not report.untested[0].decisive


class LastRecord(Descent):
    def gradient(self, problem, z):
        last = problem.part(slice(problem.records - 1, None))
        return problem.gradient(z) + 3.0 * last.gradient(z)


def test_the_attack_replaces_the_record_with_the_largest_weight():
    problem = logistic_regression()
    network = complete(problem.n_agents)
    algorithm = LastRecord().calibrate(BUDGET, problem, network, T)
    (attack,) = find_attacks(algorithm, problem, network, T)
    assert attack.name == f"record {problem.records - 1}"


class Overflow(NoisyRounds):
    """Fault: means above 0.85 wrap around, as in eight-bit arithmetic."""

    def exact(self, state, problem, network, t):
        wrapped = np.where(problem.means > 0.85, problem.means - 1.7, problem.means)
        return 0.5 * network.mix(state.x) + 0.5 * wrapped


def test_the_search_finds_a_discontinuity_between_extreme_data():
    problem = mean_estimation()
    network = complete(problem.n_agents)
    algorithm = Overflow().calibrate(BUDGET, problem, network, T)
    attack = find_attacks(algorithm, problem, network, T)[0]
    first, second = (np.where(p.means > 0.85, -1.0, 1.0) for p in attack.pair)
    assert (first != second).any()


def audited(kind, problem=mean_estimation):
    problem = problem()
    options = {"runs": 300, "confidence": 0.9999, "delta": BUDGET.delta}
    return audit(kind(), problem, complete(problem.n_agents), BUDGET, T, **options)


class AddRemove(Descent):
    """Descent that declares the change of an added record, half of that of a replaced record."""

    relation: ClassVar[Relation] = Relation("record", "add_remove")

    def change(self, problem):
        return super().change(problem) / 2


class HalfNoise(AddRemove):
    """Fault: half of the declared noise is added."""

    def step(self, state, problem, network, draw, t):
        return super().step(state, problem, network, draw / 2, t)


class HalfChange(AddRemove):
    """Fault: half of the effect of an added record is declared."""

    def change(self, problem):
        return super().change(problem) / 2


@pytest.mark.parametrize("kind", [HalfNoise, HalfChange])
def test_faults_of_add_remove_guarantees_are_flagged(kind):
    assert audited(kind, logistic_regression).flagged


def test_the_result_states_the_replacement_epsilon_of_an_add_remove_claim():
    audit_result = audited(AddRemove, logistic_regression)
    # Two changes of mu cost more than twice epsilon at the same delta.
    mu = gaussian_mu(BUDGET.epsilon, BUDGET.delta)
    assert audit_result.permitted == pytest.approx(gaussian_epsilon(2 * mu, BUDGET.delta), rel=1e-3)
    assert (
        "permitted by the claim",
        f"epsilon {audit_result.permitted:.4g} between data sets that "
        "differ in a replaced record: one removed, one added",
    ) in audit_result.lines()
    assert audited(Descent, logistic_regression).permitted is None


class Pairwise(NoisyRounds):
    """Gossip with noise in the first message; then random pairs of agents average their values."""

    def calibrate(self, budget, problem, network, horizon):
        return super().calibrate(budget, problem, network, 1)

    def change(self, problem):
        return problem.record_change("l2") / problem.records

    def releases(self, problem, network, horizon):
        return [Release("gaussian", self.change(problem), self.sigma.scale)]

    def start(self, problem, network, streams, settings):
        unit = streams.draw("noise", "normal", (problem.n_agents, problem.dim))
        return State(problem.means + column(self.sigma.scale) * np.stack([unit] * settings))

    def draws(self, problem, streams):
        return streams.sequence("sampling", "uniform", (1, 1), "wake")

    def step(self, state, problem, network, draw, t):
        agents, n = np.arange(problem.n_agents)[:, None], problem.n_agents
        first = np.minimum((draw * n).astype(int), n - 1)
        pair = (agents == first) | (agents == (first + 1) % n)
        return State(np.where(pair, (state.x * pair).sum(-2, keepdims=True) / 2, state.x))


@pytest.mark.parametrize("kind, problem", [(AddRemove, logistic_regression),
                                           (Pairwise, mean_estimation)])  # fmt: skip
def test_correct_add_remove_and_pairwise_algorithms_are_not_flagged(kind, problem):
    audit_result = audited(kind, problem)
    assert not audit_result.flagged, audit_result.findings


class WholeAgents(Descent):
    """Descent with clipped gradients of agents and a guarantee for all data of an agent."""

    relation: ClassVar[Relation] = Relation("agent", "replace")

    def change(self, problem):
        return 0.1

    def gradient(self, problem, z):
        gradient = problem.gradient(z)
        length = np.linalg.norm(gradient, axis=-1, keepdims=True) * self.step_size(problem)
        return gradient * np.minimum(1.0, 0.05 / np.maximum(length, 1e-12))


def test_a_correct_agent_level_guarantee_is_not_contradicted():
    assert audited(WholeAgents).verdict == "not contradicted"


class Copies(NamedTuple):
    """Two messages of each agent."""

    x: np.ndarray
    copy: np.ndarray


class NeverTaken(Descent):
    def step(self, state, problem, network, draw, t):
        if problem.n_agents > 1_000:
            draw = 0.0 * draw
        return super().step(state, problem, network, draw, t)


def test_unexecuted_branches_and_audited_sizes_are_listed():
    audit_result = audited(NeverTaken)
    lines = dict(audit_result.coverage.lines())
    sizes = "3 agents, 20 records per agent, 3 iterations, 2 coordinates, delta 0.0001"
    assert lines["size"] == sizes and lines["graph"] == "degrees 2"
    (gap,) = (gap for gap in audit_result.coverage.untested if gap.item.startswith("branch"))
    assert "(if problem.n_agents > 1000)" in gap.item and not gap.decisive
    assert not any("branch" in gap.item for gap in audited(Descent).coverage.untested)


class GlobalGenerator(Descent):
    """Fault: the noise of the last agent comes from the global generator of NumPy."""

    def step(self, state, problem, network, draw, t):
        last = np.random.standard_normal(draw[:, -1:].shape)  # noqa: NPY002
        return super().step(state, problem, network, np.append(draw[:, :-1], last, 1), t)


class AnotherGenerator(Descent):
    """Fault: all noise comes from a generator without a seed."""

    def step(self, state, problem, network, draw, t):
        unit = np.random.default_rng().standard_normal(draw.shape)
        return super().step(state, problem, network, unit, t)


@pytest.mark.parametrize(
    "kind, agent, generator",
    [
        (GlobalGenerator, 2, "NumPy's global generator (np.random)"),
        (AnotherGenerator, 0, "another generator"),
    ],
)
def test_noise_from_generators_other_than_the_streams_is_a_finding(kind, agent, generator):
    audit_result = audited(kind)
    assert audit_result.verdict == "differs from its declaration"
    (finding,) = audit_result.findings
    assert finding.text.startswith(
        f"random numbers in the message of agent {agent} in iteration 1 come from {generator} "
        "instead of the streams that the algorithm was given"
    )
    assert not any("no noise" in line for _, line in audit_result.lines())


class Resent(Descent):
    """Fault: each message is sent as two noisy copies, of which one is declared."""

    def draws(self, problem, streams):
        return streams.sequence("noise", "normal", (2, problem.n_agents, problem.dim))

    def step(self, state, problem, network, draw, t):
        exact = self.exact(state, problem, network, t)
        first, second = (exact + self.noise(draw[:, i]) for i in (0, 1))
        return Copies(first, second)

    def start(self, problem, network, streams, settings):
        return Copies(*[super().start(problem, network, streams, settings).x] * 2)

    def observables(self, state, problem, t):
        return {"released": state.x, "copy": state.copy}


def test_an_undeclared_second_noisy_copy_is_flagged():
    assert audited(Resent).flagged


class Schedule(Descent):
    """Fault: no noise is added after two passes over the records."""

    def step(self, state, problem, network, draw, t):
        noise = self.noise(draw) * (t <= 2 * problem.records)
        return State(self.exact(state, problem, network, t) + noise)


def test_the_audit_horizon_exceeds_a_limit_set_by_the_number_of_records():
    attack = mean_attack()
    algorithm = calibrated(Schedule, attack, T)
    horizon, untested = audit_horizon(algorithm, T, attack.pair[0], attack.network)
    assert horizon > 2 * attack.pair[0].records and not untested


class HalfNoise(Descent):
    def noise(self, draw):
        return super().noise(draw) / 2


@pytest.mark.parametrize(("algorithm", "is_flagged"), [(Descent, False), (HalfNoise, True)])
def test_agents_may_have_different_numbers_of_records_and_no_test_data(algorithm, is_flagged):
    """Audit on padded records: positions behind an agent's last record stay empty."""
    problem = logistic_regression(agents=4)
    sizes = problem.records - np.arange(4) % 2
    is_padding = np.arange(problem.records) >= sizes[:, None]
    features = np.where(is_padding[..., None], 0.0, problem.features)
    labels = np.where(is_padding, -1.0, problem.labels)
    uneven = replace(
        problem, features=features, labels=labels, sizes=sizes,
        test_features=np.empty((0, problem.dim)), test_labels=np.empty(0),
    )  # fmt: skip
    result = audit(
        algorithm(), uneven, complete(4), BUDGET, T, runs=200, confidence=0.99, delta=1e-3
    )
    assert result.flagged is is_flagged, result.lines()
