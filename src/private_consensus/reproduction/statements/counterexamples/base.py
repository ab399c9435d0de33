"""Result of a computation about one erratum."""

from __future__ import annotations

from dataclasses import dataclass

OUTCOMES = ("confirmed", "in part", "refuted")


@dataclass(frozen=True)
class Finding:
    """Outcome of one computation.

    Parameters
    ----------
    quantity : str
        What is claimed and found, with its unit.
    claimed, found : float
        By the text and by the computation.
    outcome : {"confirmed", "in part", "refuted"}
        Of the suspicion, decided by the numbers of this computation and by nothing else.
    lines : tuple of str
        How, in a few lines.
    """

    quantity: str
    claimed: float
    found: float
    outcome: str
    lines: tuple[str, ...]


def finding(
    quantity: str, claimed: float, found: float, holds: bool, *lines: str, partly: bool = False
) -> Finding:
    """A finding: confirmed (or in part) if ``holds``, else refuted."""
    outcome = ("in part" if partly else "confirmed") if holds else "refuted"
    return Finding(quantity, float(claimed), float(found), outcome, lines)
