r"""Rounding with discrete Gaussian noise where the grid has few points.

From any point of a grid that is w steps wide, draws beyond :math:`\pm(w+1)` lead out of it like
those at :math:`\pm(w+1)` themselves. So a draw is the number of :math:`2w+2` bounds that a word
reaches, found in registers, and no table is looked up: on a grid of 3 bits 16 bounds. Their first
32 bits decide but for one draw in some hundred million.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .compiling import compiled, inlined
from .messages import Table
from .vectors import (
    LANES,
    everywhere,
    floor,
    greatest,
    least,
    load,
    store,
    total_of,
    where_less,
    where_reached,
    where_same,
    where_unequal,
)

BOUNDS = 16

_NOTHING, _ONE, _TWO, _FOUR, _EIGHT = (np.float32(v) for v in (0, 1, 2, 4, 8))
_NEVER = np.uint32(2**32 - 1)


class DrawBounds(NamedTuple):
    """Of each setting whether so many bounds between its draws suffice, the draw below all of them,
    and their first 32 bits, [settings, ``BOUNDS``]."""

    usable: np.ndarray
    lowest: np.ndarray
    bounds: np.ndarray


def bounds_of(table: Table, width: float) -> tuple[bool, np.float32, np.ndarray]:
    """What :class:`DrawBounds` has of a setting whose grid is ``width`` steps wide."""
    found = np.full(BOUNDS, _NEVER)
    if 2 * width + 2 > BOUNDS:
        return False, _NOTHING, found
    wanted = np.arange(-width - 1, width + 1, dtype=int) - table.lowest
    inside = table.high[np.clip(wanted, 0, table.high.size - 1)] >> np.uint64(32)
    found[: wanted.size] = np.where(wanted < 0, 0, inside)
    return True, np.float32(-width - 1), found


@inlined
def _sixteen(bounds):
    """Each of sixteen numbers in all lanes of a vector."""
    return (
        everywhere(bounds[0]), everywhere(bounds[1]), everywhere(bounds[2]), everywhere(bounds[3]),
        everywhere(bounds[4]), everywhere(bounds[5]), everywhere(bounds[6]), everywhere(bounds[7]),
        everywhere(bounds[8]), everywhere(bounds[9]), everywhere(bounds[10]),
        everywhere(bounds[11]), everywhere(bounds[12]), everywhere(bounds[13]),
        everywhere(bounds[14]), everywhere(bounds[15]),
    )  # fmt: skip


@inlined
def _count(word, b, tied):
    """How many of sixteen bounds in rising order words reach, halving those in question with each
    comparison; ``tied`` is 1 where a word is one of them."""
    second = where_reached(word, b[7], b[11], b[3])
    third = where_reached(
        word, second, where_reached(word, b[7], b[13], b[5]), where_reached(word, b[7], b[9], b[1])
    )
    above = where_reached(
        word, second, where_reached(word, b[7], b[14], b[6]), where_reached(word, b[7], b[10], b[2])
    )
    below = where_reached(
        word, second, where_reached(word, b[7], b[12], b[4]), where_reached(word, b[7], b[8], b[0])
    )
    fourth = where_reached(word, third, above, below)
    found = where_reached(word, b[7], everywhere(_EIGHT), everywhere(_NOTHING))
    found = where_reached(word, second, found + _FOUR, found)
    found = where_reached(word, third, found + _TWO, found)
    found = where_reached(word, fourth, found + _ONE, found)
    found = where_reached(word, b[15], found + _ONE, found)
    one = everywhere(_ONE)
    tied = where_same(word, b[7], one, where_same(word, second, one, tied))
    tied = where_same(word, third, one, where_same(word, fourth, one, tied))
    return found, where_same(word, b[15], one, tied)


@compiled
def round_to_few(x, u, words, bounds, lowest_draw, resolution, lowest, highest, out):
    """As :func:`.round_row` and :func:`.add_steps` after it, of whole vectors; how many were cut,
    or -1 where 32 bits do not decide a draw."""
    inverse = _ONE / resolution
    zero, one = everywhere(_NOTHING), everywhere(_ONE)
    bottom, top, cut, tied = everywhere(lowest), everywhere(highest), zero, zero
    b = _sixteen(bounds)
    for c in range(0, x.size, LANES):
        v = load(x, c) * inverse
        below = floor(v)
        k = below + where_less(load(u, c), v - below, one, zero)
        kept = least(top, greatest(bottom, k))
        cut = cut + where_unequal(kept, k, one, zero)
        found, tied = _count(load(words, c), b, tied)
        moved = kept + (found + lowest_draw)
        kept = least(top, greatest(bottom, moved))
        cut = cut + where_unequal(kept, moved, one, zero)
        store(out, c, kept * resolution)
    return np.int64(total_of(cut)) if total_of(tied) == _NOTHING else np.int64(-1)
