"""What is measured of models: losses and errors on own and on test records, distances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base import consensus_error

SOLVER_ERROR = 1e-9
"""Distance to the optimum below which it is not known."""


def excess(problem: Any, estimate: np.ndarray) -> np.ndarray:
    r""":math:`(f(\hat x) - f(x^*)) / N`, a record's share; estimates (..., dim)."""
    everywhere = np.broadcast_to(
        estimate[..., None, :], (*estimate.shape[:-1], problem.n_agents, problem.dim)
    )
    star = problem.optimum[..., None, :]
    best = problem.objective(
        np.broadcast_to(star, (*star.shape[:-2], problem.n_agents, problem.dim))
    ).sum(-1)
    return (problem.objective(everywhere).sum(-1) - best) / (
        problem.n_agents * problem.records * problem.weight
    )


def misclassified(problem: Any, estimate: np.ndarray) -> np.ndarray:
    """Share of test rows on the wrong side; margin 0 predicts the negative class."""
    if problem.test_features.ndim == 2:
        positive = estimate @ problem.test_features.T > 0
    else:
        positive = np.matvec(problem.test_features, estimate) > 0
    return (positive != (problem.test_labels > 0)).mean(-1)


def log_distance(problem: Any, x: np.ndarray) -> np.ndarray:
    r"""Mean over agents of :math:`\ln(\|x_i - x^*\|_2 / d)` (paper 001, Appendix E)."""
    distance = np.linalg.norm(x - problem.optimum[..., None, :], axis=-1)
    return np.log(np.maximum(distance, SOLVER_ERROR) / problem.dim).mean(-1)


def squared_distance(problem: Any, x: np.ndarray) -> np.ndarray:
    r""":math:`\frac1N\sum_i\|x_i - x^*\|_2^2` (paper 004, Theorems 12 and 16)."""
    return ((x - problem.optimum[..., None, :]) ** 2).sum(-1).mean(-1)


def own_loss(problem: Any, x: np.ndarray) -> np.ndarray:
    """Mean over agents of :math:`\\frac1{|D_i|}\\sum\\ln(1+e^{-m})`: no weight, no ridge."""
    return problem.clipped_loss_of(x, np.inf, np.ones(x.shape[:-1], bool)).mean(-1)


def own_error(problem: Any, x: np.ndarray) -> np.ndarray:
    """Mean over agents of the share of its own records that its own model gets wrong."""
    return problem.own_errors(x).sum(-1) / math.prod(problem.labels.shape[-2:])


def own_test_error(problem: Any, x: np.ndarray) -> np.ndarray:
    """Mean over agents of the share of test rows that an agent's own model gets wrong."""
    rows = np.swapaxes(problem.test_features, -1, -2)
    if rows.ndim == 2:
        margins = x @ rows
    else:  # all settings and agents of a run at once
        runs = np.moveaxis(x, -3, 0)
        margins = runs.reshape(len(runs), -1, problem.dim) @ rows
        margins = np.moveaxis(margins.reshape(*runs.shape[:-1], -1), 0, -3)
    positive = problem.test_labels > 0
    return ((margins > 0) != (positive[..., None, :] if positive.ndim > 1 else positive)).mean(
        (-1, -2)
    )


def _majority(labels: np.ndarray, axes: int, x: np.ndarray) -> np.ndarray:
    """Share of the more frequent label, whatever the model x [..., agents, dim]; shape [...]."""
    positive = (labels > 0).mean(tuple(range(-axes, 0)))
    return np.broadcast_to(np.maximum(positive, 1.0 - positive), x.shape[:-2])


METRICS = {
    "own_loss": own_loss,
    "own_train_error": own_error,
    "own_train_accuracy": lambda problem, x: 1.0 - own_error(problem, x),
    "own_test_error": own_test_error,
    "own_test_accuracy": lambda problem, x: 1.0 - own_test_error(problem, x),
    "majority_train_accuracy": lambda problem, x: _majority(problem.labels, 2, x),
    "majority_test_accuracy": lambda problem, x: _majority(problem.test_labels, 1, x),
    "majority_test_error": lambda problem, x: 1.0 - _majority(problem.test_labels, 1, x),
    "log_distance": log_distance,
    "origin_log_distance": lambda problem, x: log_distance(problem, np.zeros_like(x)),
    "squared_distance": squared_distance,
    "test_error": lambda problem, x: misclassified(problem, x.mean(-2)),
    "excess_loss": lambda problem, x: excess(problem, x.mean(-2)),
    "consensus_error": consensus_error,
}
