r"""Clipped gradients of perceptrons with one hidden layer, of all agents in one call.

Four records go through both layers and back side by side, in registers, before the next four.
Inputs that are 0 in all four cost nothing: of images on a black ground those are most. Sums are in
the order of their terms, each product rounded together with its sum: an agent's bytes depend on no
other agent, and on no library of linear algebra.

A model is :math:`(W_1, b_1, W_2, b_2)`, flat; formulas are those of the perceptron's module.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .compiling import compiled, inlined
from .vectors import (
    LANES,
    everywhere,
    greatest,
    ints,
    largest_of,
    least,
    load,
    load_everywhere,
    load_first,
    lowest_bit,
    singles,
    store,
    store_first,
    total_of,
)
from .workspaces import workspace

CLASSES = 10
SIDE_BY_SIDE = 4
"""Records that go through the layers together."""

WORD = 64
"""Bits of a word that says which of so many inputs are not 0."""

_NOTHING, _ONE = np.float32(0.0), np.float32(1.0)
_NO_BITS, _LOW_BIT = np.uint64(0), np.uint64(1)
_SMALLEST, _GREATEST = np.float32(-87.0), np.float32(88.0)
_PER_LN2 = np.float32(1.4426950408889634)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_FAR = np.float32(1e30)
_ROUND, _MANTISSA = np.float32(12582912.0), np.int32(23)
_E2, _E3, _E4, _E5, _E6, _E7 = (np.float32(1.0 / k) for k in (2.0, 6.0, 24.0, 120.0, 720.0, 5040.0))


class Records(NamedTuple):
    """All records there are, flat: inputs, which of them are not 0 (a bit each, in words),
    :math:`\\|a\\|^2 + 1`."""

    features: np.ndarray
    nonzero: np.ndarray
    lengths: np.ndarray


class _Shape(NamedTuple):
    """Inputs, words of bits of a record, hidden units, and these in whole registers."""

    inputs: int
    words: int
    hidden: int
    padded: int


class _Scratch(NamedTuple):
    """Of an agent's records what leaves the hidden layer, what comes back to it and to the outputs;
    its second matrix transposed; where records, their bits and rows of h begin; inputs that
    are not 0; all hidden units."""

    h: np.ndarray
    back1: np.ndarray
    back2: np.ndarray
    transposed: np.ndarray
    starts: np.ndarray
    bits: np.ndarray
    own: np.ndarray
    places: np.ndarray
    units: np.ndarray


def records(features: np.ndarray) -> Records:
    """Of features [records, inputs] of float32."""
    bits = np.zeros((len(features), -(-features.shape[1] // WORD) * WORD // 8), np.uint8)
    nonzero = np.packbits(features != 0, axis=1, bitorder="little")
    bits[:, : nonzero.shape[1]] = nonzero
    lengths = np.einsum("ij,ij->i", features, features) + _ONE
    flat = np.ascontiguousarray(features).reshape(-1)
    return Records(flat, bits.view("<u8").reshape(-1), lengths)


@inlined
def _exponential(v):
    """v = n ln 2 + r, and a polynomial for the power of r."""
    m = greatest(least(v, _GREATEST), _SMALLEST)
    t = m * _PER_LN2 + _ROUND
    n = t - _ROUND
    r = (m - n * _LN2_HIGH) - n * _LN2_LOW
    p = r * _E7 + _E6
    p = r * p + _E5
    p = r * p + _E4
    p = r * p + _E3
    p = r * p + _E2
    p = (r * r * p + r) + _ONE
    # The low bits of t are the integer n; it moves into the exponent.
    return singles(ints(p) + (ints(t) << _MANTISSA))


@inlined
def _sigmoid(v):
    return everywhere(_ONE) / (_exponential(-v) + _ONE)


@inlined
def _added(sums, w, a, b, c, d):
    return sums[0] + w * a, sums[1] + w * b, sums[2] + w * c, sums[3] + w * d


@inlined
def _any(nonzero, at, j):
    """Which inputs of word j are not 0 in one of four records."""
    return nonzero[at[0] + j] | nonzero[at[1] + j] | nonzero[at[2] + j] | nonzero[at[3] + j]


@inlined
def _at_input(features, starts, k):
    return (
        load_everywhere(features, starts[0] + k),
        load_everywhere(features, starts[1] + k),
        load_everywhere(features, starts[2] + k),
        load_everywhere(features, starts[3] + k),
    )


@compiled
def _first_layer(x, first, records, starts, bits, shape, c, h, row):
    """Columns from c on, in four registers, of what four records send through the hidden layer."""
    zero = everywhere(_NOTHING)
    p = q = u = v = (zero, zero, zero, zero)
    few = shape.hidden - c
    for j in range(shape.words):
        word = _any(records.nonzero, bits, j)
        while word != _NO_BITS:
            k = WORD * j + lowest_bit(word)
            word &= word - _LOW_BIT
            one = _at_input(records.features, starts, k)
            at = first + k * shape.hidden + c
            p = _added(p, load(x, at), *one)
            if few > LANES:
                q = _added(q, load(x, at + LANES), *one)
            if few > 2 * LANES:
                u = _added(u, load(x, at + 2 * LANES), *one)
            if few > 3 * LANES:
                v = _added(v, load(x, at + 3 * LANES), *one)
    _activate(x, first, shape, c, p, h, row)
    _activate(x, first, shape, c + LANES, q, h, row)
    _activate(x, first, shape, c + 2 * LANES, u, h, row)
    _activate(x, first, shape, c + 3 * LANES, v, h, row)


@inlined
def _activate(x, first, shape, c, sums, h, row):
    few = shape.hidden - c
    bias = load_first(x, first + shape.inputs * shape.hidden + c, few)
    store_first(h, row * shape.padded + c, few, _sigmoid(sums[0] + bias))
    store_first(h, (row + 1) * shape.padded + c, few, _sigmoid(sums[1] + bias))
    store_first(h, (row + 2) * shape.padded + c, few, _sigmoid(sums[2] + bias))
    store_first(h, (row + 3) * shape.padded + c, few, _sigmoid(sums[3] + bias))


@compiled
def _second_layer(x, second, shape, h, row, outputs):
    """What four records' outputs are."""
    bias = load_first(x, second + shape.hidden * CLASSES, CLASSES)
    p = (bias, bias, bias, bias)
    for k in range(shape.hidden):
        at = row * shape.padded + k
        p = _added(
            p,
            load_first(x, second + k * CLASSES, CLASSES),
            load_everywhere(h, at),
            load_everywhere(h, at + shape.padded),
            load_everywhere(h, at + 2 * shape.padded),
            load_everywhere(h, at + 3 * shape.padded),
        )
    store(outputs, row * LANES, p[0])
    store(outputs, (row + 1) * LANES, p[1])
    store(outputs, (row + 2) * LANES, p[2])
    store(outputs, (row + 3) * LANES, p[3])


@compiled
def _output_derivatives(back, row, label, softmax, ones):
    """Outputs of a record become the derivatives of its loss by them."""
    o, own = load(back, row * LANES), load_first(ones, 0, CLASSES)
    if softmax:
        # What is no class is far below all that are.
        o = o + (own - _ONE) * _FAR
        e = _exponential(o - largest_of(o)) * own
        o = e / everywhere(total_of(e))
    else:
        o = _sigmoid(o) * own
    store(back, row * LANES, o)
    back[row * LANES + label] -= _ONE


@compiled
def _clip(scratch, shape, row, length, size, clip):
    """Derivatives by what enters the hidden layer; of both layers they are scaled such that the
    record's gradient has at most the norm ``clip``, and divided by the batch's size."""
    h, back1, back2, transposed = scratch[:4]
    squares, ahead = everywhere(_NOTHING), everywhere(_NOTHING)
    for c in range(0, shape.padded, LANES):
        total = everywhere(_NOTHING)
        for k in range(CLASSES):
            weight = load_everywhere(back2, row * LANES + k)
            total = total + load(transposed, k * shape.padded + c) * weight
        own = load(h, row * shape.padded + c)
        total = total * (own * (everywhere(_ONE) - own))
        store(back1, row * shape.padded + c, total)
        squares = squares + total * total
        ahead = ahead + own * own
    last = load(back2, row * LANES)
    square = length * total_of(squares) + (total_of(ahead) + _ONE) * total_of(last * last)
    scale = np.float32(1.0 / (size * max(1.0, np.sqrt(np.float64(square)) / clip)))
    store(back2, row * LANES, last * scale)
    for c in range(row * shape.padded, (row + 1) * shape.padded, LANES):
        store(back1, c, load(back1, c) * scale)


@inlined
def _store_four(out, at, count, sums, places, width):
    store_first(out, at + places[0] * width, count, sums[0])
    store_first(out, at + places[1] * width, count, sums[1])
    store_first(out, at + places[2] * width, count, sums[2])
    store_first(out, at + places[3] * width, count, sums[3])


@compiled
def _outer_products(v, starts, size, back, stride, places, count, width, out, begin):
    """Of the rows of ``v`` that start there and of those of ``back`` the sum of outer products, its
    lines at so many places."""
    zero = everywhere(_NOTHING)
    for first in range(0, count, SIDE_BY_SIDE):
        k = (
            places[first],
            places[min(first + 1, count - 1)],
            places[min(first + 2, count - 1)],
            places[min(first + 3, count - 1)],
        )
        for c in range(0, width, 4 * LANES):
            few = width - c
            p = q = s = t = (zero, zero, zero, zero)
            for r in range(size):
                at = r * stride + c
                one = (
                    load_everywhere(v, starts[r] + k[0]),
                    load_everywhere(v, starts[r] + k[1]),
                    load_everywhere(v, starts[r] + k[2]),
                    load_everywhere(v, starts[r] + k[3]),
                )
                p = _added(p, load(back, at), *one)
                if few > LANES:
                    q = _added(q, load(back, at + LANES), *one)
                if few > 2 * LANES:
                    s = _added(s, load(back, at + 2 * LANES), *one)
                if few > 3 * LANES:
                    t = _added(t, load(back, at + 3 * LANES), *one)
            at = begin + c
            _store_four(out, at, few, p, k, width)
            _store_four(out, at + LANES, few - LANES, q, k, width)
            _store_four(out, at + 2 * LANES, few - 2 * LANES, s, k, width)
            _store_four(out, at + 3 * LANES, few - 3 * LANES, t, k, width)


@compiled
def _nonzero_inputs(records, bits, size, words, places):
    """Inputs that are not 0 in a record of a batch; how many there are."""
    count = 0
    for j in range(words):
        word = _NO_BITS
        for r in range(size):
            word |= records.nonzero[bits[r] + j]
        while word != _NO_BITS:
            places[count] = WORD * j + lowest_bit(word)
            count += 1
            word &= word - _LOW_BIT
    return count


@compiled
def _add_up(back, size, stride, width, out, begin):
    """Sums over rows."""
    for c in range(0, width, LANES):
        total = everywhere(_NOTHING)
        for r in range(size):
            total = total + load(back, r * stride + c)
        store_first(out, begin + c, width - c, total)


@inlined
def _four(starts, row):
    return starts[row], starts[row + 1], starts[row + 2], starts[row + 3]


@compiled
def _gradient(x, begin, records, labels, rows, size, clip, softmax, shape, scratch, ones, out):
    """Of one agent, whose model and gradient begin there."""
    h, back1, back2, transposed, starts, bits, own, places, units = scratch
    hidden, padded = shape.hidden, shape.padded
    second = begin + shape.inputs * hidden + hidden
    for k in range(hidden):
        for c in range(CLASSES):
            transposed[c * padded + k] = x[second + k * CLASSES + c]
    whole = (size + SIDE_BY_SIDE - 1) // SIDE_BY_SIDE * SIDE_BY_SIDE
    for r in range(whole):
        starts[r] = rows[min(r, size - 1)] * shape.inputs
        bits[r] = rows[min(r, size - 1)] * shape.words
        own[r] = r * padded
    for r in range(0, whole, SIDE_BY_SIDE):
        for c in range(0, hidden, 4 * LANES):
            _first_layer(x, begin, records, _four(starts, r), _four(bits, r), shape, c, h, r)
        _second_layer(x, second, shape, h, r, back2)
    for r in range(size):
        _output_derivatives(back2, r, labels[rows[r]], softmax, ones)
        _clip(scratch, shape, r, records.lengths[rows[r]], size, clip)
    count = _nonzero_inputs(records, bits, size, shape.words, places)
    out[begin : second - hidden] = _NOTHING
    _outer_products(
        records.features, starts, size, back1, padded, places, count, hidden, out, begin
    )
    _add_up(back1, size, padded, hidden, out, second - hidden)
    _outer_products(h, own, size, back2, LANES, units, hidden, CLASSES, out, second)
    _add_up(back2, size, LANES, CLASSES, out, second + hidden * CLASSES)


@compiled
def _gradients(x, records, labels, rows, sizes, clip, softmax, shape, scratch, ones, out):
    agents = sizes.size
    dim = x.size // agents
    for i in range(agents):
        begin = i * dim
        if sizes[i] == 0:
            out[begin : begin + dim] = _NOTHING
        else:
            _gradient(
                x,
                begin,
                records,
                labels,
                rows[i],
                sizes[i],
                clip,
                softmax,
                shape,
                scratch,
                ones,
                out,
            )


def clipped_gradients(
    x: np.ndarray,
    records: Records,
    labels: np.ndarray,
    rows: np.ndarray,
    sizes: np.ndarray,
    clip: float,
    softmax: bool,
    hidden: int,
    out: np.ndarray,
) -> None:
    """Each agent's mean of clipped gradients of its batch.

    Parameters
    ----------
    x, out : ndarray of float32, shape (agents, p)
        Contiguous models; gradients, overwritten.
    records : Records
    labels : ndarray of int64, shape (records,)
    rows : ndarray of int, shape (agents, widest)
        Records of each agent, of which the first ``sizes[i]`` are its batch.
    sizes : ndarray of int, shape (agents,)
    clip : float
        Largest norm of a record's gradient, or infinity.
    softmax : bool
        Whether the loss is softmax cross-entropy, else the sum of binary ones.
    hidden : int
    """
    inputs = records.features.size // records.lengths.size
    words = records.nonzero.size // records.lengths.size
    padded = -(-hidden // LANES) * LANES
    shape = _Shape(inputs, words, hidden, padded)
    # What lies otherwise in memory has another type, for which all would be compiled once more.
    rows, sizes, labels = (np.require(a, np.int64, "C") for a in (rows, sizes, labels))
    _gradients(
        x.reshape(-1), records, labels, rows, sizes, float(clip), softmax, shape,
        _scratch(rows.shape[1] + SIDE_BY_SIDE, shape), _ONES, out.reshape(-1),
    )  # fmt: skip


def _scratch(rows: int, shape: _Shape) -> _Scratch:
    # Of as many hidden units alone: what lies beyond them stays 0.
    h, back1 = workspace(f"records, {shape.hidden} units", (2, rows * shape.padded))
    transposed = workspace(f"a matrix, {shape.hidden} units", (CLASSES * shape.padded,))
    outputs = workspace("outputs", (rows * LANES,))
    begins = workspace("where records begin", (3, rows), np.int64)
    places = workspace("places of inputs", (shape.inputs,), np.int64)
    return _Scratch(h, back1, outputs, transposed, *begins, places, _units(shape.hidden))


@lru_cache(maxsize=8)
def _units(hidden: int) -> np.ndarray:
    return np.arange(hidden)


_ONES = np.ones(LANES, np.float32)
