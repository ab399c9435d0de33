r"""Smooth, strongly convex minimisation for a whole batch of small problems at once.

Every problem of the batch goes its own way: it stops when its own gradient is small, and changes
its method when its own progress is slow. So the result of one does not depend on its company.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

TOLERANCE = 1e-10
"""Gradient norm at which a problem counts as solved."""

SLOW = 0.1
"""A step that leaves more than this share of the gradient norm makes a problem go on by Newton."""

FAR = 10.0
"""A Newton step of this norm is looked along for the longest part that pays; damping would take
its logarithm alone."""

ROUNDING = 64 * np.finfo(float).eps
"""A gradient cannot be smaller than this share of the terms that it is the sum of."""


class Unsolved(ArithmeticError):
    """No convergence, or a number that is not finite, within the allowed steps."""


def minimise(
    gradient: Callable[[np.ndarray], np.ndarray],
    hessian: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    *,
    descend: Callable[[np.ndarray], np.ndarray] | None = None,
    hessian_of: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
    magnitude: np.ndarray | float = 0.0,
    tolerance: float = TOLERANCE,
    at_most: int = 200,
) -> np.ndarray:
    r"""Minimisers of a batch of functions, to a gradient norm of at most ``tolerance``.

    A problem first takes the steps of an upper bound of its Hessian, :math:`G(x) = x -
    P^{-1}\nabla F(x)` with :math:`P \succeq \nabla^2 F`, which need no new Hessian, combined with
    the step before (Anderson acceleration of depth one): :math:`x_{k+1} = G(x_k) - \theta_k (G(x_k)
    - G(x_{k-1}))` with the :math:`\theta_k` that would leave least of :math:`G(x) - x` if that were
    affine. Where they are slow, it goes on by damped Newton
    steps of length :math:`\ln(1+r)/r`, :math:`r = \|\Delta\|_2`, which decrease a generalised
    self-concordant function without a line search (Sun, Tran-Dinh, Mathematical Programming 2019;
    the logistic loss of rows of norm at most 1 is one, with constant 1) and become Newton's. Of a
    step with :math:`r` above ``FAR`` they take the longest share 1, 1/2, 1/4, ... that leaves
    at most :math:`1 - share/2` of the gradient norm, of which Newton's direction is one of descent.

    Parameters
    ----------
    gradient, hessian : callable
        Of points ``[..., d]``, to ``[..., d]`` and ``[..., d, d]``.
    start : ndarray, shape (..., d)
    descend : callable, optional
        :math:`g \mapsto P^{-1} g`; none: Newton from the start.
    hessian_of : callable, optional
        Of points ``[..., d]`` and which of them are asked for, to ``[asked, d, d]``: where most
        problems do without Newton, theirs are not computed. None: those that ``hessian`` has.
    magnitude : float or ndarray, shape (...)
        Size of the terms of the gradient; rounding sets a floor of ``ROUNDING`` times it.

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
    hessian_of = hessian_of or (lambda x, asked: hessian(x)[asked])
    steps = _Accelerated(descend)
    for _ in range(at_most):
        waiting = size > enough
        if not waiting.any():
            break
        ahead = steps.next(x, slope)
        asked = waiting & newton
        if asked.any():
            step = np.zeros_like(x)
            step[asked] = np.linalg.solve(hessian_of(x, asked), slope[asked][..., None])[..., 0]
            share = newton_share(gradient, x, step, size, asked)
            ahead = np.where(asked[..., None], x - share[..., None] * step, ahead)
        x = np.where(waiting[..., None], ahead, x)
        slope, before = gradient(x), size
        size = np.linalg.norm(slope, axis=-1)
        newton = newton | (waiting & (size > SLOW * before))
    if not (size <= enough).all():
        raise Unsolved(f"gradient norm {np.max(size):.3g} after {at_most} steps")
    return x


class _Accelerated:
    """Steps of the bound, each combined with the one before."""

    def __init__(self, descend: Callable[[np.ndarray], np.ndarray] | None):
        self.descend = descend
        self.reached = self.moved = None

    def next(self, x: np.ndarray, slope: np.ndarray) -> np.ndarray:
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
    asked: np.ndarray,
) -> np.ndarray:
    r"""What each problem takes of its Newton step :math:`\Delta`: :math:`\ln(1+r)/r` with
    :math:`r = \|\Delta\|_2`, or more where the step is ``FAR`` and it is ``asked``."""
    length = np.linalg.norm(step, axis=-1)
    damped = np.divide(np.log1p(length), length, out=np.ones_like(length), where=length > 1e-12)
    looking = asked & (length > FAR)
    share = np.where(looking, 1.0, damped)
    while looking.any():
        ahead = np.linalg.norm(gradient(x - share[..., None] * step), axis=-1)
        looking = looking & (ahead > (1 - share / 2) * size) & (share > damped)
        share = np.where(looking, np.maximum(share / 2, damped), share)
    return share
