"""Test that the exact cost of a replaced record locates faults by agent and iteration."""

from dataclasses import dataclass, replace
from itertools import repeat
from typing import NamedTuple

import numpy as np
import pytest

import private_consensus
from private_consensus import networks
from private_consensus.audits import exact_costs as exact_costs_module
from private_consensus.audits.exact_costs import _is_below_declared, _Pairs, exact_costs
from private_consensus.audits.examples import complete, logistic_regression
from private_consensus.audits.judging import DeclaredSetting, declaration
from private_consensus.audits.noise_response import Layout, Response, Row, shift
from private_consensus.audits.probing import agent_classes, pairs_of_agents
from private_consensus.audits.result import DIFFERS, CheckReport, Coverage, Untested
from private_consensus.core.algorithms.base import Iterative, column, origin
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget, Relation, Release, Sampling, gaussian_dp, gaussian_mu
from private_consensus.privacy.audit.noise import noise_test

AGENTS, DIM, RECORDS, HORIZON, STEP = 4, 3, 10, 3, 0.05
BUDGET, DELTA = Budget(3.0, 1e-5), 1e-5


class State(NamedTuple):
    """Messages, and noise of the preceding iteration, [settings, runs, agents, dim]."""

    x: np.ndarray
    before: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Descent(Algorithm):
    """Gradient descent from mixed messages, with fresh noise on every gradient."""

    sigma: float = 0.0

    def calibrate(self, budget, problem, network, horizon):
        mu = gaussian_mu(budget.epsilon, budget.delta)
        return replace(self, sigma=problem.record_change("l2") * np.sqrt(horizon) / mu)

    def releases(self, problem, network, horizon):
        return [Release("gaussian", problem.record_change("l2"), self.sigma, count=horizon)]

    def start(self, problem, network, streams, settings):
        zero = origin(problem, streams, settings)
        return State(zero, zero)

    def draws(self, problem, streams):
        return streams.sequence("noise", "normal", (problem.n_agents, problem.dim))

    def noise(self, draw, state, problem, t):
        return draw

    def step(self, state, problem, network, draw, t):
        z = network.mix(state.x)
        noise = self.noise(draw, state, problem, t)
        x = z - STEP * (problem.gradient(z) + column(self.sigma) * noise)
        return State(x, np.broadcast_to(draw, x.shape))

    def observables(self, state, problem, t):
        return {"released": state.x}


def means():
    random = np.random.default_rng(2)
    return MeanEstimation(0.1 * random.standard_normal((1, AGENTS, DIM)), RECORDS, 1.0)


def logistic():
    random = np.random.default_rng(3)
    rows = random.standard_normal((AGENTS, RECORDS, DIM))
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    labels = np.sign(random.standard_normal((AGENTS, RECORDS)))
    return LogisticRegression(rows, labels, rows[0], labels[0], 1.0 / RECORDS, 0.01)


def ring():
    return networks.build(Streams(0, (0,)), "ring", AGENTS)


def cost(algorithm, problem=None, network=None, horizon=HORIZON, max_attacks=None, processes=1):
    """Return the report for a calibrated algorithm, on all pairs or on those of agent 0."""
    problem, network = problem or means(), network or ring()
    noisy = algorithm.calibrate(BUDGET, problem, network, horizon)
    pairs = pairs_of_agents(noisy, problem, network, horizon)
    attacks = [pair for of_agent in pairs.values() for pair in of_agent][:max_attacks]
    setting = DeclaredSetting(noisy, problem, network, horizon, DELTA)
    return exact_costs(setting, attacks, seed=0, processes=processes)


@dataclass(frozen=True, kw_only=True)
class Scaled(Descent):
    """Fault: the noise of one agent, coordinate and iteration is scaled; None selects all."""

    factor: float = 0.0
    agent: int | None = None
    coordinate: int | None = None
    time: int | None = None

    def noise(self, draw, state, problem, t):
        factors = np.ones(np.shape(draw))
        if self.time in (None, t):
            agents = slice(None) if self.agent is None else self.agent
            coordinates = slice(None) if self.coordinate is None else self.coordinate
            factors[..., agents, coordinates] = self.factor
        return factors * draw


@dataclass(frozen=True, kw_only=True)
class Reused(Descent):
    """Descent that repeats the noise of the preceding iteration in even iterations."""

    def noise(self, draw, state, problem, t):
        return state.before if t % 2 == 0 else draw


@dataclass(frozen=True, kw_only=True)
class Cancelled(Descent):
    """Descent whose third message subtracts the noise of the second."""

    def noise(self, draw, state, problem, t):
        return -state.before if t == 3 else draw


@dataclass(frozen=True, kw_only=True)
class Common(Descent):
    """Descent with one draw for all agents."""

    def noise(self, draw, state, problem, t):
        return np.broadcast_to(draw[..., :1, :], draw.shape)


@dataclass(frozen=True, kw_only=True)
class OneCoordinate(Descent):
    """Descent with one draw for all coordinates."""

    def noise(self, draw, state, problem, t):
        return draw[..., :1] * np.array([1.0, -1.0, 1.0])


@dataclass(frozen=True, kw_only=True)
class Reporting(Descent):
    """Descent that returns the exact gradient as an output."""

    def observables(self, state, problem, t):
        return {"released": state.x, "slope": problem.gradient(state.x)}


@dataclass(frozen=True, kw_only=True)
class DeclaredReport(Reporting):
    """Descent that returns the exact gradient as an output that is declared internal."""

    internal_outputs = ("internal", "slope")


@dataclass(frozen=True, kw_only=True)
class Indexing(Descent):
    """Fault: agent 1 reads the exact gradient of agent 2 without a message."""

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        x = np.array(after.x)
        x[..., 1, :] += 0.01 * problem.gradient(state.x)[..., 2, :]
        return State(x, after.before)


def texts(report):
    assert all(finding.kind == DIFFERS for finding in report.findings)
    return [finding.text for finding in report.findings]


@pytest.mark.parametrize("problem", [means, logistic])
@pytest.mark.parametrize("agent", range(AGENTS))
def test_missing_noise_of_any_agent_is_named(problem, agent):
    (text,) = texts(cost(Scaled(agent=agent), problem()))
    assert f"the message of agent {agent} in iteration 1 carries no noise" in text
    assert f"a record of agent {agent}" in text and "also" not in text


def test_missing_noise_of_one_coordinate_is_named():
    (text,) = texts(cost(Scaled(agent=2, coordinate=1)))
    assert "agent 2 in iteration 1 carries no noise in coordinate 1 " in text


def test_missing_noise_of_one_iteration_is_named():
    (text,) = texts(cost(Scaled(agent=3, time=2)))
    assert "up to iteration 2" in text and "a record of agent 3" in text


@pytest.mark.parametrize("problem", [means, logistic])
def test_noise_below_the_declared_scale_is_found(problem):
    (text, *_) = texts(cost(Scaled(factor=0.3, agent=1), problem()))
    assert "a record of agent 1 shifts the messages by" in text


@pytest.mark.parametrize("broken", [Cancelled, Common, Indexing, Reporting])
def test_dependent_noise_and_values_without_noise_are_found(broken):
    assert texts(cost(broken()))


def test_reused_noise_is_found_if_gradient_differences_depend_on_data():
    """Gradients of means at two points differ by a public amount, so no noiseless value results."""
    assert "up to iteration 2" in texts(cost(Reused(), logistic()))[0]
    assert not texts(cost(Reused()))


def test_the_leaking_output_is_named():
    (text, *_) = texts(cost(Reporting()))
    assert "the output 'slope' of agent 0 in iteration 1" in text or "iteration 1" in text
    assert not texts(cost(DeclaredReport()))


def test_noise_along_only_one_direction_is_found():
    """The pair differs along (1, 1, 1), the noise is along (1, -1, 1)."""
    assert "without noise" in texts(cost(OneCoordinate()))[0]


@pytest.mark.parametrize("factor", [1.0, 0.5, 2.0])
def test_the_shift_is_the_exact_mu(factor):
    """A record changes each of three steps by the declared change, so that mu is known."""
    report = cost(Scaled(factor=factor))
    problem = means()
    noisy = Descent().calibrate(BUDGET, problem, ring(), HORIZON)
    mu = gaussian_dp(noisy.releases(problem, ring(), HORIZON)) / factor
    if factor >= 1:
        assert not report.findings
    else:
        assert f"by {mu:.4g} standard deviations" in texts(report)[0]


@dataclass(frozen=True, kw_only=True)
class ForgottenCount(Descent):
    """Fault: the noise suffices for one of the messages."""

    def calibrate(self, budget, problem, network, horizon):
        return super().calibrate(budget, problem, network, 1)

    def releases(self, problem, network, horizon):
        return super().releases(problem, network, 1)


@dataclass(frozen=True, kw_only=True)
class NoiseBySign(Descent):
    """Fault: agents whose mean is positive add less noise."""

    def noise(self, draw, state, problem, t):
        return draw * np.where(problem.means.sum(-1, keepdims=True) > 0, 0.5, 1.0)


@pytest.mark.parametrize(
    "broken, cause",
    {
        ForgottenCount(): "more messages than declared: a record changes messages of 3 iterations, "
        "the releases declare 1",
        Scaled(factor=0.5): "larger than declared, equally in 3 iterations",
        Scaled(factor=0.5, time=2): "larger than declared, most in iteration 2",
        NoiseBySign(): "the size of the noise depends on the data",
    }.items(),
)
def test_the_cause_of_a_larger_shift_is_named(broken, cause):
    assert any(cause in text for text in texts(cost(broken)))


# --- Correct algorithms -----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Reflected(Descent):
    """Correct: noise reflected at a data-dependent direction, which keeps its distribution."""

    def noise(self, draw, state, problem, t):
        gradient = problem.gradient(state.x)
        length = np.linalg.norm(gradient, axis=-1, keepdims=True)
        direction = np.divide(gradient, length, out=np.zeros_like(gradient), where=length > 0)
        return draw - 2.0 * (direction * draw).sum(-1, keepdims=True) * direction


@dataclass(frozen=True, kw_only=True)
class Rounded(Descent):
    """Descent whose messages are rounded to a public grid."""

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        return after._replace(x=np.round(after.x, 2))


@dataclass(frozen=True, kw_only=True)
class Single(Descent):
    """Descent whose messages are float32 numbers."""

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        return after._replace(x=after.x.astype(np.float32).astype(float))


@dataclass(frozen=True, kw_only=True)
class OwnGenerators(Descent):
    """Descent whose noise comes from generators of the runs."""

    def draws(self, problem, streams):
        generators = streams.generators("noise")
        while True:
            shape = problem.n_agents, problem.dim
            yield np.stack([generator.normal(0.0, 1.0, shape) for generator in generators])


@dataclass(frozen=True, kw_only=True)
class SilentGenerators(OwnGenerators):
    """Descent with generators of the runs, without noise for agent 2."""

    def noise(self, draw, state, problem, t):
        return draw * (np.arange(AGENTS) != 2)[:, None]


@dataclass(frozen=True, kw_only=True)
class NoisePerEdge(Descent):
    """Descent whose agents draw noise for each neighbour, and for the value that they keep."""

    messages: int = 0

    def releases(self, problem, network, horizon):
        sensitivity = np.sqrt(self.messages) * problem.record_change("l2")
        return [Release("gaussian", sensitivity, self.sigma, count=horizon)]

    def draws(self, problem, streams):
        return streams.sequence("noise", "normal", (AGENTS, AGENTS, DIM))

    def step(self, state, problem, network, draw, t):
        exact = state.x - STEP * problem.gradient(state.x)
        noise = STEP * column(self.sigma)[..., None] * draw
        return State(network.mix_links(exact[..., :, None, :] + noise), exact)


@pytest.mark.parametrize("graph, degree", [("complete", AGENTS - 1), ("ring", 2), ("star", 3)])
def test_values_for_agents_without_an_edge_are_not_sent(graph, degree):
    network = networks.build(Streams(0, (0,)), graph, AGENTS)
    assert not cost(NoisePerEdge(messages=degree + 1), network=network).findings
    text, *_ = texts(cost(NoisePerEdge(messages=degree), network=network))
    assert "shifts the messages by" in text


CORRECT = [Descent, Reflected, Single, OwnGenerators]


@pytest.mark.parametrize("problem", [means, logistic])
@pytest.mark.parametrize("algorithm", CORRECT)
def test_correct_algorithms_are_tested_completely_without_findings(algorithm, problem):
    report = cost(algorithm(), problem())
    assert not report.findings
    assert not any(gap.decisive for gap in report.untested), report.untested
    assert "agents 0 to 3" in report.sites[0]


def test_rounded_messages_have_no_findings():
    """The mean shift is known only if messages are affine up to rounding."""
    for problem in (means(), logistic()):
        assert not cost(Rounded(), problem).findings
    assert not cost(Rounded()).untested


# --- Algorithms that stop -----------------------------------------------------------------------


class Stopping(NamedTuple):
    """Messages, and the flags of active agents; [settings, runs, agents, dim or 1]."""

    x: np.ndarray
    active: np.ndarray


@dataclass(frozen=True, kw_only=True)
class StopsByMessages(Descent):
    """Descent whose agents repeat the mixed messages after a small change of a message.

    ``tolerance`` is in standard deviations of the noise in a message.
    """

    tolerance: float = 0.5

    def start(self, problem, network, streams, settings):
        zero = origin(problem, streams, settings)
        return Stopping(zero, np.ones((*zero.shape[:-1], 1), bool))

    def value_after_stop(self, problem, mixed):
        return mixed

    def goes_on(self, problem, before, after):
        change = np.linalg.norm(after - before, axis=-1, keepdims=True)
        return change >= self.tolerance * STEP * column(self.sigma)

    def step(self, state, problem, network, draw, t):
        z = network.mix(state.x)
        moved = z - STEP * (problem.gradient(z) + column(self.sigma) * draw)
        x = np.where(state.active, moved, self.value_after_stop(problem, z))
        return Stopping(x, state.active & self.goes_on(problem, state.x, x))


@dataclass(frozen=True, kw_only=True)
class StopsByGradient(StopsByMessages):
    """Fault: an agent stops by its exact gradient, which depends on its data."""

    def goes_on(self, problem, before, after):
        length = np.linalg.norm(problem.gradient(after), axis=-1, keepdims=True)
        return length >= problem.record_change("l2")


@dataclass(frozen=True, kw_only=True)
class StepsWithoutNoise(StopsByMessages):
    """Fault: an agent that has stopped sends exact gradient steps."""

    def value_after_stop(self, problem, mixed):
        return mixed - STEP * problem.gradient(mixed)


TOLERANCES = (0.2, 0.5, 1.0)


@pytest.mark.parametrize("problem", [means, logistic])
@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_stopping_by_messages_has_no_findings(tolerance, problem):
    """After the stop a message is a function of earlier messages and needs no noise."""
    report = cost(StopsByMessages(tolerance=tolerance), problem(), horizon=4)
    assert not report.findings
    assert not any(gap.decisive for gap in report.untested), report.untested


@pytest.mark.parametrize("problem", [means, logistic])
def test_stopping_by_a_gradient_is_found(problem):
    audit_result = audited(StopsByGradient(), problem())
    texts = ("carries no noise", "determine a value without noise")
    assert any(text in finding.text for finding in audit_result.findings for text in texts)


@pytest.mark.parametrize("problem", [means, logistic])
@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_exact_steps_after_a_stop_are_found(tolerance, problem):
    """At the smallest tolerance, an agent stops for few values of the noise."""
    report = cost(StepsWithoutNoise(tolerance=tolerance), problem(), horizon=4)
    assert any("determine a value without noise" in text for text in texts(report))


def all_shifts(algorithm):
    """Return the shifts of all agents' pairs and base points, on means."""
    noisy = algorithm.calibrate(BUDGET, means(), ring(), HORIZON)
    pairs = pairs_of_agents(noisy, means(), ring(), HORIZON)
    tested = _Pairs(DeclaredSetting(noisy, means(), ring(), HORIZON, DELTA), 0, None)
    tested.executed(pairs[0][0], 0).messages(np.zeros((1, 1)))
    shift_lists = [
        step_shift
        for of_agent in pairs.values()
        for pair in of_agent
        for step_shift in tested.shifts(pair)
    ]
    return [
        step_shift for shifts in shift_lists if not isinstance(shifts, str) for step_shift in shifts
    ]


@dataclass(frozen=True, kw_only=True)
class Thresholded(Descent):
    """Descent that sets small coordinates of a message to 0 after the noise is added."""

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        is_small = np.abs(after.x) < STEP * column(self.sigma)
        return after._replace(x=np.where(is_small, 0.0, after.x))


@pytest.mark.parametrize(
    ("algorithm", "is_certain"), [(StepsWithoutNoise(tolerance=0.2), True), (Thresholded(), False)]
)
def test_only_exact_steps_and_not_thresholded_values_certainly_lack_noise(algorithm, is_certain):
    """Small noise does not change such a value, large noise does."""
    shifts = all_shifts(algorithm)
    assert shifts and any(step_shift.is_certain for step_shift in shifts) is is_certain


@pytest.mark.parametrize("tolerance", [0.05, 0.1])
def test_shifts_with_stopped_agents_are_at_most_the_declared_mu(tolerance):
    """The shift at each base point is at most that of all declared steps."""
    algorithm = StopsByMessages(tolerance=tolerance)
    noisy = algorithm.calibrate(BUDGET, means(), ring(), HORIZON)
    mu = gaussian_dp(noisy.releases(means(), ring(), HORIZON))
    lengths = [np.linalg.norm(step_shift.units) for step_shift in all_shifts(algorithm)]
    assert len(lengths) >= 3 * AGENTS
    assert max(lengths) <= mu * (1 + 1e-6)


def test_missing_noise_from_generators_is_found():
    assert "agent 2 in iteration 1 carries no noise" in texts(cost(SilentGenerators()))[0]


@dataclass(frozen=True, kw_only=True)
class Flips(Descent):
    """Algorithm that randomises with uniform numbers, so that its noise is not additive."""

    def draws(self, problem, streams):
        shape = problem.n_agents, problem.dim
        for unit in streams.sequence("noise", "uniform", shape):
            yield np.sqrt(12.0) * (unit - 0.5)


def test_uniform_noise_is_listed_as_untested():
    audit_result = private_consensus.audit(
        Flips(), means(), ring(), Budget(0.5, 1e-5), HORIZON,
        runs=200, confidence=0.9999, delta=1e-5,
    )  # fmt: skip
    assert not audit_result.contradicted
    gaps = [gap for gap in audit_result.coverage.untested if "uniform" in gap.reason]
    (decisive_gap,) = (gap for gap in gaps if gap.decisive)
    assert decisive_gap.item == "noise in the messages of agents 0 to 3"
    assert "only Gaussian, Laplace and gamma noise can be chosen" in decisive_gap.reason
    assert audit_result.flagged or audit_result.verdict == "inconclusive"


@dataclass(frozen=True, kw_only=True)
class SecretBits(Descent):
    """Correct: randomised response on signs of means, with secret coins of the purpose sampling."""

    hidden_sampling = True

    def draws(self, problem, streams):
        shape = problem.n_agents, problem.dim
        return streams.sequence("sampling", "uniform", shape, "coin")

    def releases(self, problem, network, horizon):
        return [Release("pure", epsilon=problem.dim * np.log(3.0))]

    def step(self, state, problem, network, draw, t):
        if t > 1:
            return state
        bit = np.where(problem.means > 0, 1.0, -1.0)
        return state._replace(x=np.where(draw < 0.25, -bit, bit) + np.zeros_like(state.x))


def test_secret_sampling_coins_without_noise_make_the_audit_inconclusive():
    audit_result = private_consensus.audit(
        SecretBits(), means(), ring(), Budget(50.0, 0.0), HORIZON,
        runs=200, confidence=0.9999, delta=0.0,
    )  # fmt: skip
    assert not audit_result.findings
    assert audit_result.verdict == "inconclusive"
    reasons = [gap.reason for gap in audit_result.coverage.untested if gap.decisive]
    assert (
        "the algorithm draws no noise, only secret random numbers of the purpose sampling"
        in reasons
    )


@dataclass(frozen=True, kw_only=True)
class SecretCoinsForNoise(SecretBits):
    """Fault: declares Gaussian noise, and adds a small uniform number instead."""

    releases = Descent.releases

    def step(self, state, problem, network, draw, t):
        return state._replace(x=problem.means + 1e-3 * draw + np.zeros_like(state.x))


def test_secret_coins_do_not_count_as_declared_noise():
    audit_result = private_consensus.audit(
        SecretCoinsForNoise(), means(), ring(), Budget(50.0, 1e-5), HORIZON,
        runs=200, confidence=0.9999, delta=1e-5,
    )  # fmt: skip
    assert any("carries no noise" in finding.text for finding in audit_result.findings)


@dataclass(frozen=True, kw_only=True)
class OfAgents(Descent):
    """Fault: the change of one record is declared for all data of an agent."""

    relation = Relation("agent", "replace")


def test_an_agent_level_claim_based_on_one_record_is_found():
    assert cost(OfAgents()).findings


# --- Messages without noise in some runs, and batches -------------------------------------------


class Drawn(NamedTuple):
    """Unit noise and uniform numbers of one iteration."""

    noise: np.ndarray
    coins: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Losing(Descent):
    """Fault: the noise is omitted with probability 1/20."""

    def draws(self, problem, streams):
        coins = streams.sequence("sampling", "uniform", (problem.n_agents, 1), "loss")
        for noise, uniform in zip(super().draws(problem, streams), coins, strict=False):
            yield Drawn(noise, uniform)

    def noise(self, draw, state, problem, t):
        return draw.noise * (draw.coins > 0.05)

    def step(self, state, problem, network, draw, t):
        z = network.mix(state.x)
        noise = column(self.sigma) * self.noise(draw, state, problem, t)
        return State(z - STEP * (problem.gradient(z) + noise), state.before)


def audited(algorithm, problem=None, **changes):
    options = {"runs": 200, "confidence": 0.9999, "delta": DELTA, **changes}
    return private_consensus.audit(
        algorithm, problem or means(), ring(), BUDGET, HORIZON, **options
    )


def test_noise_missing_in_some_runs_is_found():
    audit_result = audited(Losing())
    assert any("of runs" in finding.text for finding in audit_result.findings)


@dataclass(frozen=True, kw_only=True)
class Sampled(Descent):
    """Descent on sums of gradients of records, each sampled with probability ``rate``."""

    rate: float = 0.2
    relation = Relation("record", "add_remove")

    @property
    def hidden_sampling(self):
        return True

    def change(self, problem):
        return 1.0 / problem.records

    def calibrate(self, budget, problem, network, horizon):
        return replace(self, sigma=2.0 * self.change(problem))

    def releases(self, problem, network, horizon):
        sampling = Sampling("poisson", self.rate)
        return [
            Release("gaussian", self.change(problem), self.sigma, count=horizon, sampling=sampling)
        ]

    def statements(self, budget, problem, network, horizon):
        return [(self, declaration(self.releases(problem, network, horizon), DELTA).epsilon)]

    def draws(self, problem, streams):
        shape = problem.n_agents, problem.features.shape[-2]
        coins = streams.sequence("sampling", "uniform", shape, "coins")
        for noise, uniform in zip(super().draws(problem, streams), coins, strict=False):
            yield Drawn(noise, uniform)

    def taken(self, coins, t):
        return coins < self.rate

    def step(self, state, problem, network, draw, t):
        z = network.mix(state.x)
        margins = problem.labels * np.einsum("...id,ird->...ir", z, problem.features)
        weights = self.taken(draw.coins, t) * problem.labels / (1 + np.exp(margins))
        gradient = -np.einsum("...ir,ird->...id", weights, problem.features) / problem.records
        return State(z - STEP * (gradient + column(self.sigma) * draw.noise), state.before)


@dataclass(frozen=True, kw_only=True)
class RoundRobin(Sampled):
    """Fault: every fifth record is taken in a cycle instead of at random."""

    def taken(self, coins, t):
        return np.broadcast_to(np.arange(coins.shape[-1]) % 5 == (t - 1) % 5, coins.shape)


@dataclass(frozen=True, kw_only=True)
class CommonCoin(Sampled):
    """Fault: sampling includes all records or none."""

    def taken(self, coins, t):
        return np.broadcast_to(coins[..., :1] < self.rate, coins.shape)


def test_batches_that_violate_the_declared_sampling_are_found():
    correct = audited(Sampled(), logistic())
    assert not correct.flagged, correct.findings
    for broken, text in (
        (RoundRobin, "a record is in 1000 of 1000"),
        (CommonCoin, "two records are together"),
    ):
        audit_result = audited(broken(), logistic())
        assert any(text in finding.text for finding in audit_result.findings), broken


# --- The result ---------------------------------------------------------------------------------


def test_the_result_states_its_coverage():
    audit_result = audited(Descent())
    coverage = audit_result.coverage
    assert (coverage.agents, coverage.iterations) == (AGENTS, HORIZON)
    assert coverage.attacked == tuple(range(AGENTS)) and coverage.is_complete
    assert audit_result.verdict == "not contradicted"
    lines = dict(audit_result.lines())
    assert lines["attacked agents"] == "4 of 4: 0, 1, 2, 3"
    assert "agents 0 to 3" in lines["noise tested"]
    low, high = audit_result.lower_range
    assert low <= audit_result.lower <= high
    assert audit_result.epsilon_of_mu >= 0 and audit_result.mu >= 0


def test_a_decisive_untested_item_makes_a_result_inconclusive_and_is_printed():
    audit_result = audited(Descent())
    gap = Untested("agent 7", "no pair")
    audit_result = replace(audit_result, coverage=replace(audit_result.coverage, untested=(gap,)))
    assert audit_result.verdict == "inconclusive"
    assert ("not tested", "agent 7: no pair") in audit_result.lines()
    harmless = replace(gap, decisive=False)
    assert (
        replace(audit_result, coverage=Coverage(untested=(harmless,))).verdict == "not contradicted"
    )


def test_reports_are_joined_without_repetition():
    report = CheckReport(sites=("a",), outputs=("x",))
    assert CheckReport.joined([report, report, CheckReport(sites=("b",))]).sites == ("a", "b")


def test_a_star_has_two_classes_of_agents_and_a_ring_has_one():
    star = networks.build(Streams(0, (0,)), "star", 5)
    classes = agent_classes(star, range(5))
    assert sorted(map(len, classes)) == [1, 4]
    assert agent_classes(ring(), range(AGENTS)) == [list(range(AGENTS))]


# --- Linear algebra -----------------------------------------------------------------------------


def near(matrix):
    matrix = np.asarray(matrix, float)
    rows = tuple(Row(t + 1, 0, 0, "message") for t in range(len(matrix)))
    scale = np.linalg.norm(matrix, axis=1)
    return Response(np.zeros(len(matrix)), matrix, rows, True, 1e-12, scale)


def test_the_length_of_the_shortest_shift_is_the_mahalanobis_distance():
    random = np.random.default_rng(0)
    matrix, change = random.standard_normal((3, 5)), random.standard_normal(3)
    computed_shift = shift(near(matrix), change)
    mu = np.sqrt(change @ np.linalg.solve(matrix @ matrix.T, change))
    assert np.linalg.norm(computed_shift.units) == pytest.approx(mu)
    assert not computed_shift.unexplained.any() and not computed_shift.unique


def test_changes_outside_the_range_of_the_response_are_unexplained():
    computed_shift = shift(near([[1.0, 0.0], [2.0, 0.0], [0.0, 0.0]]), np.array([1.0, 2.0, 0.0]))
    assert not computed_shift.unexplained.any()
    computed_shift = shift(near([[1.0, 0.0], [2.0, 0.0], [0.0, 0.0]]), np.array([1.0, 0.0, 1.0]))
    assert computed_shift.unexplained[:2].any() and np.isinf(computed_shift.unexplained[2])


def test_a_repeated_release_in_the_middle_of_a_run_is_found():
    noise = np.random.default_rng(0).standard_normal((20, 700, 1, 1))
    assert noise_test(noise, 1.0, law="gaussian", confidence=0.999).passes
    noise[:, 340] = noise[:, 310]
    test_report = noise_test(noise, 1.0, law="gaussian", confidence=0.999)
    where = "releases of agent 0 in iteration 311 and of agent 0 in iteration 341"
    assert where in [finding.where for finding in test_report.findings]


@dataclass(frozen=True, kw_only=True)
class ShrunkAfterNoise(Thresholded):
    """Descent that moves every coordinate of a message towards 0 after the noise is added."""

    def step(self, state, problem, network, draw, t):
        after = Descent.step(self, state, problem, network, draw, t)
        size = np.maximum(np.abs(after.x) - STEP * column(self.sigma), 0.0)
        return after._replace(x=np.sign(after.x) * size)


@dataclass(frozen=True, kw_only=True)
class ClippedAfterNoise(Thresholded):
    """Descent that clips every coordinate of a message after the noise is added."""

    def step(self, state, problem, network, draw, t):
        after = Descent.step(self, state, problem, network, draw, t)
        bound = 2.0 * STEP * column(self.sigma)
        return after._replace(x=np.clip(after.x, -bound, bound))


PROCESSED = (Thresholded, ShrunkAfterNoise, ClippedAfterNoise)


@pytest.mark.parametrize("problem", [means, logistic])
@pytest.mark.parametrize("kind", PROCESSED)
def test_messages_processed_after_the_noise_are_tested_without_findings(kind, problem):
    """A constant shift of the noise gives equal messages on both data sets."""
    report = cost(kind(), problem(), max_attacks=4)
    assert not report.findings
    assert not any(gap.decisive for gap in report.untested), report.untested


@pytest.mark.parametrize("kind", PROCESSED)
def test_half_of_the_declared_noise_is_found_in_processed_messages(kind):
    """The shift is twice as long as declared; thresholds depend on the declared noise only."""

    @dataclass(frozen=True, kw_only=True)
    class HalfNoise(kind):
        def noise(self, draw, state, problem, t):
            return 0.5 * draw

    faults = [fault for fault in cost(HalfNoise(), max_attacks=1).findings if fault.weakens_privacy]
    assert faults and all("the declared releases permit" in fault.text for fault in faults)


def test_the_shift_of_clipped_messages_is_the_declared_mu():
    """Opposite corners of the box differ by the sensitivity in each step.

    Shifts are in standard deviations of the noise.
    """
    noisy = ClippedAfterNoise().calibrate(BUDGET, means(), ring(), HORIZON)
    pairs = pairs_of_agents(noisy, means(), ring(), HORIZON)
    tested = _Pairs(DeclaredSetting(noisy, means(), ring(), HORIZON, DELTA), 0, None)
    tested.executed(pairs[0][0], 0).messages(np.zeros((1, 1)))
    list(tested.shifts(pairs[0][0]))
    shifts = list(tested.constant_shifts(pairs[0][0]))
    mu = gaussian_dp(noisy.releases(means(), ring(), HORIZON))
    lengths = [np.linalg.norm(step_shift.units) for step_shift in shifts]
    assert lengths == pytest.approx([mu] * len(shifts), rel=1e-6) and shifts


def test_a_shortened_execution_equals_the_start_of_a_full_execution():
    """An execution up to iteration 5 computes only one further step."""
    steps = []

    @dataclass(frozen=True, kw_only=True)
    class Counting(Descent):
        def step(self, state, problem, network, draw, t):
            steps.append(t)
            return super().step(state, problem, network, draw, t)

    noisy = Counting().calibrate(BUDGET, logistic(), ring(), 20)
    (pair, *_) = pairs_of_agents(noisy, logistic(), ring(), 20)[0]
    setting = DeclaredSetting(noisy, logistic(), ring(), 20, DELTA)
    executed = _Pairs(setting, 0, None).executed(pair, 0)
    executed.messages(np.zeros((1, 1)))
    units = np.random.default_rng(0).standard_normal((2, executed.layout.units))
    all_messages = executed.messages(units)
    steps.clear()
    first = executed.messages(units, last=5)
    assert max(steps) == 6
    assert first.rows == all_messages.rows[: len(first.rows)] and first.rows[-1].iteration == 5
    assert np.array_equal(first.values, all_messages.values[:, : len(first.rows)])


@dataclass(frozen=True, kw_only=True)
class LessNoiseForPositiveLabels(Descent):
    """Fault: an agent whose first label is positive adds a fifth of its noise."""

    def noise(self, draw, state, problem, t):
        is_positive = np.reshape(problem.labels, (-1, *problem.labels.shape[-2:]))[0][:, :1] > 0
        return np.where(is_positive, 0.2, 1.0) * draw

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        return after._replace(x=np.arcsinh(after.x / (STEP * column(self.sigma))))


@pytest.mark.parametrize("swapped", [False, True])
def test_data_dependent_noise_is_found_for_both_orders_of_data_sets(swapped):
    """Draws of the second data set reach the noiseless messages of the first one."""
    noisy = LessNoiseForPositiveLabels().calibrate(BUDGET, logistic(), ring(), 1)
    (pair, *_) = pairs_of_agents(noisy, logistic(), ring(), 1)[0]
    pair = pair._replace(pair=pair.pair[::-1]) if swapped else pair
    setting = DeclaredSetting(noisy, logistic(), ring(), 1, DELTA)
    report = exact_costs(setting, [pair], seed=0)
    (finding,) = report.findings
    assert "the declared releases permit" in finding.text


@dataclass(frozen=True, kw_only=True)
class ExactAfterThreshold(Thresholded):
    """Fault: from iteration 2 on, messages are exact gradient steps."""

    def step(self, state, problem, network, draw, t):
        if t == 1:
            return super().step(state, problem, network, draw, t)
        z = network.mix(state.x)
        return state._replace(x=z - STEP * problem.gradient(z))


def test_exact_messages_after_a_threshold_do_not_pass():
    """Exact gradient steps contain no noise, so that no shift of the noise explains them."""
    report = cost(ExactAfterThreshold(), logistic(), horizon=2, max_attacks=1)
    assert report.findings or any(gap.decisive for gap in report.untested)


def test_l1_lengths_of_shifts_are_compared_with_declared_laplace_releases():
    """The l1 lengths of the iterations are compared, in any order of iterations."""
    layout = Layout()
    for position in range(2):
        layout.at(0, position, "laplace", (2,))
    releases = [Release("laplace", np.array([1.0, 0.5]), 1.0)]
    assert _is_below_declared(np.array([0.2, -0.3, 0.5, 0.5]), layout, releases)
    assert not _is_below_declared(np.array([0.2, -0.4, 0.5, 0.5]), layout, releases)
    gaussian = [Release("gaussian", 1.0, 1.0, count=2)]
    assert not _is_below_declared(np.zeros(4), layout, gaussian)


@dataclass(frozen=True, kw_only=True)
class LaplaceDescent(Descent):
    """Laplace noise for a declared l1 change, which is a fault below the l1 change of a record."""

    fraction: float = 1.0

    def _change(self, problem):
        return self.fraction * problem.record_change("l1")

    def calibrate(self, budget, problem, network, horizon):
        return replace(self, sigma=self._change(problem) * horizon / 0.3)

    def releases(self, problem, network, horizon):
        return [Release("laplace", self._change(problem), self.sigma, count=horizon)]

    def draws(self, problem, streams):
        return streams.sequence("noise", "laplace", (problem.n_agents, problem.dim))


def test_a_pure_epsilon_above_the_declared_one_is_found():
    """Three coordinates cost less than one of 0.7 times their sum at any delta but 0."""
    (text, *_) = texts(cost(LaplaceDescent(fraction=0.7), horizon=30))
    assert f"epsilon {0.3 / 0.7:.4g} at delta 0, the declared releases permit 0.3" in text
    assert not cost(LaplaceDescent(), horizon=30).findings


@dataclass(frozen=True, kw_only=True)
class ScaledAndThresholded(Thresholded, Scaled):
    """Fault: noise of another scale, in messages with a threshold."""


def test_pairs_beyond_the_limit_of_iterations_are_listed_and_the_first_one_is_tested(monkeypatch):
    """The pair that changes the messages of its agent most is tested first and shows the fault."""
    complete = cost(ScaledAndThresholded(factor=0.2))
    monkeypatch.setattr(exact_costs_module, "MAX_ROUNDS", 0)
    limited = cost(ScaledAndThresholded(factor=0.2))
    (left_out,) = (gap for gap in limited.untested if "exact cost of the pairs" in gap.item)
    assert not left_out.decisive and f"agents 0 to {AGENTS - 1}" in left_out.item
    assert not any("exact cost of the pairs" in gap.item for gap in complete.untested)
    assert limited.agents == complete.agents == tuple(range(AGENTS))
    costs_of_reports = (
        {finding.text.partition(" shifts ")[2].partition(" (")[0] for finding in report.findings}
        for report in (complete, limited)
    )
    assert len(set.union(*costs_of_reports)) == 1


def test_all_pairs_are_tested_if_the_messages_of_the_first_one_are_affine(monkeypatch):
    monkeypatch.setattr(exact_costs_module, "MAX_ROUNDS", 0)
    assert not any("exact cost of the pairs" in gap.item for gap in cost(Descent()).untested)


@pytest.mark.parametrize("algorithm", [Descent, Thresholded, StopsByMessages, Rounded])
def test_exact_costs_do_not_depend_on_the_number_of_processes(algorithm):
    assert cost(algorithm(), logistic(), processes=2) == cost(algorithm(), logistic())


@dataclass(frozen=True, kw_only=True)
class Announced(Descent):
    """One bit per agent: whether the noisy number of positive labels is above a threshold."""

    def calibrate(self, budget, problem, network, horizon):
        return self

    def releases(self, problem, network, horizon):
        return [Release("pure", epsilon=2.0)]

    def start(self, problem, network, streams, settings):
        unit = streams.draw("noise", "laplace", (problem.n_agents, 1))
        count = (problem.labels > 0).sum(-1)[..., None]
        zero = origin(problem, streams, settings)
        return State(zero + (count + self.sigma * unit > 3.5), zero)

    def draws(self, problem, streams):
        return repeat(None)

    def step(self, state, problem, network, draw, t):
        return state


@pytest.mark.parametrize("has_noise", [True, False])
def test_a_noisy_bit_is_not_accused_and_a_bit_without_noise_is(has_noise):
    """Small draws do not change the bit, but larger ones do."""
    problem, network = logistic_regression(2), complete(2)
    algorithm = Announced(sigma=0.5 if has_noise else 0.0)
    result = private_consensus.audit(
        algorithm, problem, network, Budget(2.0, 1e-4), horizon=1, runs=500, confidence=0.99,
        delta=1e-4,
    )  # fmt: skip
    assert any("carries no noise" in f.text for f in result.findings) is not has_noise
    assert has_noise or result.verdict != "inconclusive"
