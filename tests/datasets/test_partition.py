"""Test the distribution of records to agents."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_consensus.common.errors import InvalidInput
from private_consensus.core import partition
from private_consensus.core.partition import (
    UNUSED,
    label_shares,
    partition_dirichlet,
    partition_iid,
    partition_unequal,
    sizes_of,
)

LABELS = np.tile([-1, -1, -1, 1], 250)


def generators(runs: int, seed: int = 0) -> list[np.random.Generator]:
    return [np.random.default_rng([seed, run]) for run in range(runs)]


def drawn(kind: str, runs: int = 3, seed: int = 0) -> np.ndarray:
    if kind == "iid":
        return partition_iid(LABELS, [100, 50, 7], generators(runs, seed))
    if kind == "unequal":
        return partition_unequal(LABELS, 5, 600, generators(runs, seed), concentration=0.5)
    return partition_dirichlet(LABELS, [100, 50, 7], generators(runs, seed), concentration=0.3)


KINDS = ("iid", "unequal", "dirichlet")


@pytest.mark.parametrize("kind", KINDS)
def test_no_record_is_assigned_twice(kind):
    for run in drawn(kind):
        dealt_rows = run[run != UNUSED]
        assert len(np.unique(dealt_rows)) == len(dealt_rows)
        assert dealt_rows.min() >= 0 and dealt_rows.max() < len(LABELS)


@pytest.mark.parametrize("kind", ["iid", "dirichlet"])
def test_agents_have_the_requested_numbers_of_records(kind):
    assert sizes_of(drawn(kind)).tolist() == [[100, 50, 7]] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_adding_runs_does_not_change_earlier_runs(kind):
    few, many = drawn(kind, 2), drawn(kind, 6)
    width = min(few.shape[2], many.shape[2])
    assert (few[..., :width] == many[:2, :, :width]).all()
    assert (many[:2, :, width:] == UNUSED).all()


@pytest.mark.parametrize("kind", KINDS)
def test_partitions_differ_between_runs_and_seeds(kind):
    a, b = drawn(kind, 2, seed=0), drawn(kind, 2, seed=1)
    assert a.shape != b.shape or not (a == b).all()
    assert not (a[0] == a[1]).all()


def test_iid_partitions_are_uniform_over_records():
    agent_rows = partition_iid(np.zeros(40), [10, 10], generators(2000))
    counts = np.bincount(agent_rows.ravel(), minlength=40)
    # The expected count is 1000 with variance 500; allow six standard deviations.
    assert np.abs(counts - 1000).max() < 6 * np.sqrt(500)


def test_all_records_can_be_assigned():
    agent_rows = partition_dirichlet(LABELS, [250] * 4, generators(2), concentration=0.05)
    assert sorted(agent_rows[0].ravel()) == list(range(1000))


def test_label_skew_grows_as_the_concentration_falls():
    digits = np.repeat(np.arange(10), 200)
    spread = [
        label_shares(
            digits, partition_dirichlet(digits, [50] * 10, generators(20), concentration=c)
        ).std()
        for c in (1e4, 1.0, 0.1)
    ]
    assert spread[0] < spread[1] < spread[2]
    # For i.i.d. records, 50 draws of ten classes have a standard deviation of
    # sqrt(0.09 / 50) = 0.042. The standard deviation of rounding is smaller.
    assert spread[0] < 0.042
    assert spread[2] > 0.15


def test_label_skew_preserves_the_mean_label_frequency():
    shares = label_shares(
        LABELS, partition_dirichlet(LABELS, [10] * 5, generators(400), concentration=1.0)
    )
    # Dirichlet(1.5, 0.5) has variance 0.0625; allow four standard errors for 2000 agents.
    assert shares[..., 1].mean() == pytest.approx(0.25, abs=4 * np.sqrt(0.0625 / 2000))


def test_unequal_sizes_sum_to_the_total_and_vary_with_the_concentration():
    narrow, wide = (
        sizes_of(partition_unequal(LABELS, 8, 800, generators(30), concentration=c, smallest=3))
        for c in (1e5, 0.5)
    )
    assert (narrow.sum(axis=1) == 800).all() and (wide.sum(axis=1) == 800).all()
    assert np.abs(narrow - 100).max() <= 3 < np.abs(wide - 100).max()
    assert wide.min() >= 3


def test_label_shares_are_computed_from_the_assigned_records():
    agent_rows = np.array([[[0, 1, 2, UNUSED], [3, 7, UNUSED, UNUSED]]])
    assert label_shares(LABELS, agent_rows).tolist() == [[[1.0, 0.0], [0.0, 1.0]]]


@pytest.mark.parametrize(
    "call",
    [
        lambda: partition_iid(np.zeros(5), [1] * 6, generators(1)),
        lambda: partition_iid(np.zeros(5), [3, 3], generators(1)),
        lambda: partition_iid(np.zeros(5), [0, 3], generators(1)),
        lambda: partition_unequal(np.zeros(5), 6, 6, generators(1)),
        lambda: partition_unequal(np.zeros(50), 6, 51, generators(1)),
        lambda: partition_dirichlet(np.zeros(5), [6], generators(1), concentration=1.0),
        lambda: partition_dirichlet(np.zeros(5), [1], generators(1), concentration=0.0),
    ],
)
def test_impossible_partitions_are_refused(call):
    with pytest.raises(InvalidInput, match=r"partition\."):
        call()


def test_the_error_for_more_agents_than_records_names_both_numbers():
    with pytest.raises(InvalidInput, match=r"partition\.agents: found 6, expected at most the 5"):
        partition_iid(np.zeros(5), [1] * 6, generators(1))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=8),
    st.floats(0.01, 100),
    st.integers(0, 2**31),
)
def test_dirichlet_partitions_have_exact_sizes_without_repeated_records(sizes, concentration, seed):
    labels = np.random.default_rng(seed).integers(0, 4, sum(sizes) + 5)
    agent_rows = partition.partition_dirichlet(
        labels, sizes, generators(1, seed), concentration=concentration
    )
    assert sizes_of(agent_rows)[0].tolist() == sizes
    dealt_rows = agent_rows[agent_rows != UNUSED]
    assert len(np.unique(dealt_rows)) == len(dealt_rows)
