r"""Rounding with discrete Gaussian noise on a grid with few points.

On a grid that is w steps wide, samples beyond :math:`\pm(w+1)` have the effect of
:math:`\pm(w+1)`: they leave the grid from every point. The distribution is symmetric. The first bit
of a random word is the sign of its sample. The absolute value is k if the other bits are below k of
:math:`w+1` bounds; a grid of 3 bits has 8 bounds. Words and bounds are compared in registers,
without a table. The first 32 bits of the bounds decide all but about one in a hundred million
samples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .compiling import inlined, uncounted
from .rows import NoiseTable
from .vectors import (
    LANES,
    everywhere,
    floor,
    ints,
    load,
    maximum,
    minimum,
    singles,
    store,
    total_of,
    where_less,
    where_reached,
    where_same,
    where_unequal,
    words,
)

BOUNDS = 8

_ZERO, _ONE, _TWO, _FOUR, _EIGHT = (np.float32(v) for v in (0, 1, 2, 4, 8))
_LAST_BIT, _SIGN = np.int32(31), np.int32(-(2**31))


class DrawBounds(NamedTuple):
    """Bounds with which random words are compared, for each setting.

    Attributes
    ----------
    usable : ndarray of bool, shape (settings,)
        True if ``BOUNDS`` bounds suffice.
    bounds : ndarray of uint32, shape (settings, BOUNDS)
        First 32 bits of the bounds of negative samples, in increasing order, after leading zeros.
    """

    usable: np.ndarray
    bounds: np.ndarray


def bounds_of(table: NoiseTable, width: float) -> tuple[bool, np.ndarray]:
    """Compute the entries of :class:`DrawBounds` for one setting.

    Parameters
    ----------
    table : NoiseTable
        Cumulative probabilities of the noise.
    width : float
        Width of the grid, in steps.

    Returns
    -------
    usable : bool
        True if the bounds suffice.
    bounds : ndarray of uint32, shape (BOUNDS,)
    """
    padded = np.zeros(BOUNDS, np.uint32)
    if width + 1 > BOUNDS:
        return False, padded
    count = int(width) + 1
    bound_index = np.arange(-count, count) - table.lowest
    inside = table.high[np.clip(bound_index, 0, table.high.size - 1)] >> np.uint64(32)
    bounds = np.where(bound_index < 0, 0, inside).astype(np.uint32)
    padded[BOUNDS - count :] = bounds[:count]
    return np.array_equal(bounds[:count], ~bounds[count:][::-1]), padded


@inlined
def _eight(bounds):
    """Broadcast each of eight bounds to all lanes of a vector."""
    return (
        everywhere(bounds[0]), everywhere(bounds[1]), everywhere(bounds[2]), everywhere(bounds[3]),
        everywhere(bounds[4]), everywhere(bounds[5]), everywhere(bounds[6]), everywhere(bounds[7]),
    )  # fmt: skip


@inlined
def _lengths(word, b, tied):
    """Count the bounds, eight in increasing order, that exceed each word, by binary search.

    ``tied`` becomes 1 if a word equals a bound, so that 32 bits do not decide its sample.
    """
    second = where_reached(word, b[3], b[5], b[1])
    third = where_reached(
        word, b[3], where_reached(word, second, b[6], b[4]), where_reached(word, second, b[2], b[0])
    )
    length = where_reached(word, b[3], everywhere(_FOUR), everywhere(_EIGHT))
    length = where_reached(word, second, length - _TWO, length)
    length = where_reached(word, third, length - _ONE, length)
    length = where_reached(word, b[7], length - _ONE, length)
    last = where_reached(word, second, second, b[3])
    last = where_reached(word, third, third, last)
    last = where_reached(word, b[7], b[7], last)
    return length, where_same(word, last, everywhere(_ONE), tied)


@inlined
def _samples(word, b, tied):
    """Return the samples of random words, and ``tied`` of :func:`_lengths`."""
    upper = ints(word) >> _LAST_BIT
    length, tied = _lengths(words(ints(word) ^ upper), b, tied)
    return singles(ints(length) | ((upper & _SIGN) ^ _SIGN)), tied


@uncounted
def round_to_few(x, u, noise_words, bounds, resolution, lowest, highest, out):
    """Round as :func:`.round_row`, then add noise as :func:`.add_steps`, in whole vectors.

    Parameters
    ----------
    x, u : ndarray of float32, shape (n,)
        Values, and uniforms for the rounding.
    noise_words : ndarray of uint32, shape (n,)
        First words of the noise samples.
    bounds : ndarray of uint32, shape (BOUNDS,)
        Row of :class:`DrawBounds`.
    resolution, lowest, highest : float32
        Step of the grid, and its ends in steps.
    out : ndarray of float32, shape (n,)
        Overwritten with the result.

    Returns
    -------
    int64
        Number of clipped values, or -1 if 32 bits do not decide a sample.
    """
    inverse = _ONE / resolution
    zero, unit = everywhere(_ZERO), everywhere(_ONE)
    bottom, top, clip_count, tied = everywhere(lowest), everywhere(highest), zero, zero
    b = _eight(bounds)
    for c in range(0, x.size, LANES):
        v = load(x, c) * inverse
        below = floor(v)
        k = below + where_less(load(u, c), v - below, unit, zero)
        clipped = minimum(top, maximum(bottom, k))
        clip_count = clip_count + where_unequal(clipped, k, unit, zero)
        sample, tied = _samples(load(noise_words, c), b, tied)
        noised = clipped + sample
        clipped = minimum(top, maximum(bottom, noised))
        clip_count = clip_count + where_unequal(clipped, noised, unit, zero)
        store(out, c, clipped * resolution)
    return np.int64(total_of(clip_count)) if total_of(tied) == _ZERO else np.int64(-1)
