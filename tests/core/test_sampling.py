"""Ordered samples without replacement: those that sorting all numbers gives."""

import numpy as np
import pytest

from private_consensus.core.kernels.sampling import first_of, first_of_plainly


@pytest.mark.parametrize("count", [1, 7, 39, 40])
def test_a_sample_is_what_sorting_all_numbers_gives(count):
    rng = np.random.default_rng(count)
    uniform, rows = rng.random((3, 5, 40)), rng.integers(0, 1000, (3, 5, 40))
    found = first_of(uniform, rows, count)
    np.testing.assert_array_equal(found, first_of_plainly(uniform, rows, count))


@pytest.mark.parametrize("squeezed", [1e-9, 1.0 - 1e-9])
def test_numbers_that_are_all_small_or_all_large_give_a_whole_sample_too(squeezed):
    rng = np.random.default_rng(0)
    uniform = np.full((1, 2, 30), squeezed) + 1e-10 * rng.random((1, 2, 30))
    rows = np.arange(60).reshape(1, 2, 30)
    found = first_of(uniform, rows, 6)
    np.testing.assert_array_equal(found, first_of_plainly(uniform, rows, 6))
    assert len(np.unique(found)) == 12


def test_every_record_is_as_likely_at_every_place():
    draws, m, count = 20_000, 4, 2
    uniform = np.random.default_rng(1).random((draws, 1, m))
    found = first_of(uniform, np.broadcast_to(np.arange(m), uniform.shape), count)[:, 0]
    pairs = np.bincount(found[:, 0] * m + found[:, 1], minlength=m * m).reshape(m, m)
    assert np.diagonal(pairs).sum() == 0
    expected = draws / (m * (m - 1))
    others = pairs[~np.eye(m, dtype=bool)]
    assert np.abs(others - expected).max() < 5 * np.sqrt(expected)
