r"""Batched minimisation of quadratics plus an absolute value; noise may make them indefinite.

.. math:: \min_w\; w^T M w + b^T w + |g^T w|

The absolute value is handled exactly: :math:`|a| = \max_{-1 \le t \le 1} t a`. For a fixed t, the
minimiser is :math:`w(t)`, and :math:`g^T w(t)` decreases in t if M is positive definite on the
retained directions. Either the sign of :math:`g^T w(\pm 1)` agrees with t, or the minimiser lies
on :math:`g^T w = 0` for a t between -1 and 1.
"""

import numpy as np


def minimise(
    matrix: np.ndarray,
    linear: np.ndarray,
    absolute: np.ndarray,
    *,
    ridge: np.ndarray | float = 0.0,
) -> np.ndarray:
    r"""Minimise :math:`w^T M w + b^T w + |g^T w|`, with M repaired if it is indefinite.

    A diagonal is added to M. Then w is 0 along eigenvectors with eigenvalues <= 0 (Zhang et al.,
    PVLDB 2012).

    Parameters
    ----------
    matrix : ndarray, shape (..., d, d)
        Symmetric M.
    linear, absolute : ndarray, shape (..., d)
        Coefficients b and g; g is zero if the objective has no absolute value.
    ridge : ndarray, broadcastable to (..., d)
        Added diagonal.

    Returns
    -------
    ndarray, shape (..., d)
        Minimisers w.
    """
    diagonal = np.broadcast_to(ridge, linear.shape)
    values, vectors = np.linalg.eigh(matrix + diagonal[..., None] * np.eye(matrix.shape[-1]))
    beta, gamma = np.vecmat(linear, vectors), np.vecmat(absolute, vectors)
    retained = values > 0
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=retained)
    t = _multiplier(inverse, beta, gamma)
    # For a fixed t, the objective is a quadratic.
    return np.matvec(vectors, -0.5 * inverse * (beta + t[..., None] * gamma))


def _multiplier(inverse, beta, gamma) -> np.ndarray:
    """Compute t in [-1, 1], a subgradient of the absolute value at :math:`g^T w(t)`."""
    cross = (inverse * beta * gamma).sum(-1)
    square = (inverse * gamma * gamma).sum(-1)
    between = np.divide(-cross, square, out=np.zeros_like(cross), where=square != 0)
    return np.where(
        cross + square < 0, 1.0, np.where(cross - square > 0, -1.0, np.clip(between, -1, 1))
    )
