"""Test that audits name one algorithm per class of fault and accuse no correct algorithm."""

import re
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from private_consensus.audits.auditing import audit, audit_calibrated, with_values_of
from private_consensus.audits.examples import PROBLEMS, census, complete, mean_estimation
from private_consensus.audits.observers import observe
from private_consensus.audits.workers import Worker
from private_consensus.common.errors import InvalidInput
from private_consensus.core import networks
from private_consensus.core.algorithms.base import Algorithm, origin, parameters
from private_consensus.core.algorithms.families.decentralized_sgd import DecentralizedSGD
from private_consensus.core.problems.lasso import Lasso
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget, Relation
from private_consensus.privacy.mechanisms import Exact, Gaussian, Laplace, SecureSum
from worlds import world

HORIZON, PAIRS = 3, 8
CORRECT, BROKEN = {}, {}


class State(NamedTuple):
    """Last messages, and another value that a subclass keeps."""

    x: np.ndarray
    kept: Any = None


@dataclass(frozen=True, kw_only=True)
class Averaging(Algorithm):
    """Each agent releases the mean of a mixture of messages and of its mean, with noise."""

    sigma: float = 0.1

    def change(self, problem):
        return 0.5 * problem.record_change("l2") / problem.records

    def mechanisms(self, problem, network, horizon):
        return {"message": Gaussian(self.change(problem), self.sigma)}

    def calibrate(self, budget, problem, network, horizon):
        return self

    def start(self, problem, network, release):
        return State(origin(problem, release), 0)

    def query(self, state, problem, network):
        means = np.broadcast_to(problem.means, state.x.shape)
        return 0.5 * network.mix(state.x) + 0.5 * means

    def step(self, state, problem, network, release, t):
        return State(release("message", self.query(state, problem, network)), t)

    def observables(self, state, problem, t):
        return {"released": state.x}


def correct(kind):
    CORRECT[kind.__name__] = kind
    return kind


def broken(verdict, reason):
    """Register a broken algorithm with the verdict and a part of the reason that names it."""

    def register(kind):
        BROKEN[kind.__name__] = kind, verdict, reason
        return kind

    return register


def audited(kind, pairs=PAIRS, **options):
    problem = mean_estimation()
    return audit_calibrated(
        kind(), problem, complete(problem.n_agents), HORIZON, 1e-5, pairs=pairs, **options
    )


correct(Averaging)


@correct
class AveragingInPlace(Averaging):
    """Multiplies what it receives in place."""

    def step(self, state, problem, network, release, t):
        x = release("message", self.query(state, problem, network))
        x *= 0.5
        return State(x)


@correct
class MomentumOfMessages(Averaging):
    """Keeps a mean of released values only."""

    def step(self, state, problem, network, release, t):
        x = release("message", self.query(state, problem, network))
        return State(0.5 * x + 0.5 * state.x)


@correct
class PublicBranch(Averaging):
    """Stops the gossip if released values are large."""

    def query(self, state, problem, network):
        means = np.broadcast_to(problem.means, state.x.shape)
        return 0.5 * means + (0.0 if state.x.max() > 0.1 else 0.5) * network.mix(state.x)


@correct
class PrivateState(Averaging):
    """Keeps raw means in its own state, whose use a second mechanism covers."""

    def mechanisms(self, problem, network, horizon):
        change = problem.record_change("l2") / problem.records
        return {
            "message": Gaussian(self.change(problem), self.sigma),
            "kept": Laplace(np.sqrt(problem.dim) * change, self.sigma, stream="kept"),
        }

    def step(self, state, problem, network, release, t):
        x = release("message", self.query(state, problem, network))
        means = np.array(np.broadcast_to(problem.means, x.shape))
        return State(x + release("kept", means), means)


@correct
class PrivateSigns(Averaging):
    """Keeps the signs of the own mean, which nothing uses."""

    def step(self, state, problem, network, release, t):
        x = release("message", self.query(state, problem, network))
        return State(x, np.broadcast_to(problem.means, x.shape) > 0)


@correct
class PublicTurns(Averaging):
    """In each iteration, agents that a public coin selects release."""

    def step(self, state, problem, network, release, t):
        coins = release.random("turns", "uniform", (problem.n_agents, 1))
        turns = np.broadcast_to(coins < 0.5, (*state.x.shape[:-1], 1))
        sent = release("message", self.query(state, problem, network), where=turns)
        return State(np.where(turns, sent, state.x))


@correct
class OneRelease(Averaging):
    """Releases in the first iteration only."""

    def mechanisms(self, problem, network, horizon):
        return {"message": Gaussian(self.change(problem), self.sigma, times=(1,))}

    def step(self, state, problem, network, release, t):
        if t == 1:
            return super().step(state, problem, network, release, t)
        return State(network.mix(state.x))


@correct
class CorrectDirections(Averaging):
    """Adds random numbers of the handler, which a replay repeats."""

    def step(self, state, problem, network, release, t):
        x = release("message", self.query(state, problem, network))
        return State(x + 0.01 * release.random("directions", "normal", x.shape[2:]))


class ChangedMessage(Averaging):
    """Sends a function of the noisy mean and of the exact mean."""

    def step(self, state, problem, network, release, t):
        query = self.query(state, problem, network)
        return State(self.sent(release("message", query), query))


@correct
class AddedAfterSubtraction(ChangedMessage):
    """Differs from the noisy mean by rounding only."""

    def sent(self, noisy, query):
        return (noisy - query) + query


LEAK = "leaks"


@broken(LEAK, "differ by")
class MillionthOfTheQuery(ChangedMessage):
    def sent(self, noisy, query):
        return noisy + 1e-6 * query


@broken(LEAK, "differ by")
class MillionthBesideALargeConstant(ChangedMessage):
    def query(self, state, problem, network):
        network.mix(state.x)
        return 0.5 * np.broadcast_to(problem.means, state.x.shape)

    def sent(self, noisy, query):
        large = np.arange(noisy.shape[-1]) == 0
        return np.where(large, 1e20, noisy + 1e-6 * query)


@broken(LEAK, "beside the mechanisms")
class HalfNoise(Averaging):
    def step(self, state, problem, network, release, t):
        query = self.query(state, problem, network)
        return State(0.5 * query + 0.5 * release("message", query))


@broken(LEAK, "iteration 2")
class MissingNoise(Averaging):
    def step(self, state, problem, network, release, t):
        query = self.query(state, problem, network)
        return State(query if t == 2 else release("message", query))


@broken(LEAK, "declared mechanisms depend on records")
class NoiseScaleOfData(Averaging):
    def mechanisms(self, problem, network, horizon):
        scale = self.sigma * (1 + np.abs(problem.means).max())
        return {"message": Gaussian(self.change(problem), scale)}


@broken(LEAK, "beside the mechanisms")
class BranchOnData(Averaging):
    def step(self, state, problem, network, release, t):
        x = release("message", self.query(state, problem, network))
        return State(2 * x if problem.means[..., 0].mean() > 0 else x)


@broken(LEAK, "output 'means'")
class RawValueAtTheEnd(Averaging):
    def outcome(self, state, problem, network, release, t):
        return {"means": np.array(problem.means)}


@broken(LEAK, "twice")
class ReleasedTwice(Averaging):
    def step(self, state, problem, network, release, t):
        query = self.query(state, problem, network)
        return State(0.5 * release("message", query) + 0.5 * release("message", query))


@broken(LEAK, "not declared")
class UndeclaredRelease(Averaging):
    def step(self, state, problem, network, release, t):
        return State(release("another", self.query(state, problem, network)))


@broken(LEAK, "not declared for it")
class UndeclaredIteration(Averaging):
    def mechanisms(self, problem, network, horizon):
        return {"message": Gaussian(self.change(problem), self.sigma, times=(1, 2))}


@broken(LEAK, "message of")
class RawValueBeforeNoise(Averaging):
    def query(self, state, problem, network):
        return 0.5 * network.mix(np.array(np.broadcast_to(problem.means, state.x.shape)))


@broken(LEAK, "message of")
class RawValueAtTheStart(Averaging):
    def start(self, problem, network, release):
        shape = origin(problem, release).shape
        return State(network.mix(np.array(np.broadcast_to(problem.means, shape))))


@broken(LEAK, "randomness or memory beside the handler")
class OwnGenerator(Averaging):
    def step(self, state, problem, network, release, t):
        x = release("message", self.query(state, problem, network))
        return State(x + np.random.default_rng().standard_normal(x.shape))


CACHE: dict[str, np.ndarray] = {}


@broken(LEAK, "beside the mechanisms")
class CacheBetweenRuns(Averaging):
    def step(self, state, problem, network, release, t):
        x = release("message", self.query(state, problem, network))
        return State(x + CACHE.setdefault("means", problem.means))


COUNTER = {"executions": 0}


@broken(LEAK, "randomness or memory beside the handler")
class CounterOfRuns(Averaging):
    def start(self, problem, network, release):
        COUNTER["executions"] += 1
        return State(origin(problem, release) + COUNTER["executions"])


@broken(LEAK, "records of agent")
class ValueInStateOfAnotherAgent(Averaging):
    def step(self, state, problem, network, release, t):
        x = release("message", self.query(state, problem, network))
        kept = np.roll(np.broadcast_to(problem.means, x.shape), 1, axis=-2)
        return State(x, kept)


@broken(LEAK, "state 'kept' of other agents")
class SignsOfAnotherAgent(Averaging):
    def step(self, state, problem, network, release, t):
        x = release("message", self.query(state, problem, network))
        return State(x, np.roll(np.broadcast_to(problem.means, x.shape) > 0, 1, axis=-2))


@broken("understated", "another agent")
class QueryOfAnotherAgent(Averaging):
    def query(self, state, problem, network):
        return 0.5 * np.roll(np.broadcast_to(problem.means, state.x.shape), 1, axis=-2)


@broken("understated", "times its declared sensitivity")
class SmallSensitivity(Averaging):
    def change(self, problem):
        return 0.5 * super().change(problem)


@broken("understated", "iteration 3")
class SmallSensitivityInOneIteration(Averaging):
    def mechanisms(self, problem, network, horizon):
        change = self.change(problem)
        return {"message": Gaussian([change, change, 0.9 * change], self.sigma)}


@broken("refused", "nan")
class NaNInTheDeclaration(Averaging):
    def mechanisms(self, problem, network, horizon):
        return {"message": Gaussian(self.change(problem), float("nan"))}


class Quiet(Gaussian):
    """Mechanism from outside of the package, without noise."""

    def output(self, query, unit, t):
        return query


@broken("refused", "no mechanism of this package")
class SubclassOfAMechanism(Averaging):
    def mechanisms(self, problem, network, horizon):
        return {"message": Quiet(self.change(problem), self.sigma)}


class Disguised(Quiet):
    """Mechanism from outside that states a module of the package as its own."""

    __module__ = Gaussian.__module__


@broken("refused", "no mechanism of this package")
class DisguisedMechanism(Averaging):
    def mechanisms(self, problem, network, horizon):
        return {"message": Disguised(self.change(problem), self.sigma)}


@broken("refused", "shape")
class QueryOfWrongShape(Averaging):
    def query(self, state, problem, network):
        return super().query(state, problem, network)[:, :, :, :1]


@broken("refused", "plain array")
class ComplexQuery(Averaging):
    def query(self, state, problem, network):
        return super().query(state, problem, network) + 0j


@broken("refused", "coarser than the noise")
class CoarseQuery(Averaging):
    def query(self, state, problem, network):
        return 1e12 + super().query(state, problem, network)


@broken(LEAK, "error occurs on one of two data sets")
class ErrorOnOneDataSet(Averaging):
    def query(self, state, problem, network):
        if problem.means[0].sum() > 0:
            raise ValueError("too large")
        return super().query(state, problem, network)


@broken("not executed", "ValueError: never")
class ErrorOnEveryDataSet(Averaging):
    def query(self, state, problem, network):
        raise ValueError("never")


@broken(LEAK, "agents that release 'message' depend on the data")
class MaskOfData(Averaging):
    def step(self, state, problem, network, release, t):
        query = self.query(state, problem, network)
        large = np.broadcast_to(problem.means[..., :1] > 0, (*query.shape[:-1], 1))
        sent = release("message", query, where=large)
        return State(np.where(large, sent, state.x))


@broken(LEAK, "depend")
class MessagesThatDependOnData(Averaging):
    def step(self, state, problem, network, release, t):
        if problem.means[0, 0, 0] > 0:
            network.mix(state.x)
        return super().step(state, problem, network, release, t)


@broken("no finite guarantee", "no noise")
class ExactValue(Averaging):
    def mechanisms(self, problem, network, horizon):
        return {"message": Exact(reason="a test")}


@broken("no finite guarantee", "'message' has no noise, no finite sensitivity or no proof")
class WithoutProof(Averaging):
    def mechanisms(self, problem, network, horizon):
        return {"message": Gaussian(self.change(problem), self.sigma, proven=False)}


@broken("not executed", "matrix")
class ReadsTheMatrix(Averaging):
    def query(self, state, problem, network):
        return 0.5 * network.matrix @ state.x + 0.5 * problem.means


@broken("refused", "'message' and 'gradient' with the noise stream ''")
class EqualNoiseTwice(Averaging):
    """The difference of both messages has no noise."""

    def mechanisms(self, problem, network, horizon):
        message = Gaussian(self.change(problem), self.sigma)
        return {"message": message, "gradient": message}


@broken("leaks", "reads the noise stream ''")
class ReadsTheNoise(Averaging):
    def step(self, state, problem, network, release, t):
        release.random("", "normal", (problem.n_agents, problem.dim), "noise")
        return super().step(state, problem, network, release, t)


@broken("leaks", "before iteration 1")
class ReleaseAtTheStart(Averaging):
    def start(self, problem, network, release):
        return State(release("message", np.array(problem.means[None])), 0)


@broken("understated", "20 times")
class WholeAgent(Averaging):
    """The sensitivity is that of one of 20 records; all may change."""

    relation = Relation("agent", "replace")


@broken("refused", "add or remove one record")
class OtherRelation(Averaging):
    relation = Relation("record", "add_remove")


@broken("not executed", "agents = 20")
class WrongNumberOfAgents(Averaging):
    def mechanisms(self, problem, network, horizon):
        return {"message": SecureSum(self.change(problem), self.sigma, agents=20)}


@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_algorithm_is_not_contradicted(name):
    result = audited(CORRECT[name], pairs=3 * PAIRS)
    assert result.verdict == "not contradicted", result
    assert 0.9 < max(result.reached.values()) <= 1 + 1e-6 and result.agents == 3


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_algorithm_is_named(name):
    kind, verdict, reason = BROKEN[name]
    result = audited(kind)
    assert result.verdict == verdict and reason in result.reason, result


def test_equal_seeds_give_equal_results():
    assert audited(Averaging, seed=3) == audited(Averaging, seed=3)


def test_the_result_states_which_sensitivity_no_pair_attains():
    class LargeSensitivity(Averaging):
        def change(self, problem):
            return 2 * super().change(problem)

    result = audited(LargeSensitivity)
    assert result.reached["message"] == pytest.approx(0.5, abs=1e-3)
    assert ["message" in note for note in result.notes] == [True]


class MeanWithoutMessages(Averaging):
    def query(self, state, problem, network):
        means = np.broadcast_to(problem.means, state.x.shape)
        return 0.5 * state.x.mean(-2, keepdims=True) + 0.5 * means


class MeanOfAServer(Averaging):
    def query(self, state, problem, network):
        means = np.broadcast_to(problem.means, state.x.shape)
        return 0.5 * network.combine(state.x, lambda x: x.mean(-2, keepdims=True)) + 0.5 * means


def test_a_state_that_depends_on_an_agent_without_a_message_is_noted():
    result = audited(MeanWithoutMessages)
    note = r"the state 'x' of agent \d after iteration 2 depends on agent \d without a message"
    assert result.verdict == "not contradicted" and re.search(note, str(result))
    assert "without a message" not in str(audited(MeanOfAServer)) + str(audited(Averaging))


class MeanOfAllAgents(Averaging):
    def query(self, state, problem, network):
        agents = np.tile(np.arange(problem.n_agents), (problem.n_agents, 1))
        means = np.broadcast_to(problem.means, state.x.shape)
        return 0.5 * network.gather(state.x, agents).mean(-2) + 0.5 * means


def test_values_of_agents_without_an_edge_are_not_received():
    problem, ring = mean_estimation(5), networks.build(Streams(0, (0,)), "ring", 5)
    result = audit_calibrated(MeanOfAllAgents(), problem, ring, HORIZON, 1e-5, pairs=1)
    assert result.verdict == "not executed", result
    assert "agent 2 in the neighbourhood of agent 0" in result.reason
    assert audited(MeanOfAllAgents).verdict == "not contradicted"


class PrivateCalibration(Averaging):
    def calibrate(self, budget, problem, network, horizon):
        return replace(self, sigma=1.0 + float(np.linalg.norm(problem.means[0, 0])))


class CalibrationOfTheLargest(Averaging):
    """Other agents have an equal maximum, so that one record alone changes nothing."""

    def calibrate(self, budget, problem, network, horizon):
        return replace(self, sigma=100.0 + float(np.round(np.abs(problem.means).max())))


class SmallClaim(Averaging):
    def claimed_epsilon(self, delta, problem, network, horizon):
        return 1e-4


@pytest.mark.parametrize(
    ("algorithm", "verdict", "reason"),
    [
        (PrivateCalibration(), "leaks", "calibrate sets 'sigma' from records"),
        (CalibrationOfTheLargest(), "leaks", "calibrate sets 'sigma' from records"),
        (Averaging(sigma=0.2), "understated", "claimed is 0.1"),
        (SmallClaim(sigma=100.0), "understated", "claimed is 0.0001"),
        (Averaging(sigma=100.0), "not contradicted", ""),
    ],
)
def test_calibration_and_budget_are_compared_with_the_declaration(algorithm, verdict, reason):
    problem = mean_estimation()
    budget = Budget(0.1, 1e-5)
    result = audit(algorithm, problem, complete(problem.n_agents), budget, HORIZON, pairs=PAIRS)
    assert result.verdict == verdict and reason in result.reason, result


@pytest.mark.parametrize("function", [audit, observe])
@pytest.mark.parametrize("missing", ["problem", "network"])
def test_a_missing_problem_or_network_is_refused(function, missing):
    problem = mean_estimation()
    given = {"problem": problem, "network": complete(problem.n_agents)}
    with pytest.raises(InvalidInput) as error:
        function(Averaging(), **given | {missing: None}, budget=Budget(1.0, 1e-5), horizon=HORIZON)
    assert error.value.key == missing


def test_data_that_pickle_cannot_send_to_a_process_are_refused():
    with Worker(lambda value: value) as process, pytest.raises(InvalidInput, match="pickle"):
        process.call(lambda: 0)


def test_a_list_with_too_few_values_is_refused():
    class ShortList(Averaging):
        def mechanisms(self, problem, network, horizon):
            return {"message": Gaussian([self.change(problem)] * 2, self.sigma)}

    with pytest.raises(InvalidInput, match="a list of 2 values', expected a value for iteration 3"):
        audited(ShortList)


def test_a_declared_quantity_of_the_data_is_equal_in_both_calibrations():
    first, second = (
        Lasso(np.full((1, 1, 2, 3), size), np.ones((1, 1, 2)), 1.0, 0.1) for size in (0.1, 0.5)
    )
    shared = with_values_of(first, second, {"smoothness"})
    assert shared.smoothness == first.smoothness != second.smoothness
    point = np.ones((1, 1, 1, 3))
    np.testing.assert_array_equal(shared.gradient(point), second.gradient(point))


class SampledGradients(DecentralizedSGD):
    """Each agent steps along the mean gradient of its batch."""

    def step(self, state, problem, network, release, t):
        x = network.mix(state.x)
        descent = release("gradient", self.gradient_at(problem, self.point(problem, x)))
        return self.after(state, release.batch("gradient"), x - 0.5 * descent)

    def point(self, problem, x):
        return x


class SampledGradientsAhead(SampledGradients):
    """The point at which the batch is used depends on all records."""

    def point(self, problem, x):
        return x - problem.gradient(x)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(SampledGradients, ""), (SampledGradientsAhead, "outside of the sampled batch")],
)
def test_a_sampled_query_depends_on_its_batch_only(kind, reason):
    problem = PROBLEMS["logistic_regression"](3)
    world = kind(B=5, sigma_rule="accountant"), problem, complete(3), Budget(2.0, 1e-4), HORIZON
    result = audit(*world, pairs=2 * PAIRS)
    assert result.finding is bool(reason) and reason in result.reason, result


def test_executed_batches_that_are_larger_than_the_accounted_ones_are_named():
    noisy, problem, network, horizon = world("dsgd")
    assert audit_calibrated(noisy, problem, network, horizon, 1e-5, pairs=2).finding is False

    class Doubled(type(noisy)):
        def batch_sizes(self, speeds):
            return 2 * super().batch_sizes(speeds)

    doubled = Doubled(**parameters(noisy))
    result = audit_calibrated(doubled, problem, network, horizon, 1e-5, pairs=2)
    assert result.verdict == "leaks" and "batches of" in result.reason


@pytest.mark.parametrize("name", ["releases", "bounded", "noise_is_given"])
def test_a_method_that_the_audit_uses_cannot_be_redefined(name):
    with pytest.raises(InvalidInput) as error:
        type("Redefining", (Averaging,), {name: lambda self, *_: []})
    assert error.value.key == f"Redefining.{name}"


@dataclass(frozen=True, kw_only=True)
class GradientStep(Averaging):
    """Releases a gradient step with the largest change of one gradient."""

    sigma: float = 1.0

    def change(self, problem):
        return problem.record_change("l2")

    def step(self, state, problem, network, release, t):
        z = network.mix(state.x)
        return State(z - release("message", self.direction(problem, z, state, t)), z)

    def direction(self, problem, z, state, t):
        return problem.gradient(z)


class GradientDifference(GradientStep):
    """The gradient of one record may change its sign between two models."""

    def direction(self, problem, z, state, t):
        return problem.gradient(z) - (problem.gradient(state.kept) if t > 1 else 0.0)


class DifferenceToTheOwnModel(GradientStep):
    """The model before and after mixing differ only if agents have different models."""

    def direction(self, problem, z, state, t):
        return 2 * problem.gradient(z) - problem.gradient(state.x)


class StopOfTheLoss(GradientStep):
    """An agent keeps its model if its loss, which no mechanism covers, is small."""

    def step(self, state, problem, network, release, t):
        after = super().step(state, problem, network, release, t)
        is_small = problem.clipped_loss(after.x, 50.0)[..., None] < 0.4
        return State(np.where(is_small, after.kept, after.x), after.kept)


class StopOfTheGradient(StopOfTheLoss):
    """An agent keeps its model if the gradient of all of its records is large."""

    def step(self, state, problem, network, release, t):
        after = GradientStep.step(self, state, problem, network, release, t)
        norm = np.linalg.norm(problem.gradient(after.kept), axis=-1, keepdims=True)
        return State(np.where(norm > 0.75, after.kept, after.x), after.kept)


class ErrorOfTheGradient(GradientStep):
    """An agent whose records are nearly equal stops all others."""

    def direction(self, problem, z, state, t):
        gradient = problem.gradient(z)
        if np.linalg.norm(gradient, axis=-1).max() > 0.45:
            raise ValueError("too large")
        return gradient


class HalvesOfTheRecords(GradientStep):
    """A record is declared to be used once, but two iterations use the same half."""

    def mechanisms(self, problem, network, horizon):
        return {"message": Gaussian(self.change(problem), self.sigma, touched=1)}

    def direction(self, problem, z, state, t):
        return problem.part(slice(0, 10) if t < 3 else slice(10, 20)).gradient(z)


@pytest.mark.parametrize(
    ("kind", "problem", "verdict"),
    [
        (GradientStep, "logistic_regression", "not contradicted"),
        (GradientStep, "huber_regression", "not contradicted"),
        (GradientDifference, "huber_regression", "understated"),
        (DifferenceToTheOwnModel, "logistic_regression", "understated"),
        (StopOfTheLoss, "logistic_regression", "leaks"),
        (StopOfTheGradient, "logistic_regression", "leaks"),
        (ErrorOfTheGradient, "logistic_regression", "leaks"),
        (HalvesOfTheRecords, "logistic_regression", "understated"),
    ],
)
def test_faults_at_outputs_far_from_0_are_named(kind, problem, verdict):
    data = PROBLEMS[problem](4)
    ring = networks.build(Streams(0, (0,)), "ring", 4, weights="metropolis")
    result = audit_calibrated(kind(), data, ring, HORIZON, 1e-5, pairs=200)
    assert result.verdict == verdict, result


def gradients(problem, z):
    """Return the gradients of all records, [settings, runs, agents, records, dim]."""
    margins = (problem.features @ z[..., None])[..., 0] * problem.labels
    slopes = 1 / (1 + np.exp(np.clip(margins, -50, 50)))
    return -(slopes * problem.labels)[..., None] * problem.features


class BatchWithReplacement(GradientStep):
    """A batch of 5 may contain a record several times, but is declared to contain it once."""

    copies = 1

    def change(self, problem):
        return 2 * self.copies / 5

    def step(self, state, problem, network, release, t):
        def sampled(generator, shape):
            return generator.integers(problem.records, size=shape)

        rows = release.random("rows", sampled, (problem.n_agents, 5))
        z = network.mix(state.x)
        batch = np.take_along_axis(gradients(problem, z), rows[None, ..., None], -2)
        return State(z - release("message", batch.mean(-2)))


class CoveredReplacement(BatchWithReplacement):
    copies = 5


class TwoGradients(GradientStep):
    """One query contains two gradients, with the sensitivity of one."""

    factor = 1.0

    def mechanisms(self, problem, network, horizon):
        change = self.factor * problem.record_change("l2")
        return {"message": Gaussian(change, self.sigma, shape=("agents", 2 * problem.dim))}

    def step(self, state, problem, network, release, t):
        z = network.mix(state.x)
        both = [problem.gradient(z), problem.gradient(z - 0.5)]
        sent = release("message", np.concatenate(both, axis=-1))
        return State(z - sent[..., : problem.dim])


class CoveredGradients(TwoGradients):
    factor = 2**0.5


class ClassWeights(GradientStep):
    """Weights from private counts of labels: a label also changes the weights of all others."""

    def change(self, problem):
        return 4 / problem.records

    def direction(self, problem, z, state, t):
        is_positive = problem.labels > 0
        fraction = is_positive.mean(-1, keepdims=True)
        of_class = np.where(is_positive, fraction, 1 - fraction)
        weights = np.minimum(0.5 / of_class, 2.0)
        return (weights[..., None] * gradients(problem, z)).mean(-2)


class ConstantWeights(GradientStep):
    def change(self, problem):
        return 4 / problem.records

    def direction(self, problem, z, state, t):
        weights = np.where(problem.labels > 0, 2.0, 1.0)
        return (weights[..., None] * gradients(problem, z)).mean(-2)


class MedianClipping(GradientStep):
    """Clips records to the median of their norms, which one record moves by half the range."""

    def change(self, problem):
        return 1 / problem.records

    def direction(self, problem, z, state, t):
        of_records = gradients(problem, z)
        norms = np.linalg.norm(of_records, axis=-1, keepdims=True)
        threshold = self.threshold(norms)
        return (of_records * np.minimum(1.0, threshold / np.maximum(norms, 1e-9))).mean(-2)

    def threshold(self, norms):
        return np.minimum(np.median(norms, axis=-2, keepdims=True), 0.5)


class ConstantClipping(MedianClipping):
    def threshold(self, norms):
        return 0.5


class SmallClass(GradientStep):
    """An agent with few records of a class, which no mechanism covers, sends its last message."""

    def step(self, state, problem, network, release, t):
        after = super().step(state, problem, network, release, t)
        return State(np.where(self.is_small(problem), state.x, after.x), after.kept)

    def is_small(self, problem):
        return np.sum(problem.labels > 0, axis=-1)[..., None] < 5


class PublicSize(SmallClass):
    def is_small(self, problem):
        return problem.records < 5


class MissingClass(SmallClass):
    """All agents stop if any agent lacks a class."""

    def is_small(self, problem):
        return (np.abs(problem.labels.sum(-1)) == problem.records).any()


class StepOfTheHub(GradientStep):
    """The declaration covers the mean number of edges, but the query grows with this number."""

    def factor(self, degrees):
        return degrees.mean()

    def mechanisms(self, problem, network, horizon):
        change = self.factor(network.degrees) * problem.record_change("l2")
        return {"message": Gaussian(change, self.sigma)}

    def step(self, state, problem, network, release, t):
        z = network.mix(state.x)
        query = network.degrees[:, None] * problem.gradient(z)
        return State(z - release("message", query))


class StepPerAgent(StepOfTheHub):
    def factor(self, degrees):
        return degrees[:, None]


class ClippedSum(GradientStep):
    """Clips the sum over records, but declares the clipping of each record."""

    def change(self, problem):
        return 2 * 0.6 / problem.records

    def direction(self, problem, z, state, t):
        gradient = problem.gradient(z)
        norm = np.linalg.norm(gradient, axis=-1, keepdims=True)
        return gradient / np.maximum(1.0, norm / 0.6)


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [
        (BatchWithReplacement, "understated"),
        (CoveredReplacement, "not contradicted"),
        (TwoGradients, "understated"),
        (CoveredGradients, "not contradicted"),
        (ClassWeights, "understated"),
        (ConstantWeights, "not contradicted"),
        (MedianClipping, "understated"),
        (ConstantClipping, "not contradicted"),
        (SmallClass, "leaks"),
        (PublicSize, "not contradicted"),
        (MissingClass, "leaks"),
        (StepOfTheHub, "understated"),
        (StepPerAgent, "not contradicted"),
        (ClippedSum, "understated"),
    ],
)
def test_faults_that_few_data_sets_show_are_named(kind, verdict):
    data = PROBLEMS["logistic_regression"](4)
    star = networks.build(Streams(0, (0,)), "star", 4, weights="metropolis")
    result = audit_calibrated(kind(), data, star, HORIZON, 1e-5, pairs=200)
    assert result.verdict == verdict, result


class CovarianceOfThePublicMean(GradientStep):
    """Releases the sum of (z - mean) x over training rows; both factors are at most 1."""

    def change(self, problem):
        return 1.0

    def mean(self, problem, training):
        return problem.mean

    def direction(self, problem, z, state, t):
        training = problem.in_training()[:, 0]
        weights = training * (problem.protected - self.mean(problem, training))
        return np.broadcast_to(weights @ problem.features, z.shape)


class CovarianceOfTheirMean(CovarianceOfThePublicMean):
    """The mean of the training rows changes with a record."""

    def mean(self, problem, training):
        return training @ problem.protected / training.sum()


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [(CovarianceOfThePublicMean, "not contradicted"), (CovarianceOfTheirMean, "understated")],
)
def test_protected_attributes_are_private_except_for_their_mean(kind, verdict):
    single = networks.build(Streams(0, (0,)), "single", 1)
    result = audit_calibrated(kind(), census(), single, 2, 1e-5)
    assert result.verdict == verdict, result
