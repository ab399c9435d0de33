"""Delivered epsilon as a multiple of the claimed epsilon: one row and one bar per algorithm."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from private_consensus.core import algorithms
from private_consensus.core.algorithms.base import AUDIT

from ..formats import grouped, number
from ..names import called
from ..reading import Results
from . import brackets
from .privacy import LOOKS

Row = Mapping[str, Any]

ENDS = (0.05, 20.0)
"""Smallest and largest multiple of the claimed epsilon on the axis."""
ORDER = ("not", "part", "open", "held")


@cache
def audits() -> frozenset[str]:
    """Return the names of the algorithms that audit others."""
    kinds = {name: algorithms.load(name).kind for name in algorithms.names()}
    return frozenset(name for name, kind in kinds.items() if kind == AUDIT)


def rows(results: Results) -> list[dict[str, Any]]:
    """Return the delivered privacy of each algorithm of each paper, violated claims first.

    A literal setting follows the text of a paper exactly. It decides only for algorithms without
    other settings. Audits are left out because they claim no privacy.
    """
    claims = [
        row
        for row in results.privacy
        if 0 < row["epsilon_claimed"] < math.inf and row["algorithm"] not in audits()
    ]
    groups = grouped(claims, lambda row: (results.paper_of[row["experiment"]], row["algorithm"]))
    delivered = [
        {"paper": paper, "number": results.papers[paper]["paper"]["number"],
         **_delivered(name, settings)}
        for (paper, name), settings in groups.items()
    ]  # fmt: skip
    return sorted(delivered, key=lambda row: (ORDER.index(row["look"]), -row["high"], -row["low"]))


def _delivered(name: str, settings: list[Row]) -> dict[str, Any]:
    resolved = [row for row in settings if row["interpretation"] == "resolved"] or settings
    verdicts = {row["verdict"] for row in resolved}
    worst = next((verdict for verdict in LOOKS if verdict in verdicts), "")
    low, high = max(
        (_multiples(row) for row in resolved if row["verdict"] == worst or not worst),
        key=lambda ends: ends[::-1],
    )
    variants = {row["variant"] for row in resolved}
    broken = {row["variant"] for row in resolved if LOOKS.get(row["verdict"]) != "held"}
    return {
        "name": name, "called": called(name), "look": LOOKS.get(worst, "open"), "verdict": worst,
        "low": low, "high": high, "shown": in_words(low, high),
        "start": _place(low), "end": _place(high),
        "kept": len(variants - broken), "of": len(variants),
    }  # fmt: skip


def _multiples(row: Row) -> tuple[float, float]:
    """Lower and upper bound of the true epsilon in units of the claimed one."""
    claimed = row["epsilon_claimed"]
    return brackets.lower(row) / claimed, brackets.upper(row) / claimed


def in_words(low: float, high: float) -> str:
    """Describe lower and upper bound as multiples of the claimed epsilon.

    Parameters
    ----------
    low : float
        Lower bound, as a multiple; 0 is not written.
    high : float
        Upper bound, as a multiple; infinity is not written.

    Returns
    -------
    str
    """
    if low == math.inf:
        return "∞"
    if high == math.inf:
        return f"at least {number(low, 2)}" if low > 0 else "not known"
    if low == 0:
        return f"at most {number(high, 2)}"
    ends = number(low, 2), number(high, 2)
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _place(multiple: float) -> float:
    """Return the position of a multiple on the axis, in percent of its length."""
    low, high = (math.log(end) for end in ENDS)
    at = math.log(min(max(multiple, ENDS[0]), ENDS[1]))
    return round(100 * (at - low) / (high - low), 1)


AS_CLAIMED = _place(1.0)
