"""Computations that confirm or refute each erratum, by its number, in about a second each."""

from __future__ import annotations

from private_consensus.common.errors import arguments

from . import statements, zeroth_order  # noqa: F401
from .base import COMPUTATIONS, ErratumResult


def compute(number: str) -> ErratumResult:
    """Return the outcome of the computation for one erratum."""
    arguments.choice("ID", number, sorted(COMPUTATIONS))
    return COMPUTATIONS[number]()


__all__ = ["COMPUTATIONS", "ErratumResult", "compute"]
