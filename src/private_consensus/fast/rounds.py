r"""A round of decentralized SGD of all settings of a run, in one pass over the models.

Rounding, mixing, noise and the step go a tile of ``TILE`` pairs of coordinates at a time: what is
sent and what is received stay in the innermost caches, and settings, which scale the same draws,
draw once. Draws are those of :mod:`.messages`, at the same places, and every number is made by the
same operations in the same order, sums over agents as a matrix product makes them: one after the
other, each product rounded together with its sum. So the bytes are those of one step at a time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .compiling import compiled
from .messages import (
    GUIDE,
    Table,
    add_steps,
    descend_row,
    discrete_table,
    find_steps,
    round_row,
    sparse_row,
)
from .normals import fill_normals, fill_uniforms, fill_words
from .vectors import LANES, aligned, everywhere, load, store

TILE = 2048
"""Pairs of coordinates that all agents and settings work on before the next."""

_NOTHING, _ONE = np.float32(0.0), np.float32(1.0)


class Steps(NamedTuple):
    r"""Of each setting what a model becomes, :math:`x_i \leftarrow k_i b_i + \sum_j w_{ij} z_j
    - a(g_i + s_i \xi_i)`: w [settings, agents * agents], k and s [settings, agents], a [settings];
    all of float32."""

    weights: np.ndarray
    keep: np.ndarray
    scale: np.ndarray
    step: np.ndarray


class Grids(NamedTuple):
    """Of each setting the resolution and the ends of its grid, in steps; float32 [settings]."""

    resolution: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray


class Sparse(NamedTuple):
    """Of each setting :math:`\\theta` and the share of coordinates that is sent; float32."""

    theta: np.ndarray
    share: np.ndarray


def steps_of(*, weights, keep, scale, step) -> Steps:
    """Of matrices and numbers of each setting; w is rounded once, as a matrix."""
    rounded = np.array([np.ravel(matrix) for matrix in weights], np.float32)
    return Steps(rounded, *(np.array(part, np.float32) for part in (keep, scale, step)))


class Keys(NamedTuple):
    """Two words of a stream of counters, and the first counter of the round."""

    first: np.uint32
    second: np.uint32
    counter: np.uint32


def keys(key: np.ndarray, counter: int) -> Keys:
    """Of a key of two words."""
    return Keys(np.uint32(key[0]), np.uint32(key[1]), np.uint32(counter))


@compiled
def _weigh(weights, i, sent, count, out):
    """``out = sum_j w_ij sent_j``, in the order of j."""
    agents = sent.size // TILE
    for c in range(0, count, LANES):
        total = everywhere(_NOTHING)
        for j in range(agents):
            total = total + load(sent, j * TILE + c) * weights[i * agents + j]
        store(out, c, total)


@compiled
def _lost(row):
    """0, or NaN where a number of the row is not finite."""
    total = everywhere(_NOTHING)
    whole = row.size // LANES * LANES
    for j in range(0, whole, LANES):
        total = total + load(row, j) * _NOTHING
    found = _NOTHING
    for j in range(whole, row.size):
        found += row[j] * _NOTHING
    sums = np.empty(LANES, np.float32)
    store(sums, 0, total)
    for j in range(LANES):
        found += sums[j]
    return found


@compiled
def _loudest(scale, i):
    found = _NOTHING
    for s in range(scale.shape[0]):
        found = max(found, scale[s, i])
    return found


@compiled
def _draw_normals(scale, keys, start, one, other):
    """Rows of the tile of agents that any setting adds noise to."""
    for i in range(scale.shape[1]):
        if _loudest(scale, i) > _NOTHING:
            a, b = i * TILE, (i + 1) * TILE
            counter = np.uint32(keys.counter + np.uint32(i))
            fill_normals(keys.first, keys.second, counter, np.uint32(start), one[a:b], other[a:b])


@compiled
def _draw_uniforms(agents, keys, start, one, other):
    for i in range(agents):
        a, b = i * TILE, (i + 1) * TILE
        counter = np.uint32(keys.counter + np.uint32(i))
        fill_uniforms(keys.first, keys.second, counter, np.uint32(start), one[a:b], other[a:b])


@compiled
def _rounded(x, row, agents, a, b, u, resolution, lowest, highest, sent):
    """The messages of a tile, and how many coordinates were cut."""
    inverse = _ONE / resolution
    cut = 0
    for i in range(agents):
        at = i * TILE
        cut += round_row(
            x[row + i, a:b], u[at : at + b - a], resolution, inverse, lowest, highest,
            sent[at : at + b - a],
        )  # fmt: skip
    return cut


@compiled
def _copied(z, row, agents, a, b, sent):
    for i in range(agents):
        sent[i * TILE : i * TILE + b - a] = z[row + i, a:b]


@compiled
def _take_steps(x, base, gradient, rows, steps, s, a, b, sent, noise, mixed):
    """Of one setting; ``rows`` is its first row in ``x`` and in ``base``, and in ``gradient``."""
    agents = steps.keep.shape[1]
    lost = _NOTHING
    for i in range(agents):
        _weigh(steps.weights[s], i, sent, b - a, mixed)
        at, row = i * TILE, x[rows[0] + i, a:b]
        descend_row(
            row, base[rows[0] + i, a:b], mixed, gradient[rows[1] + i, a:b], noise[at : at + b - a],
            steps.keep[s, i], steps.step[s], steps.scale[s, i],
        )  # fmt: skip
        lost += _lost(row)
    return lost


@compiled
def _round_and_step(
    x, gradient, first, steps, grids, rounding, noise, u, v, one, other, sent, mixed, cut, lost
):
    settings, agents = steps.keep.shape
    dim = x.shape[1]
    half = (dim + 1) // 2
    for start in range(0, half, TILE):
        count = min(TILE, half - start)
        _draw_uniforms(agents, rounding, start, u, v)
        _draw_normals(steps.scale, noise, start, one, other)
        for s in range(settings):
            rows = (first[s], s * agents)
            for later in range(2):
                a = start + later * half
                b = min(a + count, dim)
                cut[s] += _rounded(
                    x, first[s], agents, a, b, v if later else u,
                    grids.resolution[s], grids.lowest[s], grids.highest[s], sent,
                )  # fmt: skip
                drawn = other if later else one
                lost[s] += _take_steps(x, x, gradient, rows, steps, s, a, b, sent, drawn, mixed)


@compiled
def _mix_and_step(x, base, z, gradient, first, steps, noise, one, other, sent, mixed, lost):
    settings, agents = steps.keep.shape
    dim = x.shape[1]
    half = (dim + 1) // 2
    for start in range(0, half, TILE):
        count = min(TILE, half - start)
        _draw_normals(steps.scale, noise, start, one, other)
        for s in range(settings):
            rows = (first[s], s * agents)
            for later in range(2):
                a = start + later * half
                b = min(a + count, dim)
                _copied(z, first[s], agents, a, b, sent)
                drawn = other if later else one
                lost[s] += _take_steps(x, base, gradient, rows, steps, s, a, b, sent, drawn, mixed)


@compiled
def _mix_and_sparsify(
    x, gradient, first, steps, sparse, noise, mask, u, v, one, other, sent, mixed, lost
):
    settings, agents = steps.keep.shape
    dim = x.shape[1]
    half = (dim + 1) // 2
    for start in range(0, half, TILE):
        count = min(TILE, half - start)
        _draw_uniforms(agents, mask, start, u, v)
        _draw_normals(steps.scale, noise, start, one, other)
        for s in range(settings):
            inverse = _ONE / sparse.share[s]
            for later in range(2):
                a = start + later * half
                b = min(a + count, dim)
                _copied(x, first[s], agents, a, b, sent)
                for i in range(agents):
                    _weigh(steps.weights[s], i, sent, b - a, mixed)
                    p, q = i * TILE, i * TILE + b - a
                    row = x[first[s] + i, a:b]
                    sparse_row(
                        row, mixed, gradient[s * agents + i, a:b],
                        (other if later else one)[p:q], (v if later else u)[p:q],
                        sparse.theta[s], steps.step[s], steps.scale[s, i], sparse.share[s], inverse,
                    )  # fmt: skip
                    lost[s] += _lost(row)


@compiled
def _round_with_noise(
    x, message, first, agents, grids, rounding, discrete, noisy, lowest, begin, high, low, guide,
    u, v, words, further, moves, cut,
):  # fmt: skip
    settings = first.size
    dim = x.shape[1]
    half = (dim + 1) // 2
    for start in range(0, half, TILE):
        count = min(TILE, half - start)
        _draw_uniforms(agents, rounding, start, u, v)
        for later in range(2):
            a = start + later * half
            b = min(a + count, dim)
            drawn = v if later else u
            for i in range(agents):
                at = i * TILE
                counter = np.uint32(discrete.counter + np.uint32(i))
                fill_words(discrete.first, discrete.second, counter, np.uint32(a), words, further)
                for s in range(settings):
                    sent = message[first[s] + i, a:b]
                    ends = grids.lowest[s], grids.highest[s]
                    inverse = _ONE / grids.resolution[s]
                    cut[s] += round_row(
                        x[first[s] + i, a:b], drawn[at : at + b - a], grids.resolution[s],
                        inverse, ends[0], ends[1], sent,
                    )  # fmt: skip
                    if noisy[s]:
                        p, q = begin[s], begin[s + 1]
                        table = Table(lowest[s], high[p:q], low[p:q], guide[s])
                        find_steps(
                            table, discrete.first, discrete.second, counter, a, words, further,
                            moves[: b - a],
                        )  # fmt: skip
                        cut[s] += add_steps(
                            sent, moves, grids.resolution[s], inverse, ends[0], ends[1]
                        )


# --- Calls ----------------------------------------------------------------------------------------


def round_and_step(x, gradient, first, steps: Steps, grids: Grids, rounding: Keys, noise: Keys):
    """Each agent sends its model rounded, mixes what it receives, and takes a noisy step.

    Parameters
    ----------
    x : ndarray of float32, shape (rows, p)
        Overwritten. The models of the agents of setting s are the rows from ``first[s]`` on.
    gradient : ndarray of float32, shape (settings * agents, p)
    first : ndarray of int64, shape (settings,)
    rounding, noise
        Of what is drawn for each.

    Returns
    -------
    cut, lost : ndarray, shape (settings,)
        Coordinates that the ends of the grid cut; 0, or NaN where a model is not finite any more.
    """
    cut, lost = _counts(steps)
    tiles = _tiles(steps, 5)
    _round_and_step(
        x, gradient, first, steps, grids, rounding, noise, *tiles, aligned(TILE), cut, lost
    )
    return cut, lost


def mix_and_step(x, base, sent, gradient, first, steps: Steps, noise: Keys):
    """Each agent mixes what is sent, which may be the models themselves, and takes a noisy step
    from ``base``; 0, or NaN where a model is not finite any more.

    Parameters as in :func:`round_and_step`.
    """
    _, lost = _counts(steps)
    tiles = _tiles(steps, 3)
    _mix_and_step(x, base, sent, gradient, first, steps, noise, *tiles, aligned(TILE), lost)
    return lost


def mix_and_sparsify(x, gradient, first, steps: Steps, sparse: Sparse, noise: Keys, mask: Keys):
    """Each agent takes a sparsified step of SDM-DSGD from its model and the mixed ones; 0,
    or NaN where a model is not finite any more. Parameters as in :func:`round_and_step`."""
    _, lost = _counts(steps)
    tiles = _tiles(steps, 5)
    _mix_and_sparsify(x, gradient, first, steps, sparse, noise, mask, *tiles, aligned(TILE), lost)
    return lost


def round_with_noise(
    x, message, first, agents: int, grids: Grids, variances: tuple[float, ...], rounding: Keys,
    discrete: Keys,
) -> np.ndarray:  # fmt: skip
    """Messages: models rounded, with discrete Gaussian noise of ``variances``, in squared steps, 0
    for none; how many coordinates the ends of the grid cut. Parameters as in
    :func:`round_and_step`."""
    cut = np.zeros(len(first), np.int64)
    u, v = (aligned(agents * TILE) for _ in range(2))
    words, further = (aligned(TILE, np.uint32) for _ in range(2))
    _round_with_noise(
        x, message, first, agents, grids, rounding, discrete, *_joined(variances),
        u, v, words, further, aligned(TILE), cut,
    )  # fmt: skip
    return cut


def _counts(steps: Steps) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(len(steps.step), np.int64), np.zeros(len(steps.step))


def _tiles(steps: Steps, count: int) -> list[np.ndarray]:
    agents = steps.keep.shape[1]
    return [aligned(agents * TILE) for _ in range(count)]


@lru_cache(maxsize=2)  # of wide noise a hundred megabytes, for one batch at a time
def _joined(variances: tuple[float, ...]) -> tuple[np.ndarray, ...]:
    """Whether a setting has noise; its table's lowest integer, all tables below each other, where
    each begins, and their guides. The same in all rounds of a run."""
    tables = [discrete_table(variance) if variance else _NO_TABLE for variance in variances]
    begin = np.cumsum([0, *(table.high.size for table in tables)])
    high, low = (np.concatenate([table[k] for table in tables]) for k in (1, 2))
    lowest = np.array([table.lowest for table in tables], np.int64)
    guides = np.stack([table.guide for table in tables])
    return np.array(variances) > 0, lowest, begin, high, low, guides


_NO_TABLE = Table(0, *np.zeros((2, 1), np.uint64), np.zeros(2**GUIDE, np.int32))
