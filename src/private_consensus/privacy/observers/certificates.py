r"""Information of a view with a rigorous bound on its rounding errors.

For a view :math:`o = A p + B z` with :math:`C = B B^T` positive definite, :math:`\Lambda` near
:math:`C^{-1}A` and :math:`R = A - C\Lambda`,

.. math:: M = A^T C^{-1} A = A^T\Lambda + \Lambda^T R + R^T C^{-1} R,

so that :math:`A^T\Lambda` is M up to :math:`\|\Lambda\|\|R\| + \|R\|^2/\lambda_{\min}(C)`. It
contains both certificates: :math:`\Lambda` is a linear combination of the observations (a lower
bound), and :math:`B^T\Lambda` a shift of the unknown noise that misses the change by R. A further
shift of at most :math:`\|R\|/\sqrt{\lambda_{\min}(C)}` corrects it (an upper bound). R and the
smallest eigenvalue are bounded with all rounding errors, those of C itself included; no singular
value is ever dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from .linear_view import LinearView, gamma

MAX_RELATIVE_RADIUS = 1e-8
"""Largest radius, relative to the trace, at which a floating-point result is accepted."""
_INVERSE_ITERATIONS = 6
_TRIALS = (0.5, 0.1, 0.01)
"""Fractions of the estimated smallest eigenvalue that are tested as its lower bound."""

Factor = tuple[np.ndarray, bool]
"""Cholesky factor, and True if it is lower triangular."""


@dataclass(frozen=True, eq=False)
class Information:
    r"""Information matrix of each of several target agents, with a bound on its error.

    Parameters
    ----------
    matrix : ndarray, [victims, k, k]
        Centre of the enclosure.
    radius : ndarray, [victims]
        The true matrix M satisfies :math:`\|M - \text{matrix}\|_2 \le \text{radius}`; infinite
        if no upper bound is known.
    outside : ndarray of bool, [victims, k]
        Changes that no shift of the noise hides: their loss is infinite.
    cap : ndarray, [victims, k, k], optional
        Independent matrix that dominates M.
    """

    matrix: np.ndarray
    radius: np.ndarray
    outside: np.ndarray
    cap: np.ndarray | None = None

    @property
    def is_tight(self) -> bool:
        """True if the radius is small relative to the information of each target agent."""
        size = np.trace(self.matrix, axis1=1, axis2=2)
        return bool((self.radius <= MAX_RELATIVE_RADIUS * size).all())


def certified_information(view: LinearView) -> Information | None:
    """Compute the information in floating point; None if the covariance is not provably definite.

    Parameters
    ----------
    view : LinearView
        With rounding errors bounded by its ``relative_error`` times its magnitudes.
    """
    view = _balanced(view)
    factor = _factor(view.covariance)
    if factor is None:
        return None
    smallest = smallest_eigenvalue(view, factor)
    if smallest <= 0:
        return None
    rows, victims, k = view.response.shape
    a, a_size = (x.reshape(rows, -1) for x in (view.response, view.response_magnitude))
    weights = cho_solve(factor, a, check_finite=False)
    weights += cho_solve(factor, a - view.covariance @ weights, check_finite=False)
    residual = _residual(view, a, a_size, weights)
    shape = (rows, victims, k)
    return _with_radius(view, *(x.reshape(shape) for x in (a, a_size, weights, residual)), smallest)


def _balanced(view: LinearView) -> LinearView:
    """Scale each row of a view by a power of two, so that standard deviations are near 1."""
    spread = np.sqrt(np.diag(view.covariance))
    scale = np.exp2(-np.rint(np.log2(np.where(spread > 0, spread, 1.0))))
    both, rows = np.multiply.outer(scale, scale), scale[:, None, None]
    return replace(
        view,
        covariance=view.covariance * both,
        magnitude=view.magnitude * both,
        response=view.response * rows,
        response_magnitude=view.response_magnitude * rows,
    )


def _residual(
    view: LinearView, a: np.ndarray, a_size: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return a componentwise bound on A - C Lambda, including all rounding errors."""
    rounding = gamma(len(a) + 4) + view.relative_error
    size = view.magnitude @ np.abs(weights) + a_size
    return np.abs(a - view.covariance @ weights) + 2 * rounding * size


def _with_radius(
    view: LinearView,
    a: np.ndarray,
    a_size: np.ndarray,
    weights: np.ndarray,
    residual: np.ndarray,
    smallest: float,
) -> Information:
    matrix = np.einsum("rvs,rvt->vst", a, weights, optimize=True)
    matrix = (matrix + matrix.transpose(0, 2, 1)) / 2
    rounding = gamma(len(a) + 4) + view.relative_error
    norms = [np.sqrt((array**2).sum((0, 2))) for array in (a_size, weights, residual)]
    response, weight, missed = norms
    radius = 2 * rounding * response * weight + weight * missed + missed**2 / smallest
    outside = np.zeros(matrix.shape[:2], dtype=bool)
    return Information(matrix, radius * (1 + 1e-6), outside)


def smallest_eigenvalue(view: LinearView, factor: Factor) -> float:
    r"""Return a lower bound on :math:`\lambda_{\min}(C)`, or 0 if none was found.

    A Cholesky factorisation of :math:`C - cI` that succeeds in floating point proves
    :math:`\lambda_{\min}(C) \ge c - \gamma_{n+1}\,\mathrm{tr}(C)/(1-\gamma_{n+1})` for the matrix
    as stored (Rump, "Verification of positive definiteness", BIT 2006).

    Parameters
    ----------
    view : LinearView
        With covariance C.
    factor : tuple of (ndarray, bool)
        Cholesky factor of C, from which the trial values c are estimated.

    Returns
    -------
    float
    """
    n = len(view.covariance)
    spread = view.relative_error * float(view.magnitude.sum(1).max())
    rounding = 2 * gamma(n + 2) * float(np.trace(view.covariance)) + 2 * spread
    estimate = _estimate(factor, n)
    for fraction in _TRIALS:
        bound = fraction * estimate
        if bound <= rounding:
            return 0.0
        shifted = view.covariance - bound * np.eye(n)
        if _factor(shifted) is not None:
            return bound - rounding
    return 0.0


def _estimate(factor: Factor, n: int) -> float:
    """Estimate the smallest eigenvalue from above by inverse iteration."""
    vector = 1.0 + np.cos(np.arange(n))
    value = np.inf
    for _ in range(_INVERSE_ITERATIONS):
        vector = vector / np.linalg.norm(vector)
        vector = cho_solve(factor, vector, check_finite=False)
        value = 1 / np.linalg.norm(vector)
    return float(value)


def _factor(matrix: np.ndarray) -> Factor | None:
    try:
        return cho_factor(matrix, lower=True, check_finite=False)
    except LinAlgError:
        return None
