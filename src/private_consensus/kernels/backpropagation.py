"""Outputs and clipped gradients of perceptrons with one hidden layer, for many models per call.

Four records are processed together in registers, forward and backward through both layers. Inputs
that are 0 in all four records are skipped; most inputs of images with a black background are 0.
Terms are summed in a fixed order, and each product is rounded together with its sum. The result for
an agent therefore depends neither on other agents nor on a linear algebra library.

The gradient by the first matrix is a sum of outer products over a batch. Rows of inputs that are 0
in all records of the batch are not computed.

A batch of ten records takes 0.55 (MNIST) to 0.7 (CIFAR-10) of the time of NumPy's products, whose
rounding depends on the library and on the number of models.

A model is the flat array :math:`(W_1, b_1, W_2, b_2)`; the formulas are in the perceptron's module.
"""

from typing import NamedTuple

import numpy as np

from private_consensus.common.errors import require

from .compiling import inlined, uncounted
from .vectors import (
    LANES,
    aligned,
    everywhere,
    ints,
    largest_of,
    load,
    load_everywhere,
    lowest_bit,
    maximum,
    minimum,
    singles,
    store,
    store_first,
    total_of,
)

CLASSES = 10
GROUP = 4
"""Number of records that are processed together."""

WORD = 64
"""Number of bits per word of the bit mask of nonzero inputs."""

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
_NO_BITS, _LOW_BIT = np.uint64(0), np.uint64(1)
_SMALLEST, _GREATEST = np.float32(-87.0), np.float32(88.0)
_PER_LN2 = np.float32(1.4426950408889634)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_PADDING_SHIFT = np.float32(1e30)
_CLASS_MASK = (np.arange(LANES) < CLASSES).astype(np.float32)
_ROUND, _MANTISSA = np.float32(12582912.0), np.int32(23)
_E2, _E3, _E4, _E5, _E6, _E7 = (np.float32(1.0 / k) for k in (2.0, 6.0, 24.0, 120.0, 720.0, 5040.0))


class PackedRecords(NamedTuple):
    r"""Inputs of all records, a bit mask of nonzero inputs, and :math:`\|a\|^2 + 1`; all flat."""

    features: np.ndarray
    nonzero: np.ndarray
    lengths: np.ndarray


class Shape(NamedTuple):
    """Numbers of inputs, bit-mask words per record, hidden units, and units after padding."""

    inputs: int
    words: int
    hidden: int
    padded: int


class _BackpropagationScratch(NamedTuple):
    """Scratch arrays for the records of one batch.

    ``h`` has the outputs of the hidden layer, ``back1`` the derivatives by its inputs, and
    ``back2`` the outputs or the derivatives by them. ``transposed`` is the second matrix, and
    ``bias`` the second bias. ``starts``, ``bits`` and ``row_starts`` are the offsets of the
    records' inputs and bit masks, and of their rows in ``h``. ``units`` and ``nonzero_inputs`` are
    indices of the hidden units, and of the inputs that are not 0 in some record.
    """

    h: np.ndarray
    back1: np.ndarray
    back2: np.ndarray
    transposed: np.ndarray
    bias: np.ndarray
    starts: np.ndarray
    bits: np.ndarray
    row_starts: np.ndarray
    units: np.ndarray
    nonzero_inputs: np.ndarray


def records(features: np.ndarray) -> PackedRecords:
    """Prepare features [records, inputs] of float32."""
    bits = np.zeros((len(features), -(-features.shape[1] // WORD) * WORD // 8), np.uint8)
    nonzero = np.packbits(features != 0, axis=1, bitorder="little")
    bits[:, : nonzero.shape[1]] = nonzero
    lengths = np.einsum("ij,ij->i", features, features) + _ONE
    flat = np.ascontiguousarray(features).reshape(-1)
    return PackedRecords(flat, bits.view("<u8").reshape(-1), lengths)


@inlined
def _exponential(v):
    """Compute the exponential: v = n ln 2 + r, with a polynomial for the exponential of r."""
    m = maximum(minimum(v, _GREATEST), _SMALLEST)
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
def _added(sums, vector, b, at, bases):
    """Add a vector times ``b[at + bases[i]]`` to the i-th of four sums."""
    return (
        sums[0] + vector * load_everywhere(b, at + bases[0]),
        sums[1] + vector * load_everywhere(b, at + bases[1]),
        sums[2] + vector * load_everywhere(b, at + bases[2]),
        sums[3] + vector * load_everywhere(b, at + bases[3]),
    )


@inlined
def _four(values, first, last):
    """Return four values from index ``first`` on; that of index ``last`` may repeat."""
    return (
        values[first],
        values[min(first + 1, last)],
        values[min(first + 2, last)],
        values[min(first + 3, last)],
    )


@uncounted
def _nonzero_inputs(nonzero, bits, words, indices):
    """List the inputs that are not 0 in at least one of some records; return their number."""
    count = 0
    for j in range(words):
        word = _NO_BITS
        for start in bits:
            word |= nonzero[start + j]
        while word != _NO_BITS:
            indices[count] = WORD * j + lowest_bit(word)
            word &= word - _LOW_BIT
            count += 1
    return count


@uncounted
def _first_layer(x, begin, records, starts, bits, shape, h, row):
    """Compute the hidden units of four records, and skip inputs that are 0 in all four."""
    zero, nonzero = everywhere(_ZERO), records.nonzero
    for c in range(0, shape.hidden, LANES):
        sums = zero, zero, zero, zero
        for j in range(shape.words):
            word = nonzero[bits[0] + j] | nonzero[bits[1] + j]
            word |= nonzero[bits[2] + j] | nonzero[bits[3] + j]
            while word != _NO_BITS:
                k = WORD * j + lowest_bit(word)
                word &= word - _LOW_BIT
                weights = load(x, begin + k * shape.hidden + c)
                sums = _added(sums, weights, records.features, k, starts)
        remaining = shape.hidden - c
        bias = load(x, begin + shape.inputs * shape.hidden + c)
        for i in range(GROUP):
            store_first(h, (row + i) * shape.padded + c, remaining, _sigmoid(sums[i] + bias))


@uncounted
def _second_layer(x, begin, bias, shape, h, starts, row, outputs):
    """Compute the outputs of four records."""
    initial = load(bias, 0)
    sums = initial, initial, initial, initial
    for k in range(shape.hidden):
        sums = _added(sums, load(x, begin + k * CLASSES), h, k, starts)
    for i in range(GROUP):
        store(outputs, (row + i) * LANES, sums[i])


@uncounted
def _forward(x, begin, records, rows, size, shape, scratch):
    """Compute the hidden units and, in ``back2``, the outputs of a model for a batch of records."""
    starts, bits, row_starts = scratch.starts, scratch.bits, scratch.row_starts
    second_begin = begin + (shape.inputs + 1) * shape.hidden
    for c in range(CLASSES):  # a vector would end after the last model
        scratch.bias[c] = x[second_begin + shape.hidden * CLASSES + c]
    for r in range(0, size, GROUP):
        for i in range(r, r + GROUP):
            record = rows[min(i, size - 1)]
            starts[i], bits[i] = record * shape.inputs, record * shape.words
            row_starts[i] = i * shape.padded
        four_starts, four_bits = _four(starts, r, r + 3), _four(bits, r, r + 3)
        _first_layer(x, begin, records, four_starts, four_bits, shape, scratch.h, r)
        four_rows = _four(row_starts, r, r + 3)
        _second_layer(x, second_begin, scratch.bias, shape, scratch.h, four_rows, r, scratch.back2)


@uncounted
def _output_derivatives(back, row, label):
    """Replace the outputs of a record by the derivatives of its loss."""
    o, class_mask = load(back, row * LANES), load(_CLASS_MASK, 0)
    # Padding lanes are far below all classes.
    o = o + (class_mask - _ONE) * _PADDING_SHIFT
    e = _exponential(o - largest_of(o)) * class_mask
    store(back, row * LANES, e / everywhere(total_of(e)))
    back[row * LANES + label] -= _ONE


@uncounted
def _clip(h, back1, back2, transposed, shape, row, length, size, clip):
    """Compute the derivatives by the hidden layer's inputs and scale those of both layers."""
    squares, hidden_squares = everywhere(_ZERO), everywhere(_ZERO)
    for c in range(0, shape.padded, LANES):
        total = everywhere(_ZERO)
        for k in range(CLASSES):
            weight = load_everywhere(back2, row * LANES + k)
            total = total + load(transposed, k * shape.padded + c) * weight
        hidden_outputs = load(h, row * shape.padded + c)
        total = total * (hidden_outputs * (everywhere(_ONE) - hidden_outputs))
        store(back1, row * shape.padded + c, total)
        squares = squares + total * total
        hidden_squares = hidden_squares + hidden_outputs * hidden_outputs
    last = load(back2, row * LANES)
    square = length * total_of(squares) + (total_of(hidden_squares) + _ONE) * total_of(last * last)
    scale = np.float32(1.0 / (size * max(1.0, np.sqrt(np.float64(square)) / clip)))
    store(back2, row * LANES, last * scale)
    for c in range(row * shape.padded, (row + 1) * shape.padded, LANES):
        store(back1, c, load(back1, c) * scale)


@uncounted
def _outer_products(v, starts, size, back, stride, indices, count, width, out, begin):
    """Sum the outer products of selected columns of ``v`` and rows of ``back``.

    Row r of ``v`` begins at ``starts[r]``. The result is written to the rows listed in ``indices``.
    """
    for first in range(0, count, GROUP):
        k = _four(indices, first, count - 1)
        for c in range(0, width, LANES):
            zero = everywhere(_ZERO)
            sums = zero, zero, zero, zero
            for r in range(size):
                sums = _added(sums, load(back, r * stride + c), v, starts[r], k)
            for i in range(GROUP):
                store_first(out, begin + k[i] * width + c, width - c, sums[i])


@uncounted
def _sum_rows(back, size, stride, width, out, begin):
    """Compute the sum of the rows of ``back``."""
    for c in range(0, width, LANES):
        total = everywhere(_ZERO)
        for r in range(size):
            total = total + load(back, r * stride + c)
        store_first(out, begin + c, width - c, total)


@uncounted
def _backpropagate(x, begin, records, labels, rows, size, clip, shape, scratch, out):
    """Compute the gradient of the agent whose model begins at ``begin``."""
    h, back1, back2, transposed, _, starts, bits, row_starts, units, nonzero_inputs = scratch
    hidden, padded, words = shape.hidden, shape.padded, shape.words
    end = shape.inputs * hidden
    second_begin = begin + end + hidden
    for k in range(hidden):
        for c in range(CLASSES):
            transposed[c * padded + k] = x[second_begin + k * CLASSES + c]
    _forward(x, begin, records, rows, size, shape, scratch)
    for r in range(size):
        _output_derivatives(back2, r, labels[rows[r]])
        length = records.lengths[rows[r]]
        _clip(h, back1, back2, transposed, shape, r, length, size, clip)
    out[:end] = _ZERO
    count = _nonzero_inputs(records.nonzero, bits[:size], words, nonzero_inputs)
    _outer_products(
        records.features, starts, size, back1, padded, nonzero_inputs, count, hidden, out, 0
    )
    _sum_rows(back1, size, padded, hidden, out, end)
    _outer_products(h, row_starts, size, back2, LANES, units, hidden, CLASSES, out, end + hidden)
    _sum_rows(back2, size, LANES, CLASSES, out, end + hidden + hidden * CLASSES)


@uncounted
def _backpropagate_all(x, first, records, labels, rows, sizes, clips, shape, scratch, out):
    """Compute the gradients of all agents, one agent after the other for all settings."""
    settings, agents = sizes.shape
    dim = x.shape[1]
    models = x.reshape(-1)
    for i in range(agents):
        for s in range(settings):
            gradient = out[s * agents + i]
            if sizes[s, i] > 0:
                _backpropagate(
                    models, (first[s] + i) * dim, records, labels, rows[i], sizes[s, i], clips[s],
                    shape, scratch, gradient,
                )  # fmt: skip
            else:
                gradient[:] = _ZERO


@uncounted
def _outputs(x, records, rows, shape, scratch, out):
    models, _, count = out.shape
    dim = x.size // models
    for m in range(models):
        _forward(x, m * dim, records, rows, count, shape, scratch)
        for r in range(count):
            for c in range(CLASSES):
                out[m, c, r] = scratch.back2[r * LANES + c]


def outputs(x: np.ndarray, records: PackedRecords, rows: np.ndarray, hidden: int) -> np.ndarray:
    """Compute the outputs, [models, classes, rows], of models, [models, p], on selected records."""
    shape = _shape(records, hidden)
    _require_parameters(x, shape)
    _require_indices("rows", rows, records.lengths.size)
    out = np.empty((len(x), CLASSES, len(rows)), np.float32)
    rows, scratch = np.require(rows, np.int64, "C"), _scratch(len(rows) + GROUP, shape)
    _outputs(np.ascontiguousarray(x).reshape(-1), records, rows, shape, scratch, out)
    return out


def clipped_gradients(
    x: np.ndarray,
    first: np.ndarray,
    records: PackedRecords,
    labels: np.ndarray,
    rows: np.ndarray,
    sizes: np.ndarray,
    clips: np.ndarray,
    hidden: int,
    out: np.ndarray,
) -> None:
    """Compute each agent's mean of clipped gradients of its batch, in all settings.

    Parameters
    ----------
    x : ndarray of float32, shape (models, p)
        Contiguous. The models of the agents of setting s are the rows from ``first[s]`` on.
    first : ndarray of int, shape (settings,)
        First row of each setting.
    labels : ndarray of int64, shape (records,)
        Classes from 0 to 9.
    rows : ndarray of int, shape (agents, widest)
        Records of each agent, of which the first ``sizes[s, i]`` are its batch.
    sizes : ndarray of int, shape (settings, agents)
        Batch sizes; the gradient of an empty batch is 0.
    clips : ndarray, shape (settings,)
        Largest l2 norm of a record's gradient, or infinity.
    hidden : int
        Number of hidden units.
    out : ndarray of float32, shape (settings * agents, p)
        Contiguous; overwritten with the gradients.
    """
    # Another memory layout is another type, which would trigger a recompilation.
    first, rows, sizes, labels = (
        np.ascontiguousarray(a, np.int64) for a in (first, rows, sizes, labels)
    )
    clips, shape = np.ascontiguousarray(clips, float), _shape(records, hidden)
    _require_parameters(x, shape)
    widest = rows.shape[1]
    _require_indices("sizes", sizes, widest + 1)
    # Rows beyond a batch are not read.
    _require_indices("rows", rows[np.arange(widest) < sizes.max(0)[:, None]], records.lengths.size)
    scratch = _scratch(widest + GROUP, shape)
    _backpropagate_all(x, first, records, labels, rows, sizes, clips, shape, scratch, out)


# Compiled code accesses memory without bounds checks; algorithms choose models, rows and sizes.


def _require_parameters(x: np.ndarray, shape: Shape) -> None:
    """Raise :class:`.InvalidInput` unless models have as many parameters as the layers need."""
    parameters = (shape.inputs + 1) * shape.hidden + (shape.hidden + 1) * CLASSES
    expected = f"models of {parameters} parameters in float32"
    require(x.shape[1:] == (parameters,) and x.dtype == np.float32, "x", x.shape, expected)


def _require_indices(name: str, indices: np.ndarray, end: int) -> None:
    """Raise :class:`.InvalidInput` unless all indices are from 0 to ``end`` - 1."""
    outside = indices[(indices < 0) | (indices >= end)]
    require(outside.size == 0, name, outside[:1].tolist(), f"indices from 0 to {end - 1}")


def _shape(records: PackedRecords, hidden: int) -> Shape:
    inputs, words = (array.size // records.lengths.size for array in records[:2])
    return Shape(inputs, words, hidden, -(-hidden // LANES) * LANES)


def _scratch(rows: int, shape: Shape) -> _BackpropagationScratch:
    h, back1 = (aligned(rows * shape.padded) for _ in range(2))
    back2, transposed = aligned(rows * LANES), aligned(CLASSES * shape.padded)
    offsets, units = np.empty((3, rows), np.int64), np.arange(shape.hidden)
    inputs = np.empty(shape.inputs, np.int64)
    arrays = h, back1, back2, transposed, aligned(LANES), *offsets, units, inputs
    return _BackpropagationScratch(*arrays)
