"""Bounds on the true epsilon as multiples of the claimed epsilon, one row per algorithm."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from private_consensus.common.grouping import grouped
from private_consensus.privacy import VIOLATED

from ..formats import number, value_range
from ..names import algorithm_title
from ..reading import Results, Row
from . import bounds
from .privacy import ICONS, audit_algorithms, audit_of_release

AXIS_ENDS = (0.05, 20.0)
"""Smallest and largest multiple of the claimed epsilon on the axis."""
ICON_ORDER = ("not", "part", "open", "held")
"""Order of the rows by the icons of their verdicts."""


def rows(results: Results) -> list[Row]:
    """Return the delivered privacy of each algorithm of each paper, violated claims first.

    The worst resolved setting represents an algorithm; literal settings count only if there are no
    resolved ones. The text as published has a row of its own if its worst setting is worse, and so
    has one iteration whose claim an audit refutes. Audits are omitted, since they claim no privacy.
    """
    audits = results.audit.get("audits", [])
    claims = [
        row
        for row in results.privacy
        if 0 < row["epsilon_claimed"] < math.inf and row["algorithm"] not in audit_algorithms()
    ]
    groups = grouped(claims, lambda row: (results.paper_of[row["experiment"]], row["algorithm"]))
    delivered: list[Row] = [
        {"paper": paper, "name": name, **row}
        for (paper, name), settings in groups.items()
        for row in _delivered(algorithm_title(name), settings, audit_of_release(name, audits))
    ]
    return sorted(
        delivered, key=lambda row: (ICON_ORDER.index(row["icon"]), -row["high"], -row["low"])
    )


def _delivered(title: str, settings: list[Row], release: Row | None) -> Iterator[dict[str, Any]]:
    resolved = [row for row in settings if row["interpretation"] == "resolved"] or settings
    literal = [row for row in settings if row["interpretation"] == "literal"]
    row = _row(title, *_worst(resolved), resolved)
    as_published = _row(f"{title}, as published", *_worst([*resolved, *literal]), literal)
    yield row
    if any(as_published[key] != row[key] for key in ("verdict", "multiple")):
        yield as_published
    if release and release["verdict"] == VIOLATED:
        claimed = release["claimed"]
        ends = release["bound"] / claimed, math.inf
        yield _row(f"{title}, one iteration", VIOLATED, *ends, [{"epsilon_claimed": claimed}])


def worst(title: str, settings: list[Row]) -> Row:
    """Return verdict and multiple of the claimed epsilon of the worst of some settings."""
    return _row(title, *_worst(settings), settings)


def _row(title: str, verdict: str, low: float, high: float, settings: list[Row]) -> dict[str, Any]:
    return {
        "title": title, "icon": ICONS[verdict], "verdict": verdict,
        "low": low, "high": high, "multiple": multiple_in_words(low, high),
        "claimed": value_range(row["epsilon_claimed"] for row in settings),
        "start": _axis_position(low), "end": _axis_position(high),
    }  # fmt: skip


def _worst(settings: list[Row]) -> tuple[str, float, float]:
    """Return the worst verdict, and the lower and upper bound of its worst setting."""
    verdict = min((row["verdict"] for row in settings), key=[*ICONS].index)
    high, low = max(
        (bounds.upper(row) / row["epsilon_claimed"], bounds.lower(row) / row["epsilon_claimed"])
        for row in settings
        if row["verdict"] == verdict
    )
    return verdict, low, high


def multiple_in_words(low: float, high: float) -> str:
    """Describe the bounds on the true epsilon as multiples of the claimed epsilon.

    A lower bound of 0 and an infinite upper bound are omitted.
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
