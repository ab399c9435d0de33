"""Simulation results of the Python API."""

from pathlib import Path
from typing import Any

from private_consensus.common import yamls


def defaults() -> dict[str, Any]:
    """Return the default delta from ``defaults.yaml``."""
    return yamls.read(Path(__file__).parent / "defaults.yaml")
