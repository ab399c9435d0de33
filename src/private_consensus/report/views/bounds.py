"""Lower and upper bound on the true epsilon of each setting, and how close they are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from private_consensus.common.grouping import grouped

from ..formats import words
from ..reading import Row

INFINITE, UNKNOWN = "infinite", "no bound"
WIDTHS = {"within 5 %": 1.05, "within 20 %": 1.2, "within a factor 2": 2.0}
WIDER = "wider than a factor 2"
CLOSENESS = (INFINITE, *WIDTHS, WIDER, UNKNOWN)
"""Classes of the ratio of upper to lower bound, the closest bounds first."""
NO_UPPER_BOUND = "no upper bound is proven"
ASSUMPTION = "for data that satisfy the assumption"


def lower(row: Row) -> float:
    """Return the lower bound on epsilon: the larger one of the known attack and the audit."""
    bounds = (row.get("epsilon_lower"), row.get("epsilon_empirical"))
    return max((bound for bound in bounds if bound is not None), default=0.0)


def upper(row: Row) -> float:
    """Return the upper bound on epsilon, infinite if the accountant proves none.

    It may use the claim's assumption about the data, as the lower bound does.
    """
    if row["proven"]:
        return row["epsilon_accountant"]
    return row["epsilon_under_assumption"] if _needs_assumption(row) else math.inf


def _needs_assumption(row: Row) -> bool:
    """Return True if an upper bound is proven only under an assumption about the data."""
    conditional = row.get("epsilon_under_assumption")
    return not row["proven"] and conditional is not None and math.isfinite(conditional)


def closeness(low: float, high: float) -> str:
    """Classify the ratio of two bounds on epsilon, as one of :data:`CLOSENESS`."""
    if low == math.inf:
        return INFINITE
    if high == 0:
        return "within 5 %"
    if low == 0 or high == math.inf:
        return UNKNOWN
    return next((name for name, width in WIDTHS.items() if high <= width * low), WIDER)


def table(privacy: Iterable[Row]) -> list[dict[str, object]]:
    """Count the settings of each algorithm by the closeness of their bounds, with a row of totals.

    Settings without a claim are not counted.
    """
    claims = [row for row in privacy if math.isfinite(row["epsilon_claimed"])]
    groups = grouped(claims, lambda row: words(row["algorithm"]))
    rows = [_counted(name, settings) for name, settings in groups.items()]
    return [*rows, {**_counted("all", claims), "because": ""}] if rows else []


def _counted(name: str, rows: list[Row]) -> dict[str, object]:
    classes = [closeness(lower(row), upper(row)) for row in rows]
    counts = Counter(classes)
    reasons = Counter(
        reason
        for row, label in zip(rows, classes, strict=True)
        if label not in (INFINITE, "within 5 %") or _needs_assumption(row)
        for reason in _reasons(row)
    )
    because = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common(2))
    return {
        "algorithm": name,
        "settings": len(rows),
        "counts": [counts[label] for label in CLOSENESS],
        "because": because,
    }


def _reasons(row: Row) -> list[str]:
    upper_reason = (
        [] if row["proven"] else [ASSUMPTION if _needs_assumption(row) else NO_UPPER_BOUND]
    )
    return [*upper_reason, *filter(None, (row.get("bound_gap_reason") or "").split("; "))]
