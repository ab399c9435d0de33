"""Test that noisy rounding to a small grid by bounds equals sampling the noise from a table."""

import numpy as np
import pytest

from private_consensus.kernels import rows
from private_consensus.kernels.rows import bounds_of, round_to_few
from private_consensus.kernels.vectors import aligned

RESOLUTION, COUNT = np.float32(0.1), 320
KEY = np.uint32(1), np.uint32(2), np.uint32(0)


def ends(bits: int) -> tuple[np.float32, np.float32]:
    return np.float32(-(2 ** (bits - 1))), np.float32(2 ** (bits - 1) - 1)


def rounded(words, table, bits):
    """Return points of the bounds, if these decide, and steps and noise of the table."""
    lowest, highest = ends(bits)
    x, u, out, draws = (aligned(COUNT) for _ in range(4))
    x[:] = np.resize(np.linspace(lowest - 1, highest + 1, 7) * RESOLUTION, COUNT)
    u[:] = 0.5
    first, second = aligned(COUNT, np.uint32), aligned(COUNT, np.uint32)
    first[:] = words
    bounds = bounds_of(table, float(highest - lowest))
    options = RESOLUTION, np.float32(1) / RESOLUTION, lowest, highest
    is_decided = round_to_few(x, u, first, bounds, *options, out)
    steps = np.floor(x / RESOLUTION) + (x / RESOLUTION % 1 > 0.5)
    rows.find_steps(table, *KEY, 0, first, second, draws)
    return out, is_decided, steps, draws


@pytest.mark.parametrize("bits", [2, 3])
@pytest.mark.parametrize("variance", [0.01, 1.0, 10.0, 400.0])
def test_rounding_by_bounds_equals_the_table_on_both_sides_of_each_bound(bits, variance):
    table = rows.discrete_table(variance)
    bounds = bounds_of(table, float(np.subtract(*ends(bits)[::-1])))
    bound_words = np.unique(bounds[bounds > 0].astype(np.int64))
    bound_words = np.concatenate([bound_words, 2**32 - 1 - bound_words])
    words = np.concatenate([bound_words - 1, bound_words + 1, [1, 2**31 - 1, 2**31, 2**32 - 2]])
    words = words[~np.isin(words, bound_words)]
    out, is_decided, steps, draws = rounded(np.resize(words, COUNT), table, bits)
    lowest, highest = ends(bits)
    sent = np.clip(np.clip(steps, lowest, highest) + draws, lowest, highest)
    assert is_decided
    assert np.array_equal(out, sent * RESOLUTION)


def test_a_word_that_equals_a_bound_is_undecided():
    table = rows.discrete_table(10.0)
    bounds = bounds_of(table, 7.0)
    bounds = np.concatenate([bounds, ~bounds])
    usual = np.full(COUNT, 2**31 + 12345)
    assert rounded(usual, table, 3)[1]
    for bound in bounds:
        for position in (0, 17, COUNT - 1):
            usual[:] = 2**31 + 12345
            usual[position] = bound
            assert not rounded(usual, table, 3)[1]
