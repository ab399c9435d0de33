"""One round of decentralized SGD of one setting and run, on rows of float32: the agents' models.

Messages are rounded models with noise (:func:`round_models`). They are mixed, and each agent takes
a step (:func:`mix_and_step`). Random numbers are those of :mod:`.messages`, and settings share
them. Sums over agents are in the order of the agents, without products of weight 0; each product
is rounded together with its sum. Rounding is that of :mod:`.rows`. The same
operations in NumPy take 20 times (step) and 60 times (rounding) as long.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .compiling import uncounted
from .normals import fill_normals, fill_uniforms, fill_words
from .rows import (
    add_steps,
    bounds_of,
    discrete_table,
    find_steps,
    round_row,
    round_to_few,
)

MIXED_COLUMNS = 512
"""Number of columns that are mixed together. The values of all agents then stay in the innermost
cache."""

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


class Keys(NamedTuple):
    """Key of a random stream, as two words, and the counter of the first agent in a round."""

    first: np.uint32
    second: np.uint32
    counter: np.uint32


class Steps(NamedTuple):
    r"""Coefficients of the step :math:`x_i \leftarrow k_i b_i + \sum_j w_{ij} z_j - a(g_i + s_i
    \xi_i)`.

    Attributes
    ----------
    weights : ndarray of float32, shape (agents, agents)
        Mixing weights w.
    keep, scale : ndarray of float32, shape (agents,)
        Weights k of the agents' base points, and noise scales s.
    step : float32
        Step length a.
    """

    weights: np.ndarray
    keep: np.ndarray
    scale: np.ndarray
    step: np.float32


class Sparse(NamedTuple):
    r"""Factor :math:`\theta`, fraction c of sent coordinates, and uniforms that select them."""

    theta: np.float32
    fraction: np.float32
    uniforms: np.ndarray


class Grid(NamedTuple):
    """Resolution of a grid, and its ends in steps of the grid."""

    resolution: np.float32
    lowest: np.float32
    highest: np.float32


def keys(key: np.ndarray, counter: int) -> Keys:
    """Build the stream of a round from a key of two words and a counter."""
    return Keys(np.uint32(key[0]), np.uint32(key[1]), np.uint32(counter))


def steps_of(weights, keep, scale, step) -> Steps:
    """Build the coefficients of a step in float32; the parameters are those of :class:`Steps`."""
    return Steps(*(np.array(v, np.float32) for v in (weights, keep, scale)), np.float32(step))


# --- Random numbers -------------------------------------------------------------------------------

# The first half of a row has the first numbers of the pairs, the second half the second numbers.
# Rows of odd length therefore have an unused last column.


def normals(stream: Keys, agents: int, dim: int) -> np.ndarray:
    """Sample standard normals in float32, a row per agent of ``dim`` or ``dim + 1`` columns."""
    return _halves(fill_normals, stream, agents, dim)


def uniforms(stream: Keys, agents: int, dim: int) -> np.ndarray:
    """Sample uniforms on [0, 1) in float32, in the shape of :func:`normals`."""
    return _halves(fill_uniforms, stream, agents, dim)


def words(stream: Keys, agents: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Sample a pair of random words for every agent and coordinate."""
    first, second = np.empty((2, agents, dim), np.uint32)
    _fill_rows(fill_words, stream, first, second)
    return first, second


def _halves(fill: Callable, stream: Keys, agents: int, dim: int) -> np.ndarray:
    out = np.empty((agents, dim + dim % 2), np.float32)
    _fill_rows(fill, stream, *np.split(out, 2, axis=1))
    return out


def _fill_rows(fill: Callable, stream: Keys, first: np.ndarray, second: np.ndarray) -> None:
    for i, pair in enumerate(zip(first, second, strict=True)):
        counter = np.uint32(int(stream.counter) + i)
        fill(stream.first, stream.second, counter, np.uint32(0), *pair)


# --- Messages -------------------------------------------------------------------------------------


class Noise(NamedTuple):
    """Discrete Gaussian noise: variance in squared grid steps, stream, and its :func:`words`."""

    variance: float
    stream: Keys
    words: tuple[np.ndarray, np.ndarray]


def round_models(x, u, grid: Grid, out, noise: Noise | None = None):
    """Compute messages: models that are rounded to a grid, and discrete Gaussian noise.

    All arrays are of float32: models x [agents, p], uniforms u [agents, p or p + 1] of the
    rounding, and ``out`` [agents, p], which is overwritten. The noise has a positive variance.
    """
    options = grid.resolution, _ONE / grid.resolution, grid.lowest, grid.highest
    if noise is None:
        _round(x, u, *options, out)
        return
    table = discrete_table(noise.variance)
    bounds = bounds_of(table, float(grid.highest - grid.lowest))
    random = noise.stream, *noise.words, np.empty(x.shape[1], np.float32)
    _round_with_noise(x, u, table, bounds, *random, *options, out)


@uncounted
def _round(x, u, resolution, inverse, lowest, highest, out):
    for i in range(len(x)):
        round_row(x[i], u[i], resolution, inverse, lowest, highest, out[i])


@uncounted
def _round_with_noise(
    x, u, table, bounds, stream, first, second, samples, resolution, inverse, lowest, highest, out
):
    for i in range(len(x)):
        counter, is_decided = np.uint32(stream.counter + np.uint32(i)), False
        if bounds[-1] > 0:
            is_decided = round_to_few(
                x[i], u[i], first[i], bounds, resolution, inverse, lowest, highest, out[i]
            )
        if not is_decided:
            round_row(x[i], u[i], resolution, inverse, lowest, highest, out[i])
            find_steps(table, stream.first, stream.second, counter, 0, first[i], second[i], samples)
            add_steps(out[i], samples, resolution, inverse, lowest, highest)


# --- Steps ----------------------------------------------------------------------------------------


def mix_and_step(x, base, sent, gradients, steps: Steps, noise, sparse: Sparse | None = None):
    r"""Mix the sent messages and take a noisy step from ``base``, for every agent.

    With ``sparse``, ``base`` is ignored, and the step is a sparsified differential step of SDM-DSGD
    with the mixed messages m:

    .. math:: d_i = \theta\bigl(m_i - x_i - a(g_i + s_i\xi_i)\bigr), \qquad
              x_i \leftarrow x_i + d_i/c \text{ with probability } c \text{ per coordinate}

    Models x, which are overwritten, ``base``, ``sent`` and ``gradients`` are [agents, p] of
    float32. Base and messages may be the models. ``noise`` has standard normals :math:`\xi`,
    [agents, p or p + 1].
    """
    mixed = np.empty_like(x)
    _mix(steps.weights, sent, mixed)
    if sparse is None:
        _descend(x, base, mixed, gradients, noise, steps)
    else:
        _descend_sparsely(x, mixed, gradients, noise, steps, sparse)


@uncounted
def _mix(weights, sent, mixed):
    agents, dim = mixed.shape
    for a in range(0, dim, MIXED_COLUMNS):
        b = min(a + MIXED_COLUMNS, dim)
        for i in range(agents):
            total = mixed[i, a:b]
            total[:] = _ZERO
            for j in range(agents):
                if weights[i, j] != _ZERO:
                    _add_product(total, sent[j, a:b], weights[i, j])


@uncounted
def _add_product(total, values, weight):
    for k in range(total.size):
        total[k] += values[k] * weight


@uncounted
def _descend(x, base, mixed, gradients, noise, steps):
    agents, dim = x.shape
    for i in range(agents):
        keep, scale = steps.keep[i], steps.scale[i]
        # The base may be x, and the compiler vectorises loops only if arrays do not overlap.
        for j in range(dim):
            step = steps.step * (gradients[i, j] + scale * noise[i, j])
            mixed[i, j] = keep * base[i, j] + mixed[i, j] - step
        for j in range(dim):
            x[i, j] = mixed[i, j]


@uncounted
def _descend_sparsely(x, mixed, gradients, noise, steps, sparse):
    agents, dim = x.shape
    uniforms, fraction, inverse = sparse.uniforms, sparse.fraction, _ONE / sparse.fraction
    for i in range(agents):
        scale = steps.scale[i]
        for j in range(dim):
            step = steps.step * (gradients[i, j] + scale * noise[i, j])
            change = sparse.theta * (mixed[i, j] - x[i, j] - step)
            new_value = x[i, j] + change * inverse
            x[i, j] = new_value if uniforms[i, j] < fraction else x[i, j]
