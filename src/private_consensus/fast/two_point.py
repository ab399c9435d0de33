r"""The two-point method for a quadratic plus a multiple of the l1 norm.

Minimised is :math:`F(b) = \tfrac12 b^T (G + h I) b + q^T b + \lambda\|b\|_1`, known by its values.
From :math:`b = 0`, for :math:`t = 1, \dots, T`,

.. math::
    b &\leftarrow b - \frac{a}{\sqrt t}\,\frac1J \sum_{j=1}^J
      \frac{F(p_j + v_t m_j) - F(p_j)}{v_t}\, m_j, \qquad p_j = b + u_t n_j

with standard normal :math:`n_j, m_j`, :math:`u_t = u_1/t` and :math:`v_t = u_1/(Pt)^2` (Duchi,
Jordan, Wainwright, Wibisono, IEEE Trans. IT 2015; paper 002, eqs. (9)-(13)). The quotient is
computed without a difference of nearly equal numbers:

.. math:: m^T\bigl((G+hI)(p + \tfrac v2 m) + q\bigr) + \lambda\sum_i (|x_i + m_i| - |x_i|), \qquad
          x_i = \min\{\max\{p_i/v, -|m_i|\}, |m_i|\}

which equals it exactly, the second sum because :math:`|x+m|-|x|` no longer changes once
:math:`|x| \ge |m|`. In :func:`solve` the J directions lie side by side in vectors of float32, and
settings that share draws share everything that does not depend on them; b is kept in float64.
:func:`solve_plainly` is the same in NumPy and float64.
"""

from __future__ import annotations

import numpy as np

from .compiling import AVAILABLE, compiled, share_out
from .lanes import add_changes, add_weighted, inner
from .normals import fill_normals, normals

LANES = 16
"""Directions are filled up to a multiple of it, coordinates of b as well."""

BLOCK = 5
"""Coordinates taken together in the innermost loops."""

AHEAD = 4
"""Loops whose draws are made together: long vectors keep the processor busy."""

_PAIRS = 16
"""Bits of a counter for the direction; the coordinate comes above them."""

_ZERO, _HALF = np.float32(0.0), np.float32(0.5)


def solve(
    gram, curvature, linear, penalty, step, keys, counter, *, loops, samples, u1, workers=None
):
    r"""Where T steps from the origin lead, for every setting, run and agent.

    Parameters
    ----------
    gram : ndarray, shape (R or 1, K, P, P)
        :math:`G`, symmetric.
    curvature : ndarray, broadcastable to (S, R, K)
        :math:`h`.
    linear : ndarray, shape (S, R, K, P)
        :math:`q`.
    penalty : ndarray, shape (S,)
        :math:`\lambda`.
    step : ndarray, broadcastable to (S, R, K)
        :math:`a`.
    keys : ndarray of uint32, shape (R, 2)
        One a run.
    counter : int
        How many solves came before: no two solves of a run share draws.
    loops, samples : ndarray of int, shape (S,)
        :math:`T` and :math:`J`. Settings share draws, the first directions of the most.
    u1 : float
    workers : int, optional
        Threads; no number depends on it.

    Returns
    -------
    ndarray, shape (S, R, K, P)
        Not finite where the steps were too long.
    """
    if not AVAILABLE:
        with np.errstate(over="ignore", invalid="ignore"):
            return solve_plainly(
                gram, curvature, linear, penalty, step, keys, counter,
                loops=loops, samples=samples, u1=u1,
            )  # fmt: skip
    shape = np.shape(linear)
    linear = _filled(linear, _up(shape[-1], LANES))
    gram = np.ascontiguousarray(_padded_gram(gram, shape))
    curvature = np.ascontiguousarray(np.broadcast_to(curvature, shape[:-1]), np.float32)
    step = np.ascontiguousarray(np.broadcast_to(step, shape[:-1]), np.float64)
    weights = _weights(samples)
    loops = np.ascontiguousarray(loops, np.int64)
    penalty = np.ascontiguousarray(penalty, np.float32)
    first = first_counter(counter, shape[2], loops)
    out = np.empty(shape)

    def part(begin, end):
        _solve_runs(
            begin, end, gram, curvature, linear, penalty, step, keys, first,
            loops, weights, np.float32(u1), out, *_scratch(shape, weights.shape[1]),
        )  # fmt: skip

    share_out(part, shape[1], workers)
    return out


def first_counter(counter: int, agents: int, loops: np.ndarray) -> int:
    """The first counter of a solve; agent k in loop t of it has the number k T + t after it."""
    return counter * agents * int(np.max(loops))


def places(dim: int, samples: int) -> np.ndarray:
    """The second half of the counter of each coordinate's and direction's pair, (dim, samples)."""
    i, j = np.indices((dim, samples), dtype=np.uint32)
    return (i << np.uint32(_PAIRS)) | j


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _padded_gram(gram: np.ndarray, shape) -> np.ndarray:
    """Rows filled up to a multiple of BLOCK, columns of LANES, with zeros; (R or 1, K, ., .)."""
    dim = shape[-1]
    padded = np.zeros((len(gram), shape[2], _up(dim, BLOCK), _up(dim, LANES)), np.float32)
    padded[..., :dim, :dim] = gram
    return padded


def _filled(array: np.ndarray, length: int) -> np.ndarray:
    """The last axis filled up with zeros, in float32."""
    filled = np.zeros((*np.shape(array)[:-1], length), np.float32)
    filled[..., : np.shape(array)[-1]] = array
    return filled


def _weights(samples: np.ndarray) -> np.ndarray:
    """1/J for the first J directions of a setting, else 0."""
    lanes = _up(int(np.max(samples)), LANES)
    samples = np.asarray(samples)[:, None]
    return np.where(np.arange(lanes) < samples, 1.0 / samples, 0.0).astype(np.float32)


def _aligned(count: int, kind=np.float32) -> np.ndarray:
    """Zeros that begin at a multiple of 64 bytes, as wide vectors want them."""
    size = np.dtype(kind).itemsize
    raw = np.zeros(count * size + 64, np.uint8)
    begin = -raw.ctypes.data % 64
    return raw[begin : begin + count * size].view(kind)


def _scratch(shape, lanes: int) -> tuple[np.ndarray, ...]:
    settings, _, _, dim = shape
    rows, columns = _up(dim, BLOCK), _up(dim, LANES)
    ahead = AHEAD * lanes
    later = _aligned(dim * ahead, np.uint32).reshape(dim, AHEAD, lanes)
    later[:] = np.arange(AHEAD, dtype=np.uint32)[:, None]
    where = _aligned(dim * ahead, np.uint32).reshape(dim, AHEAD, lanes)
    where[:] = places(dim, lanes)[:, None]
    return (
        later.reshape(-1),
        where.reshape(-1),
        _aligned(rows * ahead).reshape(rows, ahead),  # n, then n u/v
        _aligned(rows * ahead).reshape(rows, ahead),  # m
        _aligned(rows * ahead).reshape(rows, ahead),  # u n + v m / 2
        _aligned(3 * ahead).reshape(3, ahead),  # u, v/2 and u/v
        _aligned(ahead),  # m' G (u n + v m / 2)
        _aligned(ahead),  # m' (u n + v m / 2)
        _aligned(lanes),  # the quotient
        _aligned(columns),  # G b + h b + q
        _aligned(columns),  # b
        _aligned(columns),  # b/v
        np.zeros((settings, columns)),
    )


@compiled
def _solve_runs(
    begin, end, gram, curvature, linear, penalty, step, keys, first, loops, weights, u1, out,
    later, where, n, m, middle, scales, shared, product, quotient, slope, single, shift, b,
):  # fmt: skip
    settings, agents, dim = out.shape[0], out.shape[2], out.shape[3]
    rows, lanes = n.shape[0], weights.shape[1]
    ahead = AHEAD * lanes
    most = loops.max()
    flat_n, flat_m = n.reshape(rows * ahead), m.reshape(rows * ahead)
    for run in range(begin, end):
        for agent in range(agents):
            G = gram[run if gram.shape[0] > 1 else 0, agent]
            flat_G = G.ravel()
            b[:] = 0.0
            for t0 in range(1, most + 1, AHEAD):
                counter = np.uint32(first + agent * most + t0 - 1)
                _schedule(u1, t0, dim, lanes, scales)
                fill_normals(keys[run, 0], keys[run, 1], counter, later, where, flat_n, flat_m)
                _share(G, n, m, middle, scales, shared, product, rows, ahead)
                for t in range(t0, min(t0 + AHEAD, most + 1)):
                    inverse = np.float32((dim * t) * (dim * t)) / u1
                    now = (t - t0) * lanes
                    for s in range(settings):
                        if t > loops[s]:
                            continue
                        h = curvature[s, run, agent]
                        for i in range(single.size):
                            single[i] = np.float32(b[s, i])
                            shift[i] = single[i] * inverse
                        _slopes(flat_G, single, linear[s, run, agent], h, slope, dim)
                        _quotients(flat_n, flat_m, now, ahead, shared, product, h, slope,
                                   penalty[s], shift, quotient, dim)  # fmt: skip
                        a = step[s, run, agent] / np.sqrt(t)
                        _descend(flat_m, now, ahead, quotient, weights[s], b[s], a, dim)
            for s in range(settings):
                for i in range(dim):
                    out[s, run, agent, i] = b[s, i]


@compiled
def _schedule(u1, t0, dim, lanes, scales):
    """u, v/2 and u/v of each of the loops ahead, as often as there are directions."""
    for i in range(AHEAD):
        t = t0 + i
        u = u1 / np.float32(t)
        v = u1 / np.float32((dim * t) * (dim * t))
        for j in range(i * lanes, (i + 1) * lanes):
            scales[0, j] = u
            scales[1, j] = _HALF * v
            scales[2, j] = u / v


@compiled
def _share(G, n, m, middle, scales, shared, product, rows, ahead):
    """What all settings share of the quotient; then n becomes n u/v."""
    for j in range(ahead):
        shared[j] = _ZERO
        product[j] = _ZERO
    for i in range(rows):
        for j in range(ahead):
            value = scales[0, j] * n[i, j] + scales[1, j] * m[i, j]
            middle[i, j] = value
            product[j] += m[i, j] * value
            n[i, j] = n[i, j] * scales[2, j]
    for i in range(rows):
        for k in range(0, rows, BLOCK):
            g0, g1, g2, g3, g4 = G[i, k], G[i, k + 1], G[i, k + 2], G[i, k + 3], G[i, k + 4]
            for j in range(ahead):
                shared[j] += m[i, j] * (
                    g0 * middle[k, j]
                    + g1 * middle[k + 1, j]
                    + g2 * middle[k + 2, j]
                    + g3 * middle[k + 3, j]
                    + g4 * middle[k + 4, j]
                )


@compiled
def _slopes(G, b, q, h, slope, rows):
    """The gradient of the quadratic part at b."""
    columns = slope.size
    for i in range(columns):
        slope[i] = h * b[i] + q[i]
    for i in range(0, columns, LANES):
        add_weighted(slope, i, G, i, columns, rows, b)


@compiled
def _quotients(n, m, begin, stride, shared, product, h, slope, penalty, shift, quotient, rows):
    """Quotient of each direction; n is n u/v and shift is b/v."""
    for j in range(quotient.size):
        quotient[j] = shared[begin + j] + h * product[begin + j]
    for j in range(0, quotient.size, LANES):
        add_changes(quotient, j, slope, penalty, n, m, begin + j, stride, rows, shift)


@compiled
def _descend(m, begin, stride, quotient, weights, b, step, rows):
    """b minus step times the weighted sum of directions."""
    for j in range(quotient.size):
        quotient[j] *= weights[j]
    for k in range(rows):
        b[k] -= step * inner(quotient, 0, m, begin + k * stride, quotient.size // LANES)


# --- Plain ----------------------------------------------------------------------------------------


def solve_plainly(
    gram, curvature, linear, penalty, step, keys, counter, *, loops, samples, u1, draw=normals
):
    """What :func:`solve` computes, in NumPy and float64; ``draw`` makes normals of counters."""
    settings, runs, agents, dim = np.shape(linear)
    curvature = np.broadcast_to(curvature, (settings, runs, agents))[..., None, None]
    hessian = np.asarray(gram, float) + curvature * np.eye(dim)
    step = np.broadcast_to(step, (settings, runs, agents))[..., None]
    most, directions = int(np.max(loops)), int(np.max(samples))
    weights = _weights(samples)[:, None, None, :directions].astype(float)
    b = np.zeros((settings, runs, agents, dim))
    for t in range(1, most + 1):
        counters = first_counter(counter, agents, loops) + np.arange(agents) * most + t - 1
        n, m = directions_of(keys, counters, dim, directions, draw)
        u, v = u1 / t, u1 / (dim * t) ** 2
        quotient = difference_quotient(
            hessian, linear, np.asarray(penalty)[:, None, None, None], b, n, m, u, v
        )
        gradient = ((weights * quotient)[..., None] * m).sum(-2)
        active = (t <= np.asarray(loops))[:, None, None, None]
        b = np.where(active, b - step / np.sqrt(t) * gradient, b)
    return b


def directions_of(keys, counters, dim: int, samples: int, draw=normals):
    """Normals n and m of one loop, each (R, K, J, P), as :func:`solve` draws them."""
    counters = np.asarray(counters, np.uint32)[:, None, None]
    pairs = draw(keys[:, None, None, None, :], counters, places(dim, samples))
    return tuple(np.swapaxes(part, -1, -2) for part in pairs)


def difference_quotient(hessian, linear, penalty, b, n, m, u: float, v: float) -> np.ndarray:
    r""":math:`[F(b + u n + v m) - F(b + u n)]/v` for directions (..., J, P); shape (..., J)."""
    p = b[..., None, :] + u * n
    middle = p + v / 2 * m
    smooth = (m * (middle @ hessian + np.asarray(linear)[..., None, :])).sum(-1)
    x = np.clip(p / v, -np.abs(m), np.abs(m))
    return smooth + penalty * (np.abs(x + m) - np.abs(x)).sum(-1)
