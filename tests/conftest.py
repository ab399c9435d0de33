"""What several tests share."""

from __future__ import annotations

import pytest

from private_consensus.randomness import Streams


@pytest.fixture
def streams() -> Streams:
    """Twelve runs of an experiment named by the tests."""
    names = ("data", "graph", "noise", "sampling")
    return Streams(7, tuple(range(12)), dict.fromkeys(names, "tests"))
