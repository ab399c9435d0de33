"""Bounds on the true epsilon as multiples of the claimed epsilon, one row per algorithm."""

from __future__ import annotations

import math
from typing import Any

from ..formats import grouped, number, value_range
from ..names import algorithm_title
from ..reading import Results, Row
from . import bounds
from .privacy import ICONS, audit_algorithms, audit_of_release, correct_audits

AXIS_ENDS = (0.05, 20.0)
"""Smallest and largest multiple of the claimed epsilon on the axis."""
ICON_ORDER = ("not", "part", "open", "held")
"""Order of the rows by the icons of their verdicts."""


def rows(results: Results) -> list[Row]:
    """Return the delivered privacy of each algorithm of each paper, violated claims first.

    The worst resolved setting represents an algorithm; literal settings count only if there are no
    resolved ones. The note states the worst literal setting if it is worse than the resolved ones,
    and the audit of one release. Audits are omitted, since they claim no privacy.
    """
    audits = correct_audits(results)
    claims = [
        row
        for row in results.privacy
        if 0 < row["epsilon_claimed"] < math.inf and row["algorithm"] not in audit_algorithms()
    ]
    groups = grouped(claims, lambda row: (results.paper_of[row["experiment"]], row["algorithm"]))
    delivered: list[Row] = [
        {"paper": paper, **_delivered(name, settings, audit_of_release(name, audits))}
        for (paper, name), settings in groups.items()
    ]
    return sorted(
        delivered, key=lambda row: (ICON_ORDER.index(row["icon"]), -row["high"], -row["low"])
    )


def _delivered(name: str, settings: list[Row], release: Row | None) -> dict[str, Any]:
    resolved = [row for row in settings if row["interpretation"] == "resolved"] or settings
    literal = [row for row in settings if row["interpretation"] == "literal"]
    (verdict, low, high), published = _worst(resolved), _worst([*resolved, *literal])
    multiple = multiple_in_words(low, high)
    as_published = f"{published[0]}, {multiple_in_words(*published[1:])}"
    notes = [f"as published: {as_published}"] if as_published != f"{verdict}, {multiple}" else []
    if release:
        ratio = number(release["bound"] / release["claimed"], 2)
        notes.append(f"one iteration: {release['verdict']}, at least {ratio}")
    return {
        "name": name, "title": algorithm_title(name), "icon": ICONS[verdict], "verdict": verdict,
        "low": low, "high": high, "multiple": multiple, "notes": notes,
        "claimed": value_range(row["epsilon_claimed"] for row in resolved),
        "start": _axis_position(low), "end": _axis_position(high),
    }  # fmt: skip


def _worst(settings: list[Row]) -> tuple[str, float, float]:
    """Return the worst verdict, and the lower and upper bound of its worst setting.

    Both bounds are multiples of the claimed epsilon.
    """
    verdict = min((row["verdict"] for row in settings), key=[*ICONS].index)
    ends = (
        (bounds.upper(row) / row["epsilon_claimed"], bounds.lower(row) / row["epsilon_claimed"])
        for row in settings
        if row["verdict"] == verdict
    )
    high, low = max(ends)
    return verdict, low, high


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
