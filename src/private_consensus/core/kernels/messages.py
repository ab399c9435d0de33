r"""Quantisation, descent and sparsification of models with many parameters, in one pass each.

The operations are stochastic rounding to a grid, discrete Gaussian noise on that grid, a noisy
descent step and a randomly sparsified step. Row i of ``x[agents, p]`` uses counter ``counter + i``
of a key. Coordinate j uses index ``j mod h`` with :math:`h = \lceil p/2\rceil`: the first half
takes the first number of a pair, the second half the second. Arrays of float32 are processed by
machine code. Functions named ``_plainly`` use the same samples in NumPy, in the precision of ``x``.

Discrete Gaussian samples compare 128 random bits with cumulative probabilities of 128 bits
(:func:`discrete_table`). The error of the distribution is below 1e-33 in total variation for
standard deviations up to 1e5 steps. Inversion in double precision has an error of about 1e-16 and
no tails. The second 64 bits decide ties of the first and are generated only for those.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np

from private_consensus.common.errors import require

from .compiling import AVAILABLE, uncounted
from .entries import require_layout
from .normals import fill_normals, fill_uniforms, fill_words, normals, threefry
from .vectors import WIDE

CHUNK = 1024
"""Number of pairs sampled together, which stay in the innermost cache."""

WIDEST = 1e5
"""Largest standard deviation, in steps of the grid, of a table."""

FRACTION = 256
"""Binary digits of weights: the error of a million roundings is far below the 128 used digits."""

GUIDE = 14
_TIES = np.uint32(1 << 31)
"""Offset of the counters for the second 64 bits of a sample."""

_EIGHT, _NOTHING, _ONE_STEP = np.uint32(8), np.float32(0.0), np.float32(1.0)
_UPPER, _BUCKET = np.uint64(32), np.uint64(64 - GUIDE)
_NEXT = np.uint64(1)
"""Indices are unsigned, because numba tests whether a signed index is negative."""


TABLES = 128
"""Number of cached tables: more than the settings of a batch, which use theirs in every round."""


class NoiseTable(NamedTuple):
    """Cumulative probabilities with 128 bits each, and a guide table for the search.

    A word w selects the first k with ``(w, further bits) < (high[k], low[k])``, which stands for
    the integer ``k + lowest``.
    """

    lowest: int
    high: np.ndarray
    low: np.ndarray
    guide: np.ndarray


@lru_cache(maxsize=TABLES)
def discrete_table(variance: float) -> NoiseTable:
    r"""Compute the table of :math:`P(k) \propto e^{-k^2/(2\sigma^2)}` on the integers.

    The variance is in squared steps. The weights follow the recurrence
    :math:`w_{k+1} = w_k q^{2k+1}`, :math:`q = e^{-1/(2\sigma^2)}`, in integer multiples of
    :math:`2^{-256}`. The support ends where the remainder is below :math:`2^{-128}`.
    """
    usable = variance > 0 and math.sqrt(variance) <= WIDEST
    require(usable, "variance", variance, f"above 0, and at most {WIDEST:g} steps squared")
    reach = math.ceil(math.sqrt(2 * variance * 130 * math.log(2))) + 1
    ratio = _one_step(variance)
    square, weights = ratio * ratio >> FRACTION, [1 << FRACTION]
    for _ in range(reach):
        weights.append(weights[-1] * ratio >> FRACTION)
        ratio = ratio * square >> FRACTION
    total = 2 * sum(weights) - weights[0]
    unit = (1 << 128 + 2 * FRACTION) // total
    sums = accumulate(chain(reversed(weights), weights[1:]))
    bounds = [cumulative * unit >> 2 * FRACTION for cumulative in sums]
    bounds[-1] = 2**128 - 1
    high = np.array([bound >> 64 for bound in bounds], np.uint64)
    low = np.array([bound & (2**64 - 1) for bound in bounds], np.uint64)
    first = np.arange(2**GUIDE, dtype=np.uint64) << _BUCKET
    return NoiseTable(-reach, high, low, np.searchsorted(high, first, side="left").astype(np.int32))


def _one_step(variance: float) -> int:
    r"""Compute :math:`e^{-1/(2\sigma^2)}` in units of :math:`2^{-256}`."""
    with localcontext() as context:
        context.prec = 120
        above, below = Fraction(variance).as_integer_ratio()
        return int((-Decimal(below) / Decimal(2 * above)).exp() * 2**FRACTION)


# --- Compiled -------------------------------------------------------------------------------------


@uncounted
def round_row(x, u, resolution, inverse, lowest, highest, out):
    """Round a row stochastically to the grid and clip it to the ends of the grid.

    Parameters
    ----------
    x, u : ndarray of float32, shape (n,)
        Values, and uniforms in [0, 1).
    resolution, inverse : float32
        Step of the grid, and its inverse.
    lowest, highest : float32
        Ends of the grid, in steps.
    out : ndarray of float32, shape (n,)
        Overwritten with the result.

    Returns
    -------
    int
        Number of clipped values.
    """
    cut = 0
    for j in range(x.size):
        v = x[j] * inverse
        below = np.floor(v)
        k = below + (_ONE_STEP if u[j] < v - below else _NOTHING)
        kept = min(max(k, lowest), highest)
        cut += kept != k
        out[j] = kept * resolution
    return cut


@uncounted
def _quantize(x, resolution, lowest, highest, k0, k1, counter, first, second, out):
    agents, dim = x.shape
    half = (dim + 1) // 2
    inverse = _ONE_STEP / resolution
    cut = 0
    for i in range(agents):
        for start in range(0, half, CHUNK):
            count = min(CHUNK, half - start)
            fill_uniforms(k0, k1, np.uint32(counter + i), np.uint32(start), first, second)
            end, later = start + count, half + start
            last = min(later + count, dim)
            cut += round_row(
                x[i, start:end], first, resolution, inverse, lowest, highest, out[i, start:end]
            )
            cut += round_row(
                x[i, later:last], second, resolution, inverse, lowest, highest, out[i, later:last]
            )
    return cut


@uncounted
def descend_row(x, base, mixed, gradient, noise, keep, step, scale):
    r"""Take the step of :func:`descend` in one row.

    Parameters
    ----------
    x : ndarray of float32, shape (n,)
        Overwritten.
    base, mixed, gradient, noise : ndarray of float32, shape (n,)
        :math:`b`, :math:`m`, :math:`g` and :math:`\xi`.
    keep, step, scale : float32
        :math:`k`, :math:`a` and :math:`s`.
    """
    for j in range(x.size):
        x[j] = keep * base[j] + mixed[j] - step * (gradient[j] + scale * noise[j])


@uncounted
def _descend(x, base, mixed, gradient, keep, step, scale, k0, k1, counter, one, two):
    agents, dim = x.shape
    half = (dim + 1) // 2
    for i in range(agents):
        for start in range(0, half, CHUNK):
            count = min(CHUNK, half - start)
            if scale[i] > 0:
                fill_normals(k0, k1, np.uint32(counter + i), np.uint32(start), one, two)
            a, b = start, start + count
            descend_row(
                x[i, a:b], base[i, a:b], mixed[i, a:b], gradient[i, a:b], one,
                keep[i], step, scale[i],
            )  # fmt: skip
            a, b = half + start, min(half + start + count, dim)
            descend_row(
                x[i, a:b], base[i, a:b], mixed[i, a:b], gradient[i, a:b], two,
                keep[i], step, scale[i],
            )  # fmt: skip


@uncounted
def sparse_row(x, mixed, gradient, noise, u, theta, step, scale, share, inverse):
    r"""Take the step of :func:`sparsify` in one row.

    Parameters
    ----------
    x : ndarray of float32, shape (n,)
        Overwritten.
    mixed, gradient, noise, u : ndarray of float32, shape (n,)
        :math:`m`, :math:`g`, :math:`\xi`, and uniforms that select the coordinates.
    theta, step, scale, share, inverse : float32
        :math:`\theta`, :math:`a`, :math:`s`, :math:`c` and :math:`1/c`.
    """
    for j in range(x.size):
        change = theta * (mixed[j] - x[j] - step * (gradient[j] + scale * noise[j]))
        moved = x[j] + change * inverse  # a fused multiply-add, as in whole vectors
        x[j] = moved if u[j] < share else x[j]


@uncounted
def _sparsify(
    x, mixed, gradient, theta, step, scale, share, key, mask, counter, one, two, first, second,
):  # fmt: skip
    agents, dim = x.shape
    half = (dim + 1) // 2
    inverse = _ONE_STEP / share
    for i in range(agents):
        for start in range(0, half, CHUNK):
            count = min(CHUNK, half - start)
            now = np.uint32(counter + i)
            if scale[i] > 0:
                fill_normals(key[0], key[1], now, np.uint32(start), one, two)
            fill_uniforms(mask[0], mask[1], now, np.uint32(start), first, second)
            a, b = start, start + count
            sparse_row(
                x[i, a:b], mixed[i, a:b], gradient[i, a:b], one, first,
                theta, step, scale[i], share, inverse,
            )  # fmt: skip
            a, b = half + start, min(half + start + count, dim)
            sparse_row(
                x[i, a:b], mixed[i, a:b], gradient[i, a:b], two, second,
                theta, step, scale[i], share, inverse,
            )  # fmt: skip


@uncounted
def _joined(one, other):
    return np.uint64((np.uint64(one) << _UPPER) | np.uint64(other))


@uncounted
def find(word, further, high, low, guide):
    """Return the index of the first bound above the 128 bits (word, further).

    Parameters
    ----------
    word, further : uint64
        First and second 64 bits.
    high, low : ndarray of uint64
        First and second 64 bits of the bounds.
    guide : ndarray of int32
        Index at which the search begins, by the first ``GUIDE`` bits.

    Returns
    -------
    uint64
    """
    k = np.uint64(guide[word >> _BUCKET])
    last = np.uint64(high.size - 1)
    while word > high[k] or (word == high[k] and further >= low[k] and k < last):
        k += _NEXT
    return k


@uncounted
def find_steps(table, k0, k1, counter, start, first, second, ties, steps):
    """Compute discrete Gaussian samples with indices start, start + 1, ... from pairs of words.

    Parameters
    ----------
    table : NoiseTable
        Cumulative probabilities.
    k0, k1, counter, start : uint32
        Key, first half of the counters, and second half of the first counter.
    first, second : ndarray of uint32
        Pairs of words, at least as many as samples.
    ties : ndarray of uint32, shape (2, WIDE)
        Scratch for further words, which are generated if the first 64 bits do not decide.
    steps : ndarray of float32, shape (n,)
        Overwritten with the samples, in steps of the grid.
    """
    for j in range(steps.size):
        word = _joined(first[j], second[j])
        k = np.uint64(table.guide[word >> _BUCKET])
        while word > table.high[k]:
            k += _NEXT
        if word == table.high[k]:
            further = np.uint32(_TIES + np.uint32(start + j))
            fill_words(k0, k1, counter, further, ties[0], ties[1])
            k = find(word, _joined(ties[0, 0], ties[1, 0]), table.high, table.low, table.guide)
        steps[j] = np.float32(np.int64(k) + table.lowest)


@uncounted
def add_steps(z, steps, resolution, inverse, lowest, highest):
    """Add steps of the grid to rounded values and clip the result.

    Parameters
    ----------
    z : ndarray of float32, shape (n,)
        Overwritten; values on the grid.
    steps : ndarray of float32, shape (n,)
        Integers to add.
    resolution, inverse : float32
        Step of the grid, and its inverse.
    lowest, highest : float32
        Ends of the grid, in steps.

    Returns
    -------
    int
        Number of clipped values.
    """
    cut = 0
    for j in range(z.size):
        moved = np.rint(z[j] * inverse) + steps[j]
        kept = min(max(moved, lowest), highest)
        cut += kept != moved
        z[j] = kept * resolution
    return cut


@uncounted
def _add_discrete(
    z, resolution, lowest, highest, table, k0, k1, counter, first, second, ties, steps
):
    agents, dim = z.shape
    inverse = _ONE_STEP / resolution
    cut = 0
    for i in range(agents):
        for start in range(0, dim, CHUNK):
            row = z[i, start : min(start + CHUNK, dim)]
            now = steps[: row.size]
            here = np.uint32(counter + i)
            fill_words(k0, k1, here, np.uint32(start), first, second)
            find_steps(table, k0, k1, here, start, first, second, ties, now)
            cut += add_steps(row, now, resolution, inverse, lowest, highest)
    return cut


def quantize(x, resolution, lowest, highest, key, counter, out) -> int:
    r"""Round without bias to :math:`\eta\{k_{low},\dots,k_{high}\}` and clip at its ends.

    .. math:: Q(x) = \eta k \text{ or } \eta(k+1), \quad P(k+1) = x/\eta - k, \quad
              k = \lfloor x/\eta \rfloor

    Parameters
    ----------
    x, out : ndarray of float32, shape (agents, p)
        Models, and the array for the result.
    resolution : float
        :math:`\eta`.
    lowest, highest : float
        Ends of the grid in steps; infinite for none.
    key : ndarray of uint32, shape (2,)
        Key of the random stream.
    counter : int
        Counter of the first agent.

    Returns
    -------
    int
        Number of clipped coordinates.
    """
    _require_models("quantize", x, key, out=out)
    if not compiled_for(x):
        return quantize_plainly(x, resolution, lowest, highest, key, counter, out)
    ends = np.float32(lowest), np.float32(highest)
    words = key[0], key[1], np.uint32(counter)
    return _quantize(x, np.float32(resolution), *ends, *words, *_scratch(2), out)


def descend(x, base, mixed, gradient, keep, step, scale, key, counter) -> None:
    r"""Compute :math:`x_i \leftarrow k_i b_i + m_i - a(g_i + s_i\,\xi_i)`.

    The noise :math:`\xi_i` is standard normal.

    Parameters
    ----------
    x : ndarray of float32, shape (agents, p)
        Overwritten; may be ``base`` itself.
    base, mixed, gradient : ndarray of float32, shape (agents, p)
        :math:`b`, :math:`m` and :math:`g`.
    keep, scale : ndarray, shape (agents,)
        :math:`k` and :math:`s`; nothing is sampled if s is 0.
    step : float
        :math:`a`.
    key : ndarray of uint32, shape (2,)
        Key of the random stream.
    counter : int
        Counter of the first agent.
    """
    _require_models("descend", x, key, base=base, mixed=mixed, gradient=gradient)
    for name, values in {"keep": keep, "scale": scale}.items():
        require_layout("descend", name, values, x.shape[:1])
    if not compiled_for(x):
        return descend_plainly(x, base, mixed, gradient, keep, step, scale, key, counter)
    _descend(
        x, base, mixed, gradient, _single(keep), np.float32(step), _single(scale),
        key[0], key[1], np.uint32(counter), *_scratch(2),
    )  # fmt: skip


def sparsify(x, mixed, gradient, theta, step, scale, share, key, mask, counter) -> None:
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
        :math:`\theta` and :math:`a`.
    scale : ndarray, shape (agents,)
        :math:`s`; nothing is sampled if s is 0.
    share : float
        :math:`c`.
    key, mask : ndarray of uint32, shape (2,)
        Keys of the noise and of the selection of coordinates.
    counter : int
        Counter of the first agent.
    """
    _require_models("sparsify", x, key, mixed=mixed, gradient=gradient)
    require_layout("sparsify", "mask", mask, (2,))
    require_layout("sparsify", "scale", scale, x.shape[:1])
    if not compiled_for(x):
        return sparsify_plainly(x, mixed, gradient, theta, step, scale, share, key, mask, counter)
    _sparsify(
        x, mixed, gradient, np.float32(theta), np.float32(step), _single(scale),
        np.float32(share), key, mask, np.uint32(counter), *_scratch(4),
    )  # fmt: skip


def add_discrete(z, resolution, lowest, highest, table: NoiseTable, key, counter) -> int:
    """Add discrete Gaussian noise to ``z`` in place and clip the result to the grid.

    Every coordinate has its own pair of words.

    Parameters
    ----------
    z : ndarray of float32, shape (agents, p)
        Overwritten; values on the grid.
    resolution, lowest, highest : float
        Step of the grid, and its ends in steps.
    table : NoiseTable
        Cumulative probabilities of the noise.
    key : ndarray of uint32, shape (2,)
        Key of the random stream.
    counter : int
        Counter of the first agent.

    Returns
    -------
    int
        Number of clipped coordinates.
    """
    _require_models("add_discrete", z, key)
    require_layout("add_discrete", "table.low", table.low, table.high.shape)
    if not compiled_for(z):
        return add_discrete_plainly(z, resolution, lowest, highest, table, key, counter)
    ends = np.float32(lowest), np.float32(highest)
    words = key[0], key[1], np.uint32(counter)
    scratch = *_scratch(2, np.uint32), np.zeros((2, WIDE), np.uint32), *_scratch(1)
    return _add_discrete(z, np.float32(resolution), *ends, table, *words, *scratch)


def compiled_for(x: np.ndarray) -> bool:
    """Return True if the compiled kernels support the array (numba available, dtype float32)."""
    return AVAILABLE and x.dtype == np.float32


def _require_models(kernel: str, x: np.ndarray, key: np.ndarray, **arrays: np.ndarray) -> None:
    """Check arrays with one row per agent, and a key of two words."""
    require_layout(kernel, "x", x, (-1, -1))
    require_layout(kernel, "key", key, (2,))
    for name, array in arrays.items():
        require_layout(kernel, name, array, x.shape)


def _single(values) -> np.ndarray:
    return np.ascontiguousarray(values, np.float32)


def _scratch(arrays: int, kind=np.float32) -> tuple[np.ndarray, ...]:
    return tuple(np.zeros(CHUNK, kind) for _ in range(arrays))


@lru_cache(maxsize=8)
def _places(dim: int) -> np.ndarray:
    return np.arange((dim + 1) // 2, dtype=np.uint32)


# --- Reference ------------------------------------------------------------------------------------


def uniforms(key, counter, shape: tuple[int, int]) -> np.ndarray:
    """Compute the uniforms of :func:`quantize`.

    Parameters
    ----------
    key : ndarray of uint32, shape (2,)
        Key of the random stream.
    counter : int
        Counter of the first agent.
    shape : tuple of int
        (agents, p).

    Returns
    -------
    ndarray of float64, shape (agents, p)
    """
    first, second = _pairs(threefry, key, counter, shape)
    return _halves(*((word >> _EIGHT) * 2.0**-24 for word in (first, second)), shape[1])


def normals_of(key, counter, shape: tuple[int, int]) -> np.ndarray:
    """Compute the normals of :func:`descend` in float64.

    Parameters
    ----------
    key : ndarray of uint32, shape (2,)
        Key of the random stream.
    counter : int
        Counter of the first agent.
    shape : tuple of int
        (agents, p).

    Returns
    -------
    ndarray of float64, shape (agents, p)
    """
    return _halves(*_pairs(normals, key, counter, shape), shape[1])


def discrete_of(table: NoiseTable, key, counter, shape: tuple[int, int]) -> np.ndarray:
    """Compute the discrete Gaussian samples of :func:`add_discrete`, except for ties.

    Parameters
    ----------
    table : NoiseTable
        Cumulative probabilities of the noise.
    key : ndarray of uint32, shape (2,)
        Key of the random stream.
    counter : int
        Counter of the first agent.
    shape : tuple of int
        (agents, p).

    Returns
    -------
    ndarray of int64, shape (agents, p)
    """
    rows = _rows(counter, shape[0])
    first, second = threefry(np.asarray(key), rows, np.arange(shape[1], dtype=np.uint32))
    word = (first.astype(np.uint64) << _UPPER) | second
    return np.searchsorted(table.high, word, side="left") + table.lowest


def quantize_plainly(x, resolution, lowest, highest, key, counter, out) -> int:
    """Compute the result of :func:`quantize` in NumPy, in the precision of ``x``.

    Parameters
    ----------
    x, out : ndarray, shape (agents, p)
        Models, and the array for the result.
    resolution, lowest, highest : float
        Step of the grid, and its ends in steps.
    key : ndarray of uint32, shape (2,)
        Key of the random stream.
    counter : int
        Counter of the first agent.

    Returns
    -------
    int
        Number of clipped coordinates.
    """
    v = x / resolution
    below = np.floor(v)
    k = below + (uniforms(key, counter, x.shape) < v - below)
    out[:] = np.clip(k, lowest, highest) * resolution
    return int(((k < lowest) | (k > highest)).sum())


def descend_plainly(x, base, mixed, gradient, keep, step, scale, key, counter) -> None:
    """Compute the result of :func:`descend` in NumPy, in the precision of ``x``.

    Parameters
    ----------
    x : ndarray, shape (agents, p)
        Overwritten.
    base, mixed, gradient : ndarray, shape (agents, p)
        :math:`b`, :math:`m` and :math:`g`.
    keep, scale : ndarray, shape (agents,)
        :math:`k` and :math:`s`.
    step : float
        :math:`a`.
    key : ndarray of uint32, shape (2,)
        Key of the random stream.
    counter : int
        Counter of the first agent.
    """
    noise = np.asarray(scale)[:, None] * normals_of(key, counter, x.shape)
    x[:] = np.asarray(keep)[:, None] * base + mixed - step * (gradient + noise)


def sparsify_plainly(x, mixed, gradient, theta, step, scale, share, key, mask, counter) -> None:
    r"""Compute the result of :func:`sparsify` in NumPy, in the precision of ``x``.

    Parameters
    ----------
    x : ndarray, shape (agents, p)
        Overwritten.
    mixed, gradient : ndarray, shape (agents, p)
        :math:`m` and :math:`g`.
    theta, step, share : float
        :math:`\theta`, :math:`a` and :math:`c`.
    scale : ndarray, shape (agents,)
        :math:`s`.
    key, mask : ndarray of uint32, shape (2,)
        Keys of the noise and of the selection of coordinates.
    counter : int
        Counter of the first agent.
    """
    noise = np.asarray(scale)[:, None] * normals_of(key, counter, x.shape)
    change = theta * (mixed - x - step * (gradient + noise))
    x += np.where(uniforms(mask, counter, x.shape) < share, change / share, 0.0)


def add_discrete_plainly(z, resolution, lowest, highest, table: NoiseTable, key, counter) -> int:
    """Compute the result of :func:`add_discrete` in NumPy, except for ties.

    Parameters
    ----------
    z : ndarray, shape (agents, p)
        Overwritten; values on the grid.
    resolution, lowest, highest : float
        Step of the grid, and its ends in steps.
    table : NoiseTable
        Cumulative probabilities of the noise.
    key : ndarray of uint32, shape (2,)
        Key of the random stream.
    counter : int
        Counter of the first agent.

    Returns
    -------
    int
        Number of clipped coordinates.
    """
    k = np.rint(z / resolution) + discrete_of(table, key, counter, z.shape)
    z[:] = np.clip(k, lowest, highest) * resolution
    return int(((k < lowest) | (k > highest)).sum())


def _rows(counter: int, agents: int) -> np.ndarray:
    return (np.uint32(counter) + np.arange(agents, dtype=np.uint32))[:, None]


def _pairs(draw, key, counter, shape):
    return draw(np.asarray(key), _rows(counter, shape[0]), _places(shape[1]))


def _halves(first, second, dim: int) -> np.ndarray:
    return np.concatenate([first, second], axis=1)[:, :dim]
