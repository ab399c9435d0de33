"""Batched solvers for small problems that process one problem at a time in registers.

A step of such a problem takes a few dozen operations, and the number of steps differs between
problems. Array operations over all problems would wait for the slowest one, and would access all
memory in every step.
"""

from __future__ import annotations

import numpy as np

from .compiling import AVAILABLE, compiled, inlined
from .entries import require_indices, require_layout
from .vectors import DOUBLE_LANES, aligned, everywhere, greatest, least, load, store

__all__ = [
    "AVAILABLE", "few_losses", "filled", "soft_slopes", "soft_steps", "soft_steps_huber",
]  # fmt: skip


def filled(array: np.ndarray) -> np.ndarray:
    """Pad the last axis with zeros to whole vectors."""
    length = array.shape[-1]
    padded = np.zeros((*array.shape[:-1], _filled_length(length)))
    padded[..., :length] = array
    return padded


def _filled_length(length: int) -> int:
    return -(-length // DOUBLE_LANES) * DOUBLE_LANES


def _require_problems(kernel, x, linear, matrix_index, curvature, step, threshold, steps):
    """Check arrays with one entry per problem."""
    require_layout(kernel, "linear", linear, x.shape)
    per_problem = {"which": matrix_index, "curvature": curvature, "step": step}
    for name, values in {**per_problem, "threshold": threshold, "steps": steps}.items():
        require_layout(kernel, name, values, x.shape[:1])


# --- Lasso ----------------------------------------------------------------------------------------


def soft_steps(x, gram, which, linear, curvature, step, threshold, steps):
    r"""Take proximal gradient steps for problems with a quadratic and an l1 term.

    The objective is :math:`\tfrac12 x^TGx + \tfrac h2\|x\|^2 + q^Tx + \lambda\|x\|_1`.

    Parameters
    ----------
    x : ndarray, shape (problems, dim)
        Initial points.
    gram : ndarray, shape (matrices, dim, filled dim)
        :math:`G`, with the last axis padded by :func:`filled`.
    which : ndarray of int, shape (problems,)
        Index of each problem's matrix.
    linear : ndarray, shape (problems, dim)
        :math:`q`.
    curvature, step, threshold, steps : ndarray, shape (problems,)
        :math:`h`, the step length, the step length times :math:`\lambda`, and the number of steps.

    Returns
    -------
    ndarray, shape (problems, dim)
        Points after the last step.
    """
    kernel, dim = "soft_steps", x.shape[1]
    _require_problems(kernel, x, linear, which, curvature, step, threshold, steps)
    require_layout(kernel, "gram", gram, (-1, dim, _filled_length(dim)), np.float64)
    require_indices(kernel, "which", which, len(gram))
    padded, q = filled(x), filled(linear)
    _soft_steps(
        padded.ravel(), gram.ravel(), which, q.ravel(), curvature, step, threshold, steps,
        x.shape[1], aligned(padded.shape[1], np.float64),
    )  # fmt: skip
    return padded[:, : x.shape[1]]


def soft_steps_huber(
    x, rows, columns, responses, which, linear, curvature, step, threshold, steps, weight, bound
):
    r"""Take the steps of :func:`soft_steps` with Huber losses in place of the quadratic term.

    The first term is :math:`w\sum_j \ell(a_j^Tx - y_j)`, with Huber's loss, which is linear for
    slopes beyond ``bound``.

    Parameters
    ----------
    x : ndarray, shape (problems, dim)
        Initial points.
    rows, columns : ndarray, shapes (matrices, records, filled dim), (matrices, dim, filled records)
        :math:`a_j`, padded by :func:`filled`, and the padded transpose.
    responses : ndarray, shape (matrices, filled records)
        :math:`y_j`.
    which, linear, curvature, step, threshold, steps : ndarray
        See :func:`soft_steps`.
    weight : float
        :math:`w`.
    bound : float
        Largest slope of the loss.

    Returns
    -------
    ndarray, shape (problems, dim)
        Points after the last step.
    """
    kernel, dim = "soft_steps_huber", x.shape[1]
    matrices, records, _ = rows.shape
    _require_problems(kernel, x, linear, which, curvature, step, threshold, steps)
    require_layout(kernel, "rows", rows, (-1, -1, _filled_length(dim)), np.float64)
    many = _filled_length(records)
    require_layout(kernel, "columns", columns, (matrices, dim, many), np.float64)
    require_layout(kernel, "responses", responses, (matrices, many), np.float64)
    require_indices(kernel, "which", which, matrices)
    padded, q = filled(x), filled(linear)
    _soft_steps_huber(
        padded.ravel(), rows.ravel(), columns.ravel(), responses.ravel(), which, q.ravel(),
        curvature, step, threshold, steps, x.shape[1], rows.shape[1], weight, bound,
        aligned(padded.shape[1], np.float64), aligned(responses.shape[1], np.float64),
    )  # fmt: skip
    return padded[:, : x.shape[1]]


def soft_slopes(x, gram, linear, threshold):
    r"""Compute :math:`Gx + q + \lambda\,\mathrm{sign}(x)`, for points of the agents in turn.

    Point n belongs to agent n modulo the number of agents.

    Parameters
    ----------
    x : ndarray, shape (points, dim)
        Points.
    gram, linear : ndarray, shapes (agents, dim, filled dim), (agents, filled dim)
        G and q, padded by :func:`filled`.
    threshold : float
        :math:`\lambda`.

    Returns
    -------
    ndarray, shape (points, dim)
    """
    dim, size = x.shape[1], _filled_length(x.shape[1])
    require_layout("soft_slopes", "gram", gram, (-1, dim, size), np.float64)
    require_layout("soft_slopes", "linear", linear, (len(gram), size), np.float64)
    # The padding of a point overlaps the next point, which is written later.
    out = np.empty(x.size + DOUBLE_LANES)
    _soft_slopes(x, gram.ravel(), linear.ravel(), threshold, out)
    return out[: x.size].reshape(x.shape)


@compiled
def _soft_slopes(x, gram, linear, threshold, out):
    points, dim = x.shape
    size = -(-dim // DOUBLE_LANES) * DOUBLE_LANES
    agents = len(linear) // size
    for n in range(points):
        at, own = n * dim, n % agents
        for c in range(0, size, DOUBLE_LANES):
            total = load(linear, own * size + c)
            for k in range(dim):
                total = total + load(gram, (own * dim + k) * size + c) * x[n, k]
            store(out, at + c, total)
        for k in range(dim):
            if x[n, k] > 0.0:
                out[at + k] += threshold
            elif x[n, k] < 0.0:
                out[at + k] -= threshold


@compiled
def _soft_steps(
    x, gram, which, linear, curvature, step, threshold, steps, dim, new
):  # fmt: skip
    size = new.size
    for n in range(len(steps)):
        at, matrix = n * size, which[n] * dim * size
        for _ in range(steps[n]):
            for c in range(0, size, DOUBLE_LANES):
                first = load(x, at + c) * curvature[n] + load(linear, at + c)
                second = everywhere(0.0)
                for k in range(0, dim - 1, 2):
                    first = first + load(gram, matrix + k * size + c) * x[at + k]
                    second = second + load(gram, matrix + (k + 1) * size + c) * x[at + k + 1]
                if dim % 2:
                    k = dim - 1
                    first = first + load(gram, matrix + k * size + c) * x[at + k]
                _soft(new, c, load(x, at + c), first + second, step[n], threshold[n])
            _copy(x, at, new)


@compiled
def _soft_steps_huber(
    x, rows, columns, responses, which, linear, curvature, step, threshold, steps, dim, records,
    weight, bound, new, slopes,
):  # fmt: skip
    size, many = new.size, slopes.size
    most = everywhere(bound)
    for n in range(len(steps)):
        at = n * size
        for _ in range(steps[n]):
            for j in range(0, many, DOUBLE_LANES):
                residual = -load(responses, which[n] * many + j)
                for k in range(dim):
                    column = load(columns, (which[n] * dim + k) * many + j)
                    residual = residual + column * x[at + k]
                slope = least(greatest(residual + residual, -most), most)
                store(slopes, j, slope * weight)
            for c in range(0, size, DOUBLE_LANES):
                total = load(x, at + c) * curvature[n] + load(linear, at + c)
                for j in range(records):
                    total = total + load(rows, (which[n] * records + j) * size + c) * slopes[j]
                _soft(new, c, load(x, at + c), total, step[n], threshold[n])
            _copy(x, at, new)


@inlined
def _soft(new, c, x, slope, step, threshold):
    """Take a gradient step and apply the soft threshold."""
    ahead, most = x - slope * step, everywhere(threshold)
    store(new, c, ahead - least(greatest(ahead, -most), most))


@inlined
def _copy(x, at, new):
    for c in range(0, new.size, DOUBLE_LANES):
        store(x, at + c, load(new, c))


# --- Logistic losses of one record or two ---------------------------------------------------------


def few_losses(margins, gram, pull, exact, newton, halvings, out):
    r"""Solve :math:`s_j = p_j\,\sigma(-(m + Hs)_j)` for problems with two records.

    Newton's method minimises :math:`\sum_j p_j\ln(1+e^{-(m+Hs)_j}) + \tfrac12 s^THs`, with each
    step halved until the objective decreases.

    Parameters
    ----------
    margins : ndarray, shape (problems, 2)
        :math:`m`.
    gram : ndarray, shape (agents, 2, 2)
        :math:`H` of the agents; problem n belongs to agent n modulo the number of agents.
    pull : ndarray, shape (problems, 2)
        :math:`p`.
    exact : float
        Largest residual of the equation, relative to its terms.
    newton, halvings : int
        Largest numbers of steps and of halvings per step.
    out : ndarray, shape (problems, 2)
        Overwritten with s.
    """
    pairs = len(margins), 2
    for name, array in {"margins": margins, "pull": pull, "out": out}.items():
        require_layout("few_losses", name, array, pairs)
    require_layout("few_losses", "gram", gram, (-1, 2, 2))
    _few_losses(margins, gram, pull, exact, newton, halvings, out)


@compiled
def _few_losses(margins, gram, pull, exact, newton, halvings, out):
    agents = len(gram)
    for n in range(len(margins)):
        H, m0, m1 = gram[n % agents], margins[n, 0], margins[n, 1]
        p0, p1, s0, s1 = pull[n, 0], pull[n, 1], 0.0, 0.0
        a0, a1, value = _place(s0, s1, m0, m1, H, p0, p1)
        for _ in range(newton):
            share0, share1 = 1.0 / (1.0 + np.exp(-a0)), 1.0 / (1.0 + np.exp(-a1))
            slope0, slope1 = s0 - p0 * share0, s1 - p1 * share1
            if abs(slope0) <= exact * (p0 + abs(s0)) and abs(slope1) <= exact * (p1 + abs(s1)):
                break
            bend0, bend1 = p0 * share0 * (1.0 - share0), p1 * share1 * (1.0 - share1)
            j00, j01 = 1.0 + bend0 * H[0, 0], bend0 * H[0, 1]
            j10, j11 = bend1 * H[1, 0], 1.0 + bend1 * H[1, 1]
            size = j00 * j11 - j01 * j10
            step0 = (slope0 * j11 - slope1 * j01) / size
            step1 = (slope1 * j00 - slope0 * j10) / size
            most, length = value + exact * abs(value), 1.0
            for _ in range(halvings + 1):
                after0, after1 = s0 - length * step0, s1 - length * step1
                a0, a1, value = _place(after0, after1, m0, m1, H, p0, p1)
                if not value > most:
                    break
                length /= 2.0
            s0, s1 = after0, after1
        out[n, 0], out[n, 1] = s0, s1


@inlined
def _place(s0, s1, m0, m1, H, p0, p1):
    """Compute the negative margins and the objective."""
    turned0, turned1 = H[0, 0] * s0 + H[0, 1] * s1, H[1, 0] * s0 + H[1, 1] * s1
    a0, a1 = -(m0 + turned0), -(m1 + turned1)
    value = p0 * _softplus(a0) + p1 * _softplus(a1) + (s0 * turned0 + s1 * turned1) / 2.0
    return a0, a1, value


@inlined
def _softplus(a):
    return max(a, 0.0) + np.log1p(np.exp(-abs(a)))
