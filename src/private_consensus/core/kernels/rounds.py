"""Compute a round of decentralized SGD for all settings of a run in one pass over the models.

Rounding, mixing, noise, gradients and the step process one tile of pairs of coordinates at a time.
Sent and received values stay in the caches. Settings that scale the same samples share them.
Samples are those of :mod:`.messages`, with the same indices. Every number results from the same
operations in the same order as one step at a time, so that the output is byte-identical. Sums over
agents follow the order of a matrix product: one after the other, each product rounded together with
its sum, and without products of weight 0.

Whole vectors of a row are processed in registers, with eight interleaved sums over agents, because
a single sum waits for its previous addition. The remainder of a row uses the plain loops of
:mod:`.rows`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .backpropagation import Factors, copy, no_factors, require_parameters, write_gradient
from .compiling import inlined, uncounted
from .entries import require_indices, require_layout
from .few_points import DrawBounds, bounds_of, round_to_few
from .normals import fill_first_words, fill_normals, fill_uniforms, fill_words
from .rows import (
    GUIDE,
    NoiseTable,
    add_steps,
    descend_row,
    discrete_table,
    find_steps,
    round_row,
    sparse_row,
)
from .vectors import (
    LANES,
    WIDE,
    everywhere,
    everywhere_wide,
    floor,
    greatest,
    least,
    load,
    load_wide,
    store,
    total_of,
    where_less,
    where_unequal,
)
from .workspaces import kept, workspace

ROW = 8192
"""Number of pairs of coordinates of an agent that are rounded together."""

AT_ONCE = 1 << 17
"""Number of pairs of coordinates per tile, over all agents. Smaller tiles fit into an inner
cache, but their overhead exceeds the gain."""

GAP = 8 * LANES
"""Distance between the parts of two agents in a tile. With a power of two all parts would share
the same few lines of the innermost cache."""

_NOTHING, _ONE = np.float32(0.0), np.float32(1.0)


class Steps(NamedTuple):
    r"""Coefficients of the step of each setting, all of float32.

    The step is :math:`x_i \leftarrow k_i b_i + \sum_j w_{ij} z_j - a(g_i + s_i \xi_i)`: w
    [settings, agents * agents], k and s [settings, agents], a [settings].
    """

    weights: np.ndarray
    keep: np.ndarray
    scale: np.ndarray
    step: np.ndarray


class Grids(NamedTuple):
    """Resolution of each setting's grid, and its ends in steps; float32 [settings]."""

    resolution: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray


class Gradients(NamedTuple):
    """Gradients of the agents of all settings, [settings * agents, p], or their factors.

    The unused field is empty.
    """

    whole: np.ndarray
    factors: Factors


def in_factors(factors: Factors) -> Gradients:
    """Wrap factored gradients, which are multiplied out for each tile."""
    return Gradients(_NO_ROWS, factors)


def in_full(gradients: np.ndarray) -> Gradients:
    """Wrap gradients [settings * agents, p]."""
    return Gradients(gradients, _NO_FACTORS)


class Sparse(NamedTuple):
    r"""Coefficient :math:`\theta` and fraction of sent coordinates of each setting; float32."""

    theta: np.ndarray
    share: np.ndarray


def steps_of(*, weights, keep, scale, step) -> Steps:
    """Build the coefficients of the steps from matrices and numbers per setting.

    Parameters
    ----------
    weights : sequence of ndarray, shape (agents, agents)
        Mixing matrices w, rounded once to float32.
    keep, scale : array_like, shape (settings, agents)
        k and s.
    step : array_like, shape (settings,)
        a.

    Returns
    -------
    Steps
    """
    rounded = np.array([np.ravel(matrix) for matrix in weights], np.float32)
    return Steps(rounded, *(np.array(values, np.float32) for values in (keep, scale, step)))


class Keys(NamedTuple):
    """Key of a random stream, as two words, and the first counter of the round."""

    first: np.uint32
    second: np.uint32
    counter: np.uint32


def keys(key: np.ndarray, counter: int) -> Keys:
    """Build the stream of a round.

    Parameters
    ----------
    key : ndarray of uint32, shape (2,)
        Key of the random stream.
    counter : int
        Counter of the first agent.

    Returns
    -------
    Keys
    """
    return Keys(np.uint32(key[0]), np.uint32(key[1]), np.uint32(counter))


@uncounted
def _linked(weights, agents, linked, degrees):
    """List the neighbours of each agent: row i of ``linked`` has those of nonzero weight."""
    for i in range(agents):
        degrees[i] = 0
        for j in range(agents):
            if weights[i * agents + j] != _NOTHING:
                linked[i, degrees[i]] = j
                degrees[i] += 1


@uncounted
def _mix(weights, linked, degrees, sent, row, count, mixed):
    """Compute the tile ``W sent``, with sums in the order of agents.

    Few columns are processed at a time, so that the values of all agents stay in the innermost
    cache.
    """
    agents = degrees.size
    for c in range(0, count, 8 * LANES):
        for i in range(agents):
            a = b = x = y = p = q = v = w = everywhere(_NOTHING)
            for j in linked[i, : degrees[i]]:
                at, k = j * row + c, weights[i * agents + j]
                a = a + load(sent, at) * k
                b = b + load(sent, at + LANES) * k
                x = x + load(sent, at + 2 * LANES) * k
                y = y + load(sent, at + 3 * LANES) * k
                p = p + load(sent, at + 4 * LANES) * k
                q = q + load(sent, at + 5 * LANES) * k
                v = v + load(sent, at + 6 * LANES) * k
                w = w + load(sent, at + 7 * LANES) * k
            at = i * row + c
            store(mixed, at, a)
            store(mixed, at + LANES, b)
            store(mixed, at + 2 * LANES, x)
            store(mixed, at + 3 * LANES, y)
            store(mixed, at + 4 * LANES, p)
            store(mixed, at + 5 * LANES, q)
            store(mixed, at + 6 * LANES, v)
            store(mixed, at + 7 * LANES, w)


@inlined
def _lost(row):
    """Return 0, or NaN if a number of a short row is not finite."""
    total = _NOTHING
    for number in row:
        total += number * _NOTHING
    return total


@uncounted
def _round(x, u, resolution, lowest, highest, out):
    """Compute :func:`.round_row` in whole vectors."""
    inverse = _ONE / resolution
    zero, unit = everywhere_wide(_NOTHING), everywhere_wide(_ONE)
    bottom, top, cut = everywhere_wide(lowest), everywhere_wide(highest), zero
    vector_end = x.size // WIDE * WIDE
    for c in range(0, vector_end, WIDE):
        v = load_wide(x, c) * inverse
        below = floor(v)
        k = below + where_less(load_wide(u, c), v - below, unit, zero)
        clipped = least(top, greatest(bottom, k))
        cut = cut + where_unequal(clipped, k, unit, zero)
        store(out, c, clipped * resolution)
    tail_cut = round_row(
        x[vector_end:], u[vector_end:], resolution, inverse, lowest, highest, out[vector_end:]
    )
    return np.int64(total_of(cut)) + tail_cut


@uncounted
def _descend(x, base, mixed, gradient, noise, keep, step, scale):
    """Compute :func:`.descend_row` in whole vectors; return 0, or NaN if a number is not finite."""
    lost = everywhere_wide(_NOTHING)
    vector_end = x.size // WIDE * WIDE
    for c in range(0, vector_end, WIDE):
        noised = load_wide(noise, c) * scale + load_wide(gradient, c)
        moved = load_wide(base, c) * keep + load_wide(mixed, c) - noised * step
        store(x, c, moved)
        lost = lost + moved * _NOTHING
    descend_row(
        x[vector_end:],
        base[vector_end:],
        mixed[vector_end:],
        gradient[vector_end:],
        noise[vector_end:],
        keep,
        step,
        scale,
    )
    return total_of(lost) + _lost(x[vector_end:])


@uncounted
def _sparsify(x, mixed, gradient, noise, u, theta, step, scale, share):
    """Compute :func:`.sparse_row` in whole vectors; return 0, or NaN if a number is not finite."""
    inverse = _ONE / share
    lost = everywhere_wide(_NOTHING)
    sent = everywhere_wide(share)
    vector_end = x.size // WIDE * WIDE
    for c in range(0, vector_end, WIDE):
        before = load_wide(x, c)
        noised = load_wide(noise, c) * scale + load_wide(gradient, c)
        change = (load_wide(mixed, c) - before - noised * step) * theta
        moved = where_less(load_wide(u, c), sent, before + change * inverse, before)
        store(x, c, moved)
        lost = lost + moved * _NOTHING
    sparse_row(
        x[vector_end:], mixed[vector_end:], gradient[vector_end:], noise[vector_end:],
        u[vector_end:], theta, step, scale, share, inverse,
    )  # fmt: skip
    return total_of(lost) + _lost(x[vector_end:])


@uncounted
def _loudest(scale, i):
    largest = _NOTHING
    for s in range(scale.shape[0]):
        largest = max(largest, scale[s, i])
    return largest


@uncounted
def _draw_normals(scale, keys, start, count, row, first_normals, second_normals):
    """Sample normals for the rows of a tile of agents to which any setting adds noise."""
    for i in range(scale.shape[1]):
        if _loudest(scale, i) > _NOTHING:
            a, b = i * row, i * row + (count + WIDE - 1) // WIDE * WIDE
            counter = np.uint32(keys.counter + np.uint32(i))
            fill_normals(
                keys.first,
                keys.second,
                counter,
                np.uint32(start),
                first_normals[a:b],
                second_normals[a:b],
            )


@uncounted
def _draw_uniforms(agents, keys, start, count, row, first_uniforms, second_uniforms):
    for i in range(agents):
        a, b = i * row, i * row + (count + WIDE - 1) // WIDE * WIDE
        counter = np.uint32(keys.counter + np.uint32(i))
        fill_uniforms(
            keys.first,
            keys.second,
            counter,
            np.uint32(start),
            first_uniforms[a:b],
            second_uniforms[a:b],
        )


class _Room(NamedTuple):
    """Scratch for samples from a table: pairs of words, words of ties, and samples."""

    words: np.ndarray
    further: np.ndarray
    ties: np.ndarray
    moves: np.ndarray


@uncounted
def _round_and_find(x, u, noises, discrete, counter, start, grids, s, room, out):
    """Round, then add samples from a table; return the number of clipped values."""
    ends, resolution = (grids.lowest[s], grids.highest[s]), grids.resolution[s]
    cut = _round(x, u, resolution, *ends, out)
    if not noises.any[s]:
        return cut
    p, q = noises.begin[s], noises.begin[s + 1]
    table = NoiseTable(noises.lowest[s], noises.high[p:q], noises.low[p:q], noises.guide[s])
    drawn = (x.size + WIDE - 1) // WIDE * WIDE
    words, further, moves = room.words[:drawn], room.further[:drawn], room.moves[: x.size]
    fill_words(discrete.first, discrete.second, counter, np.uint32(start), words, further)
    find_steps(
        table, discrete.first, discrete.second, counter, start, words, further, room.ties, moves
    )
    return cut + add_steps(out, moves, resolution, _ONE / resolution, *ends)


@uncounted
def _round_row(x, u, words, noises, discrete, counter, start, grids, s, room, out):
    """Round a row of a tile and add its noise, whose first words are given.

    Return the number of clipped values.
    """
    vector_end, cut = 0, 0
    if noises.on_grid.usable[s]:
        vector_end = x.size // LANES * LANES
        cut = round_to_few(
            x[:vector_end], u, words, noises.on_grid.bounds[s], grids.resolution[s],
            grids.lowest[s], grids.highest[s], out,
        )  # fmt: skip
        if cut < 0:
            vector_end, cut = 0, 0
    if vector_end == x.size:
        return cut
    return cut + _round_and_find(
        x[vector_end:], u[vector_end : x.size], noises, discrete, counter, start + vector_end,
        grids, s, room, out[vector_end:],
    )  # fmt: skip


@inlined
def _send(x, first, agents, a, b, row, grids, noises, s, u, drawn, sent):
    """Compute the messages of a tile: models, or with grids rounded models with noise, if any.

    Return the number of clipped values.
    """
    cut = 0
    for i in range(agents):
        p, q = i * row, i * row + b - a
        if grids.resolution.size == 0:
            copy(x[first + i, a:b], sent[p:q])
            continue
        words, keys, room = drawn
        counter = np.uint32(keys.counter + np.uint32(i))
        cut += _round_row(
            x[first + i, a:b], u[p:q], words[p:q], noises, keys, counter, a, grids, s, room,
            sent[p:q],
        )  # fmt: skip
    return cut


@inlined
def _keep(message, first, agents, a, b, row, sent):
    for i in range(agents):
        copy(sent[i * row : i * row + b - a], message[first + i, a:b])


@inlined
def _write_gradient(gradients, row, a, b, indices, room, begin):
    """Write a tile of a row of gradients."""
    if gradients.whole.size > 0:
        copy(gradients.whole[row, a:b], room[begin:])
    else:
        write_gradient(gradients.factors, row, a, b, indices, room, begin)


@inlined
def _move(x, base, first, gradients, steps, graph, sparse, s, a, b, row, sent, noise, u, room):
    """Take the step of a tile of one setting, whose first row is ``first``.

    Return 0, or NaN if a number is not finite.
    """
    agents = steps.keep.shape[1]
    weights, lost = steps.weights[s], _NOTHING
    linked, degrees = graph
    mixed, indices, gradient = room
    begin = gradients.factors.shape.hidden
    g = gradient[begin : begin + b - a]
    _mix(weights, linked[s], degrees[s], sent, row, b - a, mixed)
    for i in range(agents):
        p, q = i * row, i * row + b - a
        now, mixed_row = x[first + i, a:b], mixed[p:q]
        _write_gradient(gradients, s * agents + i, a, b, indices, gradient, begin)
        scale = steps.scale[s, i]
        if sparse.share.size == 0:
            own_base, keep = base[first + i, a:b], steps.keep[s, i]
            lost += _descend(now, own_base, mixed_row, g, noise[p:q], keep, steps.step[s], scale)
        else:
            lost += _sparsify(
                now, mixed_row, g, noise[p:q], u[p:q], sparse.theta[s], steps.step[s], scale,
                sparse.share[s],
            )  # fmt: skip
    return lost


@uncounted
def _draw_words(agents, keys, start, count, row, words):
    for i in range(agents):
        a, b = i * row, i * row + (count + WIDE - 1) // WIDE * WIDE
        counter = np.uint32(keys.counter + np.uint32(i))
        fill_first_words(keys.first, keys.second, counter, np.uint32(start), words[a:b])


@uncounted
def _advance(
    x, base, sends, message, gradients, first, steps, grids, sparse, noises, drawn_from, tiles,
    tile, room, cut, lost,
):  # fmt: skip
    """Compute a round of all settings.

    Without a grid the rows of ``sends`` are sent unchanged. Without a fraction to send no step is
    sparse, and with neither no uniforms are sampled. Messages are recorded in ``message`` if it has
    rows.
    """
    settings, agents = steps.keep.shape
    dim, row = x.shape[1], tile + GAP
    half = (dim + 1) // 2
    uniform, noise, discrete = drawn_from
    u, v, first_normals, second_normals, sent, words, row_room = tiles
    graph, room = room[0], room[1:]
    for s in range(settings):
        _linked(steps.weights[s], agents, graph[0][s], graph[1][s])
    for start in range(0, half, tile):
        count = min(tile, half - start)
        if grids.resolution.size + sparse.share.size > 0:
            _draw_uniforms(agents, uniform, start, count, row, u, v)
        _draw_normals(steps.scale, noise, start, count, row, first_normals, second_normals)
        for later in range(2):
            a = start + later * half
            b = min(a + count, dim)
            drawn, uniforms = (second_normals, v) if later else (first_normals, u)
            if noises.any.any():
                _draw_words(agents, discrete, a, count, row, words)
            for s in range(settings):
                cut[s] += _send(
                    sends, first[s], agents, a, b, row, grids, noises, s, uniforms,
                    (words, discrete, row_room), sent,
                )  # fmt: skip
                if message.size > 0:
                    _keep(message, first[s], agents, a, b, row, sent)
                lost[s] += _move(
                    x, base, first[s], gradients, steps, graph, sparse, s, a, b, row, sent, drawn,
                    uniforms, room,
                )  # fmt: skip


@uncounted
def _round_with_noise(
    x, message, first, agents, grids, rounding, discrete, noises, u, v, words, room, cut
):
    dim = x.shape[1]
    half = (dim + 1) // 2
    for start in range(0, half, ROW):
        count = min(ROW, half - start)
        for i in range(agents):
            counter = np.uint32(rounding.counter + np.uint32(i))
            fill_uniforms(rounding.first, rounding.second, counter, np.uint32(start), u, v)
            counter = np.uint32(discrete.counter + np.uint32(i))
            for later in range(2):
                a = start + later * half
                b = min(a + count, dim)
                drawn = v if later else u
                fill_first_words(discrete.first, discrete.second, counter, np.uint32(a), words)
                for s in range(first.size):
                    row = first[s] + i
                    cut[s] += _round_row(
                        x[row, a:b], drawn, words, noises, discrete, counter, a, grids, s, room,
                        message[row, a:b],
                    )  # fmt: skip


# --- Calls ----------------------------------------------------------------------------------------


def round_and_step(
    x, gradients: Gradients, first, steps: Steps, grids: Grids, rounding: Keys, noise: Keys,
    variances: tuple[float, ...] = (), discrete: Keys | None = None, message=None,
):  # fmt: skip
    """Send rounded models, mix the received ones, and take a noisy step, for every agent.

    Parameters
    ----------
    x : ndarray of float32, shape (rows, p)
        Overwritten. The models of the agents of setting s are the rows from ``first[s]`` on.
    gradients : Gradients
        Gradients of all settings.
    first : ndarray of int64, shape (settings,)
        First row of each setting.
    steps : Steps
        Coefficients of the steps.
    grids : Grids
        Grids of the settings.
    rounding, noise : Keys
        Streams of the rounding and of the noise.
    variances : tuple of float
        Variances of the discrete Gaussian noise that is sent with the rounded model, in squared
        steps of the grid; 0 for none. If left out, no setting has such noise.
    discrete : Keys, optional
        Stream of the discrete Gaussian noise.
    message : ndarray of float32, shape (rows, p), optional
        Overwritten with the sent messages.

    Returns
    -------
    cut, lost : ndarray, shape (settings,)
        Number of coordinates clipped to the ends of the grid; 0, or NaN if a model is not finite.
    """
    widths = tuple((grids.highest - grids.lowest).tolist())
    noises = _noises(variances or (0.0,) * len(first), widths)
    drawn_from = rounding, noise, noise if discrete is None else discrete
    message = _NO_ROWS if message is None else message
    return _in_tiles(x, x, x, message, gradients, first, steps, grids, _DENSE, noises, drawn_from)


def mix_and_step(
    x, base, sent, gradients: Gradients, first, steps: Steps, noise: Keys, mask: Keys | None = None,
    sparse: Sparse | None = None,
):  # fmt: skip
    """Mix the sent messages and take a noisy step from ``base``, for every agent.

    With ``sparse`` the step is a sparsified step of SDM-DSGD from ``x``, and ``base`` is ignored.

    Parameters
    ----------
    x : ndarray of float32, shape (rows, p)
        Overwritten.
    base, sent : ndarray of float32, shape (rows, p)
        Start of the step, and the messages, which may be the models themselves.
    gradients, first, steps
        See :func:`round_and_step`.
    noise : Keys
        Stream of the noise.
    mask : Keys, optional
        Stream of the selection of coordinates.
    sparse : Sparse, optional
        Coefficients of the sparsification.

    Returns
    -------
    ndarray, shape (settings,)
        0, or NaN if a model is not finite.
    """
    drawn_from = mask or noise, noise, noise
    how = _NO_GRIDS, sparse or _DENSE, _NO_NOISES, drawn_from
    return _in_tiles(x, base, sent, _NO_ROWS, gradients, first, steps, *how)[1]


def round_with_noise(
    x, message, first, agents: int, grids: Grids, variances: tuple[float, ...], rounding: Keys,
    discrete: Keys,
) -> np.ndarray:  # fmt: skip
    """Compute messages: rounded models with discrete Gaussian noise.

    Parameters
    ----------
    x : ndarray of float32, shape (rows, p)
        Models; those of the agents of setting s are the rows from ``first[s]`` on.
    message : ndarray of float32, shape (rows, p)
        Overwritten with the messages.
    first : ndarray of int, shape (settings,)
        First row of each setting.
    agents : int
        Number of agents.
    grids : Grids
        Grids of the settings.
    variances : tuple of float
        Variances of the noise in squared steps of the grid; 0 for none.
    rounding, discrete : Keys
        Streams of the rounding and of the noise.

    Returns
    -------
    ndarray of int64, shape (settings,)
        Number of coordinates clipped to the ends of the grid.
    """
    settings = len(first)
    require_layout("round_with_noise", "x", x, (-1, -1), np.float32)
    require_layout("round_with_noise", "message", message, x.shape, np.float32)
    for name, values in zip(Grids._fields, grids, strict=True):
        require_layout("round_with_noise", name, values, (settings,), np.float32)
    require_layout("round_with_noise", "variances", variances, (settings,))
    require_indices("round_with_noise", "first", first, len(x) - agents + 1)
    cut = np.zeros(len(first), np.int64)
    u, v = workspace("a row", (2, ROW))
    words = workspace("first words of a row", (ROW,), np.uint32)
    widths = tuple((grids.highest - grids.lowest).tolist())
    _round_with_noise(
        x, message, first, agents, grids, rounding, discrete, _noises(variances, widths),
        u, v, words, _room(ROW), cut,
    )  # fmt: skip
    return cut


def _in_tiles(x, base, sends, message, gradients: Gradients, first, steps: Steps, *how):
    settings, agents = steps.keep.shape
    _require_round(x, base, sends, message, gradients, first, steps, *how[:2])
    cut, lost = np.zeros(settings, np.int64), np.zeros(settings)
    shape = gradients.factors.shape
    sizes = settings, agents, shape.inputs, shape.hidden
    tiles, tile, room = kept("a round", sizes, lambda: _rooms(*sizes))
    _advance(x, base, sends, message, gradients, first, steps, *how, tiles, tile, room, cut, lost)
    return cut, lost


def _require_round(x, base, sends, message, gradients, first, steps, grids, sparse) -> None:
    """Check the arrays of a round of all settings."""
    kernel, single = "round", np.float32
    settings, agents = steps.keep.shape
    require_layout(kernel, "x", x, (-1, -1), single)
    same = {"base": base, "sends": sends}
    for name, array in (same if message.size == 0 else {**same, "message": message}).items():
        require_layout(kernel, name, array, x.shape, single)
    require_layout(kernel, "first", first, (settings,), np.int64)
    require_indices(kernel, "first", first, len(x) - agents + 1)
    require_layout(kernel, "weights", steps.weights, (settings, agents**2), single)
    require_layout(kernel, "keep", steps.keep, (settings, agents), single)
    require_layout(kernel, "scale", steps.scale, (settings, agents), single)
    require_layout(kernel, "step", steps.step, (settings,), single)
    for coefficients in (grids, sparse):
        for name, values in zip(coefficients._fields, coefficients, strict=True):
            if coefficients[0].size > 0 or values.size > 0:
                require_layout(kernel, name, values, (settings,), single)
    if gradients.whole.size > 0:
        shape = (settings * agents, x.shape[1])
        require_layout(kernel, "gradients", gradients.whole, shape, single)
    else:
        require_layout(kernel, "sizes of factors", gradients.factors.sizes, (settings * agents,))
        require_parameters(kernel, x, gradients.factors.shape)


def _rooms(settings: int, agents: int, inputs: int, hidden: int):
    """Return the tiles, the number of pairs per agent in a tile, and scratch arrays."""
    tile = max(AT_ONCE // agents // GAP, 1) * GAP
    *drawn, sent, mixed = workspace("tiles", (6, agents * (tile + GAP)))
    words = workspace("first words of a tile", (agents * (tile + GAP),), np.uint32)
    room = (
        (
            workspace("whom agents hear", (settings, agents, agents), np.int64),
            workspace("how many agents hear", (settings, agents), np.int64),
        ),
        mixed,
        workspace("places in a tile", (inputs + 1,), np.int64),
        workspace("a gradient's tile", (tile + 2 * hidden,)),
    )
    return (*drawn, sent, words, _room(tile)), tile, room


def _room(count: int) -> _Room:
    words, further = workspace("words of a row", (2, count), np.uint32)
    ties = workspace("words of a tie", (2, WIDE), np.uint32)
    return _Room(words, further, ties, workspace("moves", (count,)))


class RoundNoises(NamedTuple):
    """Discrete Gaussian noise of each setting.

    Attributes
    ----------
    any : ndarray of bool
        True if the setting has noise.
    lowest : ndarray of int64
        Lowest integer of each table.
    begin : ndarray of int64
        Offset of each table in the concatenated tables.
    high, low : ndarray of uint64
        Concatenated tables.
    guide : ndarray of int32
        Guide table of each setting.
    on_grid : DrawBounds
        Bounds on a grid with few points.
    """

    any: np.ndarray
    lowest: np.ndarray
    begin: np.ndarray
    high: np.ndarray
    low: np.ndarray
    guide: np.ndarray
    on_grid: DrawBounds


@lru_cache(maxsize=2)  # wide noise takes a hundred megabytes; one batch at a time
def _noises(variances: tuple[float, ...], widths: tuple[float, ...]) -> RoundNoises:
    """Build the noise of all settings; it is equal in all rounds of a run."""
    tables = [discrete_table(variance) if variance else _NO_TABLE for variance in variances]
    begin = np.cumsum([0, *(table.high.size for table in tables)])
    high, low = (np.concatenate([table[k] for table in tables]) for k in (1, 2))
    lowest = np.array([table.lowest for table in tables], np.int64)
    guides = np.stack([table.guide for table in tables])
    noisy = np.array(variances) > 0
    bounds_by_setting = [
        bounds_of(table, width) for table, width in zip(tables, widths, strict=True)
    ]
    usable, bounds = (np.array(column) for column in zip(*bounds_by_setting, strict=True))
    return RoundNoises(noisy, lowest, begin, high, low, guides, DrawBounds(usable & noisy, bounds))


_NONE = np.empty(0, np.float32)
_NO_ROWS = np.empty((0, 0), np.float32)
_NO_GRIDS, _DENSE = Grids(_NONE, _NONE, _NONE), Sparse(_NONE, _NONE)
_NO_TABLE = NoiseTable(0, *np.zeros((2, 1), np.uint64), np.zeros(2**GUIDE, np.int32))
_NO_NOISES = _noises((0.0,), (0.0,))
_NO_FACTORS = no_factors()
