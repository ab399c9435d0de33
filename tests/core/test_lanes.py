"""Test the compiled solver of logistic subproblems against closed forms, NumPy and SciPy."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from private_consensus.kernels import logistic

RECORDS, DIM, WEIGHT = 333, 9, 5.0


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(3)
    dense = rng.normal(size=(RECORDS, DIM)) * (rng.random((RECORDS, DIM)) < 0.4)
    return dense / np.maximum(1.0, np.linalg.norm(dense, axis=1, keepdims=True))


@pytest.fixture(scope="module")
def bound(records):
    return logistic.model(*np.linalg.eigh(records.T @ records / 4))


def problems(count=21, scale=1.0, seed=4):
    rng = np.random.default_rng(seed)
    linear, start = scale * rng.normal(size=(2, count, DIM))
    return rng.uniform(0.5, 3.0, count), linear, start


def gradient(records, x, curvature, linear):
    return -WEIGHT * expit(-x @ records.T) @ records + curvature[:, None] * x + linear


def solve(records, bound, curvature, linear, start, tolerance=1e-10):
    tolerances = np.full(len(start), tolerance)
    return logistic.minimise(
        logistic.records(records), WEIGHT, bound, curvature, linear, start, tolerances
    )


def indicators():
    """Return scaled rows of three one-hot attributes and a number, multiplied by labels.

    Rows of norm above 1 are scaled to norm 1, and one row is zero.
    """
    rng = np.random.default_rng(7)
    attributes = [np.eye(values)[rng.integers(values, size=RECORDS)] for values in (4, 30, 9)]
    dense = np.hstack([*attributes, rng.random((RECORDS, 1)) * rng.integers(2, size=(RECORDS, 1))])
    dense[5] = 0.0
    signs = rng.choice([-1.0, 1.0], (RECORDS, 1))
    return signs * dense / np.maximum(1.0, np.linalg.norm(dense, axis=1, keepdims=True))


@pytest.mark.parametrize("scale", [0.1, 30.0, 3000.0])
def test_minimisers_are_stationary_for_problems_of_small_and_large_scale(records, bound, scale):
    curvature, linear, start = problems(scale=scale)
    tolerance = 1e-10 if scale < 1000 else 1e-9
    x, gradient_counts = solve(records, bound, curvature, linear, start, tolerance)
    assert (gradient_counts > 0).all()
    assert np.linalg.norm(gradient(records, x, curvature, linear), axis=1).max() <= tolerance * 1.1


def test_a_minimiser_agrees_with_scipy(records, bound):
    curvature, linear, start = problems(3)
    x, _ = solve(records, bound, curvature, linear, start)
    for i in range(3):

        def value(v, i=i):
            loss = WEIGHT * np.logaddexp(0, -records @ v).sum()
            return loss + curvature[i] / 2 * v @ v + linear[i] @ v

        scipy_solution = minimize(
            value,
            np.zeros(DIM),
            jac=lambda v, i=i: gradient(records, v[None], curvature[i : i + 1], linear[i : i + 1])[
                0
            ],
            options={"gtol": 1e-9},
        )
        assert np.allclose(x[i], scipy_solution.x, atol=1e-7)


def test_a_solution_does_not_depend_on_the_other_problems_in_the_batch(records, bound):
    """A problem has byte-identical results in a batch, in another order and by itself."""
    subproblems = problems(scale=30.0)
    together, gradient_counts = solve(records, bound, *subproblems)
    assert len(set(gradient_counts)) > 2  # problems converge after different numbers of steps
    order = np.random.default_rng(0).permutation(len(gradient_counts))
    shuffled, _ = solve(records, bound, *(a[order] for a in subproblems))
    assert np.array_equal(shuffled, together[order])
    for i in (0, 7, 20):
        alone, _ = solve(records, bound, *(a[i : i + 1] for a in subproblems))
        assert np.array_equal(alone[0], together[i])


def test_an_unsolvable_problem_has_count_0_and_does_not_change_the_others(records, bound):
    curvature, linear, start = problems()
    fine, _ = solve(records, bound, curvature, linear, start)
    broken = start.copy()
    broken[4, 0] = np.nan
    x, counts = solve(records, bound, curvature, linear, broken)
    solvable = np.arange(len(x)) != 4
    assert counts[4] == 0 and (counts[solvable] > 0).all()
    assert np.array_equal(x[solvable], fine[solvable])
    tolerances = np.full(len(start), 1e-10)
    tolerances[2] = 0.0
    _, counts = logistic.minimise(
        logistic.records(records), WEIGHT, bound, curvature, linear, start, tolerances
    )
    assert counts[2] == 0 and (np.delete(counts, 2) > 0).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_solve_with_a_non_finite_hessian_ends_with_count_0(records, wrong):
    model = logistic.model(np.full(DIM, wrong), np.eye(DIM))
    _, gradient_counts = solve(records, model, *problems(11))
    assert not gradient_counts.any()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e5])
@pytest.mark.parametrize("kind", ["sparse", "indicators"])
def test_clipped_mean_losses_agree_with_numpy_in_any_batch(records, kind, scale):
    rows = indicators() if kind == "indicators" else records
    rng = np.random.default_rng(6)
    x, bounds = scale * rng.normal(size=(11, rows.shape[1])), np.where(rng.random(11) < 0.5, 2, 50)
    losses = logistic.mean_losses(logistic.records(rows), x, bounds)
    expected = np.minimum(np.logaddexp(0.0, -x @ rows.T), bounds[:, None]).mean(1)
    assert losses == pytest.approx(expected, rel=1e-13)
    subset_losses = logistic.mean_losses(logistic.records(rows), x[7:9], bounds[7:9])
    assert np.array_equal(subset_losses, losses[7:9])
