"""One round of decentralized SGD for all settings of a run.

Models are rounded and noised (:func:`round_with_noise`). Then messages are mixed and steps are
taken in tiles of coordinates that stay in the caches (:func:`mix_and_step`). Settings share the
random numbers that they scale, which are those of :mod:`.messages`. Sums over agents are in the
order of the agents, without products of weight 0; each product is rounded together with its sum.
Rounding and steps are the plain loops of :mod:`.rows`. The same operations in NumPy take 20 times
(step) and 60 times (rounding) as long.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .backpropagation import copy
from .compiling import inlined, uncounted
from .normals import fill_normals, fill_uniforms, fill_words
from .rows import (
    GUIDE_BITS,
    NoiseTable,
    add_steps,
    bounds_of,
    descend_row,
    discrete_table,
    find_steps,
    round_row,
    round_to_few,
    sparse_row,
)

ROW_PAIRS = 8192
"""Number of pairs of coordinates of an agent that are rounded together."""

TILE_PAIRS = 1 << 17
"""Number of pairs of coordinates per tile, over all agents."""

TILE_GAP = 128
"""Padding between the rows of two agents in a tile. Without it, all rows would compete for the same
lines of the innermost cache."""

MIXED_COLUMNS = 512
"""Number of columns whose received messages are summed together."""

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


class Steps(NamedTuple):
    r"""Coefficients of the step of each setting, of type float32.

    The step is :math:`x_i \leftarrow k_i b_i + \sum_j w_{ij} z_j - a(g_i + s_i \xi_i)`.

    Attributes
    ----------
    weights : ndarray, shape (settings, agents * agents)
        Mixing weights w.
    keep, scale : ndarray, shape (settings, agents)
        Weights k of the agents' base points, and noise scales s.
    step : ndarray, shape (settings,)
        Step lengths a.
    """

    weights: np.ndarray
    keep: np.ndarray
    scale: np.ndarray
    step: np.ndarray


class Grids(NamedTuple):
    """Resolution of each setting's grid, and its ends in steps of the grid; float32 [settings]."""

    resolution: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray


class Sparse(NamedTuple):
    r"""Factor :math:`\theta` and fraction of sent coordinates of each setting; float32."""

    theta: np.ndarray
    fraction: np.ndarray


def steps_of(*, weights, keep, scale, step) -> Steps:
    """Build the coefficients of the steps from matrices and numbers per setting.

    Each setting has ``weights``, its mixing matrix w, and a ``step`` length a. The weights k of the
    base points, ``keep``, and the noise scales s, ``scale``, are [settings, agents].
    """
    rounded = np.array([np.ravel(matrix) for matrix in weights], np.float32)
    return Steps(rounded, *(np.array(values, np.float32) for values in (keep, scale, step)))


class Keys(NamedTuple):
    """Key of a random stream, as two words, and the first counter of the round."""

    first: np.uint32
    second: np.uint32
    counter: np.uint32


def keys(key: np.ndarray, counter: int) -> Keys:
    """Build the stream of a round from a key of two words and a counter."""
    return Keys(np.uint32(key[0]), np.uint32(key[1]), np.uint32(counter))


@uncounted
def _mix(weights, agents, sent, row, count, mixed):
    """Compute the tile ``W sent``, with sums in the order of agents.

    Few columns are processed at a time, so that the values of all agents stay in the innermost
    cache.
    """
    for a in range(0, count, MIXED_COLUMNS):
        b = min(a + MIXED_COLUMNS, count)
        for i in range(agents):
            total = mixed[i * row + a : i * row + b]
            total[:] = _ZERO
            for j in range(agents):
                weight = weights[i * agents + j]
                if weight != _ZERO:
                    _add_product(total, sent[j * row + a : j * row + b], weight)


@uncounted
def _add_product(total, values, weight):
    for k in range(total.size):
        total[k] += values[k] * weight


@uncounted
def _draw_normals(largest_scale, keys, start, count, row, first_normals, second_normals):
    """Sample normals for the rows of a tile of agents to which any setting adds noise."""
    for i in range(largest_scale.size):
        if largest_scale[i] > _ZERO:
            a, b = i * row, i * row + count
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
        a, b = i * row, i * row + count
        counter = np.uint32(keys.counter + np.uint32(i))
        fill_uniforms(
            keys.first,
            keys.second,
            counter,
            np.uint32(start),
            first_uniforms[a:b],
            second_uniforms[a:b],
        )


class _TableScratch(NamedTuple):
    """Scratch arrays for table samples: pairs of random words, and samples."""

    words: np.ndarray
    further: np.ndarray
    samples: np.ndarray


@uncounted
def _round_and_find(x, u, noises, discrete, counter, start, grids, s, scratch, out):
    """Round, then add samples from a table; return the number of clipped values."""
    ends, resolution = (grids.lowest[s], grids.highest[s]), grids.resolution[s]
    clip_count = round_row(x, u, resolution, _ONE / resolution, *ends, out)
    if not noises.any[s]:
        return clip_count
    p, q = noises.begin[s], noises.begin[s + 1]
    table = NoiseTable(noises.lowest[s], noises.high[p:q], noises.low[p:q], noises.guide[s])
    words, further = scratch.words[: x.size], scratch.further[: x.size]
    samples = scratch.samples[: x.size]
    fill_words(discrete.first, discrete.second, counter, np.uint32(start), words, further)
    find_steps(table, discrete.first, discrete.second, counter, start, words, further, samples)
    return clip_count + add_steps(out, samples, resolution, _ONE / resolution, *ends)


@uncounted
def _round_row(x, u, words, noises, discrete, counter, start, grids, s, scratch, out):
    """Round a row and add noise from its first random words."""
    if noises.bounds[s, -1] > 0:
        clip_count = round_to_few(
            x, u, words, noises.bounds[s], grids.resolution[s], _ONE / grids.resolution[s],
            grids.lowest[s], grids.highest[s], out,
        )  # fmt: skip
        if clip_count >= 0:
            return clip_count
    return _round_and_find(x, u, noises, discrete, counter, start, grids, s, scratch, out)


@inlined
def _step_tile(
    x, base, first, gradients, steps, sparse, s, a, b, row, sent, noise, u, mixed
):  # fmt: skip
    """Take the step of a tile of one setting, whose first row is ``first``.

    Return 0 if all numbers are finite, else NaN.
    """
    agents = steps.keep.shape[1]
    not_finite = 0.0
    _mix(steps.weights[s], agents, sent, row, b - a, mixed)
    for i in range(agents):
        p, q = i * row, i * row + b - a
        x_row, mixed_row = x[first + i, a:b], mixed[p:q]
        g, scale = gradients[s * agents + i, a:b], steps.scale[s, i]
        if sparse.fraction.size == 0:
            base_row, keep = base[first + i, a:b], steps.keep[s, i]
            finite = descend_row(base_row, mixed_row, g, noise[p:q], keep, steps.step[s], scale)
            copy(mixed_row, x_row)
        else:
            finite = sparse_row(
                x_row, mixed_row, g, noise[p:q], u[p:q], sparse.theta[s], steps.step[s], scale,
                sparse.fraction[s], _ONE / sparse.fraction[s],
            )  # fmt: skip
        if not finite:
            not_finite = np.nan
    return not_finite


@uncounted
def _mix_and_step(
    x, base, sent_models, gradients, first, steps, sparse, uniform, noise, largest_scale, tiles,
    tile_pairs, not_finite,
):  # fmt: skip
    """Mix messages and take a step, in all settings; uniforms are sampled for sparse steps only."""
    settings, agents = steps.keep.shape
    dim, row = x.shape[1], tile_pairs + TILE_GAP
    half = (dim + 1) // 2
    u, v, first_normals, second_normals, sent, mixed = tiles
    for start in range(0, half, tile_pairs):
        count = min(tile_pairs, half - start)
        if sparse.fraction.size > 0:
            _draw_uniforms(agents, uniform, start, count, row, u, v)
        _draw_normals(largest_scale, noise, start, count, row, first_normals, second_normals)
        for second_half in range(2):
            a = start + second_half * half
            b = min(a + count, dim)
            normals, uniforms = (second_normals, v) if second_half else (first_normals, u)
            for s in range(settings):
                for i in range(agents):
                    copy(sent_models[first[s] + i, a:b], sent[i * row : i * row + b - a])
                not_finite[s] += _step_tile(
                    x, base, first[s], gradients, steps, sparse, s, a, b, row, sent, normals,
                    uniforms, mixed,
                )  # fmt: skip


@uncounted
def _round_with_noise(
    x, message, first, agents, grids, rounding, discrete, noises, u, v, words, scratch, clip_count
):
    dim = x.shape[1]
    half = (dim + 1) // 2
    for start in range(0, half, ROW_PAIRS):
        count = min(ROW_PAIRS, half - start)
        for i in range(agents):
            counter, key = np.uint32(rounding.counter + np.uint32(i)), np.uint32(start)
            fill_uniforms(rounding.first, rounding.second, counter, key, u[:count], v[:count])
            counter = np.uint32(discrete.counter + np.uint32(i))
            for second_half in range(2):
                a = start + second_half * half
                b = min(a + count, dim)
                uniforms = v if second_half else u
                if noises.any.any():
                    key = np.uint32(a)
                    further = scratch.further[:count]
                    fill_words(
                        discrete.first, discrete.second, counter, key, words[:count], further
                    )
                for s in range(first.size):
                    row = first[s] + i
                    clip_count[s] += _round_row(
                        x[row, a:b], uniforms, words, noises, discrete, counter, a, grids, s,
                        scratch, message[row, a:b],
                    )  # fmt: skip


# --- Calls ----------------------------------------------------------------------------------------


def mix_and_step(
    x, base, sent, gradients, first, steps: Steps, noise: Keys, mask: Keys | None = None,
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
    gradients : ndarray of float32, shape (settings * agents, p)
        Gradients of the agents of all settings.
    first : ndarray of int64, shape (settings,)
        First row of each setting: the models of its agents are the rows from ``first[s]`` on.
    steps : Steps
        Coefficients of the step of each setting.
    noise : Keys
        Stream of the noise.
    mask : Keys, optional
        Stream of the selection of coordinates.
    sparse : Sparse, optional
        Coefficients of the sparsification.

    Returns
    -------
    ndarray, shape (settings,)
        0 if all models are finite, else NaN.
    """
    settings, agents = steps.keep.shape
    sparse = sparse or _DENSE
    tile_pairs = max(TILE_PAIRS // agents // TILE_GAP, 1) * TILE_GAP
    u, v, sent_tile, mixed = np.empty((4, agents * (tile_pairs + TILE_GAP)), np.float32)
    # Agents without noise read the normals too, and multiply them by 0.
    normals = np.zeros((2, u.size), np.float32)
    not_finite = np.zeros(settings)
    _mix_and_step(
        x, base, sent, gradients, first, steps, sparse, mask or noise, noise,
        steps.scale.max(0), (u, v, *normals, sent_tile, mixed), tile_pairs, not_finite,
    )  # fmt: skip
    return not_finite


def round_with_noise(
    x, message, first, agents: int, grids: Grids, variances: tuple[float, ...], rounding: Keys,
    discrete: Keys,
) -> np.ndarray:  # fmt: skip
    """Compute messages: rounded models with discrete Gaussian noise.

    Parameters
    ----------
    x, first
        See :func:`mix_and_step`.
    message : ndarray of float32, shape (rows, p)
        Overwritten with the messages.
    agents : int
        Number of agents.
    grids : Grids
        Grid of each setting.
    variances : tuple of float
        Variance of the noise of each setting, in squared steps of the grid; 0 for none.
    rounding, discrete : Keys
        Streams of the rounding and of the noise.

    Returns
    -------
    ndarray of int, shape (settings,)
        Number of coordinates that are clipped to the ends of the grid.
    """
    clip_count = np.zeros(len(first), np.int64)
    u, v = np.empty((2, ROW_PAIRS), np.float32)
    words, *pairs = np.empty((3, ROW_PAIRS), np.uint32)
    scratch = _TableScratch(*pairs, np.empty(ROW_PAIRS, np.float32))
    widths = tuple((grids.highest - grids.lowest).tolist())
    _round_with_noise(
        x, message, first, agents, grids, rounding, discrete, _noises(variances, widths),
        u, v, words, scratch, clip_count,
    )  # fmt: skip
    return clip_count


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
    bounds : ndarray of uint32, shape (settings, BOUNDS)
        Bounds on a grid with few points; 0 if there are none.
    """

    any: np.ndarray
    lowest: np.ndarray
    begin: np.ndarray
    high: np.ndarray
    low: np.ndarray
    guide: np.ndarray
    bounds: np.ndarray


@lru_cache(maxsize=2)  # tables of wide noise take a hundred megabytes
def _noises(variances: tuple[float, ...], widths: tuple[float, ...]) -> RoundNoises:
    """Build the noise tables of all settings, which are equal in all rounds of a run."""
    tables = [discrete_table(variance) if variance else _NO_TABLE for variance in variances]
    begin = np.cumsum([0, *(table.high.size for table in tables)])
    high, low = (np.concatenate([table[k] for table in tables]) for k in (1, 2))
    lowest = np.array([table.lowest for table in tables], np.int64)
    guides = np.stack([table.guide for table in tables])
    noisy = np.array(variances) > 0
    bounds = np.stack([bounds_of(*pair) for pair in zip(tables, widths, strict=True)])
    return RoundNoises(noisy, lowest, begin, high, low, guides, bounds)


_DENSE = Sparse(*np.empty((2, 0), np.float32))
_NO_TABLE = NoiseTable(0, *np.zeros((2, 1), np.uint64), np.zeros(2**GUIDE_BITS, np.int32))
