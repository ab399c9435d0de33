"""Fixtures and settings of all tests."""

import gc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from private_consensus.core.randomness import Streams

# The cases are equal in each run; a busy machine is no failure.
settings.register_profile(
    "same",
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("same")


LONGEST = ("test_faults", "test_outside_package")
LOOPS = ("test_rounds", "test_fast", "test_lanes")
"""Files that need nearly all that is compiled."""


def pytest_collection() -> None:
    """Disable garbage collection while test files are imported.

    It took 6 of 15 s of processor time per process and released nothing.
    """
    gc.disable()


def pytest_collection_finish() -> None:
    """Exclude the imported objects from later garbage collections."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort test files by decreasing duration, so that no long file runs last.

    While one process runs the longest file, another one compiles the kernels that both need.
    """
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    if item.path.stem in LONGEST:
        return 0
    if item.get_closest_marker("workflow") is not None:
        return 2
    return 1 if item.path.stem in LOOPS else 3


@pytest.fixture
def streams() -> Streams:
    """Return the streams of twelve runs of an experiment that is named after the tests."""
    names = ("data", "graph", "noise", "sampling")
    return Streams(7, tuple(range(12)), dict.fromkeys(names, "tests"))


@pytest.fixture(scope="session")
def plan():
    """Return the plan of all papers at full scale."""
    from private_consensus.reproduction.configuration import plan as planning  # slow to import
    from private_consensus.reproduction.configuration.schema import read_yaml

    config = Path(__file__).parents[1] / "config"
    return planning.load(read_yaml(config / "config.yaml"), config)
