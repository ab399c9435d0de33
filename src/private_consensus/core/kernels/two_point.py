r"""Two-point method for a quadratic plus a multiple of the l1 norm.

The method minimises :math:`F(b) = \tfrac12 b^T (G + h I) b + q^T b + \lambda\|b\|_1` from values of
F. From :math:`b = 0`, for :math:`t = 1, \dots, T`,

.. math::
    b &\leftarrow b - \frac{a}{\sqrt t}\,\frac1J \sum_{j=1}^J
      \frac{F(p_j + v_t m_j) - F(p_j)}{v_t}\, m_j, \qquad p_j = b + u_t n_j

with standard normal :math:`n_j, m_j`, :math:`u_t = u_1/t` and :math:`v_t = u_1/(Pt)^2` (Duchi,
Jordan, Wainwright, Wibisono, IEEE Trans. IT 2015; paper 002, eqs. (9)-(13)). The quotient is
computed without a difference of nearly equal numbers:

.. math:: m^T\bigl((G+hI)(p + \tfrac v2 m) + q\bigr) + \lambda\sum_i (|x_i + m_i| - |x_i|), \qquad
          x_i = \min\{\max\{p_i/v, -|m_i|\}, |m_i|\}

The two are equal. For the second sum the reason is that :math:`|x+m|-|x|` is constant for
:math:`|x| \ge |m|`. If all directions of a coordinate have :math:`x_i \ge |m_i|`, or all
:math:`x_i \le -|m_i|`, the term is :math:`\pm m_i`, and so a part of the slope. This is so except
close to a kink. The mean over the directions of the terms that are linear in m is

.. math:: \frac1J\Bigl(\sum_j m_jm_j^T\Bigr)\bigl((G+hI)b + q + \lambda\,\mathrm{side}\bigr)
          + \frac1J\sum_j m_j\,m_j^T(G+hI)\bigl(u n_j + \tfrac v2 m_j\bigr),

with one matrix and one vector for all settings that share the samples. A setting iterates over the
directions only for coordinates with directions on both sides of a kink. In :func:`solve` the
J directions are stored in vectors of float32; b is stored in float64. :func:`solve_plainly`
computes the quotient above in NumPy and float64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from private_consensus.common.errors import InvalidInput

from .compiling import compiled, inlined, share_out
from .entries import require_layout, require_one_of
from .normals import normal_pairs, normals
from .vectors import (
    DOUBLE_LANES,
    LANES,
    WIDE,
    aligned,
    everywhere,
    everywhere_wide,
    greatest,
    largest_of,
    least,
    load,
    load_everywhere,
    load_wide,
    narrowed,
    singles,
    store,
    turn,
    where_less,
    widened,
    words,
    zeros_of,
)

_PAIRS = 16
"""Number of counter bits for the direction; the coordinate has the bits above them."""

_ROWS = 5
"""Number of interleaved coordinates: each addition to a coordinate waits for the previous one."""

_ZERO, _HALF, _ONE, _TWO = (np.float32(value) for value in (0.0, 0.5, 1.0, 2.0))
_SIGN, _LOWEST, _NONE = np.uint32(1 << 31), np.uint64(1), np.uint64(0)


class Subproblem(NamedTuple):
    r"""Settings of one problem, which are solved from the origin for every setting, run and agent.

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
    loops, samples : ndarray of int, shape (S,)
        :math:`T` and :math:`J`. Settings share samples: each uses the first J directions.
    """

    gram: np.ndarray
    curvature: np.ndarray
    linear: np.ndarray
    penalty: np.ndarray
    step: np.ndarray
    loops: np.ndarray
    samples: np.ndarray


def solve(
    gram, curvature, linear, penalty, step, keys, counter, *, loops, samples, u1, workers=None
):
    """Take T steps from the origin, for every setting, run and agent.

    Parameters
    ----------
    gram, curvature, linear, penalty, step, loops, samples
        See :class:`Subproblem`.
    keys : ndarray of uint32, shape (R, 2)
        One key per run.
    counter : int
        Number of previous solves: no two solves of a run share samples.
    u1 : float
        :math:`u_1`.
    workers : int, optional
        Number of threads; the results do not depend on it.

    Returns
    -------
    ndarray, shape (S, R, K, P)
        Not finite if the steps were too long.
    """
    problem = Subproblem(gram, curvature, linear, penalty, step, loops, samples)
    return solve_several([problem], keys, counter, u1=u1, workers=workers)[0]


def solve_several(problems, keys, counter, *, u1, workers=None):
    """Solve several problems with equal largest T, with directions that are sampled once.

    The results are those of :func:`solve` for each problem.

    Parameters
    ----------
    problems : sequence of Subproblem
        Problems with equal numbers of runs, agents and coordinates.
    keys : ndarray of uint32, shape (R, 2)
        One key per run.
    counter : int
        Number of previous solves.
    u1 : float
        :math:`u_1`.
    workers : int, optional
        Number of threads.

    Returns
    -------
    list of ndarray, shape (S, R, K, P)
    """
    for problem in problems:
        _require_asked(problem, np.shape(problems[0].linear)[1:], keys)
    largest_loops = [int(np.max(problem.loops)) for problem in problems]
    if len(set(largest_loops)) > 1:
        raise ValueError("problems that share draws have as many loops")
    solutions = [np.empty(np.shape(problem.linear)) for problem in problems]
    numbering = (first_counter(counter, solutions[0].shape[2], largest_loops[0]), largest_loops[0])
    for count in sorted({int(count) for problem in problems for count in problem.samples}):
        selections = [np.flatnonzero(np.asarray(problem.samples) == count) for problem in problems]
        nonempty = [i for i, selection in enumerate(selections) if len(selection)]
        selected = [_chosen(problems[i], selections[i]) for i in nonempty]
        solved = _solve_alike(selected, keys, numbering, count, u1, workers)
        for i, out in zip(nonempty, solved, strict=True):
            solutions[i][selections[i]] = out
    return solutions


def _require_asked(problem: Subproblem, shape: tuple[int, ...], keys: np.ndarray) -> None:
    """Check the arrays of a problem with runs, agents and coordinates of this shape."""
    kernel, settings = "solve", len(problem.linear)
    require_layout(kernel, "linear", problem.linear, (-1, *shape))
    runs, agents, dim = shape
    require_layout(kernel, "keys", keys, (runs, 2))
    require_layout(kernel, "gram", problem.gram, (-1, agents, dim, dim))
    require_one_of(kernel, "gram", len(problem.gram), (1, runs))
    per_setting = {"penalty": problem.penalty, "loops": problem.loops, "samples": problem.samples}
    for name, values in per_setting.items():
        require_layout(kernel, name, values, (settings,))
    for name, values in {"curvature": problem.curvature, "step": problem.step}.items():
        actual, full = np.shape(values), (settings, runs, agents)
        fits = len(actual) <= 3 and all(
            a in (1, b) for a, b in zip(actual[::-1], full[::-1], strict=False)
        )
        if not fits:
            raise InvalidInput(f"{kernel}.{name}", actual, f"a shape that broadcasts to {full}")


def _chosen(problem: Subproblem, selection: np.ndarray) -> Subproblem:
    """Select settings, and broadcast all arrays."""
    shape = np.shape(problem.linear)[:-1]
    return Subproblem(
        np.asarray(problem.gram),
        np.broadcast_to(problem.curvature, shape)[selection],
        np.asarray(problem.linear)[selection],
        np.asarray(problem.penalty)[selection],
        np.broadcast_to(problem.step, shape)[selection],
        np.asarray(problem.loops)[selection],
        np.asarray(problem.samples)[selection],
    )


def _solve_alike(problems, keys, numbering, samples, u1, workers):
    """Solve settings with equal numbers of directions."""
    grams, matrix_index = _distinct([problem.gram for problem in problems])
    shape = np.shape(problems[0].linear)[1:]
    runs, dim = max(map(len, grams)), shape[-1]
    counts = [len(problem.linear) for problem in problems]
    steps = np.concatenate([problem.step[:, 0, 0] for problem in problems])
    lanes, matrices, owners = _lanes(np.repeat(matrix_index, counts), steps)
    blocks, rows = len(matrices), _up(dim, _ROWS)

    def spread(values, *shape_after, kind=np.float32):
        """Concatenate arrays of all parts, with settings as the last axis, in their lanes."""
        out = np.zeros((*np.shape(values[0])[1:-1], *shape_after, blocks * LANES), kind)
        stacked = np.moveaxis(np.concatenate(values), 0, -1)
        out[..., : stacked.shape[-2], lanes] = stacked
        return out

    gram = np.zeros((len(grams), runs, shape[1], rows, _up(rows, LANES)), np.float32)
    for w, matrix in enumerate(grams):
        gram[w, :, :, :dim, :dim] = matrix
    loops = spread([problem.loops[:, None] for problem in problems], 1, kind=np.int64)[0]
    out = np.empty((*shape[:2], dim, blocks * LANES))
    arguments = (
        gram,
        matrices,
        spread([problem.curvature for problem in problems], shape[1]),
        spread([problem.linear for problem in problems], rows),
        spread([problem.penalty[:, None] for problem in problems], 1)[0],
        spread([problem.step for problem in problems], shape[1], kind=np.float64),
        _bits(len(lanes), blocks),
        keys,
        *numbering,
        loops,
        np.isin(np.arange(numbering[1] + 1), loops),
        dim,
        samples,
        np.float32(u1),
        out,
    )

    def solve_block(begin, end):
        _solve_runs(
            begin, end, *arguments, _scratch(blocks * LANES, owners, len(grams), dim, samples)
        )

    share_out(solve_block, shape[0], workers)
    solutions = np.moveaxis(out[..., lanes], -1, 0)
    return np.split(solutions, np.cumsum(counts)[:-1])


def _distinct(arrays):
    """Return the distinct arrays and the index of each array among them.

    Networks differ, but often have equal data.
    """
    distinct, indices = [], []
    for array in arrays:
        same = (i for i, candidate in enumerate(distinct) if np.array_equal(candidate, array))
        indices.append(next(same, len(distinct)))
        if indices[-1] == len(distinct):
            distinct.append(array)
    return distinct, indices


def _lanes(matrix_index, steps):
    """Assign the settings to lanes.

    Return the lane of every setting, the matrix of every vector of lanes, and the matrix of each
    lane for vectors with several matrices. Such vectors have a number after those of the matrices.

    Settings with similar step lengths are adjacent, because they are close to the same kinks. The
    settings of a matrix that do not fill a vector share vectors with those of other matrices.
    """
    ordered, full_vectors, remainders = np.argsort(steps, kind="stable"), [], []
    for matrix in range(matrix_index.max() + 1):
        settings = ordered[matrix_index[ordered] == matrix]
        end = len(settings) // LANES * LANES
        full_vectors.append(settings[:end])
        remainders.append(settings[end:])
    order, lanes = np.concatenate(full_vectors + remainders), np.empty(len(matrix_index), int)
    lanes[order] = np.arange(len(matrix_index))
    owned = np.pad(matrix_index[order], (0, -len(matrix_index) % LANES), mode="edge").reshape(
        -1, LANES
    )
    several = (owned != owned[:, :1]).any(1)
    matrices = np.where(several, matrix_index.max() + np.cumsum(several), owned[:, 0])
    return lanes, matrices, owned[several]


def _bits(settings, blocks):
    """Return a bit mask of used lanes for every vector of lanes."""
    is_used = np.arange(blocks * LANES) < settings
    return (is_used.reshape(blocks, LANES) * (1 << np.arange(LANES))).sum(1).astype(np.uint64)


def first_counter(counter: int, agents: int, loops: np.ndarray) -> int:
    """Return the first counter of a solve.

    Agent k in loop t has the counter with the offset k T + t - 1, with t from 1 to T.

    Parameters
    ----------
    counter : int
        Number of previous solves.
    agents : int
        Number of agents.
    loops : int or ndarray of int
        :math:`T`; the largest one counts.

    Returns
    -------
    int
    """
    return counter * agents * int(np.max(loops))


def places(dim: int, samples: int) -> np.ndarray:
    """Return the second half of the counters of all coordinates and directions.

    Parameters
    ----------
    dim, samples : int
        Numbers of coordinates and of directions.

    Returns
    -------
    ndarray of uint32, shape (dim, samples)
    """
    i, j = np.indices((dim, samples), dtype=np.uint32)
    return (i << np.uint32(_PAIRS)) | j


class _TwoPointScratch(NamedTuple):
    """Scratch of a thread, flat; settings, directions and coordinates are padded to whole vectors.

    W is the number of matrices G of the settings, V the number of vectors with several matrices.
    """

    G: np.ndarray  # [W, P, P]
    laid: np.ndarray  # [V, P, P, LANES]: G of every lane
    owned: np.ndarray  # [V, W, LANES]: 1 if a lane has the matrix, else 0
    places: np.ndarray  # [P, J]; uint32
    used: np.ndarray  # [J]: 1, and 0 for padding directions
    m: np.ndarray  # [P, J]; 0 for padding directions
    sizes: np.ndarray  # [P, J]: |m|
    signs: np.ndarray  # [P, J]: sign of m
    scaled: np.ndarray  # [P, J]: 2 n u/v with the sign of m, and |m|
    middle: np.ndarray  # [P, J]: u n + v m / 2
    rows: np.ndarray  # [J, P]: m
    own: np.ndarray  # [J]: m' middle
    bent: np.ndarray  # [W, J]: m' G middle
    above: np.ndarray  # [P]: for larger b/v, all directions are on its side of the kink
    below: np.ndarray  # [P]: the same for smaller b/v
    moments: np.ndarray  # [P, P]: sum of m m'
    pushed: np.ndarray  # [P]: sum of m m' middle
    bowed: np.ndarray  # [W, P]: sum of m m' G middle
    bows: np.ndarray  # [V, P, LANES]: bowed of every lane
    b: np.ndarray  # [P, S]; float64
    single: np.ndarray  # [P, S]: b in float32
    # For the settings in one vector:
    slope: np.ndarray  # [P, LANES]
    side: np.ndarray  # [P, LANES]: 1 or -1; 0 if directions are on both sides
    divided: np.ndarray  # [P]: bit mask of the settings with directions on both sides
    which: np.ndarray  # [P]: coordinates in which any setting has such directions
    shift: np.ndarray  # [P, LANES]: for these coordinates, 2 b/v
    weight: np.ndarray  # [P, LANES]: for these, the penalty if the side is 0, else 0
    quotient: np.ndarray  # [J, LANES]: sum over these coordinates


def _scratch(settings: int, owners, matrices: int, dim: int, samples: int) -> _TwoPointScratch:
    lanes, rows = _up(samples, WIDE), _up(dim, _ROWS)
    columns = _up(rows, LANES)
    where = aligned(dim * lanes, np.uint32)
    where[:] = places(dim, lanes).ravel()
    used, above = aligned(lanes), aligned(columns)
    owned = aligned(len(owners) * matrices * LANES)
    owned[:] = (owners[:, None] == np.arange(matrices)[:, None]).ravel()
    used[:samples] = 1.0
    above[:] = -1.0  # padding coordinates are at 0, on one side of the kink
    return _TwoPointScratch(
        aligned(matrices * rows * columns),
        aligned(len(owners) * rows * columns * LANES),
        owned,
        where,
        used,
        *(aligned(columns * lanes) for _ in range(6)),
        aligned(lanes),
        aligned(matrices * lanes),
        above,
        aligned(columns),
        aligned(columns * columns),
        aligned(columns),
        aligned(matrices * columns),
        aligned(len(owners) * columns * LANES),
        aligned(rows * settings, np.float64),
        aligned(rows * settings),
        *(aligned(rows * LANES) for _ in range(2)),
        aligned(rows, np.uint64),
        aligned(rows, np.int64),
        *(aligned(rows * LANES) for _ in range(2)),
        aligned(lanes * LANES),
    )


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


@compiled
def _solve_runs(
    begin,
    end,
    gram,
    matrices,
    curvature,
    linear,
    penalty,
    step,
    used,
    keys,
    first,
    most,
    loops,
    ends,
    dim,
    samples,
    u1,
    out,
    scratch,
):
    settings, agents = out.shape[3], out.shape[1]
    b, single, several = scratch.b, scratch.single, len(gram)
    for run in range(begin, end):
        for agent in range(agents):
            scratch.G[:] = gram[:, run if gram.shape[1] > 1 else 0, agent].copy().ravel()
            _lay_in_lanes(scratch, scratch.laid, scratch.G)
            q, h, length = linear[run, agent].ravel(), curvature[run, agent], step[run, agent]
            b[:] = 0.0
            single[:] = 0.0
            for t in range(1, most + 1):
                inverse = np.float32((dim * t) * (dim * t)) / u1
                counter = np.uint32(first + agent * most + t - 1)
                _draw(
                    scratch, keys[run, 0], keys[run, 1], counter, u1 / np.float32(t), inverse, dim
                )
                _lay_in_rows(scratch)
                _sum_over_directions(scratch, samples, dim)
                _lay_in_lanes(scratch, scratch.bows, scratch.bowed)
                share = 1.0 / (samples * np.sqrt(t))
                for l in range(0, settings, LANES):
                    w, some = matrices[l // LANES], used[l // LANES]
                    # Arrays are passed separately: those in a tuple would be reference-counted.
                    if w < several:
                        _advance(
                            scratch, _common, w, q, h, penalty, length,
                            some, l, inverse, share, samples, dim,
                        )  # fmt: skip
                    else:
                        _advance(
                            scratch, _own, w - several, q, h, penalty, length,
                            some, l, inverse, share, samples, dim,
                        )  # fmt: skip
                if ends[t]:
                    for l in range(settings):
                        if loops[l] == t:
                            for i in range(dim):
                                out[run, agent, i, l] = b[i * settings + l]


@inlined
def _lay_in_lanes(scratch, out, given):
    """Collect the values that belong to each lane's matrix, for vectors with several matrices.

    The value is a sum in which all terms but one are 0.
    """
    matrices = scratch.bowed.size // scratch.pushed.size
    vectors, size = scratch.owned.size // (matrices * LANES), given.size // matrices
    for v in range(vectors):
        for i in range(size):
            value = everywhere(_ZERO)
            for w in range(matrices):
                own = load(scratch.owned, (v * matrices + w) * LANES)
                value = value + own * load_everywhere(given, w * size + i)
            store(out, (v * size + i) * LANES, value)


@inlined
def _up_to_rows(dim):
    return (dim + _ROWS - 1) // _ROWS * _ROWS


@inlined
def _draw(scratch, k0, k1, counter, u, inverse, dim):
    """Sample directions, and compute the terms of the quotient that depend on them only."""
    lanes = scratch.own.size
    half, scale = _HALF / inverse, u * inverse
    for j in range(0, lanes, WIDE):
        own = everywhere_wide(_ZERO)
        used = load_wide(scratch.used, j)
        for i in range(dim):
            at = i * lanes + j
            n, m = normal_pairs(k0, k1, everywhere_wide(counter), load_wide(scratch.places, at))
            m = m * used
            sign = words(m) & _SIGN
            middle, scaled, size = n * u + m * half, n * scale, singles(words(m) ^ sign)
            own = own + m * middle
            store(scratch.middle, at, middle)
            store(scratch.m, at, m)
            store(scratch.sizes, at, size)
            store(scratch.signs, at, singles(words(everywhere_wide(_ONE)) ^ sign))
            store(scratch.scaled, at, singles(words(scaled + scaled) ^ sign) + size)
            above, below = largest_of(size - scaled), -largest_of(size + scaled)
            if j > 0:
                above, below = max(above, scratch.above[i]), min(below, scratch.below[i])
            scratch.above[i], scratch.below[i] = above, below
        store(scratch.own, j, own)


@inlined
def _lay_in_rows(scratch):
    """Transpose the directions, so that sums over directions are sums of vectors."""
    lanes, columns = scratch.own.size, scratch.pushed.size
    for j in range(0, lanes, LANES):
        for c in range(0, columns, LANES):
            turn(scratch.rows, j * columns + c, columns, scratch.m, c * lanes + j, lanes)


@inlined
def _sum_over_directions(scratch, samples, dim):
    lanes, columns = scratch.own.size, scratch.pushed.size
    for c in range(0, columns, LANES):
        for k in range(0, dim, _ROWS):
            _second_moments(scratch, k, c, samples)
        store(scratch.pushed, c, _sum_of_rows(scratch, scratch.own, 0, c, samples))
    for w in range(scratch.bowed.size // columns):
        _bend(scratch, w, dim)
        for c in range(0, columns, LANES):
            row = _sum_of_rows(scratch, scratch.bent, w * lanes, c, samples)
            store(scratch.bowed, w * columns + c, row)


@inlined
def _second_moments(scratch, k, c, samples):
    """Compute five rows of the sum of ``m m'``, each as two sums with fewer dependent steps."""
    lanes, columns, none = scratch.own.size, scratch.pushed.size, everywhere(_ZERO)
    a0, a1, a2, a3, a4 = none, none, none, none, none
    b0, b1, b2, b3, b4 = none, none, none, none, none
    for j in range(0, samples, 2):
        row = load(scratch.rows, j * columns + c)
        after = load(scratch.rows, (j + 1) * columns + c)
        at = k * lanes + j
        a0 = a0 + row * load_everywhere(scratch.m, at)
        b0 = b0 + after * load_everywhere(scratch.m, at + 1)
        at += lanes
        a1 = a1 + row * load_everywhere(scratch.m, at)
        b1 = b1 + after * load_everywhere(scratch.m, at + 1)
        at += lanes
        a2 = a2 + row * load_everywhere(scratch.m, at)
        b2 = b2 + after * load_everywhere(scratch.m, at + 1)
        at += lanes
        a3 = a3 + row * load_everywhere(scratch.m, at)
        b3 = b3 + after * load_everywhere(scratch.m, at + 1)
        at += lanes
        a4 = a4 + row * load_everywhere(scratch.m, at)
        b4 = b4 + after * load_everywhere(scratch.m, at + 1)
    at = k * columns + c
    store(scratch.moments, at, a0 + b0)
    store(scratch.moments, at + columns, a1 + b1)
    store(scratch.moments, at + 2 * columns, a2 + b2)
    store(scratch.moments, at + 3 * columns, a3 + b3)
    store(scratch.moments, at + 4 * columns, a4 + b4)


@inlined
def _sum_of_rows(scratch, weights, at, c, samples):
    """Compute the sum over the directions of m times a weight."""
    columns = scratch.pushed.size
    first, second = everywhere(_ZERO), everywhere(_ZERO)
    third, fourth = everywhere(_ZERO), everywhere(_ZERO)
    for j in range(0, samples, 4):
        row = j * columns + c
        first = first + load(scratch.rows, row) * load_everywhere(weights, at + j)
        row += columns
        second = second + load(scratch.rows, row) * load_everywhere(weights, at + j + 1)
        row += columns
        third = third + load(scratch.rows, row) * load_everywhere(weights, at + j + 2)
        row += columns
        fourth = fourth + load(scratch.rows, row) * load_everywhere(weights, at + j + 3)
    return (first + second) + (third + fourth)


@inlined
def _bend(scratch, w, dim):
    """Compute ``m' G middle`` of each direction."""
    lanes, columns = scratch.own.size, scratch.pushed.size
    first = w * _up_to_rows(dim) * columns
    for j in range(0, lanes, WIDE):
        value = everywhere_wide(_ZERO)
        for i in range(dim):
            image = everywhere_wide(_ZERO)
            for k in range(dim):
                g = scratch.G[first + i * columns + k]
                image = image + load_wide(scratch.middle, k * lanes + j) * g
            value = value + load_wide(scratch.m, i * lanes + j) * image
        store(scratch.bent, w * lanes + j, value)


@inlined
def _advance(scratch, read, w, q, h, penalty, length, used, l, inverse, share, samples, dim):
    """Take a step of the settings in a vector of lanes.

    ``read`` is :func:`_common` if the lanes share matrix w, and :func:`_own` if they have several,
    so that no loop has to test for it.
    """
    some = _slopes(scratch, read, w, q, h, penalty, used, l, inverse, dim)
    kinks = some != _NONE
    if kinks:
        _quotients(scratch, penalty, l, samples, dim, inverse)
    _descend(scratch, read, w, h, length, l, share, samples, dim, kinks)


@inlined
def _slopes(scratch, read, w, q, h, penalty, used, l, inverse, dim):
    """Compute the gradient at b of the quadratic part and of the penalty away from kinks.

    The penalty contributes in coordinates whose directions are all on one side of its kink. Return
    a bit mask of the settings with other coordinates.
    """
    settings, columns = penalty.size, scratch.pushed.size
    first, curvature = w * _up_to_rows(dim) * columns, load(h, l)
    weight, some = load(penalty, l), _NONE
    for i in range(0, dim, _ROWS):
        at = i * settings + l
        s0, s1 = load(q, at), load(q, at + settings)
        s2, s3 = load(q, at + 2 * settings), load(q, at + 3 * settings)
        s4 = load(q, at + 4 * settings)
        for k in range(dim):
            x, g = load(scratch.single, k * settings + l), first + k * columns + i
            s0 = s0 + x * read(scratch.G, scratch.laid, g)
            s1 = s1 + x * read(scratch.G, scratch.laid, g + 1)
            s2 = s2 + x * read(scratch.G, scratch.laid, g + 2)
            s3 = s3 + x * read(scratch.G, scratch.laid, g + 3)
            s4 = s4 + x * read(scratch.G, scratch.laid, g + 4)
        some |= _side(scratch, s0, i, at, curvature, weight, inverse)
        some |= _side(scratch, s1, i + 1, at + settings, curvature, weight, inverse)
        some |= _side(scratch, s2, i + 2, at + 2 * settings, curvature, weight, inverse)
        some |= _side(scratch, s3, i + 3, at + 3 * settings, curvature, weight, inverse)
        some |= _side(scratch, s4, i + 4, at + 4 * settings, curvature, weight, inverse)
    return some & used


@inlined
def _side(scratch, slope, i, at, curvature, penalty, inverse):
    """Store the slope of a coordinate, and its side if all directions are on one side.

    Return a bit mask of the settings with directions on both sides.
    """
    single, one, none = load(scratch.single, at), everywhere(_ONE), everywhere(_ZERO)
    shift = single * inverse
    side = where_less(load_everywhere(scratch.above, i), shift, one, none)
    side = where_less(shift, load_everywhere(scratch.below, i), -one, side)
    store(scratch.slope, i * LANES, slope + single * curvature + side * penalty)
    store(scratch.side, i * LANES, side)
    found = zeros_of(side)
    scratch.divided[i] = found
    return found


@inlined
def _quotients(scratch, penalty, l, samples, dim, inverse):
    r"""Compute the quotients of the penalty in coordinates with directions on both sides.

    With s the sign of m, :math:`|x+m|-|x| = \min\{\max\{2sx + |m|, -|m|\}, |m|\}`.
    """
    lanes, settings, count = scratch.own.size, penalty.size, 0
    for i in range(dim):
        if scratch.divided[i] != _NONE:
            side, weight = load(scratch.side, i * LANES), load(penalty, l)
            store(scratch.weight, count * LANES, weight - side * side * weight)
            shift = load(scratch.single, i * settings + l) * (inverse + inverse)
            store(scratch.shift, count * LANES, shift)
            scratch.which[count] = i * lanes
            count += 1
    for j in range(0, samples, 2):
        first, second = everywhere(_ZERO), everywhere(_ZERO)
        for k in range(count):
            at = scratch.which[k] + j
            shift, weight = load(scratch.shift, k * LANES), load(scratch.weight, k * LANES)
            first = first + _difference(scratch, shift, at) * weight
            second = second + _difference(scratch, shift, at + 1) * weight
        store(scratch.quotient, j * LANES, first)
        store(scratch.quotient, (j + 1) * LANES, second)


@inlined
def _difference(scratch, shift, at):
    size = load_everywhere(scratch.sizes, at)
    x = load_everywhere(scratch.scaled, at) + shift * load_everywhere(scratch.signs, at)
    return least(greatest(x, -size), size)


@inlined
def _descend(scratch, read, w, h, length, l, share, samples, dim, kinks):
    """Subtract the step times the sum over the directions of the quotient times m from b."""
    lanes, columns, settings = scratch.own.size, scratch.pushed.size, h.size
    curvature = load(h, l)
    lower, upper = load(length, l) * share, load(length, l + DOUBLE_LANES) * share
    for i in range(0, dim, _ROWS):
        s0 = _pushed(scratch, read, curvature, w, i)
        s1 = _pushed(scratch, read, curvature, w, i + 1)
        s2 = _pushed(scratch, read, curvature, w, i + 2)
        s3 = _pushed(scratch, read, curvature, w, i + 3)
        s4 = _pushed(scratch, read, curvature, w, i + 4)
        for k in range(dim):
            slope, at = load(scratch.slope, k * LANES), k * columns + i
            s0 = s0 + slope * load_everywhere(scratch.moments, at)
            s1 = s1 + slope * load_everywhere(scratch.moments, at + 1)
            s2 = s2 + slope * load_everywhere(scratch.moments, at + 2)
            s3 = s3 + slope * load_everywhere(scratch.moments, at + 3)
            s4 = s4 + slope * load_everywhere(scratch.moments, at + 4)
        if kinks:
            for j in range(samples):
                quotient, at = load(scratch.quotient, j * LANES), i * lanes + j
                s0 = s0 + quotient * load_everywhere(scratch.m, at)
                s1 = s1 + quotient * load_everywhere(scratch.m, at + lanes)
                s2 = s2 + quotient * load_everywhere(scratch.m, at + 2 * lanes)
                s3 = s3 + quotient * load_everywhere(scratch.m, at + 3 * lanes)
                s4 = s4 + quotient * load_everywhere(scratch.m, at + 4 * lanes)
        at = i * settings + l
        _step(scratch, at, s0, lower, upper)
        _step(scratch, at + settings, s1, lower, upper)
        _step(scratch, at + 2 * settings, s2, lower, upper)
        _step(scratch, at + 3 * settings, s3, lower, upper)
        _step(scratch, at + 4 * settings, s4, lower, upper)


@inlined
def _pushed(scratch, read, curvature, w, i):
    """Sum m times the terms of the quotient that depend on the directions only."""
    bow = read(scratch.bowed, scratch.bows, w * scratch.pushed.size + i)
    return curvature * load_everywhere(scratch.pushed, i) + bow


@inlined
def _common(one, laid, at):
    """Load a number of the matrix that all lanes share."""
    return load_everywhere(one, at)


@inlined
def _own(one, laid, at):
    """Load a number of the matrix of each lane."""
    return load(laid, at * LANES)


@inlined
def _step(scratch, at, total, lower, upper):
    first, second = widened(total)
    first = load(scratch.b, at) - first * lower
    second = load(scratch.b, at + DOUBLE_LANES) - second * upper
    store(scratch.b, at, first)
    store(scratch.b, at + DOUBLE_LANES, second)
    store(scratch.single, at, narrowed(first, second))


# --- Reference ------------------------------------------------------------------------------------


def solve_plainly(
    gram, curvature, linear, penalty, step, keys, counter, *, loops, samples, u1, draw=normals
):
    """Compute the result of :func:`solve` in NumPy and float64.

    Parameters
    ----------
    gram, curvature, linear, penalty, step, loops, samples
        See :class:`Subproblem`.
    keys : ndarray of uint32, shape (R, 2)
        One key per run.
    counter : int
        Number of previous solves.
    u1 : float
        :math:`u_1`.
    draw : callable
        Maps keys and counters to pairs of normals.

    Returns
    -------
    ndarray, shape (S, R, K, P)
    """
    settings, runs, agents, dim = np.shape(linear)
    curvature = np.broadcast_to(curvature, (settings, runs, agents))[..., None, None]
    hessian = np.asarray(gram, float) + curvature * np.eye(dim)
    step = np.broadcast_to(step, (settings, runs, agents))[..., None]
    largest_loops, directions = int(np.max(loops)), int(np.max(samples))
    samples = np.asarray(samples)[:, None]
    weights = np.where(np.arange(directions) < samples, 1.0 / samples, 0.0)[:, None, None]
    b = np.zeros((settings, runs, agents, dim))
    for t in range(1, largest_loops + 1):
        counters = first_counter(counter, agents, loops) + np.arange(agents) * largest_loops + t - 1
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
    """Compute the normals n and m of one loop, as in :func:`solve`.

    Parameters
    ----------
    keys : ndarray of uint32, shape (R, 2)
        One key per run.
    counters : ndarray of int, shape (K,)
        Counters of the agents.
    dim, samples : int
        Numbers of coordinates and of directions.
    draw : callable
        Maps keys and counters to pairs of normals.

    Returns
    -------
    tuple of ndarray, shape (R, K, J, P)
    """
    counters = np.asarray(counters, np.uint32)[:, None, None]
    pairs = draw(keys[:, None, None, None, :], counters, places(dim, samples))
    return tuple(np.swapaxes(normal, -1, -2) for normal in pairs)


def difference_quotient(hessian, linear, penalty, b, n, m, u: float, v: float) -> np.ndarray:
    r"""Compute :math:`[F(b + u n + v m) - F(b + u n)]/v`.

    Parameters
    ----------
    hessian : ndarray, shape (..., P, P)
        :math:`G + hI`.
    linear, b : ndarray, shape (..., P)
        :math:`q` and b.
    penalty : float or ndarray
        :math:`\lambda`, broadcast against (..., J).
    n, m : ndarray, shape (..., J, P)
        Directions.
    u, v : float
        Lengths of the two displacements.

    Returns
    -------
    ndarray, shape (..., J)
    """
    p = b[..., None, :] + u * n
    middle = p + v / 2 * m
    smooth = (m * (middle @ hessian + np.asarray(linear)[..., None, :])).sum(-1)
    x = np.clip(p / v, -np.abs(m), np.abs(m))
    return smooth + penalty * (np.abs(x + m) - np.abs(x)).sum(-1)
