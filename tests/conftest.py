"""Fixtures and settings of all tests."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

from private_consensus.core.randomness import Streams

# The same cases in each run, unless more are asked for; a busy machine is no failure.
settings.register_profile(
    "same",
    deadline=None,
    database=None,
    derandomize="FUZZ_CASES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("same")


LOOPS = ("test_rounds", "test_fast", "test_vectors", "test_lanes", "test_products")
"""Files that need nearly all that is compiled."""


def pytest_collection() -> None:
    """Look for no unused objects while files are imported, which makes objects that all stay: that
    took 6 of 15 s of CPU time in each process."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave what has been imported out of later searches for unused objects."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take longest come first, so that no process ends with one of them alone. While one
    process has the longest of all, another compiles what both would compile later."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    if item.get_closest_marker("workflow") is not None:
        return 0 if item.path.stem == "test_faults" else 2
    return 1 if item.path.stem in LOOPS else 3


@pytest.fixture
def streams() -> Streams:
    """Twelve runs of an experiment named by the tests."""
    names = ("data", "graph", "noise", "sampling")
    return Streams(7, tuple(range(12)), dict.fromkeys(names, "tests"))
