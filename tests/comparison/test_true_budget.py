"""Test calibration of every method to the accounted epsilon, except for unproven methods."""

from dataclasses import replace

import numpy as np
import pytest

from private_consensus import algorithms
from private_consensus.common.errors import InvalidInput
from private_consensus.comparison import calibration
from private_consensus.comparison.calibration import NEAR, WIDTH, _root, calibrate_to, prescribed
from private_consensus.core.networks import build
from private_consensus.core.problems.lasso import Lasso
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget, account, gaussian_epsilon

AGENTS, RECORDS, HORIZON = 4, 30, 3
RING = build(Streams(0, (0,)), "ring", AGENTS, weights="metropolis")
GENERATOR = np.random.default_rng(0)
ROWS = GENERATOR.normal(size=(AGENTS, RECORDS, 3))
ROWS /= np.linalg.norm(ROWS, axis=-1, keepdims=True)
LABELS = np.where(GENERATOR.random((AGENTS, RECORDS)) < 0.5, -1.0, 1.0)
CLASSES = LogisticRegression(ROWS, LABELS, ROWS[0], LABELS[0], 1 / RECORDS, 0.1)
MEANS = MeanEstimation(GENERATOR.uniform(-1, 1, (1, AGENTS, 2)), RECORDS, 1.0)
HUBER = Lasso(ROWS[None], LABELS[None], 1 / RECORDS, 0.01, 1.0, 1.0)
BY_CODE = [
    ("muffliato_gd", {}, CLASSES),  # an exact formula
    ("gradient_descent", {}, MEANS),  # a theorem that does not use the complete budget
    ("dp_admm", {}, HUBER),  # a budget per round, at most 1
    ("exact_admm", {"calibration": "gaussian_dp"}, HUBER),
    ("p_admm", {"law": "laplace"}, CLASSES),  # pure losses, converted
    ("pp_admm", {"perturbed": "output"}, CLASSES),  # the paper's formula in zCDP
]


@pytest.mark.parametrize(("name", "parameters", "problem"), BY_CODE)
@pytest.mark.parametrize(("epsilon", "copies"), [(0.3, 1), (10.0, 1), (1.0, 8)])
def test_the_accounted_epsilon_is_at_most_1_per_cent_below_the_budget(
    name, parameters, problem, epsilon, copies
):
    target = Budget(epsilon, 1e-5)
    algorithm = algorithms.load(name)(**parameters)
    calibrated = calibrate_to(algorithm, target, problem, RING, HORIZON, copies)
    releases = list(calibrated.algorithm.releases(problem, RING, HORIZON)) * copies
    accounted = account(releases, 1e-5)
    assert accounted.proven and calibrated.proven
    assert 0.99 * epsilon <= accounted.epsilon <= epsilon
    assert calibrated.epsilon == accounted.epsilon
    assert 0 <= calibrated.lower <= accounted.epsilon


def test_gaussian_noise_grows_with_the_square_root_of_the_number_of_copies():
    target, algorithm = Budget(1.0, 1e-5), algorithms.load("muffliato_gd")()
    once, eight = (
        calibrate_to(algorithm, target, CLASSES, RING, HORIZON, copies) for copies in (1, 8)
    )
    small_noise, large_noise = (calibrated.algorithm.noise.scale for calibrated in (once, eight))
    assert large_noise == pytest.approx(small_noise * np.sqrt(8), rel=0.01)


def test_an_unproven_algorithm_uses_the_noise_of_its_paper():
    """PP-ADMM as published has no proven epsilon; its lower and upper bound are reported."""
    target = Budget(1.0, 1e-5)
    algorithm = algorithms.load("pp_admm")()
    calibrated = prescribed(algorithm, target, CLASSES, RING, HORIZON)
    assert not calibrated.proven
    assert calibrated.lower <= calibrated.epsilon
    expected = algorithm.calibrate(target, CLASSES, RING, HORIZON)
    assert calibrated.algorithm == expected


def test_calibration_marks_pp_admm_as_unproven_and_refuses_plain_admm():
    """PP-ADMM as published is not proven, and plain ADMM is not private."""
    target = Budget(1.0, 1e-5)
    calibrated = calibrate_to(algorithms.load("pp_admm")(), target, CLASSES, RING, HORIZON)
    assert not calibrated.proven  # so its rows are not ranked
    with pytest.raises(InvalidInput, match="not private"):
        calibrate_to(algorithms.load("admm")(), target, CLASSES, RING, HORIZON)


def test_a_budget_that_no_noise_meets_gives_a_one_line_error():
    """Squared loss has unbounded gradients."""
    squared = replace(HUBER, gradient_bound=np.inf)
    with pytest.raises(InvalidInput, match="a finite clipping norm") as caught:
        calibrate_to(algorithms.load("muffliato_gd")(), Budget(0.1, 1e-5), squared, RING, HORIZON)
    assert "\n" not in str(caught.value)


def test_a_different_neighbouring_relation_is_refused():
    algorithm = algorithms.load("dp_ci")(unit="stream")
    with pytest.raises(InvalidInput, match="relation"):
        calibrate_to(algorithm, Budget(1.0, 1e-5), MEANS, RING, HORIZON)


def test_the_exact_formula_of_muffliato_gd_meets_the_budget():
    calibrated = calibrate_to(
        algorithms.load("muffliato_gd")(), Budget(2.0, 1e-5), CLASSES, RING, HORIZON
    )
    mu = np.sqrt(HORIZON) * CLASSES.record_change("l2") / calibrated.algorithm.noise.scale
    assert gaussian_epsilon(mu, 1e-5) == pytest.approx(2.0, rel=1e-6)


def test_rounding_errors_of_the_accountant_do_not_change_the_noise(monkeypatch):
    def noise(rounding: float) -> float:
        def rounded(releases, delta):
            accounted = account(releases, delta)
            return replace(accounted, epsilon=accounted.epsilon * (1 + rounding))

        monkeypatch.setattr(calibration, "account", rounded)
        algorithm = algorithms.load("muffliato_gd")()
        calibrated = calibrate_to(algorithm, Budget(1.0, 1e-5), CLASSES, RING, HORIZON)
        return calibrated.algorithm.noise.scale

    assert noise(1e-13) == noise(-1e-13)
    assert noise(1e-6) != noise(1e-13)


@pytest.mark.parametrize("nothing_below", [-np.inf, -8.0, -0.5])
@pytest.mark.parametrize("refused_above", [0.5, 1.0, np.inf])
def test_the_search_converges_between_zero_and_infinite_epsilon(nothing_below, refused_above):
    """Epsilon is 0 for noise whose delta suffices, and infinite for noise without a proof."""

    def excess(x):
        if x < nothing_below:
            return -np.inf
        return np.inf if x > refused_above else 2.0 * x

    assert abs(excess(_root(excess, -15.75, 2.0))) <= NEAR


def test_at_a_jump_of_epsilon_over_the_budget_the_search_ends_below():
    root = _root(lambda x: -1.0 if x < 0.3 else 1.0, -4.0, 4.0)
    assert 0.3 - WIDTH <= root < 0.3


@pytest.mark.parametrize("power", [0.5, 1.0, 1.8])
def test_the_search_takes_three_evaluations_if_epsilon_is_a_power_of_the_noise(power):
    """Evaluations are both ends and one secant step, since each one may be expensive."""
    evaluated_at = []

    def excess(x):
        evaluated_at.append(x)
        return power * (x - 0.7)

    assert abs(excess(_root(excess, 0.0, np.log(4)))) <= NEAR
    assert len(evaluated_at) - 1 == 3


def test_the_search_repeats_no_budget_and_computes_one_lower_bound(monkeypatch):
    kind, tried, bounded = algorithms.load("dp_admm"), [], []
    calibrate, lower_bound = kind.calibrate, kind.lower_bound

    def counted(self, budget, *world):
        tried.append(budget.epsilon)
        return calibrate(self, budget, *world)

    def bound(self, releases, delta):
        bounded.append(delta)
        return lower_bound(self, releases, delta)

    monkeypatch.setattr(kind, "calibrate", counted)
    monkeypatch.setattr(kind, "lower_bound", bound)
    calibrated = calibrate_to(kind(), Budget(10.0, 1e-5), HUBER, RING, HORIZON)
    assert calibrated.proven and len(tried) > 2
    assert len(tried) == len(set(tried)) and len(bounded) == 1
