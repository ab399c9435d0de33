"""Interval of the true epsilon of every setting: lower bound and accountant."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ..formats import grouped, words

Row = Mapping[str, Any]

INFINITE, UNKNOWN = "infinite", "no bound"
WIDTHS = {"within 5 %": 1.05, "within 20 %": 1.2, "within a factor 2": 2.0}
WIDER = "wider than a factor 2"
CLOSENESS = (INFINITE, *WIDTHS, WIDER, UNKNOWN)
"""Classes of closeness, the closest bounds first."""
FROM_ABOVE = "no upper bound is proven"
GIVEN = "for data that satisfy the assumption"


def lower(row: Row) -> float:
    """Return the larger of the computed bound and the bound of an audit of the same setting."""
    bounds = (row.get("epsilon_lower"), row.get("epsilon_empirical"))
    return max((bound for bound in bounds if bound is not None), default=0.0)


def upper(row: Row) -> float:
    """Return the accountant's epsilon if it is proven or rests on the claim's assumption about
    the data; a lower bound uses the same assumption.
    """
    if row["proven"]:
        return row["epsilon_accountant"]
    return row["epsilon_under_assumption"] if _given(row) else math.inf


def _given(row: Row) -> bool:
    """Return True if the bounds need an assumption about the data, without which nothing is
    proven.
    """
    granted = row.get("epsilon_under_assumption")
    return not row["proven"] and granted is not None and math.isfinite(granted)


def closeness(low: float, high: float) -> str:
    """Classify the bounds on an epsilon by one of :data:`CLOSENESS`.

    Parameters
    ----------
    low : float
        Lower bound.
    high : float
        Upper bound, possibly infinite.

    Returns
    -------
    str
    """
    if low == math.inf:
        return INFINITE
    if high == 0:
        return "within 5 %"
    if low == 0 or high == math.inf:
        return UNKNOWN
    return next((name for name, width in WIDTHS.items() if high <= width * low), WIDER)


def table(privacy: Iterable[Row]) -> list[dict[str, Any]]:
    """Count, per algorithm, the settings with a claim by the closeness of their bounds.

    The last row counts all algorithms.
    """
    claims = [row for row in privacy if math.isfinite(row["epsilon_claimed"])]
    groups = grouped(claims, lambda row: words(row["algorithm"]))
    rows = [_counted(name, settings) for name, settings in groups.items()]
    return [*rows, {**_counted("all", claims), "because": ""}] if rows else []


def _counted(name: str, rows: list[Row]) -> dict[str, Any]:
    classes = [closeness(lower(row), upper(row)) for row in rows]
    counts = Counter(classes)
    reasons = Counter(
        reason
        for row, how in zip(rows, classes, strict=True)
        if how not in (INFINITE, "within 5 %") or _given(row)
        for reason in _reasons(row)
    )
    because = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common(3))
    return {
        "algorithm": name,
        "settings": len(rows),
        "counts": [counts[how] for how in CLOSENESS],
        "because": because,
    }


def _reasons(row: Row) -> list[str]:
    above = [] if row["proven"] else [GIVEN if _given(row) else FROM_ABOVE]
    return [*above, *filter(None, [row.get("bound_gap_reason")])]
