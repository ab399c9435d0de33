"""Test one-shot averaging: closed forms on quadratics, and privacy accounting."""

from dataclasses import replace

import numpy as np
import pytest

from observed import run
from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.base import stack
from private_consensus.core.algorithms.one_shot_averaging import OneShotAveraging
from private_consensus.core.networks import build
from private_consensus.core.problems.lasso import Lasso
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget, account, gaussian_epsilon

AGENTS, RECORDS, BOX, D = 5, 30, 10.0, 6.0
RING = build(Streams(0, (0,)), "ring", AGENTS, weights="metropolis")
GENERATOR = np.random.default_rng(3)
RUNS = 400


def means(runs: int) -> MeanEstimation:
    local = np.random.default_rng(1).uniform(-1, 1, (1, AGENTS, 2))
    return MeanEstimation(np.broadcast_to(local, (runs, AGENTS, 2)), RECORDS, BOX)


def classified() -> LogisticRegression:
    features = GENERATOR.normal(size=(AGENTS, RECORDS, 3))
    features /= np.linalg.norm(features, axis=-1, keepdims=True)
    labels = np.where(GENERATOR.random((AGENTS, RECORDS)) < 0.5, -1.0, 1.0)
    return LogisticRegression(features, labels, features[0], labels[0], 1 / RECORDS, 0.1)


@pytest.mark.parametrize(("perturbed", "deviation"), [("output", 1.0), ("objective", 1 / 36)])
def test_the_first_message_on_means_is_the_ridge_solution_plus_noise(perturbed, deviation):
    """The message is N d / (N + D) plus noise of sigma, or of sigma / (N + D)."""
    problem, sigma = means(RUNS), 0.3
    algorithm = OneShotAveraging(D=D, noise=sigma, perturbed=perturbed)
    at = run(stack([algorithm]), problem, RING, Streams(0, tuple(range(RUNS))), 3)
    sent = {t: at[t]["released"][0] for t in (1, 3)}
    centre = RECORDS * problem.means[0] / (RECORDS + D)
    noise = (sent[1] - centre) / (sigma * deviation)
    assert abs(noise.mean()) < 4 / np.sqrt(noise.size)
    assert abs(noise.var() - 1) < 4 * np.sqrt(2 / noise.size)
    np.testing.assert_allclose(sent[3], RING.mixing @ RING.mixing @ sent[1], rtol=1e-12)


def test_objective_noise_on_a_quadratic_is_one_gaussian_mechanism():
    problem, sigma = means(1), 40.0
    algorithm = OneShotAveraging(D=D, noise=sigma, perturbed="objective")
    guarantee = account(algorithm.releases(problem, RING, 9), 1e-5)
    expected = gaussian_epsilon(problem.record_change("l2") / sigma, 1e-5)
    assert guarantee.proven and guarantee.epsilon == pytest.approx(expected, rel=1e-9)


def test_output_noise_is_a_gaussian_mechanism_for_the_change_of_the_minimiser():
    problem = classified()
    algorithm = OneShotAveraging(D=0.4, noise=0.2)
    epsilon = account(algorithm.releases(problem, RING, 9), 1e-5).epsilon
    moved = 2 / RECORDS / (0.1 + 0.4)
    assert epsilon == pytest.approx(gaussian_epsilon(moved / 0.2, 1e-5), rel=1e-9)


@pytest.mark.parametrize("perturbed", ["output", "objective"])
@pytest.mark.parametrize("epsilon", [0.1, 10.0])
def test_calibration_uses_at_least_99_percent_of_the_budget(perturbed, epsilon):
    problem = classified()
    algorithm = OneShotAveraging(D=0.4, perturbed=perturbed)
    noisy = algorithm.calibrate(Budget(epsilon, 1e-5), problem, RING, 4)
    guarantee = account(noisy.releases(problem, RING, 4), 1e-5)
    assert guarantee.proven and 0.99 * epsilon <= guarantee.epsilon <= epsilon
    louder = replace(noisy, noise=2 * noisy.noise)
    assert account(louder.releases(problem, RING, 4), 1e-5).epsilon < guarantee.epsilon


def test_objective_noise_on_an_objective_without_a_proof_is_refused():
    rows = np.full((1, AGENTS, 4, 2), 0.5)
    problem = Lasso(rows, np.ones((1, AGENTS, 4)), 1.0, 0.1, 1.0, 1.0)
    with pytest.raises(InvalidInput, match=r"problem\.name"):
        OneShotAveraging(perturbed="objective").calibrate(Budget(1.0, 1e-5), problem, RING, 4)
    assert OneShotAveraging().calibrate(Budget(1.0, 1e-5), problem, RING, 4).noise
