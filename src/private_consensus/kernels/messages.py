r"""Quantisation, descent and sparsification of the models of one setting.

The operations are stochastic rounding to a grid, discrete Gaussian noise on that grid, a noisy
descent step and a randomly sparsified step. Row i of ``x[agents, p]`` uses counter ``counter + i``
of a key. Coordinate j uses index ``j mod h`` with :math:`h = \lceil p/2\rceil`: the first half of
the coordinates uses the first number of a pair, the second half the second number. For models of
float32, :mod:`.rounds` computes the operations in compiled code. For other models, NumPy computes
them from the same samples, in the precision of ``x``.
"""

from __future__ import annotations

import numpy as np

from .entries import require_layout
from .normals import normals, threefry
from .rounds import (
    Grids,
    Sparse,
    keys,
    mix_and_step,
    round_with_noise,
    steps_of,
)
from .rows import TIES, NoiseTable, find

_EIGHT, _UPPER = np.uint32(8), np.uint64(32)
_FIRST_ROW = np.zeros(1, np.int64)
"""First row of the only setting."""

AGENTS_TOGETHER = 64
"""Number of agents per call of the compiled round, whose memory is quadratic in this number."""


def quantize(x, resolution, lowest, highest, key, counter, out) -> int:
    r"""Round without bias to :math:`\eta\{k_{low},\dots,k_{high}\}` and clip at its ends.

    .. math:: Q(x) = \eta k \text{ or } \eta(k+1), \quad P(k+1) = x/\eta - k, \quad
              k = \lfloor x/\eta \rfloor

    The models ``x`` and the result ``out`` are arrays of float32, [agents, p]; ``resolution`` is
    :math:`\eta`. The ends ``lowest`` and ``highest`` are in steps, and infinite for none. ``key``
    (two words) and ``counter`` (of the first agent) determine the random numbers. Return the number
    of clipped coordinates.
    """
    _require_models("quantize", x, key, out=out)
    if x.dtype == np.float32:
        grid = Grids(*np.array([[resolution], [lowest], [highest]], np.float32))
        stream = keys(key, counter)
        return int(round_with_noise(x, out, _FIRST_ROW, len(x), grid, (0.0,), stream, stream)[0])
    v = x / resolution
    below = np.floor(v)
    k = below + (uniforms(key, counter, x.shape) < v - below)
    out[:] = np.clip(k, lowest, highest) * resolution
    return int(((k < lowest) | (k > highest)).sum())


def descend(x, base, mixed, gradient, base_weight, step, scale, key, counter) -> None:
    r"""Take the noisy step :math:`x_i \leftarrow k_i b_i + m_i - a(g_i + s_i\,\xi_i)`.

    The noise :math:`\xi_i` is standard normal.

    Parameters
    ----------
    x : ndarray of float32, shape (agents, p)
        Overwritten; may be ``base`` itself.
    base, mixed, gradient : ndarray of float32, shape (agents, p)
        :math:`b`, :math:`m` and :math:`g`.
    base_weight, scale : ndarray, shape (agents,)
        Weights :math:`k` and noise scales :math:`s`; no noise is sampled if s is 0.
    step : float
        Step length :math:`a`.
    key : ndarray of uint32, shape (2,)
        Key of the random stream.
    """
    _require_models("descend", x, key, base=base, mixed=mixed, gradient=gradient)
    for name, values in {"base_weight": base_weight, "scale": scale}.items():
        require_layout("descend", name, values, x.shape[:1])
    if x.dtype == np.float32:
        _step(x, base, mixed, gradient, base_weight, scale, step, counter, key)
        return
    noise = np.asarray(scale)[:, None] * normals_of(key, counter, x.shape)
    x[:] = np.asarray(base_weight)[:, None] * base + mixed - step * (gradient + noise)


def sparsify(x, mixed, gradient, theta, step, scale, fraction, key, mask, counter) -> None:
    r"""Take a sparsified differential step of SDM-DSGD.

    .. math:: d_i = \theta\bigl(m_i - x_i - a(g_i + s_i\xi_i)\bigr), \qquad
              x_{ij} \leftarrow x_{ij} + d_{ij}/c \text{ with probability } c

    Parameters
    ----------
    x : ndarray of float32, shape (agents, p)
        Overwritten.
    mixed, gradient : ndarray of float32, shape (agents, p)
        :math:`m` and :math:`g`.
    theta, step : float
        Factor :math:`\theta` and step length :math:`a`.
    scale : ndarray, shape (agents,)
        Noise scales :math:`s`; no noise is sampled if s is 0.
    fraction : float
        Probability :math:`c` that a coordinate changes.
    key, mask : ndarray of uint32, shape (2,)
        Keys of the noise and of the selection of coordinates.
    """
    _require_models("sparsify", x, key, mixed=mixed, gradient=gradient)
    require_layout("sparsify", "mask", mask, (2,))
    require_layout("sparsify", "scale", scale, x.shape[:1])
    if x.dtype == np.float32:
        sparse = Sparse(*np.array([[theta], [fraction]], np.float32))
        _step(x, x, mixed, gradient, np.zeros(len(x)), scale, step, counter, key, mask, sparse)
        return
    noise = np.asarray(scale)[:, None] * normals_of(key, counter, x.shape)
    change = theta * (mixed - x - step * (gradient + noise))
    x += np.where(uniforms(mask, counter, x.shape) < fraction, change / fraction, 0.0)


def add_discrete(z, resolution, lowest, highest, table: NoiseTable, key, counter) -> int:
    """Add discrete Gaussian noise to ``z``, [agents, p], in place and clip the result to the grid.

    The values of ``z`` are on the grid. Every coordinate has its own pair of words. ``table`` has
    the cumulative probabilities of the noise. Grid, key and counter are those of :func:`quantize`.
    """
    _require_models("add_discrete", z, key)
    require_layout("add_discrete", "table.low", table.low, table.high.shape)
    resolution = z.dtype.type(resolution)
    k = np.rint(z / resolution) + discrete_of(table, key, counter, z.shape)
    z[:] = np.clip(k, lowest, highest).astype(z.dtype) * resolution
    return int(((k < lowest) | (k > highest)).sum())


def _step(x, base, mixed, gradient, base_weight, scale, step, counter, key, mask=None, sparse=None):
    """Take the step of one setting in compiled code, with messages that are mixed already."""
    for first in range(0, len(x), AGENTS_TOGETHER):
        block = slice(first, first + AGENTS_TOGETHER)
        block_weights, block_scale = base_weight[block], scale[block]
        steps = steps_of(
            weights=[np.eye(len(block_weights))],
            keep=[block_weights],
            scale=[block_scale],
            step=[step],
        )
        noise = keys(key, counter + first)
        masks = None if mask is None else keys(mask, counter + first)
        arrays = x[block], base[block], mixed[block], gradient[block]
        mix_and_step(*arrays, _FIRST_ROW, steps, noise, masks, sparse)


def _require_models(kernel: str, x: np.ndarray, key: np.ndarray, **arrays: np.ndarray) -> None:
    """Check arrays with one row per agent, and a key of two words."""
    require_layout(kernel, "x", x, (-1, -1))
    require_layout(kernel, "key", key, (2,))
    for name, array in arrays.items():
        require_layout(kernel, name, array, x.shape)


def uniforms(key, counter, shape: tuple[int, int]) -> np.ndarray:
    """Compute the uniform random numbers of :func:`quantize` in float64, [agents, p]."""
    first, second = _pairs(threefry, key, counter, shape)
    return _both_halves(*((word >> _EIGHT) * 2.0**-24 for word in (first, second)), shape[1])


def normals_of(key, counter, shape: tuple[int, int]) -> np.ndarray:
    """Compute the normal random numbers of :func:`descend` in float64, [agents, p]."""
    return _both_halves(*_pairs(normals, key, counter, shape), shape[1])


def discrete_of(table: NoiseTable, key, counter, shape: tuple[int, int]) -> np.ndarray:
    """Compute the discrete Gaussian samples of :func:`add_discrete`, [agents, p].

    The second 64 bits of a sample are generated only if the first 64 equal those of a bound.
    """
    counters, columns = _counters(counter, shape[0]), np.arange(shape[1], dtype=np.uint32)
    word = _concatenated(*threefry(np.asarray(key), counters, columns))
    index = np.searchsorted(table.high, word, side="left")
    tied = np.nonzero(table.high[index] == word)
    tie_counters = counters[tied[0], 0], columns[tied[1]] + TIES
    further = _concatenated(*threefry(np.asarray(key), *tie_counters))
    bounds = table.high, table.low, table.guide
    index[tied] = [find(*words, *bounds) for words in zip(word[tied], further, strict=True)]
    return index + table.lowest


def _concatenated(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    return (high.astype(np.uint64) << _UPPER) | low


def _counters(counter: int, agents: int) -> np.ndarray:
    return (np.uint32(counter) + np.arange(agents, dtype=np.uint32))[:, None]


def _pairs(draw, key, counter, shape):
    columns = np.arange((shape[1] + 1) // 2, dtype=np.uint32)
    return draw(np.asarray(key), _counters(counter, shape[0]), columns)


def _both_halves(first, second, dim: int) -> np.ndarray:
    return np.concatenate([first, second], axis=1)[:, :dim]
