"""Rounding and discrete Gaussian noise of one row of a model, in compiled loops.

Discrete Gaussian samples compare 128 random bits with cumulative probabilities of 128 bits
(:func:`discrete_table`). The error of the distribution is below 1e-33 in total variation for
standard deviations up to 1e5 steps. Inversion in double precision has an error of about 1e-16 and
no tails. The second 64 bits decide ties of the first and are generated only for those.
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np

from private_consensus.common.errors import require

from .compiling import uncounted
from .normals import threefry_words

MAX_DEVIATION = 1e5
"""Largest standard deviation of a table, in steps of the grid."""

WEIGHT_BITS = 256
"""Number of bits of the weights, from which probabilities with 128 bits are computed."""

GUIDE_BITS = 14
"""Number of leading bits of a word that determine where the search in a table begins."""

TIES = np.uint32(1 << 31)
"""Offset of the counters for the second 64 bits of a sample."""

_ZERO, _ONE_STEP = np.float32(0.0), np.float32(1.0)
_UPPER, _BUCKET, _SIGN_BIT = np.uint64(32), np.uint64(64 - GUIDE_BITS), np.uint32(31)
_NEXT = np.uint64(1)
"""Increment of unsigned indices; numba would test signed indices for negative values."""

TABLES = 128
"""Number of cached tables, more than the number of settings in a batch."""

BOUNDS = 8
"""Number of bounds with which :func:`round_to_few` compares a word."""


class NoiseTable(NamedTuple):
    """Cumulative probabilities with 128 bits each, and a guide table for the search.

    A random word w selects the first k with ``(w, further bits) < (high[k], low[k])``. The sample
    is the integer ``k + lowest``.
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
    in_range = variance > 0 and math.sqrt(variance) <= MAX_DEVIATION
    expected = f"above 0 and at most {MAX_DEVIATION**2:g}, in squared grid steps"
    require(in_range, "variance", variance, expected)
    reach = math.ceil(math.sqrt(2 * variance * 130 * math.log(2))) + 1
    ratio = _first_ratio(variance)
    square, weights = ratio * ratio >> WEIGHT_BITS, [1 << WEIGHT_BITS]
    for _ in range(reach):
        weights.append(weights[-1] * ratio >> WEIGHT_BITS)
        ratio = ratio * square >> WEIGHT_BITS
    total = 2 * sum(weights) - weights[0]
    unit = (1 << 128 + 2 * WEIGHT_BITS) // total
    sums = accumulate(chain(reversed(weights), weights[1:]))
    bounds = [cumulative * unit >> 2 * WEIGHT_BITS for cumulative in sums]
    bounds[-1] = 2**128 - 1
    high = np.array([bound >> 64 for bound in bounds], np.uint64)
    low = np.array([bound & (2**64 - 1) for bound in bounds], np.uint64)
    first = np.arange(2**GUIDE_BITS, dtype=np.uint64) << _BUCKET
    return NoiseTable(-reach, high, low, np.searchsorted(high, first, side="left").astype(np.int32))


def bounds_of(table: NoiseTable, width: float) -> np.ndarray:
    r"""Compute the bounds of :func:`round_to_few`: the first 32 bits of those of negative samples.

    On a grid that is w steps wide, samples beyond :math:`\pm(w+1)` have the effect of
    :math:`\pm(w+1)`: they leave the grid from every point. The bounds, [BOUNDS], are in increasing
    order after leading zeros. All are 0 if the grid is wider or these bits are not symmetric.
    """
    bounds = np.zeros(BOUNDS, np.uint32)
    if width + 1 > BOUNDS:
        return bounds
    count = int(width) + 1
    bound_index = np.arange(-count, count) - table.lowest
    inside = table.high[np.clip(bound_index, 0, table.high.size - 1)] >> _UPPER
    both_sides = np.where(bound_index < 0, 0, inside).astype(np.uint32)
    if np.array_equal(both_sides[:count], ~both_sides[count:][::-1]):
        bounds[BOUNDS - count :] = both_sides[:count]
    return bounds


def _first_ratio(variance: float) -> int:
    r"""Compute :math:`e^{-1/(2\sigma^2)}` in units of :math:`2^{-256}`."""
    with localcontext() as context:
        context.prec = 120
        numerator, denominator = Fraction(variance).as_integer_ratio()
        return int((-Decimal(denominator) / Decimal(2 * numerator)).exp() * 2**WEIGHT_BITS)


# --- Compiled -------------------------------------------------------------------------------------


@uncounted
def round_row(x, u, resolution, inverse, lowest, highest, out):
    """Round a row ``x`` stochastically to the grid with uniforms ``u``, and clip it to the grid.

    The grid has a ``resolution``, its ``inverse``, and the ends ``lowest`` and ``highest`` in
    steps. ``out`` is overwritten with the result.
    """
    for j in range(x.size):
        v = x[j] * inverse
        below = np.floor(v)
        k = below + (_ONE_STEP if u[j] < v - below else _ZERO)
        out[j] = min(max(k, lowest), highest) * resolution


@uncounted
def _concatenated(high, low):
    return np.uint64((np.uint64(high) << _UPPER) | np.uint64(low))


@uncounted
def find_steps(table, k0, k1, counter, start, first, second, steps):
    """Compute discrete Gaussian samples with indices start, start + 1, ... from pairs of words.

    ``first`` and ``second`` are the words, and ``table`` has the cumulative probabilities. The key
    is (k0, k1), and counter and start are the halves of the first counter. Further words are
    generated if the first 64 bits do not decide. ``steps`` is overwritten with the samples, in
    steps of the grid.
    """
    last = np.uint64(table.high.size - 1)
    for j in range(steps.size):
        word = _concatenated(first[j], second[j])
        k = np.uint64(table.guide[word >> _BUCKET])
        while word > table.high[k]:
            k += _NEXT
        if word == table.high[k]:
            further = np.uint32(TIES + np.uint32(start + j))
            last_bits = _concatenated(*threefry_words(k0, k1, counter, further))
            while word == table.high[k] and last_bits >= table.low[k] and k < last:
                k += _NEXT
        steps[j] = np.float32(np.int64(k) + table.lowest)


@uncounted
def add_steps(z, steps, resolution, inverse, lowest, highest):
    """Add integer ``steps`` of the grid to rounded values ``z`` in place, and clip the result.

    The grid is that of :func:`round_row`.
    """
    for j in range(z.size):
        new_value = np.rint(z[j] * inverse) + steps[j]
        z[j] = min(max(new_value, lowest), highest) * resolution


@uncounted
def round_to_few(x, u, words, bounds, resolution, inverse, lowest, highest, out):
    """Round as :func:`round_row`, then add noise as :func:`add_steps`, on a grid with few points.

    The first bit of a word is the sign of its sample. The number of bounds that exceed the other
    bits is the absolute value. ``words`` are the first words of the noise samples, and ``bounds``
    the result of :func:`bounds_of`. Return False if 32 bits do not decide a sample. That is so for
    about one in a hundred million samples. The search in a table takes twice as long, which would
    add 8 % to the time of a full run.
    """
    tied = np.uint32(0)  # of 32 bits, as the values, so that the loop uses whole vectors
    for j in range(x.size):
        v = x[j] * inverse
        below = np.floor(v)
        k = below + (_ONE_STEP if u[j] < v - below else _ZERO)
        clipped = min(max(k, lowest), highest)
        is_positive = words[j] >> _SIGN_BIT
        word = np.uint32(~words[j]) if is_positive else words[j]
        length = _ZERO
        for i in range(BOUNDS):
            length = length + (_ONE_STEP if word < bounds[i] else _ZERO)
            tied = np.uint32(tied | np.uint32(word == bounds[i]))
        noised = clipped + (length if is_positive else -length)
        out[j] = min(max(noised, lowest), highest) * resolution
    return tied == 0
