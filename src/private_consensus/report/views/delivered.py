"""Bounds on the true epsilon as multiples of the claimed epsilon, one row per algorithm."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from private_consensus.common.grouping import grouped
from private_consensus.core import algorithms
from private_consensus.core.algorithms.base import AUDIT

from ..formats import number
from ..names import algorithm_title
from ..reading import Results, Row
from . import bounds
from .privacy import ICONS

AXIS_ENDS = (0.05, 20.0)
"""Smallest and largest multiple of the claimed epsilon on the axis."""
ICON_ORDER = ("not", "part", "open", "held")
"""Order of the rows by the icons of their verdicts."""


@cache
def audit_algorithms() -> frozenset[str]:
    """Return the names of the registered algorithms that are audits of other algorithms."""
    kinds = {name: algorithms.load(name).kind for name in algorithms.names()}
    return frozenset(name for name, kind in kinds.items() if kind == AUDIT)


def rows(results: Results) -> list[Row]:
    """Return the delivered privacy of each algorithm of each paper, violated claims first.

    The worst resolved setting represents an algorithm; literal settings count only if there are no
    resolved ones. Audits are omitted, since they claim no privacy.
    """
    claims = [
        row
        for row in results.privacy
        if 0 < row["epsilon_claimed"] < math.inf and row["algorithm"] not in audit_algorithms()
    ]
    groups = grouped(claims, lambda row: (results.paper_of[row["experiment"]], row["algorithm"]))
    delivered: list[Row] = [
        {"paper": paper, **_delivered(name, settings)} for (paper, name), settings in groups.items()
    ]
    return sorted(
        delivered, key=lambda row: (ICON_ORDER.index(row["icon"]), -row["high"], -row["low"])
    )


def _delivered(name: str, settings: list[Row]) -> dict[str, Any]:
    resolved = [row for row in settings if row["interpretation"] == "resolved"] or settings
    verdicts = {row["verdict"] for row in resolved}
    worst = next((verdict for verdict in ICONS if verdict in verdicts), "")
    low, high = max(
        (_multiples(row) for row in resolved if row["verdict"] == worst or not worst),
        key=lambda ends: ends[::-1],
    )
    return {
        "name": name, "title": algorithm_title(name), "icon": ICONS.get(worst, "open"),
        "verdict": worst,
        "low": low, "high": high, "multiple": multiple_in_words(low, high),
        "start": _axis_position(low), "end": _axis_position(high),
    }  # fmt: skip


def _multiples(row: Row) -> tuple[float, float]:
    """Return lower and upper bound on the true epsilon as multiples of the claimed epsilon."""
    claimed = row["epsilon_claimed"]
    return bounds.lower(row) / claimed, bounds.upper(row) / claimed


def multiple_in_words(low: float, high: float) -> str:
    """Describe the bounds on the true epsilon as multiples of the claimed epsilon.

    Parameters
    ----------
    low : float
        Lower bound as a multiple; 0 is omitted.
    high : float
        Upper bound as a multiple; infinity is omitted.

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


def _axis_position(multiple: float) -> float:
    """Return the position of a multiple on the axis, in percent of its length."""
    low, high = (math.log(end) for end in AXIS_ENDS)
    at = math.log(min(max(multiple, AXIS_ENDS[0]), AXIS_ENDS[1]))
    return round(100 * (at - low) / (high - low), 1)


AS_CLAIMED = _axis_position(1.0)
