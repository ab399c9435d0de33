"""Test problems: gradients, constants and optima."""

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimise
from scipy.stats import kstest, truncnorm

from observed import logistic_problem, logistic_rows, pooled_optimum
from private_consensus.common.errors import InvalidInput
from private_consensus.core.problems import (
    load,
    logistic_regression,
    mean_estimation,
    shared_by_runs,
)
from private_consensus.core.problems.fair_classification import FairLogisticRegression
from private_consensus.core.problems.lasso import Lasso
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.problems.perceptron import Perceptron
from private_consensus.core.randomness import Streams
from private_consensus.core.solvers import TOLERANCE
from private_consensus.core.solvers import logistic as solver

AGENTS = 4


def build(streams, **changes):
    return logistic_problem(streams, AGENTS, 5, records=100, **changes)


@pytest.fixture
def logistic(streams):
    return build(streams, ridge=0.01, weight=1.0, partition="shared")


def test_the_logistic_gradient_agrees_with_central_differences(logistic):
    """The error of a central difference falls as the square of the step."""
    rng = np.random.default_rng(1)
    x, direction = rng.normal(size=(2, 3, AGENTS, logistic.dim))
    exact = (logistic.gradient(x) * direction).sum(-1)
    errors = []
    for h in (1e-2, 1e-3):
        difference = logistic.objective(x + h * direction) - logistic.objective(x - h * direction)
        errors.append(np.abs(difference / (2 * h) - exact).max())
    assert 50 < errors[0] / errors[1] < 200


def of_scikit_learn(features, labels, *, ridge, tol):
    from sklearn.linear_model import LogisticRegression  # slow to import

    model = LogisticRegression(C=1 / ridge, fit_intercept=False, tol=tol, solver="newton-cholesky")
    return model.fit(features, labels).coef_[0]


def test_optimum_of_the_sum_agrees_with_scikit_learn(logistic):
    features = logistic.features.reshape(-1, logistic.dim)
    labels = logistic.labels.reshape(-1)
    reference_optimum = of_scikit_learn(features, labels, ridge=AGENTS * logistic.ridge, tol=1e-12)
    assert np.allclose(logistic.optimum, reference_optimum, atol=1e-6)
    assert logistic.excess(logistic.optimum) == pytest.approx(0, abs=1e-14)
    assert logistic.excess(reference_optimum + 0.1) > 1e-4


def test_the_curvature_lies_between_strong_convexity_and_smoothness(logistic):
    rng = np.random.default_rng(4)
    for _ in range(20):
        x, v = rng.normal(size=(2, AGENTS, logistic.dim))
        step = 1e-5 * v
        curvature = ((logistic.gradient(x + step) - logistic.gradient(x)) * v).sum(-1) / 1e-5
        ratio = curvature / (v**2).sum(-1)
        assert (ratio > logistic.strong_convexity - 1e-3).all()
        assert (ratio < logistic.smoothness + 1e-3).all()


def test_each_record_belongs_to_one_agent_or_to_the_test_set(logistic):
    rows = np.concatenate([logistic.features.reshape(-1, logistic.dim), logistic.test_features])
    assert len(rows) == 1200 == len(np.unique(rows, axis=0))


def test_mean_estimation_samples_a_truncated_normal_distribution(streams):
    problem = mean_estimation.build(streams, 50, records=1, dim=40, box=2.0)
    law = truncnorm((-2 - 1.4) / 1, (2 - 1.4) / 1, loc=1.4)
    assert kstest(problem.means.ravel(), law.cdf).pvalue > 0.01
    assert kstest(problem.means.ravel(), truncnorm(-3.4, 0.6, loc=1.5).cdf).pvalue < 1e-6


def test_mean_estimation_is_solved_by_the_mean_of_all_records(streams):
    problem = mean_estimation.build(streams, AGENTS, records=30, dim=3, box=5.0)
    x = np.broadcast_to(problem.target[:, None, :], (12, AGENTS, 3))
    assert np.allclose(problem.gradient(x).sum(-2), 0, atol=1e-10)
    assert problem.measure("normalised_error", x[None]).max() < 1e-28


def test_rows_of_norm_above_1_are_refused(streams):
    rows = logistic_rows(600, 5)
    rows.features[3] *= 10
    with pytest.raises(InvalidInput, match=r"norm of problem.prepared.features\[row 3\]: found"):
        logistic_regression.build(streams, 2, prepared=rows, records=10, ridge=0.1)


@pytest.fixture
def per_run(streams):
    return build(streams)


def proximal_inputs(problem, runs=12, settings=2, scale=1.0):
    rng = np.random.default_rng(5)
    linear, centre, start = scale * rng.normal(size=(3, settings, runs, AGENTS, problem.dim))
    return linear, rng.uniform(1, 20, size=(settings, 1, AGENTS, 1)), centre, start


def remaining_slope(problem, x, linear, penalty, centre):
    return np.linalg.norm(problem.gradient(x) + linear + penalty * (x - centre), axis=-1)


def test_each_run_samples_a_partition_that_does_not_change_if_runs_are_added(streams, per_run):
    assert per_run.features.shape == (12, AGENTS, 100, 5)
    assert not np.array_equal(per_run.features[0], per_run.features[1])
    fewer = Streams(streams.root, tuple(range(3)), streams.groups)
    again = build(fewer)
    assert np.array_equal(again.features, per_run.features[:3])
    assert shared_by_runs(logistic_regression, {})
    assert not shared_by_runs(logistic_regression, {"partition": "per_run"})
    assert shared_by_runs(load("linear_observation"), {})
    assert not shared_by_runs(load("mean_estimation"), {})


@pytest.mark.parametrize("coding", logistic_regression.CODINGS)
def test_the_optimum_of_a_run_agrees_with_independent_solvers(streams, coding):
    problem = build(streams, coding=coding)
    for run in range(0, 12, 5):
        assert np.allclose(problem.optimum[run], pooled_optimum(problem, run), atol=1e-8)
    if coding == "signed":
        features, labels = problem.features[0].reshape(-1, 5), problem.labels[0].reshape(-1)
        ridge = AGENTS * problem.ridge / problem.weight
        reference = of_scikit_learn(features, labels, ridge=ridge, tol=1e-14)
        assert np.allclose(problem.optimum[0], reference, atol=1e-8)


@pytest.mark.parametrize("weight", ["mean", 17.5])
def test_the_proximal_solve_is_stationary_and_agrees_with_scipy(streams, weight):
    """The weight 17.5 is 1750 times that of the mean; Newton steps replace the slow bound there."""
    problem = build(streams, ridge=0.01, weight=weight)
    linear, penalty, centre, start = proximal_inputs(problem)
    x = problem.proximal(linear, penalty, centre, start)
    slope = remaining_slope(problem, x, linear, penalty, centre)
    floor = 1e-10 if weight == "mean" else 64 * 2.3e-16 * 2000
    assert slope.max() <= max(1e-10, floor)
    for s, r, i in [(0, 0, 0), (1, 7, 2), (0, 11, 3)]:
        z, y = problem.features[r, i], problem.labels[r, i]

        def local(v, z=z, y=y, at=(s, r, i)):
            d, c, a = penalty[at[0], 0, at[2], 0], centre[at], linear[at]
            m = y * (z @ v)
            value = problem.weight * np.logaddexp(0, -m).sum() + problem.ridge / 2 * v @ v
            slope = -problem.weight * z.T @ (y / (1 + np.exp(m))) + problem.ridge * v
            return value + a @ v + d / 2 * (v - c) @ (v - c), slope + a + d * (v - c)

        scipy_solution = scipy_minimise(
            local, np.zeros(problem.dim), jac=True, method="BFGS", options={"gtol": 1e-11}
        )
        assert np.allclose(x[s, r, i], scipy_solution.x, atol=1e-7)


def test_a_proximal_solve_does_not_depend_on_the_other_settings(per_run):
    linear, penalty, centre, start = proximal_inputs(per_run)
    together = per_run.proximal(linear, penalty, centre, start)
    far = linear.copy()
    far[1] *= 1e6
    alone = per_run.proximal(far, penalty, centre, start)
    assert np.array_equal(together[0], alone[0])


def test_the_hessian_is_the_derivative_of_the_gradient(per_run):
    x = np.random.default_rng(6).normal(size=(2, 12, AGENTS, per_run.dim))
    step = 1e-5
    for l in range(per_run.dim):
        e = step * np.eye(per_run.dim)[l]
        difference = (per_run.gradient(x + e) - per_run.gradient(x - e)) / (2 * step)
        assert np.allclose(per_run.hessian(x)[..., l], difference, atol=1e-8)


def test_the_proximal_solve_of_mean_estimation_is_stationary(streams):
    problem = mean_estimation.build(streams, AGENTS, records=4, dim=3, box=50.0)
    linear, penalty, centre, start = proximal_inputs(problem)
    x = problem.proximal(linear, penalty, centre, start)
    assert remaining_slope(problem, x, linear, penalty, centre).max() < 1e-12


@pytest.mark.parametrize("partition", ["shared", "per_run"])
def test_the_compiled_and_the_numpy_proximal_solve_agree(streams, partition):
    problem = build(streams, ridge=0.01, loss_scale=20.0, partition=partition)
    inputs = proximal_inputs(problem)
    fast, plain = solver.solve_in_lanes(problem, *inputs), solver.solve_by_arrays(problem, *inputs)
    assert np.allclose(
        solver.solve_in_lanes(problem, *inputs, TOLERANCE), plain, rtol=0, atol=1e-10
    )
    remaining = remaining_slope(problem, fast, *inputs[:3])
    assert remaining.max() <= TOLERANCE * problem.weight * problem.records * (1 + 1e-6)
    # Strong convexity: points differ by at most the gradient difference over the modulus.
    distance = np.linalg.norm(fast - plain, axis=-1) * (problem.ridge + inputs[1])[..., 0]
    assert (distance <= remaining + 2 * TOLERANCE).all()
    tolerance = np.array([1e-2, 1e-6])[:, None, None]
    slope = remaining_slope(
        problem, solver.solve_in_lanes(problem, *inputs, tolerance), *inputs[:3]
    )
    assert (slope <= tolerance * (1 + 1e-9)).all() and slope[0].max() > 1e-6


@pytest.mark.parametrize("ratio", [1.0, 2.0])
def test_the_gradient_at_the_corner_of_the_box_attains_the_lipschitz_constant(ratio):
    """The sum of the records of the largest agent is ``ratio`` times the corner and ``records``."""
    means = np.full((1, 2, 3), -1.5 * ratio)
    problem = mean_estimation.MeanEstimation(means, 5, box=1.5, size_ratio=ratio)
    gradient = problem.gradient(np.full((1, 1, 2, 3), 1.5))
    assert np.linalg.norm(gradient, axis=-1).max() == pytest.approx(problem.lipschitz)


def _problems_of_type(kind):
    """Return problems whose arrays have a type, and equal problems whose arrays are float64."""
    rng = np.random.default_rng(0)
    rows = np.eye(4)[rng.integers(0, 4, (1, 2, 200))]
    signs = rng.choice([-1.0, 1.0], (1, 2, 200))
    for dtype in (kind, float):
        features, labels = rows.astype(dtype), signs.astype(np.int8)
        binary = (labels[0, 0] > 0).astype(np.int8)
        yield (
            MeanEstimation(features.sum(2).astype(dtype), 200, 200.0),
            LogisticRegression(features[0], labels[0], features[0, 0], labels[0, 0], 1.0, 0.1),
            Lasso(features, (signs > 0).astype(dtype), 1.0, 0.1, 1.0, 1.0),
            FairLogisticRegression(features[0, 0], binary, binary, np.array([[0]]), len),
            Perceptron(
                features[0, 0], binary, np.arange(180).reshape(1, 2, 90), np.array([190]), 2
            ),
        )


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.float16, np.longdouble, ">f8"])
def test_data_of_other_types_are_computed_in_float64(kind):
    for problem, expected in zip(*_problems_of_type(kind), strict=True):
        x = np.random.default_rng(1).normal(size=(1, 1, expected.n_agents, expected.dim))
        point = x.astype(np.float64)
        for name in ("features", "means"):
            assert getattr(problem, name, point).dtype == np.float64
        if isinstance(problem, Perceptron):
            rows, sizes = problem.rows_of(0), np.array([90, 90])
            gradients = [p.clipped_gradient(x[0, 0], rows, sizes) for p in (problem, expected)]
        else:
            gradients = [p.gradient(x) for p in (problem, expected)]
        assert np.array_equal(*gradients)
        if problem.offers("proximal"):
            penalty = np.ones((1, 1, problem.n_agents, 1))
            minimisers = [p.proximal(0 * x, penalty, 0 * x, x) for p in (problem, expected)]
            assert np.array_equal(*minimisers)


def test_means_beyond_the_box_by_the_rounding_of_float16_are_refused():
    means = np.full((1, 2, 1), 100.0625, np.float16)
    with pytest.raises(InvalidInput, match="the box"):
        MeanEstimation(means, 10, 100.04)  # 100.0625 in float16


def test_masked_arrays_are_refused():
    means = np.ma.masked_array(np.full((1, 3, 2), 0.3))
    means[0, 1, 0] = np.ma.masked
    means.data[0, 1, 0] = 777.0
    with pytest.raises(InvalidInput, match=r"problem\.means: found 'a masked array'"):
        MeanEstimation(means, 20, 1.0)
    labels = np.ma.masked_array(np.ones((3, 5)))
    rows = np.zeros((3, 5, 2))
    with pytest.raises(InvalidInput, match=r"problem\.labels: found 'a masked array'"):
        LogisticRegression(rows, labels, rows[0], np.ones(5), 1.0, 0.1)


def test_arrays_of_a_problem_cannot_be_changed():
    means, rows, labels = np.zeros((1, 3, 2)), np.zeros((2, 3, 4)), np.ones((2, 3))
    MeanEstimation(means, 5, 1.0)
    LogisticRegression(rows, labels, rows[0], labels[0], 1.0, 0.1)
    for array in (means, rows, labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 500.0


def test_a_feature_that_is_zero_in_all_records_has_the_coefficient_zero():
    random = np.random.default_rng(5)
    features, responses = random.normal(size=(1, 3, 8, 2)), random.normal(size=(1, 3, 8))
    padded = np.pad(features, [(0, 0)] * 3 + [(1, 0)])
    optima = [Lasso(x, responses, 1 / 8, 0.1).optimum for x in (features, padded)]
    assert optima[1].tolist() == [[0.0, *optima[0][0]]]
