"""Metrics of models: losses and errors on local and on test records, and distances."""

import math
from typing import Any

import numpy as np

from ..base import consensus_error

SOLVER_ERROR = 1e-9
"""Numerical error of the optimum, below which distances to it are not resolved."""


def excess(problem: Any, estimate: np.ndarray) -> np.ndarray:
    r"""Compute the excess loss per record, :math:`(f(\hat x) - f(x^*)) / N`."""
    same_model = np.broadcast_to(
        estimate[..., None, :], (*estimate.shape[:-1], problem.n_agents, problem.dim)
    )
    optimum = problem.optimum[..., None, :]
    optimal_loss = problem.objective(
        np.broadcast_to(optimum, (*optimum.shape[:-2], problem.n_agents, problem.dim))
    ).sum(-1)
    return (problem.objective(same_model).sum(-1) - optimal_loss) / (
        problem.record_counts.sum() * problem.weight
    )


def misclassified(problem: Any, estimate: np.ndarray) -> np.ndarray:
    """Compute the fraction of misclassified test records; margin 0 predicts the negative class."""
    if problem.test_features.ndim == 2:
        positive = estimate @ problem.test_features.T > 0
    else:
        positive = np.matvec(problem.test_features, estimate) > 0
    return (positive != (problem.test_labels > 0)).mean(-1)


def log_distance(problem: Any, x: np.ndarray) -> np.ndarray:
    r"""Compute the mean of :math:`\ln(\|x_i - x^*\|_2 / d)` (Xiao et al., Appendix E)."""
    distance = np.linalg.norm(x - problem.optimum[..., None, :], axis=-1)
    return np.log(np.maximum(distance, SOLVER_ERROR) / problem.dim).mean(-1)


def squared_distance(problem: Any, x: np.ndarray) -> np.ndarray:
    """Compute the mean over agents of the squared distance to the optimum.

    It is the error in Ding, Theorems 12 and 16.
    """
    return ((x - problem.optimum[..., None, :]) ** 2).sum(-1).mean(-1)


def local_loss(problem: Any, x: np.ndarray) -> np.ndarray:
    r"""Compute the mean over agents of the local loss, without weight and ridge.

    The local loss is :math:`\frac1{|D_i|}\sum\ln(1+e^{-m})`.
    """
    losses = problem.clipped_loss(x, np.inf, np.ones(x.shape[:-1], bool))
    if problem.sizes is None:
        return losses.mean(-1)
    padding = (problem.records - problem.sizes) * math.log(2.0)  # of zero rows
    return ((losses * problem.records - padding) / problem.sizes).mean(-1)


def local_error(problem: Any, x: np.ndarray) -> np.ndarray:
    """Compute the fraction of all local records that their agent's model misclassifies."""
    return problem.local_error_counts(x).sum(-1) / problem.record_counts.sum()


def local_test_error(problem: Any, x: np.ndarray) -> np.ndarray:
    """Compute the mean over agents of the local model's error on the test rows."""
    rows = np.swapaxes(problem.test_features, -1, -2)
    if rows.ndim == 2:
        margins = x @ rows
    else:  # all settings and agents of a run together
        runs = np.moveaxis(x, -3, 0)
        margins = runs.reshape(len(runs), -1, problem.dim) @ rows
        margins = np.moveaxis(margins.reshape(*runs.shape[:-1], -1), 0, -3)
    positive = problem.test_labels > 0
    return ((margins > 0) != (positive[..., None, :] if positive.ndim > 1 else positive)).mean(
        (-1, -2)
    )


def _train_majority_fraction(problem: Any, x: np.ndarray) -> np.ndarray:
    """Compute the fraction of the more frequent label among all local records."""
    positive = (problem.labels > 0).sum((-1, -2)) / problem.record_counts.sum()
    return np.broadcast_to(np.maximum(positive, 1.0 - positive), x.shape[:-2])


def _test_majority_fraction(problem: Any, x: np.ndarray) -> np.ndarray:
    """Compute the fraction of the more frequent label among the test records."""
    positive = (problem.test_labels > 0).mean(-1)
    return np.broadcast_to(np.maximum(positive, 1.0 - positive), x.shape[:-2])


METRICS = {
    "own_loss": local_loss,
    "own_train_error": local_error,
    "own_train_accuracy": lambda problem, x: 1.0 - local_error(problem, x),
    "own_test_error": local_test_error,
    "own_test_accuracy": lambda problem, x: 1.0 - local_test_error(problem, x),
    "majority_train_accuracy": _train_majority_fraction,
    "majority_test_accuracy": _test_majority_fraction,
    "majority_test_error": lambda problem, x: 1.0 - _test_majority_fraction(problem, x),
    "log_distance": log_distance,
    "origin_log_distance": lambda problem, x: log_distance(problem, np.zeros_like(x)),
    "squared_distance": squared_distance,
    "test_error": lambda problem, x: misclassified(problem, x.mean(-2)),
    "excess_loss": lambda problem, x: excess(problem, x.mean(-2)),
    "consensus_error": consensus_error,
}
