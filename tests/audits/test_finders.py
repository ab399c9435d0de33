"""Test the search for neighbouring data sets in the universe that reach branches on data."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import expit

from private_consensus.audits import examples
from private_consensus.audits.finders import universe_of
from private_consensus.audits.neighbours import attacks
from private_consensus.audits.probing import (
    coupled_difference,
    find_attacks,
    is_foreign,
    pairs_of_agents,
)
from private_consensus.core.algorithms.base import Iterative, column
from private_consensus.core.problems.fair_classification import FairLogisticRegression
from private_consensus.core.problems.lasso import Lasso
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.problems.perceptron import Perceptron
from private_consensus.privacy import Release, gaussian_mu
from toys import BUDGET, State

NAMES = (
    "mean_estimation", "logistic_regression", "huber_regression", "perceptron", "census",
)  # fmt: skip


def proposed(problem, agent):
    network, universe = examples.complete(problem.n_agents), universe_of(problem)
    yield from attacks(problem, network, None, nearby=False, agents=[agent], compressed=False)
    yield from universe.special_data(network, agent, np.random.default_rng(0))
    yield from universe.random_data(network, agent, np.random.default_rng(0))


def records_of(problem):
    """Return the arrays whose first axis is the agent and whose second axis is the record."""
    if isinstance(problem, MeanEstimation):
        return (problem.means[0][:, None] * problem.records,)
    if isinstance(problem, Perceptron):
        rows = problem.agent_rows[0]
        return problem.features[rows], problem.labels[rows]
    if isinstance(problem, FairLogisticRegression):
        return problem.features[None], problem.labels[None]
    if isinstance(problem, Lasso):
        return problem.features[0], problem.responses[0]
    return problem.features, problem.labels


@pytest.mark.parametrize("name", NAMES)
def test_a_pair_differs_in_one_record_of_the_attacked_agent(name):
    problem = getattr(examples, name)()
    for agent in range(problem.n_agents):
        for attack in proposed(problem, agent):
            array_pairs = zip(*(records_of(problem) for problem in attack.pair), strict=True)
            is_changed = [
                abs(a - b).reshape(*a.shape[:2], -1).sum(-1) > 1e-9 for a, b in array_pairs
            ]
            agents, records = np.nonzero(np.any(is_changed, axis=0))
            assert attack.agent == agent
            assert set(agents) <= {agent}
            assert len(set(records)) <= 1


@pytest.mark.parametrize("name", NAMES)
def test_proposed_data_sets_are_in_the_universe_of_the_problem(name):
    original = getattr(examples, name)()
    for attack in proposed(original, 0):
        for problem in attack.pair:
            first, *remaining_arrays = records_of(problem)
            lengths = np.linalg.norm(first, axis=-1)
            assert np.isfinite(first).all() and problem.records == original.records
            if name == "mean_estimation":
                assert abs(problem.means).max() <= problem.box
            elif name == "perceptron":
                assert (
                    first.min() >= 0
                    and first.max() <= 1
                    and set(np.unique(remaining_arrays)) <= {*range(10)}
                )
            else:
                assert lengths.max() <= 1 + 1e-9
            if name == "logistic_regression":
                assert set(np.unique(problem.labels)) <= {-1.0, 1.0}
            if name == "census":
                assert first.min() >= 0 and set(np.unique(remaining_arrays)) <= {0, 1}
                assert np.array_equal(
                    problem.features[original.test], original.features[original.test]
                )


def test_zero_one_problems_keep_zero_one_labels_and_nonnegative_features():
    plain = examples.logistic_regression()
    coded = type(plain)(
        abs(plain.features), np.maximum(plain.labels, 0.0), abs(plain.test_features),
        np.maximum(plain.test_labels, 0.0), plain.weight, plain.ridge, coding="zero_one",
        nonnegative=True,
    )  # fmt: skip
    for attack in proposed(coded, 1):
        for problem in attack.pair:
            assert problem.features.min() >= 0
            assert set(np.unique(problem.labels)) <= {0.0, 1.0}


@dataclass(frozen=True, kw_only=True)
class Descent(Iterative):
    """Gradient descent with mixing first and a noisy mean gradient."""

    eta: float = 0.5
    sigma: float = 0.0

    def change(self, problem):
        """Return the largest change of a mean gradient by a replaced record."""
        return problem.record_gradient_change / problem.records

    def calibrate(self, budget, problem, network, horizon):
        mu = gaussian_mu(budget.epsilon, budget.delta) / np.sqrt(horizon)
        return replace(self, sigma=self.change(problem) / mu)

    def releases(self, problem, network, horizon):
        change, scale = self.eta * self.change(problem), self.eta * self.sigma
        return [Release("gaussian", change, scale, count=horizon)]

    def start(self, problem, network, streams, settings):
        return State(np.zeros((settings, len(streams.runs), problem.n_agents, problem.dim)))

    def draws(self, problem, streams):
        return streams.sequence("noise", "normal", (problem.n_agents, problem.dim))

    def noised_step(self, problem, x, draw):
        """Return the negative noisy gradient times the step size."""
        slope = problem.gradient(x) / problem.records
        return -column(self.eta) * (slope + column(self.sigma) * draw)

    def step(self, state, problem, network, draw, t):
        mixed = network.mix(state.x)
        return State(mixed + self.noised_step(problem, mixed, draw))

    def observables(self, state, problem, t):
        return {"released": state.x}


@dataclass(frozen=True, kw_only=True)
class QuietOnEqualRecords(Descent):
    """Fault: agent 1 adds no noise if all of its records, or all but one, are equal."""

    def noised_step(self, problem, x, draw):
        rows = problem.features[1] * problem.labels[1][:, None]
        spread = np.median(np.linalg.norm(rows - np.median(rows, axis=0), axis=-1))
        quiet = np.arange(problem.n_agents)[:, None] == 1
        return super().noised_step(problem, x, draw * np.where(quiet & (spread < 1e-9), 0.0, 1.0))


def test_the_search_reaches_a_branch_on_equal_records():
    problem, network = examples.logistic_regression(), examples.complete(3)
    algorithm = QuietOnEqualRecords().calibrate(BUDGET, problem, network, 3)
    x = np.zeros((1, 1, 3, 2))

    def silent(dataset):
        draws = (np.ones((1, 3, 2)), np.zeros((1, 3, 2)))
        return np.array_equal(*(algorithm.noised_step(dataset, x, draw)[0, 0, 1] for draw in draws))

    assert not silent(problem)
    pairs = find_attacks(algorithm, problem, network, 3, agents=[1], max_pairs=4)
    assert {attack.agent for attack in pairs} == {1}
    assert any(silent(dataset) for attack in pairs for dataset in attack.pair)


def test_the_strongest_pair_is_first_and_the_search_is_reproducible():
    problem, network = examples.logistic_regression(), examples.complete(3)
    algorithm = Descent().calibrate(BUDGET, problem, network, 3)
    assert is_foreign(algorithm)
    pairs = find_attacks(algorithm, problem, network, 3, agents=[0, 2], max_pairs=3)
    scores = [coupled_difference(algorithm, attack, 3) for attack in pairs]
    assert [attack.agent for attack in pairs] == [0, 0, 0, 2, 2, 2]
    assert scores[0] == max(scores[:3]) and scores[3] == max(scores[3:])
    again = find_attacks(algorithm, problem, network, 3, agents=[0, 2], max_pairs=3)
    assert [attack.name for attack in again] == [attack.name for attack in pairs]


def test_attacks_on_foreign_algorithms_use_uncompressed_problems():
    problem, network = examples.logistic_regression(), examples.complete(3)
    foreign = Descent().calibrate(BUDGET, problem, network, 3)
    for attack in find_attacks(foreign, problem, network, 3, max_pairs=20):
        assert {type(dataset) for dataset in attack.pair} == {type(problem)}
        assert attack.pair[0].features.shape == problem.features.shape
    (example,) = examples.examples("p_admm")
    registered = example.algorithm.calibrate(example.budget, *example.world[1:3], example.horizon)
    assert not is_foreign(registered)
    pairs = pairs_of_agents(registered, *example.world[1:3], example.horizon)[0]
    assert sorted(attack.name for attack in pairs) == [
        "label",
        "rows at 0.3",
        "rows at 0.6",
        "rows at 0.9",
    ]


def test_squared_loss_has_no_known_universe():
    problem = examples.huber_regression()
    unbounded = Lasso(problem.features, problem.responses, problem.weight, problem.penalty)
    assert universe_of(unbounded) is None


@dataclass(frozen=True, kw_only=True)
class RescuedTinyRows(Descent):
    """Fault: clipped gradients of rows with norms below 0.001 are divided by these norms."""

    def change(self, problem):
        return 2 * 0.05 / problem.records

    def noised_step(self, problem, x, draw):
        rows, norms = problem.features, np.linalg.norm(problem.features, axis=-1, keepdims=True)
        margins = problem.labels * np.matvec(rows, x)
        gradients = -(problem.labels * expit(-margins))[..., None] * rows
        lengths = np.linalg.norm(gradients, axis=-1, keepdims=True)
        gradients = gradients * np.minimum(1.0, 0.05 / np.maximum(lengths, 1e-12))
        is_tiny = (norms > 0) & (norms < 1e-3)
        slope = (gradients / np.where(is_tiny, norms, 1.0)).mean(-2)
        return -column(self.eta) * (slope + column(self.sigma) * draw)


def test_the_search_proposes_rows_that_are_tiny_but_not_zero():
    problem, network = examples.logistic_regression(), examples.complete(3)
    algorithm = RescuedTinyRows().calibrate(BUDGET, problem, network, 3)
    (pair,) = find_attacks(algorithm, problem, network, 3)
    x = np.zeros((1, 1, 3, 2))
    first, second = (algorithm.noised_step(data, x, 0.0 * x)[0, 0, 0] for data in pair.pair)
    assert np.linalg.norm(first - second) > 5 * algorithm.eta * algorithm.change(problem)


@pytest.mark.parametrize("name", NAMES)
def test_tiny_records_are_not_zero(name):
    for first, second in universe_of(getattr(examples, name)()).tiny_records().values():
        assert 0 < np.abs(first[0]).max() < 1e-3 and np.abs(second[0]).max() < 1e-3
