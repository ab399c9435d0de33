r"""Minimisation of many logistic losses plus quadratics on the same records, one per SIMD lane.

.. math:: \min_x\; w\sum_j \ln\bigl(1 + e^{-z_j^Tx}\bigr) + \tfrac{D}2\|x\|_2^2 + b^Tx

Each problem has its own D and b; all share w and the signed rows :math:`z_j`. The solver takes
limited-memory quasi-Newton steps (Nocedal, Mathematics of Computation 1980). Their first matrix is
a model of the Hessian, scaled by the average curvature of the losses at the problem's margins:

.. math:: H_0^{-1} = \theta w A + D I,
    \qquad \theta = \tfrac4N\sum_j \sigma_j(1-\sigma_j), \quad \sigma_j = \frac1{1+e^{z_j^Tx}}

The matrix A is the bound :math:`\tfrac14 Z^TZ`, or such that :math:`\theta w A` is the Hessian of
the records' losses at some point farther from the origin. A step is shortened if the slope at its
end is positive and more than half as steep as the descent at its beginning. Function values are
not needed, since the loss is convex. A lane whose problem is solved continues with the next one.
Results in a lane do not depend on other lanes, so that they are byte-identical for any set of other
problems. Zeros in the rows are skipped, and equal patterns of ones are summed once.

Forty problems with 4,522 records of Adult take a fortieth of the time of SciPy's L-BFGS-B, and a
sum over the records takes a fifth of the time of NumPy.
"""

import math
from collections import namedtuple
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .compiling import compiled, inlined, uncounted
from .normals import polynomial
from .vectors import (
    DOUBLE_LANES,
    allocate,
    doubles,
    everywhere,
    load,
    longs,
    maximum,
    minimum,
    store,
    where_greater,
)

LANES = DOUBLE_LANES
"""Number of problems per vector: coordinate k of lane l has index ``LANES * k + l``."""

MEMORY = 10
"""Number of steps in the quasi-Newton memory."""

MAX_GRADIENTS = 500
"""Largest number of gradients per problem."""

MAX_PATTERNS = 256
"""Largest number of distinct row patterns per block of columns, whose sums stay in the cache."""

BLOCK_ROWS = 32
"""Number of rows per block; margins, sigmoids and sums are computed block by block."""

_LANES = np.uint64(LANES)

MAX_SLOPE_RATIO = 0.5
"""Largest slope at the end of an accepted step, relative to the descent at its beginning."""

MIN_SHORTENING = 0.1
"""Smallest factor by which a step is shortened at a time."""

_LARGEST = 700.0
_LN2 = math.log(2)
_PER_LN2, _PER_LN2_REST, _ABOUT_PER_LN2 = 1.4426950408889634, 2.0355273740931033e-17, 1.442695
_ROUND, _MANTISSA = 6755399441055744.0, np.int64(52)


def _power(f: np.ndarray) -> np.ndarray:
    r"""Compute :math:`(2^f - 1 - f\ln 2)/f^2` by its series, to fit a polynomial."""
    terms = (math.log(2) ** (k + 2) / math.factorial(k + 2) * f**k for k in range(20))
    return sum(terms, start=np.zeros_like(f))


def _logarithm(z: np.ndarray) -> np.ndarray:
    r"""Compute :math:`(\ln\frac{1+s}{1-s} - 2s)/s^3`, :math:`z = s^2`, to fit a polynomial."""
    return sum((2.0 / (2 * k + 3) * z**k for k in range(20)), start=np.zeros_like(z))


_E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10, _E11 = polynomial(_power, 9, -0.5, 0.5)
_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7, _L8, _L9 = polynomial(_logarithm, 9, 0.0, 1 / 9)


class Patterns(NamedTuple):
    """Matrix of zeros and ones; row j has ones in the columns ``offsets[begin[j]:begin[j+1]]``.

    Columns are multiplied by the number of lanes. Indices are unsigned, because numba tests signed
    indices for negative values.
    """

    begin: np.ndarray
    offsets: np.ndarray


class Columns(NamedTuple):
    """Few nonzero columns of a matrix, and their indices times the number of lanes."""

    offsets: np.ndarray
    values: np.ndarray


class SignedRecords(NamedTuple):
    """Signed records; row j is ``scale[j]`` times zeros and ones, plus a row of ``dense``.

    The columns of the zeros and ones are divided into blocks with few distinct row patterns
    (``patterns``). Each row has one pattern per block, whose indices, multiplied by the number of
    lanes, are in ``pattern_offsets``. The product of a pattern with x is computed once for all rows
    with this pattern.
    """

    scale: np.ndarray
    pattern_offsets: np.ndarray
    patterns: Patterns
    dense: Columns


class SpectralForm(NamedTuple):
    r"""Spectral form :math:`A = V \Lambda V^T`: eigenvalues [d], V and its transpose, flat."""

    eigenvalues: np.ndarray
    vectors: np.ndarray
    transposed: np.ndarray


SCRATCH = {
    "dL": "x x_before gradient gradient_before step linear direction rotated",
    "MdL": "changes gradient_changes",
    "ML": "inverse_products weights",
    "L": "curvature length slope slope_after product squared_norm accepted has_step model_weight "
    "bound sigmas squares",
    "PL": "products sums",
    "BL": "margins",
}
"""Names of the scratch arrays by their axes: lanes L, coordinates d, steps in the memory M,
patterns P, and rows of a block B.

The values ``before`` are those at the beginning of the step. The memory has the changes of point
and gradient of each step, and the inverse of their inner product, or 0 for an unused entry. The
``direction`` is first the sum over the records, ``sigmas`` and ``squares`` the sums of their
sigmoids and squared sigmoids. ``products`` are those of the patterns with x, ``sums`` those of the
rows with each pattern. ``accepted`` is 1 in lanes that begin a step, ``has_step`` in lanes whose
step ends."""

_CLEARED = 12
"""Number of scratch arrays of a problem, the first ones: those with coordinates or memory."""

_MinimiserScratch = namedtuple("_MinimiserScratch", " ".join(SCRATCH.values()))
_LossScratch = namedtuple("_LossScratch", "x products margins product bound")


def _scratch(kind: Any, records: SignedRecords, dim: int) -> Any:
    patterns = len(records.patterns.begin) - 1
    lengths = {"L": LANES, "d": dim, "M": MEMORY, "P": patterns, "B": BLOCK_ROWS}
    return allocate(kind, SCRATCH, lengths, lambda _: np.float64)


def records(signed: np.ndarray) -> SignedRecords:
    """Compress the signed records [N, d] of one agent."""
    rows = np.arange(len(signed))
    scale = signed[rows, np.abs(signed).argmax(1)]
    indicators = (signed == scale[:, None]) & (scale[:, None] != 0)
    pattern_index, patterns = _patterns(indicators)
    return SignedRecords(
        scale,
        _lanes(pattern_index).ravel(),
        _ones(patterns),
        _columns(np.where(indicators, 0.0, signed)),
    )


def _patterns(indicators: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the distinct row patterns of blocks of columns.

    From indicators [N, d], compute the patterns [patterns, d] and the index of the pattern of each
    row and block [N, blocks].
    """
    pattern_index, patterns, count = [], [], 0
    for first, last, row_patterns in _column_blocks(indicators):
        number, examples = _renumbered(row_patterns, row_patterns.max() + 1)
        content = np.zeros((len(examples), indicators.shape[1]))
        content[:, first:last] = indicators[examples, first:last]
        pattern_index.append(count + number)
        patterns.append(content)
        count += len(content)
    return np.stack(pattern_index, 1), np.concatenate(patterns)


def _column_blocks(indicators: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield blocks of columns: first column, end, and the number of the pattern of each row."""
    first, row_patterns, count = 0, np.zeros(len(indicators), np.intp), 1
    for column in np.flatnonzero(indicators.any(0)):
        extended, examples = _renumbered(2 * row_patterns + indicators[:, column], 2 * count)
        count = len(examples)
        if count > MAX_PATTERNS:
            yield first, column, row_patterns
            first, extended, count = column, indicators[:, column].astype(np.intp), 2
        row_patterns = extended
    yield first, indicators.shape[1], row_patterns


def _renumbered(numbers: np.ndarray, below: int) -> tuple[np.ndarray, np.ndarray]:
    """Renumber integers below a bound without gaps, and return one index of each integer."""
    examples = np.full(below, -1)
    examples[numbers] = np.arange(len(numbers))
    used = examples >= 0
    return (np.cumsum(used) - 1)[numbers], examples[used]


def _ones(lines: np.ndarray) -> Patterns:
    """Store the positions of the ones of a matrix."""
    line, column = np.nonzero(lines)
    begin = np.zeros(len(lines) + 1, np.uint64)
    np.cumsum(np.bincount(line, minlength=len(lines)), out=begin[1:], dtype=np.uint64)
    return Patterns(begin, _lanes(column))


def _columns(matrix: np.ndarray) -> Columns:
    """Store the nonzero columns of a matrix."""
    columns = np.flatnonzero(matrix.any(0))
    return Columns(_lanes(columns), matrix.T[columns].ravel())


def _lanes(indices: np.ndarray) -> np.ndarray:
    return (LANES * indices).astype(np.uint32)


def model(eigenvalues: np.ndarray, vectors: np.ndarray) -> SpectralForm:
    """Build a model of the Hessian from eigenvalues >= 0 and eigenvectors, one per column."""
    return SpectralForm(np.array(eigenvalues), vectors.ravel(), vectors.T.ravel())


def minimise(
    records: SignedRecords,
    weight: float,
    model: SpectralForm,
    curvature: np.ndarray,
    linear: np.ndarray,
    start: np.ndarray,
    tolerance: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise problems with curvatures D [problems] and linear terms b [problems, d].

    Each problem is solved to its own l2 norm of the gradient, ``tolerance`` [problems]. The results
    are the minimisers [problems, d] and the number of gradients of each problem, 0 if it is not
    solved.
    """
    minimisers = np.empty(start.shape)
    gradient_counts = np.zeros(len(start), np.int64)
    # A read-only array is another type, which would trigger a recompilation.
    arguments = (np.require(a, float, "CW") for a in (curvature, linear, start, tolerance))
    arrays = _scratch(_MinimiserScratch, records, start.shape[1])
    _minimise(records, model, float(weight), *arguments, minimisers, gradient_counts, arrays)
    return minimisers, gradient_counts


def mean_losses(records: SignedRecords, x: np.ndarray, bound: np.ndarray) -> np.ndarray:
    r"""Compute means over the records of :math:`\min(\ln(1 + e^{-z_j^Tx}), C)`, up to rounding.

    The bound C, [points], is that of each point. The result for a point depends on no other point.
    """
    means = np.empty(len(x))
    points, bounds = (np.require(a, float, "CW") for a in (x, bound))
    _mean_losses(records, points, bounds, means, _scratch(_LossScratch, records, x.shape[1]))
    return means


@inlined
def _exponential(exponent):
    """Compute the exponential :math:`e^m = 2^{n+f}`, with a polynomial for :math:`2^f`."""
    m = maximum(minimum(exponent, _LARGEST), -_LARGEST)
    t = m * _ABOUT_PER_LN2 + _ROUND
    f = m * _PER_LN2_REST + (m * _PER_LN2 - (t - _ROUND))
    p = f * _E11 + _E10
    p = f * p + _E9
    p = f * p + _E8
    p = f * p + _E7
    p = f * p + _E6
    p = f * p + _E5
    p = f * p + _E4
    p = f * p + _E3
    p = f * p + _E2
    p = f * p + _LN2
    p = f * p + 1.0
    # The low bits of t are the integer n; it moves into the exponent.
    return doubles(longs(p) + (longs(t) << _MANTISSA))


@inlined
def _decreasing_sigmoid(margin):
    """Compute the decreasing sigmoid :math:`1/(1+e^m)`."""
    return everywhere(1.0) / (_exponential(margin) + 1.0)


@inlined
def _loss(margin):
    r"""Compute the logistic loss :math:`\ln(1+e^{-m})` with a polynomial.

    With :math:`y = e^{-|m|}` and :math:`s = y/(2+y)`, the logarithm of 1 + y is that of
    (1 + s)/(1 - s), which is approximated by a polynomial in s.
    """
    y = _exponential(minimum(margin, -margin))
    s = y / (y + 2.0)
    z = s * s
    p = z * _L9 + _L8
    p = z * p + _L7
    p = z * p + _L6
    p = z * p + _L5
    p = z * p + _L4
    p = z * p + _L3
    p = z * p + _L2
    p = z * p + _L1
    p = z * p + _L0
    return (s * z * p + (s + s)) - minimum(margin, 0.0)


@inlined
def _margins_from(first, records, s):
    """Compute the margins of the block of records that begins at ``first``; return their number."""
    scale, offsets, _, columns = records
    rows = np.uint64(scale.size)
    count = min(np.uint64(BLOCK_ROWS), np.uint64(rows - first))
    _add_pattern_products(s.margins, s.products, scale, offsets, first, count)
    _add_dense_columns(s.margins, s.x, columns, first, count, rows)
    return count


@compiled
def _mean_losses(records, points, bounds, means, s):
    rows = np.uint64(records.scale.size)
    for begin in range(0, len(points), LANES):
        lanes = min(LANES, len(points) - begin)
        for lane in range(lanes):
            s.bound[lane] = bounds[begin + lane]
            for k in range(points.shape[1]):
                s.x[k * LANES + lane] = points[begin + lane, k]
        _multiply(s.products, records.patterns, s.x)
        total = everywhere(0.0)
        for first in range(np.uint64(0), rows, np.uint64(BLOCK_ROWS)):
            for j in range(_margins_from(first, records, s)):
                total = total + minimum(_loss(load(s.margins, j * _LANES)), load(s.bound, 0))
        store(s.product, 0, total)
        for lane in range(lanes):
            means[begin + lane] = s.product[lane] / rows


@uncounted
def _sum_sigmoids(records, s):
    """Compute ``direction = sum_j sigma_j z_j``, and the sums of sigma_j and of its square.

    Each operation is applied to all rows of a block before the next operation, because these short
    loops have independent iterations.
    """
    scale, offsets, patterns, columns = records
    _multiply(s.products, patterns, s.x)
    s.sums[:] = 0.0
    s.direction[:] = 0.0
    s.sigmas[:] = 0.0
    s.squares[:] = 0.0
    rows = np.uint64(scale.size)
    for first in range(np.uint64(0), rows, np.uint64(BLOCK_ROWS)):
        count = _margins_from(first, records, s)
        _apply_sigmoid(s, count)
        _sum_patterns(s.margins, s.sums, scale, offsets, first, count)
        _sum_dense_columns(s.margins, s.direction, columns, first, count, rows)
    for i in range(patterns.begin.size - 1):
        value = load(s.sums, i * LANES)
        for k in range(patterns.begin[i], patterns.begin[i + 1]):
            _add(s.direction, patterns.offsets[k], value)


@inlined
def _multiply(products, patterns, x):
    """Compute the products of the patterns with x."""
    for i in range(patterns.begin.size - 1):
        value = everywhere(0.0)
        for k in range(patterns.begin[i], patterns.begin[i + 1]):
            value = value + load(x, patterns.offsets[k])
        store(products, i * LANES, value)


@inlined
def _add_pattern_products(margins, products, scale, offsets, first, count):
    """Compute the margins of the zeros and ones."""
    patterns_per_row = np.uint64(np.uint64(offsets.size) // np.uint64(scale.size))
    for j in range(count):
        row = np.uint64(first + j)
        value, at = everywhere(0.0), np.uint64(row * patterns_per_row)
        for k in range(patterns_per_row):
            value = value + load(products, offsets[np.uint64(at + k)])
        store(margins, j * _LANES, value * scale[row])


@inlined
def _sum_patterns(sigmas, sums, scale, offsets, first, count):
    """Add rows to the sums of their patterns."""
    patterns_per_row = np.uint64(np.uint64(offsets.size) // np.uint64(scale.size))
    for j in range(count):
        row = np.uint64(first + j)
        sigma, at = load(sigmas, j * _LANES) * scale[row], np.uint64(row * patterns_per_row)
        for k in range(patterns_per_row):
            _add(sums, offsets[np.uint64(at + k)], sigma)


@inlined
def _add_dense_columns(margins, x, matrix, first, count, rows):
    """Add the products of the dense columns with x to the margins of a block of rows."""
    for k in range(np.uint64(matrix.offsets.size)):
        value, at = load(x, matrix.offsets[k]), np.uint64(k * rows + first)
        for j in range(count):
            _add(margins, j * _LANES, value * matrix.values[np.uint64(at + j)])


@inlined
def _apply_sigmoid(s, count):
    """Replace margins by sigmoids, and add the sigmoids and their squares to two sums."""
    sigmas, squares = load(s.sigmas, 0), load(s.squares, 0)
    for j in range(count):
        sigma = _decreasing_sigmoid(load(s.margins, j * _LANES))
        sigmas = sigmas + sigma
        squares = squares + sigma * sigma
        store(s.margins, j * _LANES, sigma)
    store(s.sigmas, 0, sigmas)
    store(s.squares, 0, squares)


@inlined
def _sum_dense_columns(sigmas, total, matrix, first, count, rows):
    """Add the dense columns times the sigmoids to the total."""
    for k in range(np.uint64(matrix.offsets.size)):
        value, at = load(total, matrix.offsets[k]), np.uint64(k * rows + first)
        for j in range(count):
            value = value + load(sigmas, j * _LANES) * matrix.values[np.uint64(at + j)]
        store(total, matrix.offsets[k], value)


@inlined
def _add(out, i, value):
    store(out, i, load(out, i) + value)


@inlined
def _add_product(out, i, a, j, b, k):
    """Compute ``out[i] += a[j] * b[k]``."""
    store(out, i, load(out, i) + load(a, j) * load(b, k))


@inlined
def _add_columns(out, matrix, x):
    """Compute ``out = matrix x`` for a flat column-major matrix."""
    dim = np.uint64(np.uint64(out.size) // _LANES)
    for i in range(dim):
        value = everywhere(0.0)
        for k in range(dim):
            value = value + load(x, k * _LANES) * matrix[np.uint64(k * dim + i)]
        store(out, i * _LANES, value)


@uncounted
def _inner(out, a, at_a, b, at_b):
    """Compute inner products of ``b`` with the part of ``a`` of equal length, one per lane."""
    value = everywhere(0.0)
    for k in range(0, min(a.size - at_a, b.size - at_b), LANES):
        value = value + load(a, at_a + k) * load(b, at_b + k)
    store(out, 0, value)


@uncounted
def _gradients(s, weight):
    """Compute gradients from the sum over the records in ``direction``."""
    for k in range(0, s.x.size, LANES):
        value = load(s.linear, k) + load(s.curvature, 0) * load(s.x, k)
        store(s.gradient, k, value - load(s.direction, k) * weight)


@uncounted
def _enter(s, lane, curvature, linear, start):
    """Start a problem in a lane."""
    s.curvature[lane] = curvature
    for k in range(start.size):
        i = k * LANES + lane
        s.x[i] = start[k]
        s.x_before[i] = start[k]
        s.linear[i] = linear[k]


@uncounted
def _leave(s, lane):
    """Clear the state of a problem in its lane."""
    s.length[lane] = 0.0
    for values in s[:_CLEARED]:
        for i in range(lane, values.size, LANES):
            values[i] = 0.0


@uncounted
def _store_step(s, slot):
    """Store the step that ends here, in the lanes that accept it, and begin a new step."""
    size = s.x.size
    total = everywhere(0.0)
    for k in range(0, size, LANES):
        x, x_before = load(s.x, k), load(s.x_before, k)
        gradient, gradient_before = load(s.gradient, k), load(s.gradient_before, k)
        moved, changed = x - x_before, gradient - gradient_before
        total = total + moved * changed
        store(s.changes, slot * size + k, moved)
        store(s.gradient_changes, slot * size + k, changed)
        store(s.x_before, k, where_greater(load(s.accepted, 0), 0.0, x, x_before))
        gradient = where_greater(load(s.accepted, 0), 0.0, gradient, gradient_before)
        store(s.gradient_before, k, gradient)
    store(s.product, 0, total)
    for lane in range(LANES):
        used = s.has_step[lane] > 0.0 and s.product[lane] > 0.0
        s.inverse_products[slot * LANES + lane] = 1.0 / s.product[lane] if used else 0.0


@uncounted
def _precondition(s, model):
    r"""Multiply ``direction`` by :math:`V(\theta w\Lambda + D)^{-1}V^T` of the model.

    The product :math:`\theta w` is ``model_weight``.
    """
    _add_columns(s.rotated, model.vectors, s.direction)
    for k in range(model.eigenvalues.size):
        eigenvalue = load(s.model_weight, 0) * model.eigenvalues[k] + load(s.curvature, 0)
        store(s.rotated, k * LANES, load(s.rotated, k * LANES) / eigenvalue)
    _add_columns(s.direction, model.transposed, s.rotated)


@uncounted
def _descend(s, model, slot):
    """Compute minus the direction, by the two-loop recursion over the memory."""
    size = s.x.size
    for k in range(0, size, LANES):
        store(s.direction, k, load(s.gradient, k))
    for back in range(MEMORY):
        j = (slot - back) % MEMORY
        if not s.inverse_products[j * LANES : (j + 1) * LANES].any():
            s.weights[j * LANES : (j + 1) * LANES] = 0.0
            continue
        _inner(s.product, s.changes, j * size, s.direction, 0)
        for lane in range(LANES):
            s.product[lane] *= s.inverse_products[j * LANES + lane]
            s.weights[j * LANES + lane] = s.product[lane]
            s.product[lane] = -s.product[lane]
        for k in range(0, size, LANES):
            _add_product(s.direction, k, s.product, 0, s.gradient_changes, j * size + k)
    _precondition(s, model)
    for forward in range(1, MEMORY + 1):
        j = (slot + forward) % MEMORY
        if not s.inverse_products[j * LANES : (j + 1) * LANES].any():
            continue
        _inner(s.product, s.gradient_changes, j * size, s.direction, 0)
        for lane in range(LANES):
            at = j * LANES + lane
            s.product[lane] = s.weights[at] - s.inverse_products[at] * s.product[lane]
        for k in range(0, size, LANES):
            _add_product(s.direction, k, s.product, 0, s.changes, j * size + k)


@uncounted
def _move(s):
    """Begin new steps in the lanes that accepted the last; move all lanes to their step ends."""
    size = s.x.size
    for k in range(0, size, LANES):
        store(s.direction, k, -load(s.direction, k))
    _inner(s.product, s.gradient, 0, s.direction, 0)
    for lane in range(LANES):
        if s.accepted[lane] > 0.0:
            s.slope[lane] = s.product[lane]
            s.length[lane] = 1.0
    for k in range(0, size, LANES):
        step = where_greater(load(s.accepted, 0), 0.0, load(s.direction, k), load(s.step, k))
        store(s.step, k, step)
        store(s.x, k, load(s.x_before, k) + load(s.length, 0) * step)


@compiled
def _minimise(
    records, model, weight, curvature, linear, start, tolerance, minimisers, gradient_counts, s
):
    """Solve all problems, as many simultaneously as there are lanes."""
    problems, count = len(start), records.scale.size
    s.curvature[:] = 1.0
    problem_in_lane, gradients = np.full(LANES, -1), np.zeros(LANES, np.int64)
    next_problem = active = min(LANES, problems)
    for lane in range(active):
        _enter(s, lane, curvature[lane], linear[lane], start[lane])
        problem_in_lane[lane] = lane
    iteration = 0
    while active > 0:
        _sum_sigmoids(records, s)
        _gradients(s, weight)
        _inner(s.squared_norm, s.gradient, 0, s.gradient, 0)
        _inner(s.slope_after, s.gradient, 0, s.step, 0)
        s.accepted[:] = 0.0
        s.has_step[:] = 0.0
        for lane in range(LANES):
            mean_curvature = max(4.0 * (s.sigmas[lane] - s.squares[lane]) / count, 1e-12)
            s.model_weight[lane] = mean_curvature * weight
            i = problem_in_lane[lane]
            if i < 0:
                continue
            gradients[lane] += 1
            solved = np.sqrt(s.squared_norm[lane]) <= tolerance[i]
            failed = gradients[lane] > MAX_GRADIENTS or not np.isfinite(s.squared_norm[lane])
            if solved or failed:
                gradient_counts[i] = gradients[lane] if solved else 0
                minimisers[i] = s.x[lane::LANES]
                _leave(s, lane)
                gradients[lane] = 0
                problem_in_lane[lane] = -1
                active -= 1
                if next_problem < problems:
                    i = next_problem
                    _enter(s, lane, curvature[i], linear[i], start[i])
                    problem_in_lane[lane] = i
                    next_problem += 1
                    active += 1
            elif gradients[lane] == 1:
                s.accepted[lane] = 1.0
            elif s.slope_after[lane] > -MAX_SLOPE_RATIO * s.slope[lane]:
                shorter = s.slope[lane] / (s.slope[lane] - s.slope_after[lane])
                s.length[lane] *= max(MIN_SHORTENING, shorter)
            else:
                s.accepted[lane] = s.has_step[lane] = 1.0
        slot = iteration % MEMORY
        _store_step(s, slot)
        _descend(s, model, slot)
        _move(s)
        iteration += 1
