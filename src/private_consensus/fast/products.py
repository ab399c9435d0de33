r"""Small products of matrices: of each agent's records with its model, for all agents in one call.

A library of linear algebra packs its factors first, which for twenty records takes as long as to
multiply them. Sums are in the order of their terms, each product rounded together with its sum: the
bytes do not depend on which agents share a call.
"""

from __future__ import annotations

import numpy as np

from .compiling import compiled, inlined
from .vectors import LANES, everywhere, load_everywhere, load_first, store_first

ROWS = 8
"""Of an outer product that are summed side by side: sums that wait for nobody."""

_NOTHING = np.float32(0.0)


@inlined
def _added(sums, back, v, at):
    return (
        sums[0] + back * load_everywhere(v, at),
        sums[1] + back * load_everywhere(v, at + 1),
        sums[2] + back * load_everywhere(v, at + 2),
        sums[3] + back * load_everywhere(v, at + 3),
        sums[4] + back * load_everywhere(v, at + 4),
        sums[5] + back * load_everywhere(v, at + 5),
        sums[6] + back * load_everywhere(v, at + 6),
        sums[7] + back * load_everywhere(v, at + 7),
    )


@inlined
def _store_all(out, at, width, count, sums):
    store_first(out, at, count, sums[0])
    store_first(out, at + width, count, sums[1])
    store_first(out, at + 2 * width, count, sums[2])
    store_first(out, at + 3 * width, count, sums[3])
    store_first(out, at + 4 * width, count, sums[4])
    store_first(out, at + 5 * width, count, sums[5])
    store_first(out, at + 6 * width, count, sums[6])
    store_first(out, at + 7 * width, count, sums[7])


@compiled
def _outer_products(v, back, ends, inputs, width, out, beginnings):
    zero = everywhere(_NOTHING)
    begin = 0
    for i in range(ends.size):
        for block in range(0, inputs, ROWS):
            k = min(block, inputs - ROWS)
            for c in range(0, width, 2 * LANES):
                one = other = (zero, zero, zero, zero, zero, zero, zero, zero)
                few, more = width - c, width - c - LANES
                for r in range(begin, ends[i]):
                    one = _added(one, load_first(back, r * width + c, few), v, r * inputs + k)
                    further = load_first(back, r * width + c + LANES, more)
                    other = _added(other, further, v, r * inputs + k)
                at = beginnings[i] + k * width + c
                _store_all(out, at, width, few, one)
                _store_all(out, at + LANES, width, more, other)
        begin = ends[i]


@compiled
def _products(v, matrices, beginnings, ends, inputs, width, out):
    begin = 0
    for i in range(ends.size):
        for r in range(begin, ends[i]):
            for c in range(0, width, LANES):
                few, total = width - c, everywhere(_NOTHING)
                for k in range(inputs):
                    at = beginnings[i] + k * width + c
                    total = total + load_first(matrices, at, few) * load_everywhere(
                        v, r * inputs + k
                    )
                store_first(out, r * width + c, few, total)
        begin = ends[i]


def products(v: np.ndarray, matrices: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Each agent's rows of ``v`` times its matrix.

    Parameters
    ----------
    v : ndarray of float32, shape (records, inputs)
        The rows of all agents below each other.
    matrices : ndarray of float32, shape (agents, inputs, width)
    sizes : ndarray of int, shape (agents,)
        Rows of each agent.

    Returns
    -------
    ndarray of float32, shape (records, width)
    """
    _, inputs, width = matrices.shape
    out = np.empty((len(v), width), np.float32)
    flat, beginnings = _flat(_each_contiguous(matrices))
    _products(_ravel(v), flat, beginnings, np.cumsum(sizes), inputs, width, out.reshape(-1))
    return out


def outer_products(v: np.ndarray, back: np.ndarray, sizes: np.ndarray, out: np.ndarray) -> None:
    """Sums over each agent's rows of outer products of ``v`` and ``back``.

    Parameters
    ----------
    v : ndarray of float32, shape (records, inputs)
        ``inputs`` is at least ``ROWS``.
    back : ndarray of float32, shape (records, width)
    sizes : ndarray of int, shape (agents,)
    out : ndarray of float32, shape (agents, inputs, width)
        Overwritten; each agent's part contiguous.
    """
    _, inputs, width = out.shape
    flat, beginnings = _flat(out)
    ends = np.cumsum(sizes)
    _outer_products(_ravel(v), _ravel(back), ends, inputs, width, flat, beginnings)


def _ravel(v: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(v).reshape(-1)


def _each_contiguous(matrices: np.ndarray) -> np.ndarray:
    return matrices if matrices[:1].flags.c_contiguous else np.ascontiguousarray(matrices)


def _flat(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers from the first of the first matrix to the last of the last, as one array, and
    where each matrix begins."""
    agents, inputs, width = matrices.shape
    stride = matrices.strides[0] // matrices.itemsize
    count = (agents - 1) * stride + inputs * width
    flat = np.lib.stride_tricks.as_strided(matrices, (count,), (matrices.itemsize,))
    return flat, np.arange(agents) * stride
