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

from typing import NamedTuple

import numpy as np

from .compiling import AVAILABLE, compiled, inlined, share_out
from .normals import normal_pairs, normals
from .vectors import (
    DOUBLE_LANES,
    LANES,
    WIDE,
    aligned,
    everywhere,
    everywhere_wide,
    greatest,
    least,
    load,
    load_wide,
    narrowed,
    singles,
    store,
    turn,
    widened,
    words,
)

_PAIRS = 16
"""Bits of a counter for the direction; the coordinate comes above them."""

_ZERO, _HALF, _SIGN = np.float32(0.0), np.float32(0.5), np.uint32(1 << 31)


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
    samples = np.asarray(samples)
    out = np.empty(np.shape(linear))
    curvature = np.broadcast_to(curvature, out.shape[:-1])
    step = np.broadcast_to(step, out.shape[:-1])
    numbering = (first_counter(counter, out.shape[2], loops), int(np.max(loops)))
    for count in np.unique(samples):
        alike = samples == count
        out[alike] = _solve_alike(
            _filled(gram), curvature[alike], _filled(linear[alike]), np.asarray(penalty)[alike],
            step[alike], keys, numbering, np.asarray(loops)[alike], int(count), u1, out.shape[-1],
            workers,
        )  # fmt: skip
    return out


def _solve_alike(
    gram, curvature, linear, penalty, step, keys, numbering, loops, samples, u1, dim, workers
):
    """Settings of as many directions each."""
    out = np.empty((*linear.shape[:-1], dim))
    given = (
        gram, np.ascontiguousarray(curvature, np.float32), linear,
        np.ascontiguousarray(penalty, np.float32), np.ascontiguousarray(step, np.float64), keys,
        *numbering, np.ascontiguousarray(loops, np.int64), samples, np.float32(u1), out,
    )  # fmt: skip

    def part(begin, end):
        _solve_runs(begin, end, *given, _scratch(len(out), dim, samples))

    share_out(part, out.shape[1], workers)
    return out


def first_counter(counter: int, agents: int, loops: np.ndarray) -> int:
    """The first counter of a solve; agent k in loop t of it has the number k T + t after it."""
    return counter * agents * int(np.max(loops))


def places(dim: int, samples: int) -> np.ndarray:
    """The second half of the counter of each coordinate's and direction's pair, (dim, samples)."""
    i, j = np.indices((dim, samples), dtype=np.uint32)
    return (i << np.uint32(_PAIRS)) | j


def _filled(array: np.ndarray) -> np.ndarray:
    """The last axis filled up to whole vectors with zeros, in float32."""
    length = np.shape(array)[-1]
    filled = np.zeros((*np.shape(array)[:-1], _up(length, LANES)), np.float32)
    filled[..., :length] = array
    return filled


class _Scratch(NamedTuple):
    """What a thread works in, flat; directions and coordinates are filled up to whole vectors."""

    places: np.ndarray  # [P, J]; uint32
    used: np.ndarray  # [J]: 1, then 0 where there are directions too many
    m: np.ndarray  # [P, J]
    turned: np.ndarray  # [P, J]: n u/v with the sign of m
    middle: np.ndarray  # [P, J]: u n + v m / 2
    rows: np.ndarray  # [J, P]: m
    bent: np.ndarray  # [J]: m' G middle
    own: np.ndarray  # [J]: m' middle
    sizes: np.ndarray  # [J]: sum |m|
    single: np.ndarray  # [S, P]: b in float32
    shift: np.ndarray  # [S, P]: b/v
    slope: np.ndarray  # [S, P]
    quotient: np.ndarray  # [S, J]
    b: np.ndarray  # [S, P]; float64


def _scratch(settings: int, dim: int, samples: int) -> _Scratch:
    lanes, columns = _up(samples, WIDE), _up(dim, LANES)
    where = aligned(dim * lanes, np.uint32)
    where[:] = places(dim, lanes).ravel()
    used = aligned(lanes)
    used[:samples] = 1.0
    return _Scratch(
        where,
        used,
        *(aligned(columns * lanes) for _ in range(4)),
        *(aligned(lanes) for _ in range(3)),
        *(aligned(settings * columns) for _ in range(3)),
        aligned(settings * lanes),
        aligned(settings * columns, np.float64),
    )


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


@compiled
def _solve_runs(
    begin,
    end,
    gram,
    curvature,
    linear,
    penalty,
    step,
    keys,
    first,
    most,
    loops,
    samples,
    u1,
    out,
    scratch,
):
    settings, agents, dim = out.shape[0], out.shape[2], out.shape[3]
    b, columns = scratch.b, linear.shape[3]
    for run in range(begin, end):
        for agent in range(agents):
            G = gram[run if gram.shape[0] > 1 else 0, agent].ravel()
            b[:] = 0.0
            for t in range(1, loops.max() + 1):
                inverse = np.float32((dim * t) * (dim * t)) / u1
                counter = np.uint32(first + agent * most + t - 1)
                _draw(
                    scratch, keys[run, 0], keys[run, 1], counter, u1 / np.float32(t), inverse, dim
                )
                _bend(scratch, G, dim, columns)
                _lay_in_rows(scratch, columns)
                # One thing for all settings, then the next: what one waits for, others do not.
                for s in range(settings):
                    _round(scratch, s, inverse, columns)
                    _slopes(scratch, s, G, linear[s, run, agent], curvature[s, run, agent], dim)
                for s in range(settings):
                    _quotients(scratch, s, curvature[s, run, agent], penalty[s], dim, columns)
                for s in range(settings):
                    if t <= loops[s]:
                        a = step[s, run, agent] / (samples * np.sqrt(t))
                        _descend(scratch, s, a, columns)
            for s in range(settings):
                for i in range(dim):
                    out[s, run, agent, i] = b[s * columns + i]


@inlined
def _draw(scratch, k0, k1, counter, u, inverse, dim):
    """Directions, and what of the quotient is theirs alone."""
    lanes = scratch.own.size
    half, scale = _HALF / inverse, u * inverse
    for j in range(0, lanes, WIDE):
        own = everywhere_wide(_ZERO)
        size = everywhere_wide(_ZERO)
        for i in range(j, dim * lanes, lanes):
            n, m = normal_pairs(k0, k1, everywhere_wide(counter), load_wide(scratch.places, i))
            sign = words(m) & _SIGN
            middle = n * u + m * half
            own = own + m * middle
            size = size + singles(words(m) ^ sign)
            store(scratch.middle, i, middle)
            store(scratch.m, i, m)
            store(scratch.turned, i, singles(words(n * scale) ^ sign))
        store(scratch.own, j, own)
        store(scratch.sizes, j, size)


@inlined
def _bend(scratch, G, dim, columns):
    """``m' G middle`` of each direction."""
    lanes = scratch.bent.size
    for j in range(0, lanes, WIDE):
        value = everywhere_wide(_ZERO)
        for i in range(dim):
            image = everywhere_wide(_ZERO)
            for k in range(dim):
                image = image + load_wide(scratch.middle, k * lanes + j) * G[i * columns + k]
            value = value + load_wide(scratch.m, i * lanes + j) * image
        store(scratch.bent, j, value)


@inlined
def _lay_in_rows(scratch, columns):
    """Direction after direction, so that sums over directions are sums of vectors."""
    lanes = scratch.own.size
    for j in range(0, lanes, LANES):
        for c in range(0, columns, LANES):
            turn(scratch.rows, j * columns + c, columns, scratch.m, c * lanes + j, lanes)


@inlined
def _round(scratch, s, inverse, columns):
    """b of a setting in float32, and b/v."""
    for c in range(s * columns, (s + 1) * columns, LANES):
        single = narrowed(load(scratch.b, c), load(scratch.b, c + DOUBLE_LANES))
        store(scratch.single, c, single)
        store(scratch.shift, c, single * inverse)


@inlined
def _slopes(scratch, s, G, q, h, dim):
    """The gradient of the quadratic part at b."""
    columns = q.size
    begin = s * columns
    for c in range(0, columns, LANES):
        value = load(scratch.single, begin + c) * h + load(q, c)
        for k in range(dim):
            value = value + load(G, k * columns + c) * scratch.single[begin + k]
        store(scratch.slope, begin + c, value)


@inlined
def _quotients(scratch, s, h, penalty, dim, columns):
    r"""The quotient of each direction.

    With s the sign of m, :math:`|x+m|-|x| = |m| + 2\max\{\min\{sx, 0\}, -|m|\}`.
    """
    lanes = scratch.own.size
    for j in range(0, lanes, LANES):
        smooth = load(scratch.bent, j) + load(scratch.own, j) * h + load(scratch.sizes, j) * penalty
        kinks = everywhere(_ZERO)
        for k in range(dim):
            direction = load(scratch.m, k * lanes + j)
            m = words(direction)
            shift = singles(words(everywhere(scratch.shift[s * columns + k])) ^ (m & _SIGN))
            x = load(scratch.turned, k * lanes + j) + shift
            kinks = kinks + greatest(least(x, _ZERO), singles(m | _SIGN))
            smooth = smooth + direction * scratch.slope[s * columns + k]
        quotient = (smooth + kinks * (penalty + penalty)) * load(scratch.used, j)
        store(scratch.quotient, s * lanes + j, quotient)


@inlined
def _descend(scratch, s, step, columns):
    """b minus step times the sum over the directions of the quotient times m."""
    lanes = scratch.own.size
    for c in range(0, columns, LANES):
        # Four sums at once: each addition waits for the one before.
        first, second = everywhere(_ZERO), everywhere(_ZERO)
        third, fourth = everywhere(_ZERO), everywhere(_ZERO)
        for j in range(0, lanes, 4):
            row, now = j * columns + c, s * lanes + j
            first = first + load(scratch.rows, row) * scratch.quotient[now]
            second = second + load(scratch.rows, row + columns) * scratch.quotient[now + 1]
            third = third + load(scratch.rows, row + 2 * columns) * scratch.quotient[now + 2]
            fourth = fourth + load(scratch.rows, row + 3 * columns) * scratch.quotient[now + 3]
        lower, upper = widened((first + second) + (third + fourth))
        at = s * columns + c
        store(scratch.b, at, load(scratch.b, at) - lower * step)
        store(scratch.b, at + DOUBLE_LANES, load(scratch.b, at + DOUBLE_LANES) - upper * step)


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
    samples = np.asarray(samples)[:, None]
    weights = np.where(np.arange(directions) < samples, 1.0 / samples, 0.0)[:, None, None]
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
