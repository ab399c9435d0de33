"""The bench of broken copies: what of them audits catch, by fault and by algorithm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..formats import words

Row = Mapping[str, Any]

CORRECT = "none"
"""The fault of correct algorithms."""


def bench(rows: Iterable[Row]) -> dict[str, Any]:
    """Counts of the bench, or nothing where it was not run."""
    rows = list(rows)
    if not rows:
        return {}
    broken = [row for row in rows if row["fault"] != CORRECT]
    correct = [row for row in rows if row["fault"] == CORRECT]
    return {
        "faults": _by("fault", broken),
        "algorithms": _by("algorithm", broken),
        "missed": [
            f"{words(row['algorithm'])}: {row['fault']}"
            for row in broken
            if row["meaningful"] and not row["caught"]
        ],
        "commit": rows[0].get("commit", ""),
        "correct": len(correct),
        "alarms": sum(row["caught"] for row in correct),
    }


def _by(key: str, rows: list[Row]) -> list[dict[str, Any]]:
    return [
        _counts(words(name) if key == "algorithm" else name, [r for r in rows if r[key] == name])
        for name in dict.fromkeys(row[key] for row in rows)
    ]


def _counts(name: str, rows: list[Row]) -> dict[str, Any]:
    must = [row for row in rows if row["meaningful"]]
    caught = [row for row in must if row["caught"]]
    others = [row for row in rows if not row["meaningful"]]
    return {
        "name": name,
        "caught": f"{len(caught)} of {len(must)}",
        "all": len(caught) == len(must),
        "contradicted": sum("contradicted" in row["how"] for row in caught),
        "others": f"{sum(row['caught'] for row in others)} of {len(others)}" if others else "",
        "runs": max((row["runs"] for row in caught), default=""),
    }
