"""Logistic regression without privacy and without fairness (Ding, section 6.3.1: LR)."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from private_consensus.privacy.mechanisms import Exact

from ..parameters import Positive
from ..solvers import minimise
from .base import Algorithm, Iterates


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
    magnitude = float(np.abs(problem.features).sum())
    centre = minimise(
        lambda w: _gradient(problem, 1.0, ridge, w),
        lambda w, selected: _hessian(problem, ridge, w)[None],
        np.zeros((1, dim)),
        magnitude=magnitude,
    )
    # The training rows are a sample of all rows: their Hessian is about this fraction.
    curvature = problem.records / rows * _hessian(problem, ridge, centre)
    mask = problem.in_training()
    return minimise(
        lambda w: _gradient(problem, mask, ridge, w),
        lambda w, selected: np.broadcast_to(curvature, (*w.shape, dim))[selected],
        np.repeat(centre, len(problem.test), axis=0),
        descend=lambda slope: np.linalg.solve(curvature, slope.T).T,
        magnitude=magnitude,
    )


def _gradient(problem, mask, ridge, w) -> np.ndarray:
    """Compute the gradient at w [runs, d], with the row weights ``mask``."""
    x, y = problem.features, problem.labels
    residual = x @ w.T
    expit(residual, out=residual)
    residual -= y[:, None]
    residual *= mask
    return residual.T @ x + ridge * w


def _hessian(problem, ridge, w) -> np.ndarray:
    """Compute the Hessian, [d, d], for all rows at one point w [1, d]."""
    x = problem.features
    margin = x @ w[0]
    weight = expit(margin) * expit(-margin)
    return (x.T * weight) @ x + ridge * np.eye(x.shape[1])
