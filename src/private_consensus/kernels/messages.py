r"""Random numbers of rounds of decentralized SGD, as the plain steps use them.

Row i of an array [agents, p] uses counter ``counter + i`` of a key. Coordinate j uses index
``j mod h`` with :math:`h = \lceil p/2\rceil`: the first half of the coordinates uses the first
number of a pair, the second half the second number. The compiled rounds of :mod:`.rounds` use the
same numbers; normal numbers have only 32 bits there.
"""

import numpy as np

from . import rounds
from .normals import normals
from .rows import NoiseTable, find_steps


def uniforms(key, counter, shape: tuple[int, int]) -> np.ndarray:
    """Compute uniform random numbers with 24 bits, [agents, p]."""
    return rounds.uniforms(rounds.keys(key, counter), *shape)[:, : shape[1]]


def normals_of(key, counter, shape: tuple[int, int]) -> np.ndarray:
    """Compute standard normal random numbers in float64, [agents, p]."""
    counters = np.uint32(counter) + np.arange(shape[0], dtype=np.uint32)
    columns = np.arange((shape[1] + 1) // 2, dtype=np.uint32)
    pairs = normals(np.asarray(key), counters[:, None], columns)
    return np.concatenate(pairs, axis=1)[:, : shape[1]]


def discrete_of(table: NoiseTable, key, counter, shape: tuple[int, int]) -> np.ndarray:
    """Compute discrete Gaussian samples by a table of cumulative probabilities, [agents, p].

    Every coordinate has its own pair of words.
    """
    stream, samples = rounds.keys(key, counter), np.empty(shape, np.float32)
    for i, rows in enumerate(zip(*rounds.words(stream, *shape), samples, strict=True)):
        row_counter = np.uint32(int(stream.counter) + i)
        find_steps(table, stream.first, stream.second, row_counter, np.uint32(0), *rows)
    return samples.astype(int)
