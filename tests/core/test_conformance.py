"""What every algorithm of the registry keeps, on the small example of each.

A batch of settings equals its settings one by one, a run is the same among more runs, and seeds are
all the randomness there is.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from private_consensus import algorithms
from private_consensus.algorithms.base import Algorithm, stack
from private_consensus.errors import InvalidInput
from private_consensus.randomness import Streams
from worlds import MORE, World, world

AUDITS = {"canary_audit", "release_audit"}
"""They judge what another algorithm says, and run nothing of their own."""
NAMES = sorted(set(algorithms.names()) - AUDITS)
ONE_LENGTH = {"d_zoa"}
"""Draws of its inner loops are numbered by the longest of a batch."""
RUNS = 3
ROOT = 11
EXACT = {"gradient_descent", "dp_ci"}
ALIKE = {"rtol": 1e-9, "atol": 1e-11}
"""Sums of arrays of other shapes are rounded in another order; not in those that are exact."""

Shown = dict[tuple[int, int, str], np.ndarray]


@cache
def prepared(name: str) -> World:
    return world(name)


def shown(
    one: World, settings: list[Algorithm], horizons: list[int], runs: int, root=ROOT
) -> Shown:
    """By setting, iteration and quantity, the values of all runs."""
    found: Shown = {}

    def keep(t: int, active: np.ndarray, seen: dict[str, Any]) -> None:
        for place, setting in enumerate(active):
            for quantity, values in seen.items():
                found[int(setting), t, quantity] = np.array(values[place])

    streams = Streams(root, tuple(range(runs)))
    problem = one.problem.repeated(runs)
    stack(settings).run(problem, one.network, streams, np.array(horizons), keep)
    return found


def varied(algorithm: Algorithm) -> Algorithm:
    """Every number that may be a tenth smaller, is."""
    for field in fields(algorithm):
        value = getattr(algorithm, field.name)
        if isinstance(value, float) and np.isfinite(value) and value:
            try:
                algorithm = replace(algorithm, **{field.name: 0.9 * value})
            except InvalidInput:
                continue
    return algorithm


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_of_settings_equals_the_settings_one_by_one(name):
    """With other numbers, and, where there are iterations, of other lengths."""
    one = prepared(name)
    other = one.algorithm if name in ONE_LENGTH else varied(one.algorithm)
    settings = [one.algorithm, other, one.algorithm]
    horizons = [max(1, one.horizon - 1), one.horizon, one.horizon]
    together = shown(one, settings, horizons, RUNS)
    for index, (setting, horizon) in enumerate(zip(settings, horizons, strict=True)):
        alone = shown(one, [setting], [horizon], RUNS)
        assert {key[1:] for key in together if key[0] == index} == {key[1:] for key in alone}
        for (_, t, quantity), values in alone.items():
            batched = together[index, t, quantity]
            np.testing.assert_allclose(batched, values, **ALIKE, err_msg=f"{quantity} at {t}")
            assert name not in EXACT or np.array_equal(batched, values), f"{quantity} at {t}"


@pytest.mark.parametrize("name", NAMES)
def test_more_runs_change_nothing_of_the_earlier_ones(name):
    one = prepared(name)
    few, many = (shown(one, [one.algorithm], [one.horizon], runs) for runs in (RUNS, RUNS + 2))
    assert few.keys() == many.keys()
    for key, values in few.items():
        if len(values) == RUNS:
            np.testing.assert_allclose(many[key][:RUNS], values, **ALIKE, err_msg=str(key))


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_is_all_the_randomness_there_is(name):
    """The same bytes again; with another seed other messages, if there is any noise."""
    one = prepared(name)
    first, again, other = (
        shown(one, [one.algorithm], [one.horizon], RUNS, root) for root in (ROOT, ROOT, ROOT + 1)
    )
    assert {key: values.tobytes() for key, values in first.items()} == {
        key: values.tobytes() for key, values in again.items()
    }
    differ = any(first[key].tobytes() != other[key].tobytes() for key in first)
    assert differ or name in MORE
    assert not (differ and one.algorithm.deterministic)
