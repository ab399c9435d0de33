"""What every algorithm of the registry keeps, on the small example of each."""

from __future__ import annotations

from functools import cache

import pytest

from private_consensus import algorithms
from private_consensus.audits import conformance
from worlds import MORE, World, world

AUDITS = {"canary_audit", "release_audit"}
"""They judge what another algorithm says, and run nothing of their own."""
NAMES = sorted(set(algorithms.names()) - AUDITS)
ONE_LENGTH = {"d_zoa"}
"""Draws of its inner loops are numbered by the longest of a batch."""
EXACT = {"gradient_descent", "dp_ci"}


@cache
def prepared(name: str) -> World:
    return world(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_of_settings_equals_the_settings_one_by_one(name):
    """With other numbers, and, where there are iterations, of other lengths."""
    one = prepared(name)
    other = one.algorithm if name in ONE_LENGTH else None
    conformance.batch_equals_its_settings(one, other=other, exact=name in EXACT)


@pytest.mark.parametrize("name", NAMES)
def test_more_runs_change_nothing_of_the_earlier_ones(name):
    conformance.more_runs_change_nothing(prepared(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_is_all_the_randomness_there_is(name):
    conformance.seeds_are_all_randomness(prepared(name), noisy=name not in MORE)
