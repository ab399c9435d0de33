"""Result of the computation for one erratum, and the registry of these computations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class ErratumResult:
    """Outcome of one computation.

    Parameters
    ----------
    quantity : str
        Compared quantity, with its unit.
    claimed, computed : float
        Value according to the paper, and computed value.
    outcome : {"confirmed", "in part", "refuted"}
        Verdict on the suspected error, decided by the numbers of this computation alone.
    """

    quantity: str
    claimed: float
    computed: float
    outcome: str
    description: str


COMPUTATIONS: dict[str, Callable[[], ErratumResult]] = {}
"""Computations by the number of the erratum."""


def erratum(number: str) -> Callable[[Callable[..., ErratumResult]], Callable[..., ErratumResult]]:
    """Register a function as the computation for an erratum."""

    def register(computation: Callable[..., ErratumResult]) -> Callable[..., ErratumResult]:
        COMPUTATIONS[number] = computation
        return computation

    return register


def finding(
    quantity: str, claimed: float, computed: float, holds: bool, description: str,
    partly: bool = False,
) -> ErratumResult:  # fmt: skip
    """Return the result of a computation with its outcome: confirmed, in part, or refuted.

    ``holds`` is True if the numbers show the suspected error, and ``partly`` if it affects only a
    part of the statement. ``quantity`` has a unit.
    """
    outcome = ("in part" if partly else "confirmed") if holds else "refuted"
    return ErratumResult(quantity, float(claimed), float(computed), outcome, description)
