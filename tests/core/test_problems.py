"""Problems: gradients, constants, optima."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import kstest, truncnorm
from sklearn.linear_model import LogisticRegression as Reference

from private_consensus.errors import InvalidInput
from private_consensus.problems import logistic_regression, mean_estimation

AGENTS = 4


def prepared_rows(rows=600, dim=5, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, dim))
    features /= np.maximum(1.0, np.linalg.norm(features, axis=1, keepdims=True))
    labels = np.where(rng.random(rows) < 1 / (1 + np.exp(-4 * features[:, 0])), 1, -1)
    return SimpleNamespace(features=features, labels=labels.astype(np.int8))


@pytest.fixture
def logistic(streams):
    return logistic_regression.build(
        streams, AGENTS, prepared=prepared_rows(), records=100, ridge=0.01
    )


def test_gradient_of_the_logistic_objective_by_central_differences(logistic):
    """The error of a central difference falls as the square of the step."""
    rng = np.random.default_rng(1)
    x, direction = rng.normal(size=(2, 3, AGENTS, logistic.dim))
    exact = (logistic.gradient(x) * direction).sum(-1)
    errors = []
    for h in (1e-2, 1e-3):
        difference = logistic.objective(x + h * direction) - logistic.objective(x - h * direction)
        errors.append(np.abs(difference / (2 * h) - exact).max())
    assert 50 < errors[0] / errors[1] < 200


def test_batched_gradient_equals_a_loop_over_agents(logistic):
    x = np.random.default_rng(2).normal(size=(2, 3, AGENTS, logistic.dim))
    gradient = logistic.gradient(x)
    for s, r, i in np.ndindex(2, 3, AGENTS):
        z, y = logistic.features[i], logistic.labels[i]
        slope = -y / (1 + np.exp(y * (z @ x[s, r, i])))
        assert np.allclose(gradient[s, r, i], z.T @ slope + logistic.ridge * x[s, r, i])


def test_gradients_of_data_that_differ_between_runs(logistic):
    x = np.random.default_rng(3).normal(size=(2, 3, AGENTS, logistic.dim))
    repeated = logistic_regression.LogisticRegression(
        np.stack([logistic.features] * 3),
        np.stack([logistic.labels] * 3),
        logistic.test_features,
        logistic.test_labels,
        logistic.weight,
        logistic.ridge,
    )
    assert np.allclose(repeated.gradient(x), logistic.gradient(x))


def test_optimum_of_the_sum_agrees_with_scikit_learn(logistic):
    features = logistic.features.reshape(-1, logistic.dim)
    labels = logistic.labels.reshape(-1)
    reference = Reference(
        C=1 / (AGENTS * logistic.ridge), fit_intercept=False, tol=1e-12, solver="newton-cholesky"
    ).fit(features, labels)
    assert np.allclose(logistic.optimum, reference.coef_[0], atol=1e-6)
    assert logistic.excess(logistic.optimum) == pytest.approx(0, abs=1e-14)
    assert logistic.excess(reference.coef_[0] + 0.1) > 1e-4


def test_curvature_lies_between_the_stated_constants(logistic):
    rng = np.random.default_rng(4)
    for _ in range(20):
        x, v = rng.normal(size=(2, AGENTS, logistic.dim))
        step = 1e-5 * v
        curvature = ((logistic.gradient(x + step) - logistic.gradient(x)) * v).sum(-1) / 1e-5
        ratio = curvature / (v**2).sum(-1)
        assert (ratio > logistic.strong_convexity - 1e-3).all()
        assert (ratio < logistic.smoothness + 1e-3).all()


def test_replacing_a_record_moves_a_gradient_by_at_most_the_stated_bound(logistic):
    rng = np.random.default_rng(5)
    worst = 0.0
    for _ in range(200):
        z = rng.normal(size=(2, logistic.dim))
        z /= np.linalg.norm(z, axis=1, keepdims=True)
        x = 20 * rng.normal(size=logistic.dim)
        gradient = [-w / (1 + np.exp(w @ x)) for w in z]
        worst = max(worst, np.linalg.norm(gradient[0] - gradient[1]))
    assert worst <= logistic.record_gradient_change
    opposite = np.eye(logistic.dim)[0]
    far = -50 * opposite
    attained = np.linalg.norm(-opposite / (1 + np.exp(opposite @ far)) - opposite)
    assert attained == pytest.approx(logistic.record_gradient_change)


def test_the_share_misclassified_counts_margin_zero_as_negative(logistic):
    positive = (logistic.test_labels > 0).mean()
    assert logistic.misclassified(np.zeros(logistic.dim)) == pytest.approx(positive)


def test_records_go_to_one_agent_or_to_the_test_set(logistic):
    rows = np.concatenate([logistic.features.reshape(-1, logistic.dim), logistic.test_features])
    assert len(rows) == 600 == len(np.unique(rows, axis=0))


def test_mean_estimation_draws_the_truncated_normal(streams):
    problem = mean_estimation.build(streams, 50, records=1, dim=40, box=2.0)
    law = truncnorm((-2 - 1.4) / 1, (2 - 1.4) / 1, loc=1.4)
    assert kstest(problem.means.ravel(), law.cdf).pvalue > 0.01
    assert kstest(problem.means.ravel(), truncnorm(-3.4, 0.6, loc=1.5).cdf).pvalue < 1e-6


def test_mean_estimation_is_solved_by_the_mean_of_all_records(streams):
    problem = mean_estimation.build(streams, AGENTS, records=30, dim=3, box=5.0)
    x = np.broadcast_to(problem.target[:, None, :], (12, AGENTS, 3))
    assert np.allclose(problem.gradient(x).sum(-2), 0, atol=1e-10)
    assert problem.measure("normalised_error", x[None]).max() < 1e-28


def test_more_records_keep_the_earlier_ones(streams):
    few = mean_estimation.build(streams, AGENTS, records=10, dim=3, box=5.0)
    many = mean_estimation.build(streams, AGENTS, records=20, dim=3, box=5.0)
    added = 20 * many.means - 10 * few.means
    assert np.abs(added / 10).max() <= 5.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"records": 0}, "problem.records: found 0"),
        ({"records": 150}, r"problem.records: found 150, expected fewer than 150 records"),
    ],
)
def test_more_agents_than_records_are_refused(streams, parameters, message):
    with pytest.raises(InvalidInput, match=message):
        logistic_regression.build(
            streams, AGENTS, **{"prepared": prepared_rows(), "ridge": 0.1, **parameters}
        )


def test_rows_longer_than_one_are_refused(streams):
    rows = prepared_rows()
    rows.features[3] *= 10
    with pytest.raises(InvalidInput, match="rows of l2 norm <= 1"):
        logistic_regression.build(streams, 2, prepared=rows, records=10, ridge=0.1)
