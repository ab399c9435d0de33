"""Batched minimisation of smooth, strongly convex functions.

Each problem of a batch stops when its gradient is small, and changes to Newton steps when its
progress is slow. Its solution does not depend on the other problems of the batch.
"""

from collections.abc import Callable

import numpy as np

TOLERANCE = 1e-10
"""l2 norm of the gradient at which a problem counts as solved."""

SLOW = 0.1
"""A problem changes to Newton steps if the gradient norm after a step exceeds this fraction of the
norm before it."""

FAR = 10.0
"""l2 norm of a Newton step above which step lengths longer than the damped one are tried."""

ROUNDING = 64 * np.finfo(float).eps
"""Rounding error of a gradient, relative to the size of the terms of its sum."""


class Unsolved(ArithmeticError):
    """Error of a solver that does not converge within the allowed number of steps."""


def minimise(
    gradient: Callable[[np.ndarray], np.ndarray],
    hessian: Callable[[np.ndarray, np.ndarray], np.ndarray],
    start: np.ndarray,
    *,
    descend: Callable[[np.ndarray], np.ndarray] | None = None,
    magnitude: np.ndarray | float = 0.0,
    tolerance: float = TOLERANCE,
    max_steps: int = 200,
) -> np.ndarray:
    r"""Minimise a batch of functions to a gradient norm of at most ``tolerance``.

    A problem first takes steps with an upper bound P of its Hessian, :math:`G(x) = x -
    P^{-1}\nabla F(x)` with :math:`P \succeq \nabla^2 F`. These steps need no new Hessian. Each step
    is combined with the previous one (Anderson acceleration of depth one):
    :math:`x_{k+1} = G(x_k) - \theta_k (G(x_k) - G(x_{k-1}))`. The number :math:`\theta_k` would
    minimise :math:`\|G(x) - x\|` if this residual were affine.

    If progress is slow, the problem continues with damped Newton steps of length
    :math:`\ln(1+r)/r`, where :math:`r = \|\Delta\|_2` is the norm of the Newton step. They decrease
    a generalised self-concordant function without a line search (Sun, Tran-Dinh, Mathematical
    Programming 2019), and their length tends to 1. The logistic loss of rows of norm at most 1 is
    such a function, with constant 1.

    If :math:`r` exceeds ``FAR``, the step length is the largest s among 1, 1/2, 1/4, ... that
    reduces the gradient norm to at most the fraction :math:`1 - s/2`, but at least the damped
    length.

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
        Map :math:`g \mapsto P^{-1} g`; None: Newton steps from the beginning.
    magnitude : float or ndarray, shape (...)
        Size of the terms of the gradient. Gradient norms below ``ROUNDING`` times this size count
        as zero.
    tolerance : float
        l2 norm of the gradient at which a problem counts as solved.

    Returns
    -------
    ndarray, shape (..., d)

    Raises
    ------
    Unsolved
        If a gradient is still larger, or not finite, after ``max_steps`` steps.
    """
    x = start
    slope = gradient(start)
    size = np.linalg.norm(slope, axis=-1)
    allowed = np.maximum(tolerance, ROUNDING * magnitude)
    uses_newton = np.full(size.shape, descend is None)
    last = None
    for _ in range(max_steps):
        unsolved = size > allowed
        if not unsolved.any():
            break
        next_x = x
        if descend is not None:
            next_x, last = _accelerated(x, -descend(slope), last)
        selected = unsolved & uses_newton
        if selected.any():
            step = np.zeros_like(x)
            solved = np.linalg.solve(hessian(x, selected), slope[selected][..., None])
            step[selected] = solved[..., 0]
            length = _newton_step_length(gradient, x, step, size, selected)
            next_x = np.where(selected[..., None], x - length[..., None] * step, next_x)
        x = np.where(unsolved[..., None], next_x, x)
        slope, previous_size = gradient(x), size
        size = np.linalg.norm(slope, axis=-1)
        uses_newton = uses_newton | (unsolved & (size > SLOW * previous_size))
    if not (size <= allowed).all():
        raise Unsolved(f"gradient norm {np.max(size):.3g} after {max_steps} steps")
    return x


def _accelerated(x, step, last):
    """Return the next iterate of Anderson acceleration, and the pair (x + step, step)."""
    point = x + step
    if last is None:
        return point, (point, step)
    last_point, last_step = last
    change = step - last_step
    squared = (change**2).sum(-1, keepdims=True)
    theta = np.divide(
        (step * change).sum(-1, keepdims=True),
        squared,
        out=np.zeros_like(squared),
        where=squared > np.finfo(float).tiny,
    )
    return point - theta * (point - last_point), (point, step)


def _newton_step_length(gradient, x, step, size, selected):
    """Compute the step length, in (0, 1], of each problem along its Newton step.

    ``size`` is the gradient norm at x. Selected problems with a step above ``FAR`` try longer
    steps than the damped one.
    """
    norm = np.linalg.norm(step, axis=-1)
    damped = np.divide(np.log1p(norm), norm, out=np.ones_like(norm), where=norm > 1e-12)
    searching = selected & (norm > FAR)
    length = np.where(searching, 1.0, damped)
    while searching.any():
        size_after = np.linalg.norm(gradient(x - length[..., None] * step), axis=-1)
        searching = searching & (size_after > (1 - length / 2) * size) & (length > damped)
        length = np.where(searching, np.maximum(length / 2, damped), length)
    return length
