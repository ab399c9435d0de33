r"""Random numbers of rounds of decentralized SGD in NumPy, as the plain steps use them.

Row i of an array [agents, p] uses counter ``counter + i`` of a key. Coordinate j uses index
``j mod h`` with :math:`h = \lceil p/2\rceil`: the first half of the coordinates uses the first
number of a pair, the second half the second number. The compiled rounds of :mod:`.rounds` use the
same numbers.
"""

import numpy as np

from .normals import normals, threefry
from .rows import TIES, NoiseTable, find

_EIGHT, _UPPER = np.uint32(8), np.uint64(32)


def uniforms(key, counter, shape: tuple[int, int]) -> np.ndarray:
    """Compute uniform random numbers with 24 bits in float64, [agents, p]."""
    first, second = _pairs(threefry, key, counter, shape)
    return _both_halves(*((word >> _EIGHT) * 2.0**-24 for word in (first, second)), shape[1])


def normals_of(key, counter, shape: tuple[int, int]) -> np.ndarray:
    """Compute standard normal random numbers in float64, [agents, p]."""
    return _both_halves(*_pairs(normals, key, counter, shape), shape[1])


def discrete_of(table: NoiseTable, key, counter, shape: tuple[int, int]) -> np.ndarray:
    """Compute discrete Gaussian samples by a table of cumulative probabilities, [agents, p].

    Every coordinate has its own pair of words. The second 64 bits of a sample are generated only if
    the first 64 equal those of a bound.
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
