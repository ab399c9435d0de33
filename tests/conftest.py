"""What several tests share."""

from __future__ import annotations

import pytest

from private_consensus.randomness import Streams


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take longest come first, so that no process ends with one of them alone."""
    items.sort(key=lambda item: item.get_closest_marker("workflow") is None)


@pytest.fixture
def streams() -> Streams:
    """Twelve runs of an experiment named by the tests."""
    names = ("data", "graph", "noise", "sampling")
    return Streams(7, tuple(range(12)), dict.fromkeys(names, "tests"))
