r"""Minimisation of a quadratic plus an l1 norm by differences of function values at two points.

The method minimises :math:`F(b) = \tfrac12 b^T (G + h I) b + q^T b + \lambda\|b\|_1` from values of
F. From :math:`b = 0`, for :math:`t = 1, \dots, T`,

.. math::
    b &\leftarrow b - \frac{a}{\sqrt t}\,\frac1J \sum_{j=1}^J
      \frac{F(p_j + v_t m_j) - F(p_j)}{v_t}\, m_j, \qquad p_j = b + u_t n_j

with standard normal :math:`n_j, m_j`, :math:`u_t = 1/t` and :math:`v_t = 1/(Pt)^2` (Duchi,
Jordan, Wainwright, Wibisono, IEEE Trans. IT 2015; Gratton et al., eqs. (9)-(13)). The quotient is
computed without a difference of nearly equal numbers:

.. math:: m^T\bigl((G+hI)(p + \tfrac v2 m) + q\bigr) + \lambda\sum_i (|x_i + m_i| - |x_i|), \qquad
          x_i = \min\{\max\{p_i/v, -|m_i|\}, |m_i|\}

The two are equal, since :math:`|x+m|-|x|` is constant for :math:`|x| \ge |m|`. If all directions
of a coordinate have :math:`x_i \ge |m_i|`, or all have :math:`x_i \le -|m_i|`, the term of this
coordinate is :math:`\pm m_i`, linear in m. This is so except close to a kink of the l1 norm. The
mean over the directions of the linear terms is

.. math:: \frac1J\Bigl(\sum_j m_jm_j^T\Bigr)\bigl((G+hI)b + q + \lambda\,\mathrm{side}\bigr)
          + \frac1J\sum_j m_j\,m_j^T(G+hI)\bigl(u n_j + \tfrac v2 m_j\bigr),

with one matrix and one vector for all settings that share the samples. A setting iterates over the
directions only for coordinates with directions on both sides of a kink. :func:`solve` stores the J
directions in vectors of float32 and b in float64. The quotient above in NumPy and float64 takes 25
times as long.
"""

from collections import namedtuple

import numpy as np

from .compiling import compiled, inlined, share_out, uncounted
from .normals import fill_normals
from .vectors import (
    LANES,
    allocate,
    everywhere,
    largest_of,
    load,
    load_everywhere,
    maximum,
    minimum,
    store,
    where_greater,
)

_DIRECTION_BITS = np.uint32(16)
"""Number of low counter bits for the direction; the higher bits count the coordinate."""

_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)


def solve(gram, curvature, linear, penalty, step, keys, counter, *, loops, samples):
    r"""Take T steps from the origin, for every setting, run and agent.

    Parameters
    ----------
    gram : ndarray, shape (R or 1, K, P, P)
        Symmetric matrices :math:`G`.
    curvature, step : ndarray, broadcastable to (S, R, K)
        Additional curvature :math:`h` and step length :math:`a`.
    linear : ndarray, shape (S, R, K, P)
        Linear coefficients :math:`q`.
    penalty : ndarray, shape (S,)
        Coefficient :math:`\lambda` of the l1 norm.
    keys : ndarray of uint32, shape (R, 2)
        One key per run.
    counter : int
        Number of previous solves: no two solves of a run share samples. Agent k in loop t has the
        random counter ``(counter K + k) T + t - 1``.
    loops, samples : int
        Numbers of steps :math:`T` and of directions :math:`J`, which all settings share.

    Returns
    -------
    ndarray, shape (S, R, K, P)
        Not finite if the steps were too long.
    """
    curvature, step = (np.broadcast_to(values, linear.shape[:-1]) for values in (curvature, step))
    # Settings with similar step lengths are adjacent, since they are close to the same kinks.
    order = np.argsort(step[:, 0, 0], kind="stable")
    curvature, linear, step = curvature[order], linear[order], step[order]
    settings, runs, agents, dim = linear.shape
    lanes = _round_up(settings, LANES)

    def move_settings_last(values, *shape_after, kind=np.float32):
        """Move the settings to the last axis, padded to whole vectors."""
        out = np.zeros((*values.shape[1:-1], *shape_after, lanes), kind)
        stacked = np.moveaxis(values, 0, -1)
        out[..., : stacked.shape[-2], :settings] = stacked
        return out

    padded = np.zeros((*gram.shape[:2], dim, _round_up(dim, LANES)), np.float32)
    padded[..., :dim, :dim] = gram
    out = np.empty((runs, agents, dim, lanes))
    arguments = (
        padded,
        move_settings_last(curvature, agents),
        move_settings_last(linear, dim),
        move_settings_last(penalty[order, None], 1)[0],
        move_settings_last(step, agents, kind=np.float64),
        (np.arange(lanes) < settings).astype(np.float32),
        keys,
        counter * agents * loops,
        loops,
        dim,
        samples,
        out,
    )

    def solve_block(begin, end):
        _solve_runs(begin, end, *arguments, _scratch(lanes, dim, samples))

    share_out(solve_block, runs)
    solutions = np.empty(linear.shape)
    solutions[order] = np.moveaxis(out[..., :settings], -1, 0)
    return solutions


SCRATCH = {
    "pP": "G",
    "J": "used n middle_products curved_products",
    "PJ": "m sizes signs scaled middle",
    "JP": "rows",
    "P": "above below linear_sum curved_sum",
    "PP": "moments",
    "pS": "b single",
    "pL": "slope side shift weight",
    "p": "is_mixed mixed_offsets",
    "JL": "quotient",
    "L": "total",
}
r"""Names of the scratch arrays of a thread by their axes: coordinates p, settings S, and, padded to
whole vectors, coordinates P, directions J and the settings L of one vector.

Of the directions: ``used`` is 0 for padding, ``sizes`` and ``signs`` are those of m, ``rows`` the
transpose of m, ``scaled`` is :math:`2nu/v` times the sign, plus the size, and ``middle`` is
:math:`un + vm/2`. Its products with m and with :math:`Gm` are ``middle_products`` and
``curved_products``; ``linear_sum`` and ``curved_sum`` are the sums of m times these, and
``moments`` is the sum of :math:`mm^T`. All directions are on one side of the kink for :math:`b/v`
greater than ``above`` or less than ``below``.

Of the settings: ``b`` in float64 and ``single`` in float32; ``side`` is 1 or -1, or 0 if directions
are on both sides. ``is_mixed`` is 1 for a coordinate with side 0 in any setting, and such
coordinates have ``mixed_offsets``, the ``shift`` :math:`2b/v`, and as ``weight`` the penalty if the
side is 0. ``quotient`` is a sum over these coordinates, ``total`` over the directions."""

_TwoPointScratch = namedtuple("_TwoPointScratch", " ".join(SCRATCH.values()))


def _scratch(settings: int, dim: int, samples: int) -> _TwoPointScratch:
    lengths = {"p": dim, "S": settings, "P": _round_up(dim, LANES), "L": LANES}
    lengths["J"] = _round_up(samples, 2 * LANES)
    types = {"b": np.float64, "mixed_offsets": np.int64}
    arrays = allocate(_TwoPointScratch, SCRATCH, lengths, lambda name: types.get(name, np.float32))
    arrays.used[:samples] = 1.0
    return arrays


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


@compiled
def _solve_runs(
    begin, end, gram, curvature, linear, penalty, step, used, keys, first, loops, dim, samples,
    out, s,
):  # fmt: skip
    settings, agents = out.shape[3], out.shape[1]
    b, single = s.b, s.single
    for run in range(begin, end):
        for agent in range(agents):
            s.G[:] = gram[run if len(gram) > 1 else 0, agent].copy().ravel()
            q, h, length = linear[run, agent].ravel(), curvature[run, agent], step[run, agent]
            b[:] = 0.0
            single[:] = 0.0
            for t in range(1, loops + 1):
                inverse = np.float32((dim * t) * (dim * t))
                counter = np.uint32(first + agent * loops + t - 1)
                _sample_directions(
                    s, keys[run, 0], keys[run, 1], counter, _ONE / np.float32(t), inverse, dim
                )
                _transpose_directions(s, dim)
                _sum_over_directions(s, samples, dim)
                step_factor = 1.0 / (samples * np.sqrt(t))
                for l in range(0, settings, LANES):
                    # Arrays are arguments of their own, since numba counts references in tuples.
                    kinks = _slopes(s, q, h, penalty, used, l, inverse, dim)
                    if kinks:
                        _quotients(s, penalty, l, samples, dim, inverse)
                    _descend(s, h, length, l, step_factor, samples, dim, kinks)
            for i in range(dim):
                out[run, agent, i, :] = b[i * settings : (i + 1) * settings]


@inlined
def _sample_directions(s, k0, k1, counter, u, inverse, dim):
    """Sample directions, and compute the terms of the quotient that depend on them only."""
    lanes = s.middle_products.size
    half, scale = _HALF / inverse, u * inverse
    unit, zero = everywhere(_ONE), everywhere(_ZERO)
    s.middle_products[:] = _ZERO
    for i in range(dim):
        begin = i * lanes
        m_row = s.m[begin : begin + lanes]
        fill_normals(k0, k1, counter, np.uint32(np.uint32(i) << _DIRECTION_BITS), s.n, m_row)
        for j in range(0, lanes, LANES):
            at = begin + j
            n, m = load(s.n, j), load(s.m, at) * load(s.used, j)
            sign = where_greater(zero, m, -unit, unit)
            middle, scaled, size = n * u + m * half, n * scale, m * sign
            store(s.middle_products, j, load(s.middle_products, j) + m * middle)
            store(s.middle, at, middle)
            store(s.m, at, m)
            store(s.sizes, at, size)
            store(s.signs, at, sign)
            store(s.scaled, at, (scaled + scaled) * sign + size)
            above, below = largest_of(size - scaled), -largest_of(size + scaled)
            if j > 0:
                above, below = max(above, s.above[i]), min(below, s.below[i])
            s.above[i], s.below[i] = above, below


@inlined
def _transpose_directions(s, dim):
    """Transpose the directions, so that sums over directions are sums of vectors."""
    lanes, columns = s.middle_products.size, s.linear_sum.size
    for j in range(lanes):
        for i in range(dim):
            s.rows[j * columns + i] = s.m[i * lanes + j]


@inlined
def _sum_over_directions(s, samples, dim):
    columns = s.linear_sum.size
    _sum_curved_products(s, dim)
    for c in range(0, columns, LANES):
        for k in range(dim):
            _second_moments(s, k, c, samples)
        store(s.linear_sum, c, _sum_of_rows(s, s.middle_products, c, samples))
        store(s.curved_sum, c, _sum_of_rows(s, s.curved_products, c, samples))


@inlined
def _second_moments(s, k, c, samples):
    """Compute a row of the sum of ``m m'`` as two sums with fewer dependent steps."""
    lanes, columns = s.middle_products.size, s.linear_sum.size
    even = odd = everywhere(_ZERO)
    for j in range(0, samples, 2):
        at = k * lanes + j
        even = even + load(s.rows, j * columns + c) * load_everywhere(s.m, at)
        odd = odd + load(s.rows, (j + 1) * columns + c) * load_everywhere(s.m, at + 1)
    store(s.moments, k * columns + c, even + odd)


@inlined
def _sum_of_rows(s, weights, c, samples):
    """Compute the sum over the directions of m times a weight."""
    columns = s.linear_sum.size
    first, second = everywhere(_ZERO), everywhere(_ZERO)
    third, fourth = everywhere(_ZERO), everywhere(_ZERO)
    for j in range(0, samples, 4):
        row = j * columns + c
        first = first + load(s.rows, row) * load_everywhere(weights, j)
        row += columns
        second = second + load(s.rows, row) * load_everywhere(weights, j + 1)
        row += columns
        third = third + load(s.rows, row) * load_everywhere(weights, j + 2)
        row += columns
        fourth = fourth + load(s.rows, row) * load_everywhere(weights, j + 3)
    return (first + second) + (third + fourth)


@inlined
def _sum_curved_products(s, dim):
    """Compute ``m' G middle`` for each direction."""
    lanes, columns = s.middle_products.size, s.linear_sum.size
    for j in range(0, lanes, LANES):
        value = everywhere(_ZERO)
        for i in range(dim):
            image = everywhere(_ZERO)
            for k in range(dim):
                image = image + load(s.middle, k * lanes + j) * s.G[i * columns + k]
            value = value + load(s.m, i * lanes + j) * image
        store(s.curved_products, j, value)


@inlined
def _slopes(s, q, h, penalty, used, l, inverse, dim):
    """Compute the gradient at b of the quadratic part and of the penalty away from kinks.

    Return True if any setting has directions on both sides of a kink.
    """
    settings, columns = penalty.size, s.linear_sum.size
    curvature, weight, kinks = load(h, l), load(penalty, l), False
    for i in range(dim):
        slope = load(q, i * settings + l)
        for k in range(dim):
            single = load(s.single, k * settings + l)
            slope = slope + single * load_everywhere(s.G, k * columns + i)
        side = _side(s, slope, i, i * settings + l, curvature, weight, inverse)
        is_mixed = largest_of((everywhere(_ONE) - side * side) * load(used, l))
        s.is_mixed[i] = is_mixed
        kinks = kinks or is_mixed > _ZERO
    return kinks


@inlined
def _side(s, slope, i, at, curvature, penalty, inverse):
    """Store the slope of a coordinate; return its side, or 0 if directions are on both sides."""
    single, unit, none = load(s.single, at), everywhere(_ONE), everywhere(_ZERO)
    shift = single * inverse
    side = where_greater(shift, load_everywhere(s.above, i), unit, none)
    side = where_greater(load_everywhere(s.below, i), shift, -unit, side)
    store(s.slope, i * LANES, slope + single * curvature + side * penalty)
    store(s.side, i * LANES, side)
    return side


@inlined
def _quotients(s, penalty, l, samples, dim, inverse):
    r"""Compute the quotients of the penalty in coordinates with directions on both sides.

    With s the sign of m, :math:`|x+m|-|x| = \min\{\max\{2sx + |m|, -|m|\}, |m|\}`.
    """
    lanes, settings, count = s.middle_products.size, penalty.size, 0
    for i in range(dim):
        if s.is_mixed[i] > _ZERO:
            side, weight = load(s.side, i * LANES), load(penalty, l)
            store(s.weight, count * LANES, weight - side * side * weight)
            shift = load(s.single, i * settings + l) * (inverse + inverse)
            store(s.shift, count * LANES, shift)
            s.mixed_offsets[count] = i * lanes
            count += 1
    for j in range(samples):
        value = everywhere(_ZERO)
        for k in range(count):
            shift, at = load(s.shift, k * LANES), s.mixed_offsets[k] + j
            value = value + _difference(s, shift, at) * load(s.weight, k * LANES)
        store(s.quotient, j * LANES, value)


@inlined
def _difference(s, shift, at):
    size = load_everywhere(s.sizes, at)
    x = load_everywhere(s.scaled, at) + shift * load_everywhere(s.signs, at)
    return minimum(maximum(x, -size), size)


@inlined
def _descend(s, h, length, l, step_factor, samples, dim, kinks):
    """Subtract the step times the sum over the directions of the quotient times m from b."""
    lanes, columns, settings = s.middle_products.size, s.linear_sum.size, h.size
    curvature = load(h, l)
    for i in range(dim):
        # Terms of the quotient that depend on the directions only.
        linear_sum = load_everywhere(s.linear_sum, i)
        total = curvature * linear_sum + load_everywhere(s.curved_sum, i)
        for k in range(dim):
            moment = load_everywhere(s.moments, k * columns + i)
            total = total + load(s.slope, k * LANES) * moment
        if kinks:
            for j in range(samples):
                m = load_everywhere(s.m, i * lanes + j)
                total = total + load(s.quotient, j * LANES) * m
        store(s.total, 0, total)
        begin = i * settings + l
        end = begin + LANES
        b, single = s.b[begin:end], s.single[begin:end]
        _step(b, single, s.total, length[l : l + LANES], step_factor)


@uncounted
def _step(b, single, total, length, step_factor):
    for c in range(b.size):
        b[c] -= np.float64(total[c]) * (length[c] * step_factor)
        single[c] = np.float32(b[c])
