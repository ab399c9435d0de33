"""Batched minimisation of smooth, strongly convex functions.

Each problem stops when its own gradient is small, and changes its method when its own progress is
slow. The solution of a problem therefore does not depend on the other problems of the batch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

TOLERANCE = 1e-10
"""Gradient norm at which a problem counts as solved."""

SLOW = 0.1
"""A problem changes to Newton steps if a step leaves more than this fraction of its gradient."""

FAR = 10.0
"""For Newton steps beyond this norm, longer step lengths are tried, because damping reduces the
norm to its logarithm."""

ROUNDING = 64 * np.finfo(float).eps
"""A gradient cannot be computed below this fraction of the terms of its sum."""


class Unsolved(ArithmeticError):
    """Error raised if the allowed steps end without convergence or in a non-finite number."""


def minimise(
    gradient: Callable[[np.ndarray], np.ndarray],
    hessian: Callable[[np.ndarray, np.ndarray], np.ndarray],
    start: np.ndarray,
    *,
    descend: Callable[[np.ndarray], np.ndarray] | None = None,
    magnitude: np.ndarray | float = 0.0,
    tolerance: float = TOLERANCE,
    at_most: int = 200,
) -> np.ndarray:
    r"""Minimise a batch of functions to a gradient norm of at most ``tolerance``.

    A problem first takes the steps of an upper bound of its Hessian, :math:`G(x) = x -
    P^{-1}\nabla F(x)` with :math:`P \succeq \nabla^2 F`. These steps need no new Hessian. Each is
    combined with the step before (Anderson acceleration of depth one): :math:`x_{k+1} = G(x_k) -
    \theta_k (G(x_k) - G(x_{k-1}))`, with the :math:`\theta_k` that would minimise :math:`\|G(x) -
    x\|` if that were affine.

    If progress is slow, the problem continues with damped Newton steps of length
    :math:`\ln(1+r)/r`, :math:`r = \|\Delta\|_2`. They decrease a generalised self-concordant
    function without a line search (Sun, Tran-Dinh, Mathematical Programming 2019) and become
    Newton's. The logistic loss of rows of norm at most 1 is such a function, with constant 1.

    If :math:`r` exceeds ``FAR``, the step length is the largest s among 1, 1/2, 1/4, ... that
    leaves at most :math:`1 - s/2` of the gradient norm, but at least the damped length. A short
    enough step along Newton's direction decreases this norm.

    Parameters
    ----------
    gradient : callable
        Maps points ``[..., d]`` to gradients ``[..., d]``.
    hessian : callable
        Maps points ``[..., d]`` and a mask ``[...]`` to the Hessians of the selected problems,
        ``[selected, d, d]``.
    start : ndarray, shape (..., d)
        Initial points.
    descend : callable, optional
        :math:`g \mapsto P^{-1} g`; None: Newton steps from the start.
    magnitude : float or ndarray, shape (...)
        Size of the terms of the gradient. Gradient norms below ``ROUNDING`` times this size count
        as zero.
    tolerance : float
        l2 norm of the gradient at which a problem counts as solved.
    at_most : int
        Largest number of steps.

    Returns
    -------
    ndarray, shape (..., d)
        Approximate minimisers.

    Raises
    ------
    Unsolved
        After ``at_most`` steps.
    """
    x = start
    slope = gradient(start)
    size = np.linalg.norm(slope, axis=-1)
    enough = np.maximum(tolerance, ROUNDING * magnitude)
    newton = np.full(size.shape, descend is None)
    steps = _Accelerated(descend)
    for _ in range(at_most):
        waiting = size > enough
        if not waiting.any():
            break
        ahead = steps.next(x, slope)
        selected = waiting & newton
        if selected.any():
            step = np.zeros_like(x)
            step[selected] = np.linalg.solve(hessian(x, selected), slope[selected][..., None])[
                ..., 0
            ]
            share = newton_share(gradient, x, step, size, selected)
            ahead = np.where(selected[..., None], x - share[..., None] * step, ahead)
        x = np.where(waiting[..., None], ahead, x)
        slope, before = gradient(x), size
        size = np.linalg.norm(slope, axis=-1)
        newton = newton | (waiting & (size > SLOW * before))
    if not (size <= enough).all():
        raise Unsolved(f"gradient norm {np.max(size):.3g} after {at_most} steps")
    return x


class _Accelerated:
    """Steps of the Hessian bound with Anderson acceleration of depth one."""

    def __init__(self, descend: Callable[[np.ndarray], np.ndarray] | None):
        self.descend = descend
        self.reached = self.moved = None

    def next(self, x: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """Compute the next iterate.

        Parameters
        ----------
        x : ndarray, shape (..., d)
            Current points.
        slope : ndarray, shape (..., d)
            Gradients at ``x``.

        Returns
        -------
        ndarray, shape (..., d)
            Next points; ``x`` itself without a Hessian bound.
        """
        if self.descend is None:
            return x
        moved = -self.descend(slope)
        reached = x + moved
        ahead = reached
        if self.moved is not None:
            change = moved - self.moved
            squared = (change**2).sum(-1, keepdims=True)
            share = np.divide(
                (moved * change).sum(-1, keepdims=True),
                squared,
                out=np.zeros_like(squared),
                where=squared > np.finfo(float).tiny,
            )
            ahead = reached - share * (reached - self.reached)
        self.reached, self.moved = reached, moved
        return ahead


def newton_share(
    gradient: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    step: np.ndarray,
    size: np.ndarray,
    selected: np.ndarray,
) -> np.ndarray:
    r"""Compute the step length of each problem along its Newton step :math:`\Delta`.

    It is :math:`\ln(1+r)/r` with :math:`r = \|\Delta\|_2`. A selected problem with r above ``FAR``
    may take a longer step.

    Parameters
    ----------
    gradient : callable
        Maps points ``[..., d]`` to gradients ``[..., d]``.
    x, step : ndarray, shape (..., d)
        Current points and their Newton steps.
    size : ndarray, shape (...)
        l2 norms of the gradients at ``x``.
    selected : ndarray of bool, shape (...)
        Problems for which longer steps are tried.

    Returns
    -------
    ndarray, shape (...)
        Step lengths in (0, 1].
    """
    length = np.linalg.norm(step, axis=-1)
    damped = np.divide(np.log1p(length), length, out=np.ones_like(length), where=length > 1e-12)
    looking = selected & (length > FAR)
    share = np.where(looking, 1.0, damped)
    while looking.any():
        ahead = np.linalg.norm(gradient(x - share[..., None] * step), axis=-1)
        looking = looking & (ahead > (1 - share / 2) * size) & (share > damped)
        share = np.where(looking, np.maximum(share / 2, damped), share)
    return share
