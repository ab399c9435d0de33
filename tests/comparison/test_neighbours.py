"""Test noise calibration for the pair of target and observing agent with the largest loss."""

from dataclasses import replace

import numpy as np
import pytest

from private_consensus import algorithms
from private_consensus.audits.views import observed_system
from private_consensus.common.errors import InvalidInput
from private_consensus.comparison.calibration import calibrate_to
from private_consensus.comparison.neighbours import Neighbours, worst_pair
from private_consensus.core.networks import build, laplacian
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget, gaussian_epsilon, gaussian_mu
from private_consensus.privacy.observers import agent, mu

AGENTS, RECORDS, HORIZON, DELTA = 6, 20, 3, 1e-5
STREAMS = Streams(0, (0,))
RING = build(STREAMS, "ring", AGENTS, weights="metropolis")
STAR = build(STREAMS, "star", AGENTS, weights="metropolis")
MEANS = MeanEstimation(np.zeros((1, AGENTS, 2)), RECORDS, 1.0)
GENERATOR = np.random.default_rng(0)
ROWS = GENERATOR.normal(size=(AGENTS, RECORDS, 3))
ROWS /= np.linalg.norm(ROWS, axis=-1, keepdims=True)
LABELS = np.where(GENERATOR.random((AGENTS, RECORDS)) < 0.5, -1.0, 1.0)
CLASSES = LogisticRegression(ROWS, LABELS, ROWS[0], LABELS[0], 1 / RECORDS, 0.1)


def with_noise(name, noise=1.0, **parameters):
    return algorithms.load(name)(noise=noise, **parameters)


def mu_of_account(algorithm, problem, network, horizon):
    releases = algorithm.releases(problem, network, horizon)
    return np.sqrt(sum((release.losses() ** 2).sum() for release in releases))


def test_mu_of_one_round_of_zip_dl_against_a_neighbour_has_a_closed_form():
    """For equal weights and d neighbours, mu^2 is (d + 1)/d; for the eavesdropper d (d + 1)."""
    algorithm = with_noise("zip_dl", eta=1 / RECORDS)
    mu_bounds = worst_pair(algorithm, MEANS, RING, 1)
    change = MEANS.record_change("l2")
    assert mu_bounds.upper == pytest.approx(change * np.sqrt(3 / 2), rel=1e-9)
    assert mu_of_account(algorithm, MEANS, RING, 1) == pytest.approx(change * np.sqrt(6), rel=1e-6)


@pytest.mark.parametrize("network", [RING, STAR], ids=["ring", "star"])
def test_mu_of_decor_is_that_on_the_graph_without_the_observing_agent(network):
    r"""Compare with :math:`T\Delta^2[(I + r^2 L_{G-v})^{-1}]_{uu}` of the worst pair."""
    algorithm = with_noise("decor", ratio=2.0)
    worst = 0.0
    for v in range(AGENTS):
        remaining_graph = np.delete(np.delete(network.adjacency, v, 0), v, 1)
        covariance = np.eye(AGENTS - 1) + 4.0 * laplacian(remaining_graph)
        worst = max(worst, np.linalg.inv(covariance).diagonal().max())
    expected = np.sqrt(HORIZON * worst) * CLASSES.record_change("l2")
    assert worst_pair(algorithm, CLASSES, network, HORIZON).upper == pytest.approx(expected, 1e-9)


def test_in_decor_on_a_star_only_local_noise_protects_a_leaf():
    """The centre knows the pair noise of DECOR; only the local noise of the leaf remains."""
    algorithm = with_noise("decor", ratio=5.0)
    mu_bounds = worst_pair(algorithm, CLASSES, STAR, HORIZON)
    assert mu_bounds.upper == pytest.approx(
        np.sqrt(HORIZON) * CLASSES.record_change("l2"), rel=1e-9
    )


def test_the_exact_mu_of_mean_estimation_is_below_the_bound_with_faults():
    for name in ("decor", "zip_dl"):
        algorithm = with_noise(name, eta=0.5 / RECORDS)
        exact = worst_pair(algorithm, MEANS, RING, HORIZON)
        assert exact.lower == pytest.approx(exact.upper, rel=1e-6)
        with_faults = worst_pair(algorithm, MEANS, RING, HORIZON, faults=True)
        assert exact.upper < with_faults.upper * (1 - 1e-3)


def test_zip_dl_with_faults_has_the_mu_of_the_eavesdropper():
    algorithm = with_noise("zip_dl", eta=0.5 / RECORDS)
    mu_bounds = worst_pair(algorithm, MEANS, RING, HORIZON, faults=True)
    expected = mu_of_account(algorithm, MEANS, RING, HORIZON)
    assert mu_bounds.upper == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(
    ("name", "parameters"), [("muffliato", {}), ("muffliato_gd", {"eta": 0.5 / RECORDS})]
)
def test_with_noise_in_the_state_the_worst_pair_has_the_mu_of_the_eavesdropper(name, parameters):
    """The privacy cost is that of the eavesdropper, which some neighbour nearly attains."""
    algorithm = with_noise(name, **parameters)
    mu_bound = worst_pair(algorithm, MEANS, RING, HORIZON).upper
    assert mu_bound == pytest.approx(mu_of_account(algorithm, MEANS, RING, HORIZON), rel=1e-8)
    observed = observed_system(algorithm, MEANS, RING, HORIZON)
    exact = mu(observed.channels[0], agent(0), 1, observed.changes)
    assert 0.9 * mu_bound < exact.lower <= exact.upper <= mu_bound


@pytest.mark.parametrize(("name", "copies"), [("decor", 1), ("decor", 8), ("zip_dl", 1)])
@pytest.mark.parametrize("problem", [MEANS, CLASSES], ids=["means", "classes"])
@pytest.mark.parametrize("epsilon", [0.1, 10.0])
def test_the_worst_pair_attains_and_never_exceeds_the_budget(name, copies, problem, epsilon):
    target, algorithm = Budget(epsilon, DELTA), algorithms.load(name)(eta=0.5 / RECORDS)
    search = Neighbours()
    calibrated = search.calibrated(algorithm, target, problem, RING, HORIZON, copies)
    assert calibrated.proven and (1 - 1e-6) * epsilon <= calibrated.epsilon <= epsilon
    assert calibrated.lower <= calibrated.epsilon
    again = worst_pair(calibrated.algorithm, problem, RING, HORIZON).upper * np.sqrt(copies)
    assert gaussian_epsilon(again, DELTA) <= epsilon
    assert again == pytest.approx(gaussian_mu(epsilon, DELTA), rel=1e-7)


def test_bounds_are_computed_once_for_all_budgets():
    search, algorithm = Neighbours(), algorithms.load("decor")(eta=0.5 / RECORDS)
    for epsilon in (0.1, 1.0, 10.0):
        for copies in (1, 8):
            search.calibrated(algorithm, Budget(epsilon, DELTA), MEANS, RING, HORIZON, copies)
    assert len(search.bounds) == 1
    search.calibrated(algorithm, Budget(1.0, DELTA), MEANS, STAR, HORIZON)
    search.calibrated(algorithm, Budget(1.0, DELTA), MEANS, RING, HORIZON, faults=True)
    assert len(search.bounds) == 3


def test_bounds_are_those_of_the_present_problem():
    search, algorithm = Neighbours(), algorithms.load("decor")(eta=0.5 / RECORDS)
    for box in (0.1, 10.0):
        problem = MeanEstimation(np.zeros((1, AGENTS, 2)), RECORDS, box)
        arguments = algorithm, Budget(1.0, DELTA), problem, RING, HORIZON
        noise = search.calibrated(*arguments).algorithm.noise.scale
        assert noise == Neighbours().calibrated(*arguments).algorithm.noise.scale


def test_zip_dl_needs_less_noise_for_a_neighbour_than_for_the_eavesdropper():
    target, algorithm = Budget(1.0, DELTA), algorithms.load("zip_dl")(eta=0.5 / RECORDS)
    near = Neighbours().calibrated(algorithm, target, MEANS, RING, HORIZON)
    far = calibrate_to(algorithm, target, MEANS, RING, HORIZON)
    assert near.algorithm.noise.scale < far.algorithm.noise.scale / 2


def test_local_training_needs_no_noise():
    algorithm = algorithms.load("local_training")()
    calibrated = Neighbours().calibrated(algorithm, Budget(0.1, DELTA), CLASSES, RING, HORIZON)
    assert (calibrated.algorithm.noise.scale, calibrated.epsilon, calibrated.proven) == (
        0.0,
        0.0,
        True,
    )


def test_secure_aggregation_has_a_larger_mu_for_an_agent_than_the_eavesdropper():
    """An agent knows its own noise share, which multiplies mu^2 by N/(N - 1)."""
    algorithm = with_noise("secure_aggregation")
    mu_bound = worst_pair(algorithm, CLASSES, RING, HORIZON).upper
    expected = mu_of_account(algorithm, CLASSES, RING, HORIZON) * np.sqrt(AGENTS / (AGENTS - 1))
    assert mu_bound == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("name", ["one_shot_averaging", "dp_admm", "ldp_gradient_descent"])
def test_algorithms_without_a_proof_for_partial_views_are_refused_in_one_line(name):
    algorithm = algorithms.load(name)(**({"law": "gaussian"} if name.startswith("ldp") else {}))
    with pytest.raises(InvalidInput, match="partial views") as caught:
        Neighbours().calibrated(algorithm, Budget(0.5, DELTA), MEANS, RING, HORIZON)
    assert "\n" not in str(caught.value)


def test_a_subclass_of_a_supported_algorithm_is_refused():
    class Other(algorithms.load("muffliato_gd")):
        """Subclass of an algorithm, whose messages the observers cannot derive."""

    with pytest.raises(InvalidInput, match="partial views"):
        worst_pair(Other(noise=1.0), MEANS, RING, HORIZON)


def test_mu_is_inversely_proportional_to_the_noise():
    for name in ("decor", "zip_dl", "muffliato_gd", "mafalda_sgd"):
        algorithm = algorithms.load(name)(eta=0.5 / RECORDS).calibrate(
            Budget(1.0, DELTA), MEANS, RING, HORIZON
        )
        mu_at_noise_1, mu_at_noise_3 = (
            worst_pair(replace(algorithm, noise=noise), MEANS, RING, HORIZON).upper
            for noise in (1.0, 3.0)
        )
        assert mu_at_noise_1 == pytest.approx(3 * mu_at_noise_3, rel=1e-9)
