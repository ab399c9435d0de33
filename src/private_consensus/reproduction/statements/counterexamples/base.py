"""Result of a computation about one erratum."""

from __future__ import annotations

from dataclasses import dataclass

OUTCOMES = ("confirmed", "in part", "refuted")


@dataclass(frozen=True)
class ErratumResult:
    """Outcome of one computation.

    Parameters
    ----------
    quantity : str
        Compared quantity, with its unit.
    claimed, found : float
        Value by the text, and value by the computation.
    outcome : {"confirmed", "in part", "refuted"}
        Verdict on the suspected error, decided by the numbers of this computation alone.
    lines : tuple of str
        Description of the computation.
    """

    quantity: str
    claimed: float
    found: float
    outcome: str
    lines: tuple[str, ...]


def finding(
    quantity: str, claimed: float, found: float, holds: bool, *lines: str, partly: bool = False
) -> ErratumResult:
    """A finding: confirmed (or in part) if ``holds``, else refuted."""
    outcome = ("in part" if partly else "confirmed") if holds else "refuted"
    return ErratumResult(quantity, float(claimed), float(found), outcome, lines)
