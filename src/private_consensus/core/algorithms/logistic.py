"""Logistic regression without privacy and without fairness (Ding, section 6.3.1: LR)."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from private_consensus.privacy.mechanisms import Exact

from ..parameters import Positive
from ..solvers import minimise
from .base import Algorithm, Iterates

CHUNK = 4096
"""Number of rows per block of second derivatives."""


@dataclass(frozen=True, kw_only=True)
class Logistic(Algorithm):
    r"""Logistic regression without privacy and without fairness.

    .. math:: \min_w \sum_i \bigl[\ln(1 + e^{x_i^T w}) - y_i\, x_i^T w\bigr] +
        \tfrac{\lambda}{2}\|w\|_2^2 \quad (97)

    With linearly dependent columns, such as indicator columns, the minimiser without the ridge is
    not unique. The small :math:`\lambda` selects one.

    Parameters
    ----------
    ridge : float
        Coefficient :math:`\lambda > 0` of the ridge.
    """

    ridge: Positive = 1e-2

    source = "Ding, eq. (97) and section 6.3.1"
    needs = ("features", "labels", "in_training")

    def mechanisms(self, problem, network, horizon):
        return {"coefficients": Exact()}

    def step(self, state, problem, network, release, t):
        ridges = np.atleast_1d(self.ridge)
        coefficients = np.stack([fit(problem, float(ridge)) for ridge in ridges])
        return Iterates(release("coefficients", coefficients[..., None, :]))


ALGORITHM = Logistic


def fit(problem, ridge: float) -> np.ndarray:
    r"""Compute the minimisers of (97), [runs, d], on the training rows of each run.

    All runs start from the minimiser for all rows and use the Hessian at this point in all steps.
    ``ridge`` is the coefficient :math:`\lambda > 0`.
    """
    rows, dim = problem.features.shape
    centre, curvature_of_all_rows, magnitude = _of_all_rows(problem, ridge)
    # The training rows are a sample of all rows: their Hessian is about this fraction.
    curvature = problem.records / rows * curvature_of_all_rows
    start = np.repeat(centre, len(problem.test), axis=0)
    mask = problem.in_training()
    return minimise(
        lambda w: _gradient(problem, mask, ridge, w),
        lambda w, selected: np.broadcast_to(curvature, (*w.shape, dim))[selected],
        start,
        descend=lambda slope: np.linalg.solve(curvature, slope.T).T,
        magnitude=magnitude,
    )


def _of_all_rows(problem, ridge: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the minimiser for all rows, the Hessian at it, and the sum of absolute features."""
    rows, dim = problem.features.shape
    all_rows = np.ones((rows, 1))
    magnitude = float(np.abs(problem.features).sum())
    centre = minimise(
        lambda w: _gradient(problem, all_rows, ridge, w),
        lambda w, selected: _hessian(problem, all_rows, ridge, w)[selected],
        np.zeros((1, dim)),
        magnitude=magnitude,
    )
    return centre, _hessian(problem, all_rows, ridge, centre)[0], magnitude


def _gradient(problem, mask, ridge, w) -> np.ndarray:
    """Compute the gradient at w [runs, d], with the row weights ``mask`` [rows, runs]."""
    x, y = problem.features, problem.labels
    residual = x @ w.T
    expit(residual, out=residual)
    residual -= y[:, None]
    residual *= mask
    return residual.T @ x + ridge * w


def _hessian(problem, mask, ridge, w) -> np.ndarray:
    x = problem.features
    total = np.zeros((len(w), x.shape[1], x.shape[1])) + ridge * np.eye(x.shape[1])
    for first in range(0, len(x), CHUNK):
        rows = x[first : first + CHUNK]
        margin = rows @ w.T
        weight = mask[first : first + CHUNK] * expit(margin) * expit(-margin)
        total += (rows.T * weight.T[:, None, :]) @ rows
    return total
