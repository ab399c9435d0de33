r"""Minima of logistic losses plus quadratics, many over the same records, eight at a time.

.. math:: \min_x\; w\sum_j \ln\bigl(1 + e^{-z_j^Tx}\bigr) + \tfrac{D}2\|x\|_2^2 + b^Tx

with D and b of each problem and the signed rows :math:`z_j` of all. Quasi-Newton steps with limited
memory (Nocedal, Mathematics of Computation 1980), whose first matrix is the bound of the Hessian
scaled by the share of it that the problem's own margins leave,

.. math:: H_0^{-1} = \theta\,\tfrac w4 Z^TZ + D I,
    \qquad \theta = \tfrac4N\sum_j \sigma_j(1-\sigma_j), \quad \sigma_j = \frac1{1+e^{z_j^Tx}}

One factorisation of :math:`Z^TZ` serves all problems. A step is shortened where the slope at its
end is more than half as steep upwards as it was downwards at its beginning; the loss is convex, so
slopes say all. A problem that is solved leaves its lane to the next one, and what a lane computes
depends on no other: results are the same bytes in any company. Zeros of the rows cost nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .compiling import compiled_strictly
from .lanes import (
    LANES,
    add_column,
    add_product,
    add_row,
    bits_double,
    choose,
    dot_row,
    double_bits,
)

MEMORY = 10
"""Steps that the Hessian's estimate remembers."""

AT_MOST = 500
"""Gradients that one problem may take."""

CHUNK = 64
"""Records whose margins are kept in the innermost cache."""

STEEPEST = 0.5
SHORTEST = 0.1
"""What a step is shortened to at the least, at once."""

_LARGEST = 700.0
_PER_LN2, _LN2_HIGH, _LN2_LOW = (
    1.4426950408889634,
    6.93147180369123816490e-01,
    1.90821492927058770e-10,
)
_ROUND, _MANTISSA = 6755399441055744.0, np.int64(52)
_E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10, _E11, _E12, _E13 = (
    1.0 / math.factorial(k) for k in range(2, 14)
)


class Rows(NamedTuple):
    """Signed records without their zeros: row j is ``values[begin[j]:begin[j+1]]`` at ``columns``,
    which count lanes."""

    begin: np.ndarray
    columns: np.ndarray
    values: np.ndarray


class Bound(NamedTuple):
    r""":math:`\frac w4 Z^TZ = V \Lambda V^T`: eigenvalues [d], V and its transpose [d, d], flat."""

    eigenvalues: np.ndarray
    vectors: np.ndarray
    transposed: np.ndarray


class _Walk(NamedTuple):
    """In lanes: where each problem is, its gradient, the same at the step's beginning, the step,
    linear terms, room; D, length of the step, slope at its beginning."""

    x: np.ndarray
    gradient: np.ndarray
    x_before: np.ndarray
    gradient_before: np.ndarray
    step: np.ndarray
    linear: np.ndarray
    room: np.ndarray
    curvature: np.ndarray
    length: np.ndarray
    slope: np.ndarray


class _Memory(NamedTuple):
    """In lanes: moves and changes of the gradient [MEMORY, d], one over their product; room."""

    moved: np.ndarray
    changed: np.ndarray
    inverse: np.ndarray
    weight: np.ndarray


def rows(signed: np.ndarray) -> Rows:
    """Of one agent's signed records [N, d]."""
    row, column = np.nonzero(signed)
    begin = np.zeros(len(signed) + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=len(signed)), out=begin[1:])
    return Rows(begin, (LANES * column).astype(np.uint32), signed[row, column])


def bound(eigenvalues: np.ndarray, vectors: np.ndarray) -> Bound:
    """Of eigenvalues [d] and the matrix of eigenvectors [d, d]."""
    return Bound(np.array(eigenvalues), vectors.ravel(), vectors.T.ravel())


def minimise(
    rows: Rows,
    weight: float,
    bound: Bound,
    curvature: np.ndarray,
    linear: np.ndarray,
    start: np.ndarray,
    tolerance: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Minimisers [problems, d], each to its own gradient norm, and gradients taken; 0: unsolved.

    Parameters
    ----------
    rows, weight, bound
        The records of all problems, w and the bound of their Hessian.
    curvature, tolerance : ndarray, shape (problems,)
        D, and the gradient norm to reach.
    linear, start : ndarray, shape (problems, d)
    """
    found = np.empty(start.shape)
    taken = np.zeros(len(start), np.int64)
    given = (np.ascontiguousarray(a, float) for a in (curvature, linear, start, tolerance))
    _minimise(rows, float(weight), bound, *given, found, taken)
    return found, taken


@compiled_strictly
def _fall(margins, shares):
    r""":math:`1/(1+e^m)`: m = n ln 2 + r, and a polynomial for :math:`e^r`."""
    for i in range(margins.size):
        m = max(min(margins[i], _LARGEST), -_LARGEST)
        t = m * _PER_LN2 + _ROUND
        n = t - _ROUND
        r = (m - n * _LN2_HIGH) - n * _LN2_LOW
        p = _E12 + r * _E13
        p = _E11 + r * p
        p = _E10 + r * p
        p = _E9 + r * p
        p = _E8 + r * p
        p = _E7 + r * p
        p = _E6 + r * p
        p = _E5 + r * p
        p = _E4 + r * p
        p = _E3 + r * p
        p = _E2 + r * p
        p = 1.0 + (r + r * r * p)
        # The low bits of t are the integer n; it moves into the exponent.
        grown = bits_double(double_bits(p) + (double_bits(t) << _MANTISSA))
        shares[i] = 1.0 / (1.0 + grown)


@compiled_strictly
def _sum_shares(rows, x, total, squares, margins, shares, one):
    """``total = sum_j sigma_j z_j``, ``squares`` the sums of sigma_j and of its square."""
    records = rows.begin.size - 1
    total[:] = 0.0
    squares[:] = 0.0
    for first in range(0, records, CHUNK):
        last = min(first + CHUNK, records)
        for j in range(first, last):
            begin = rows.begin[j]
            count = rows.begin[j + 1] - begin
            dot_row(margins, (j - first) * LANES, x, rows.columns, rows.values, begin, count)
        _fall(margins[: (last - first) * LANES], shares)
        for j in range(first, last):
            begin, at = rows.begin[j], (j - first) * LANES
            count = rows.begin[j + 1] - begin
            add_row(total, rows.columns, rows.values, begin, count, shares, at)
            add_product(squares, 0, shares, at, one, 0)
            add_product(squares, LANES, shares, at, shares, at)


@compiled_strictly
def _inner(out, a, at_a, b, at_b):
    """Inner products of ``b`` with the stretch of ``a`` of equal length, a lane each."""
    out[:] = 0.0
    for k in range(0, b.size - at_b, LANES):
        if k >= a.size - at_a:
            break
        add_product(out, 0, a, at_a + k, b, at_b + k)


@compiled_strictly
def _gradients(walk, negative, one):
    """From the sum over the records in ``room``."""
    for k in range(0, walk.x.size, LANES):
        choose(walk.gradient, k, one, walk.linear, k, walk.linear, k)
        add_product(walk.gradient, k, walk.curvature, 0, walk.x, k)
        add_product(walk.gradient, k, negative, 0, walk.room, k)


@compiled_strictly
def _enter(walk, lane, curvature, linear, start):
    """A problem begins in a lane."""
    walk.curvature[lane] = curvature
    for k in range(start.size):
        i = k * LANES + lane
        walk.x[i] = start[k]
        walk.x_before[i] = start[k]
        walk.linear[i] = linear[k]


@compiled_strictly
def _leave(walk, memory, lane):
    """Nothing is left of a problem in its lane."""
    walk.length[lane] = 0.0
    for i in range(lane, walk.x.size, LANES):
        walk.x[i] = 0.0
        walk.x_before[i] = 0.0
        walk.linear[i] = 0.0
        walk.gradient[i] = 0.0
        walk.gradient_before[i] = 0.0
        walk.step[i] = 0.0
    for i in range(lane, memory.moved.size, LANES):
        memory.moved[i] = 0.0
        memory.changed[i] = 0.0
    for i in range(lane, memory.inverse.size, LANES):
        memory.inverse[i] = 0.0


@compiled_strictly
def _remember(walk, memory, place, kept, known, one, minus, product):
    """The step that ends here, in the lanes where one was kept; it becomes the step's beginning."""
    size = walk.x.size
    for k in range(0, size, LANES):
        i = place * size + k
        choose(memory.moved, i, one, walk.x, k, walk.x, k)
        add_product(memory.moved, i, minus, 0, walk.x_before, k)
        choose(memory.changed, i, one, walk.gradient, k, walk.gradient, k)
        add_product(memory.changed, i, minus, 0, walk.gradient_before, k)
        choose(walk.x_before, k, kept, walk.x, k, walk.x_before, k)
        choose(walk.gradient_before, k, kept, walk.gradient, k, walk.gradient_before, k)
    product[:] = 0.0
    for k in range(place * size, (place + 1) * size, LANES):
        add_product(product, 0, memory.moved, k, memory.changed, k)
    for lane in range(LANES):
        used = known[lane] > 0.0 and product[lane] > 0.0
        memory.inverse[place * LANES + lane] = 1.0 / product[lane] if used else 0.0


@compiled_strictly
def _precondition(walk, bound, share, turned):
    r"""``room`` times :math:`V(\theta\Lambda + D)^{-1}V^T`."""
    dim = bound.eigenvalues.size
    turned[:] = 0.0
    for k in range(dim):
        add_column(turned, bound.vectors, k * dim, dim, walk.room, k * LANES)
    for k in range(dim):
        for lane in range(LANES):
            turned[k * LANES + lane] /= share[lane] * bound.eigenvalues[k] + walk.curvature[lane]
    walk.room[:] = 0.0
    for k in range(dim):
        add_column(walk.room, bound.transposed, k * dim, dim, turned, k * LANES)


@compiled_strictly
def _descend(walk, memory, bound, place, share, turned, product):
    """Minus the direction, in ``room``: the recursion of two loops over what is remembered."""
    size = walk.x.size
    walk.room[:] = walk.gradient
    for back in range(MEMORY):
        j = (place - back) % MEMORY
        _inner(product, memory.moved, j * size, walk.room, 0)
        for lane in range(LANES):
            product[lane] *= memory.inverse[j * LANES + lane]
            memory.weight[j * LANES + lane] = product[lane]
            product[lane] = -product[lane]
        for k in range(0, size, LANES):
            add_product(walk.room, k, product, 0, memory.changed, j * size + k)
    _precondition(walk, bound, share, turned)
    for ahead in range(1, MEMORY + 1):
        j = (place + ahead) % MEMORY
        _inner(product, memory.changed, j * size, walk.room, 0)
        for lane in range(LANES):
            at = j * LANES + lane
            product[lane] = memory.weight[at] - memory.inverse[at] * product[lane]
        for k in range(0, size, LANES):
            add_product(walk.room, k, product, 0, memory.moved, j * size + k)


@compiled_strictly
def _move(walk, kept, one, product):
    """New steps where the last was kept; all lanes go to the ends of theirs."""
    size = walk.x.size
    for i in range(size):
        walk.room[i] = -walk.room[i]
    _inner(product, walk.gradient, 0, walk.room, 0)
    for lane in range(LANES):
        if kept[lane] > 0.0:
            walk.slope[lane] = product[lane]
            walk.length[lane] = 1.0
    for k in range(0, size, LANES):
        choose(walk.step, k, kept, walk.room, k, walk.step, k)
        choose(walk.x, k, one, walk.x_before, k, walk.x_before, k)
        add_product(walk.x, k, walk.length, 0, walk.step, k)


@compiled_strictly
def _minimise(rows, weight, bound, curvature, linear, start, tolerance, found, taken):
    problems, dim = start.shape
    size, records = dim * LANES, rows.begin.size - 1
    walk = _Walk(
        np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size),
        np.zeros(size), np.zeros(size), np.ones(LANES), np.zeros(LANES), np.zeros(LANES),
    )  # fmt: skip
    memory = _Memory(
        np.zeros(MEMORY * size), np.zeros(MEMORY * size), np.zeros(MEMORY * LANES),
        np.zeros(MEMORY * LANES),
    )  # fmt: skip
    margins, shares, turned = np.zeros(CHUNK * LANES), np.zeros(CHUNK * LANES), np.zeros(size)
    one, minus, negative = np.ones(LANES), -np.ones(LANES), np.full(LANES, -weight)
    squares, steepness, ahead = np.zeros(2 * LANES), np.zeros(LANES), np.zeros(LANES)
    kept, known, share = np.zeros(LANES), np.zeros(LANES), np.zeros(LANES)
    inhabitant, gradients = np.full(LANES, -1), np.zeros(LANES, np.int64)
    waiting = active = 0
    for lane in range(min(LANES, problems)):
        _enter(walk, lane, curvature[waiting], linear[waiting], start[waiting])
        inhabitant[lane] = waiting
        waiting += 1
        active += 1
    iteration = 0
    while active > 0:
        _sum_shares(rows, walk.x, walk.room, squares, margins, shares, one)
        _gradients(walk, negative, one)
        _inner(steepness, walk.gradient, 0, walk.gradient, 0)
        _inner(ahead, walk.gradient, 0, walk.step, 0)
        for lane in range(LANES):
            kept[lane] = known[lane] = 0.0
            share[lane] = max(4.0 * (squares[lane] - squares[LANES + lane]) / records, 1e-12)
            i = inhabitant[lane]
            if i < 0:
                continue
            gradients[lane] += 1
            solved = np.sqrt(steepness[lane]) <= tolerance[i]
            if solved or gradients[lane] > AT_MOST or not np.isfinite(steepness[lane]):
                taken[i] = gradients[lane] if solved else 0
                found[i] = walk.x[lane::LANES]
                _leave(walk, memory, lane)
                gradients[lane] = 0
                inhabitant[lane] = -1
                active -= 1
                if waiting < problems:
                    _enter(walk, lane, curvature[waiting], linear[waiting], start[waiting])
                    inhabitant[lane] = waiting
                    waiting += 1
                    active += 1
            elif gradients[lane] == 1:
                kept[lane] = 1.0
            elif ahead[lane] > -STEEPEST * walk.slope[lane]:
                shorter = walk.slope[lane] / (walk.slope[lane] - ahead[lane])
                walk.length[lane] *= max(SHORTEST, shorter)
            else:
                kept[lane] = known[lane] = 1.0
        place = iteration % MEMORY
        _remember(walk, memory, place, kept, known, one, minus, ahead)
        _descend(walk, memory, bound, place, share, turned, ahead)
        _move(walk, kept, one, ahead)
        iteration += 1
