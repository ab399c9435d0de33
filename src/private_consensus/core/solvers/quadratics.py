r"""Batched minimisation of quadratics plus an absolute value; noise may make them indefinite.

.. math:: \min_w\; w^T M w + b^T w + |g^T w|

The absolute value is handled exactly: :math:`|a| = \max_{-1 \le t \le 1} t a`. For a fixed t, the
minimiser is :math:`w(t)`, and :math:`g^T w(t)` decreases in t if M is positive definite on the
retained directions. Either the sign of :math:`g^T w(\pm 1)` agrees with t, or the minimiser lies
on :math:`g^T w = 0` for a t between -1 and 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from private_consensus.common.errors import arguments

REPAIRS = ("ridge", "trim", "ball", "literal")
BISECTIONS = 60


class Solution(NamedTuple):
    """Minimisers of a batch of quadratics, with indicators of the repair of M.

    Attributes
    ----------
    w : ndarray, shape (..., d)
        Minimisers.
    repaired : ndarray, shape (...)
        1 if M had an eigenvalue <= 0, else 0.
    dropped : ndarray, shape (...)
        Fraction of the eigenvectors of M along which w is 0.
    """

    w: np.ndarray
    repaired: np.ndarray
    dropped: np.ndarray


def minimise(
    matrix: np.ndarray,
    linear: np.ndarray,
    absolute: np.ndarray,
    *,
    repair: str = "ridge",
    ridge: np.ndarray | float = 0.0,
    radius: np.ndarray | float = np.inf,
) -> Solution:
    r"""Minimise :math:`w^T M w + b^T w + |g^T w|`, with M repaired if it is indefinite.

    Parameters
    ----------
    matrix : ndarray, shape (..., d, d)
        Symmetric M.
    linear, absolute : ndarray, shape (..., d)
        Coefficients b and g; g is zero if the objective has no absolute value.
    repair : {"ridge", "trim", "ball", "literal"}
        Treatment of an indefinite M. ``trim`` sets w to 0 along eigenvectors with eigenvalues
        <= 0. ``ridge`` adds a diagonal, then trims (Zhang et al., PVLDB 2012). ``ball`` sets
        negative eigenvalues to 0 and constrains w to :math:`\|w\|_2 \le R`. ``literal`` returns the
        stationary point, which need not be a minimum.
    ridge : ndarray, broadcastable to (..., d)
        Diagonal that the repair ``ridge`` adds.
    radius : ndarray, broadcastable to (...)
        Radius R of the repair ``ball``.

    Returns
    -------
    Solution
        Minimisers, indicators of repaired matrices, and fractions of dropped directions.
    """
    arguments.choice("algorithm.solver", repair, REPAIRS)
    dim = matrix.shape[-1]
    smallest = np.linalg.eigvalsh(matrix)[..., 0]
    if repair == "ridge":
        diagonal = np.broadcast_to(ridge, linear.shape)
        matrix = matrix + diagonal[..., None] * np.eye(dim)
    values, vectors = np.linalg.eigh(matrix)
    beta, gamma = np.vecmat(linear, vectors), np.vecmat(absolute, vectors)
    if repair == "ball":
        retained = values > 0
        w = _in_ball(np.maximum(values, 0.0), beta, gamma, np.asarray(radius, float))
    else:
        retained = values != 0 if repair == "literal" else values > 0
        inverse = np.divide(1.0, values, out=np.zeros_like(values), where=retained)
        w = _point(inverse, beta, gamma, _multiplier(inverse, beta, gamma))
    dropped = 1.0 - retained.mean(-1)
    return Solution(np.matvec(vectors, w), (smallest <= 0).astype(float), dropped)


def _point(inverse, beta, gamma, t) -> np.ndarray:
    r"""Compute the minimiser :math:`w(t) = -\frac12 \Lambda^{-1} (\beta + t\gamma)` for fixed t."""
    return -0.5 * inverse * (beta + t[..., None] * gamma)


def _multiplier(inverse, beta, gamma) -> np.ndarray:
    """Compute t in [-1, 1], a subgradient of the absolute value at :math:`g^T w(t)`."""
    cross = (inverse * beta * gamma).sum(-1)
    square = (inverse * gamma * gamma).sum(-1)
    between = np.divide(-cross, square, out=np.zeros_like(cross), where=square != 0)
    return np.where(
        cross + square < 0, 1.0, np.where(cross - square > 0, -1.0, np.clip(between, -1, 1))
    )


def _in_ball(values, beta, gamma, radius) -> np.ndarray:
    """Minimise over a ball for eigenvalues >= 0, by nested bisection for t and for the radius."""

    def minimiser(t):
        return _point_in_ball(values, beta + t[..., None] * gamma, radius)

    def slope(t):
        return (gamma * minimiser(t)).sum(-1)

    low, high = np.full(beta.shape[:-1], -1.0), np.ones(beta.shape[:-1])
    low = np.where(slope(high) > 0, 1.0, low)
    high = np.where(slope(-np.ones_like(high)) < 0, -1.0, high)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        positive = slope(middle) > 0
        low, high = np.where(positive, middle, low), np.where(positive, high, middle)
    return minimiser((low + high) / 2)


def _point_in_ball(values, beta, radius) -> np.ndarray:
    r"""Minimise a quadratic over a ball, for eigenvalues >= 0.

    The minimiser is :math:`-\frac12(\Lambda+\mu I)^{-1}\beta` for the smallest feasible
    :math:`\mu`. A number :math:`\mu \ge 0` is feasible if the norm of the result is at most R.
    """

    def point(mu):
        total = values + mu[..., None]
        return np.divide(-0.5 * beta, total, out=np.zeros_like(total), where=total > 0)

    def outside(mu):
        flat = (values + mu[..., None] <= 0) & (beta != 0)
        return (np.linalg.norm(point(mu), axis=-1) > radius) | flat.any(-1)

    low = np.zeros(beta.shape[:-1])
    high = np.linalg.norm(beta, axis=-1) / (2 * radius)
    needed = outside(low)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        too_far = outside(middle)
        low, high = np.where(too_far, middle, low), np.where(too_far, high, middle)
    return point(np.where(needed, high, 0.0))
