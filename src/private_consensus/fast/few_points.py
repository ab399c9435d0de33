r"""Rounding with discrete Gaussian noise where the grid has few points.

From any point of a grid that is w steps wide, draws beyond :math:`\pm(w+1)` lead out of it like
those at :math:`\pm(w+1)` themselves. The law is even: a word's first bit is the sign of its draw,
and what is left of it, counted from the nearer end, is below as many of :math:`w+1` bounds as the
draw is steps long. They are found in registers, and no table is looked up: on a grid of 3 bits 8
bounds. Their first 32 bits decide but for one draw in some hundred million.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .compiling import inlined, uncounted
from .messages import Table
from .vectors import (
    LANES,
    everywhere,
    floor,
    greatest,
    ints,
    least,
    load,
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

_NOTHING, _ONE, _TWO, _FOUR, _EIGHT = (np.float32(v) for v in (0, 1, 2, 4, 8))
_LAST_BIT, _SIGN = np.int32(31), np.int32(-(2**31))


class DrawBounds(NamedTuple):
    """Of each setting whether so many bounds suffice, and the first 32 bits of those below the
    middle, in rising order, after zeros; [settings, ``BOUNDS``]."""

    usable: np.ndarray
    bounds: np.ndarray


def bounds_of(table: Table, width: float) -> tuple[bool, np.ndarray]:
    """What :class:`DrawBounds` has of a setting whose grid is ``width`` steps wide."""
    found = np.zeros(BOUNDS, np.uint32)
    if width + 1 > BOUNDS:
        return False, found
    count = int(width) + 1
    wanted = np.arange(-count, count) - table.lowest
    inside = table.high[np.clip(wanted, 0, table.high.size - 1)] >> np.uint64(32)
    bounds = np.where(wanted < 0, 0, inside).astype(np.uint32)
    found[BOUNDS - count :] = bounds[:count]
    return np.array_equal(bounds[:count], ~bounds[count:][::-1]), found


@inlined
def _eight(bounds):
    """Each of eight numbers in all lanes of a vector."""
    return (
        everywhere(bounds[0]), everywhere(bounds[1]), everywhere(bounds[2]), everywhere(bounds[3]),
        everywhere(bounds[4]), everywhere(bounds[5]), everywhere(bounds[6]), everywhere(bounds[7]),
    )  # fmt: skip


@inlined
def _length(word, b, tied):
    """How many of eight bounds in rising order words do not reach, halving those in question with
    each comparison; ``tied`` is 1 where a word is one of them, which then is the last that it
    reaches."""
    second = where_reached(word, b[3], b[5], b[1])
    third = where_reached(
        word, b[3], where_reached(word, second, b[6], b[4]), where_reached(word, second, b[2], b[0])
    )
    left = where_reached(word, b[3], everywhere(_FOUR), everywhere(_EIGHT))
    left = where_reached(word, second, left - _TWO, left)
    left = where_reached(word, third, left - _ONE, left)
    left = where_reached(word, b[7], left - _ONE, left)
    last = where_reached(word, second, second, b[3])
    last = where_reached(word, third, third, last)
    last = where_reached(word, b[7], b[7], last)
    return left, where_same(word, last, everywhere(_ONE), tied)


@inlined
def _draw(word, b, tied):
    """Draws by words, and ``tied`` as in :func:`_length`."""
    upper = ints(word) >> _LAST_BIT
    length, tied = _length(words(ints(word) ^ upper), b, tied)
    return singles(ints(length) | ((upper & _SIGN) ^ _SIGN)), tied


@uncounted
def round_to_few(x, u, drawn, bounds, resolution, lowest, highest, out):
    """As :func:`.round_row` and :func:`.add_steps` after it, of whole vectors, with the first words
    of draws; how many were cut, or -1 where 32 bits do not decide a draw."""
    inverse = _ONE / resolution
    zero, one = everywhere(_NOTHING), everywhere(_ONE)
    bottom, top, cut, tied = everywhere(lowest), everywhere(highest), zero, zero
    b = _eight(bounds)
    for c in range(0, x.size, LANES):
        v = load(x, c) * inverse
        below = floor(v)
        k = below + where_less(load(u, c), v - below, one, zero)
        kept = least(top, greatest(bottom, k))
        cut = cut + where_unequal(kept, k, one, zero)
        draw, tied = _draw(load(drawn, c), b, tied)
        moved = kept + draw
        kept = least(top, greatest(bottom, moved))
        cut = cut + where_unequal(kept, moved, one, zero)
        store(out, c, kept * resolution)
    return np.int64(total_of(cut)) if total_of(tied) == _NOTHING else np.int64(-1)
