"""Test SIMD vectors of compiled loops against NumPy: operators, views and selections."""

import numpy as np
import pytest

from private_consensus.kernels.compiling import compiled
from private_consensus.kernels.vectors import (
    DOUBLE_LANES,
    LANES,
    doubles,
    ints,
    largest_of,
    load,
    longs,
    lowest_bit,
    maximum,
    minimum,
    singles,
    store,
    total_of,
    where_greater,
)

RNG = np.random.default_rng(2)
FLOATS = [np.float64, np.float32]


def random_vectors(kind, count=3):
    """Return random SIMD vectors of one register each, with both signs."""
    lanes = DOUBLE_LANES if np.dtype(kind).itemsize == 8 else LANES
    return (RNG.normal(size=(count, lanes)) + 0.1).astype(kind)


@compiled
def arithmetic(a, b, c, out):
    x, y, z = load(a, 0), load(b, 0), load(c, 0)
    store(out, 0, (x + y) / (z * z + 1.0) - (-x))


@pytest.mark.parametrize("kind", FLOATS)
def test_vector_operators_match_numpy(kind):
    a, b, c = random_vectors(kind)
    out = np.empty_like(a)
    arithmetic(a, b, c, out)
    assert np.allclose(out, (a + b) / (c * c + 1) + a, rtol=4 * np.finfo(kind).eps)


@compiled
def beside(a, number, out):
    store(out, 0, load(a, 0) * number + number)


@pytest.mark.parametrize("kind", FLOATS)
def test_a_scalar_operand_is_broadcast_to_all_lanes(kind):
    (a,) = random_vectors(kind, 1)
    out = np.empty_like(a)
    beside(a, kind(0.3), out)
    assert np.allclose(out, a * kind(0.3) + kind(0.3), rtol=4 * np.finfo(kind).eps)


@compiled
def fused(a, b, c, out):
    store(out, 0, load(a, 0) + load(b, 0) * load(c, 0))


def test_a_multiply_add_is_rounded_at_most_twice():
    """A fused multiply-add rounds once, and separate operations round twice."""
    a, b, c = random_vectors(np.float32)
    out = np.empty_like(a)
    fused(a, b, c, out)
    exact = a.astype(float) + b.astype(float) * c.astype(float)
    bound = np.finfo(np.float32).eps * (np.abs(b * c) + np.abs(exact))
    assert (np.abs(out - exact) <= bound).all()


@compiled
def next_numbers(a, d, next_a, next_d):
    store(next_a, 0, singles(ints(load(a, 0)) + np.int32(1)))
    store(next_d, 0, doubles(longs(load(d, 0)) + np.int64(1)))


def test_reinterpreting_vectors_preserves_their_bits():
    (a,), (d,) = random_vectors(np.float32, 1), random_vectors(np.float64, 1)
    next_a, next_d = np.empty_like(a), np.empty_like(d)
    next_numbers(a, d, next_a, next_d)
    assert (np.abs(next_a) == np.nextafter(np.abs(a), np.float32(np.inf))).all()
    assert (np.abs(next_d) == np.nextafter(np.abs(d), np.inf)).all()


@compiled
def selections(a, b, low, high, where):
    x, y = load(a, 0), load(b, 0)
    store(low, 0, minimum(x, y))
    store(high, 0, maximum(x, y))
    store(where, 0, where_greater(x, 0.0, y, -y))


@pytest.mark.parametrize("kind", FLOATS)
def test_minimum_and_maximum_ignore_a_nan_first_operand_and_where_matches_numpy(kind):
    a, b = random_vectors(kind, 2)
    a[0] = np.nan
    low, high, where = (np.empty_like(a) for _ in range(3))
    selections(a, b, low, high, where)
    assert (low[1:] == np.minimum(a, b)[1:]).all()
    assert (high[1:] == np.maximum(a, b)[1:]).all()
    assert (where == np.where(a > 0, b, -b)).all()
    assert low[0] == high[0] == b[0]


@compiled
def folded(a):
    return total_of(load(a, 0)), largest_of(load(a, 0))


@pytest.mark.parametrize("kind", FLOATS)
def test_lane_sums_add_halves_and_lane_maxima_match_numpy(kind):
    (a,) = random_vectors(kind, 1)
    halves = a
    while len(halves) > 1:
        halves = halves[: len(halves) // 2] + halves[len(halves) // 2 :]
    assert folded(a) == (halves[0], a.max())


@compiled
def bit(word):
    return lowest_bit(word)


def test_the_lowest_set_bit_does_not_depend_on_higher_bits():
    for position in range(64):
        for above in (0, RNG.integers(0, 2**63)):
            word = np.uint64((int(above) << position | 1 << position) % 2**64)
            assert bit(word) == position
