"""Test general properties of every algorithm of the registry, on its small example."""

from functools import cache

import pytest

import conformance
from private_consensus import algorithms
from private_consensus.core.algorithms.base import Attack
from worlds import MORE, CalibratedRun, world

NAMES = [name for name in algorithms.names() if not issubclass(algorithms.load(name), Attack)]
"""Names of all algorithms except audits, which only judge the output of another algorithm."""
ONE_LENGTH = {"d_zoa"}
"""Algorithms whose inner-loop draws are numbered by the longest loop of the batch."""
EXACT = {"gradient_descent", "dp_ci"}


@cache
def prepared(name: str) -> CalibratedRun:
    return world(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_of_settings_equals_the_settings_one_by_one(name):
    """The settings of the batch differ in numbers and in horizons."""
    calibrated_run = prepared(name)
    variant = calibrated_run.algorithm if name in ONE_LENGTH else None
    conformance.batch_equals_its_settings(calibrated_run, variant=variant, exact=name in EXACT)


@pytest.mark.parametrize("name", NAMES)
def test_additional_runs_do_not_change_earlier_runs(name):
    conformance.more_runs_change_nothing(prepared(name))


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_is_the_only_source_of_randomness(name):
    conformance.seeds_are_all_randomness(prepared(name), noisy=name not in MORE)
