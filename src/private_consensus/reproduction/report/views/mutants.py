"""Audits of faulty and correct algorithms: numbers of caught faults, by fault and algorithm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..names import called

Row = Mapping[str, Any]

CORRECT = "none"
"""The fault of correct algorithms."""
AUTHORS = {
    False: "faults that the authors of this repository applied to its algorithms",
    True: "broken algorithms of a package written without knowledge of the audit's implementation",
}
"""Authors of the faults, by whether they are from outside."""


def bench(rows: Iterable[Row]) -> dict[str, Any]:
    """Return the counts of the bench, or nothing if it was not run.

    Parameters
    ----------
    rows : iterable of mapping
        One row per audit.

    Returns
    -------
    dict
    """
    rows = list(rows)
    if not rows:
        return {}
    broken = [row for row in rows if not _is_correct(row)]
    correct = [row for row in rows if _is_correct(row)]
    return {
        "sentence": " ".join(_sentence(broken, outside) for outside in AUTHORS).strip(),
        "classes": _by("class", broken) if "class" in rows[0] else [],
        "faults": _by("fault", broken),
        "algorithms": _by("algorithm", broken),
        "missed": [
            f"{called(row['algorithm'])}: {row['fault']}" for row in broken if _is_missed(row)
        ],
        "commit": rows[0].get("commit", ""),
        "correct": len(correct),
        "alarms": sum(row["caught"] for row in correct),
    }


def _is_correct(row: Row) -> bool:
    return row.get("correct", row["fault"] == CORRECT)


def _is_named(row: Row) -> bool:
    """Return True if the audit was inconclusive and named the item that holds the fault."""
    return not row["caught"] and bool(row.get("inconclusive"))


def _is_missed(row: Row) -> bool:
    return row["meaningful"] and not row["caught"] and not _is_named(row)


def _sentence(broken: list[Row], outside: bool) -> str:
    """Return the counts of one group of authors in words."""
    must = [r for r in broken if r["meaningful"] and bool(r.get("outside")) == outside]
    if not must:
        return ""
    caught = sum(row["caught"] for row in must)
    undecided = sum(map(_is_named, must))
    return (
        f"Of {len(must)} {AUTHORS[outside]}, {caught} were caught, {undecided} ended inconclusive "
        f"with the faulty item named, and {len(must) - caught - undecided} were missed."
    )


def _by(key: str, rows: list[Row]) -> list[dict[str, Any]]:
    return [
        _counts(called(name) if key == "algorithm" else name, [r for r in rows if r[key] == name])
        for name in dict.fromkeys(row[key] for row in rows)
    ]


def _counts(name: str, rows: list[Row]) -> dict[str, Any]:
    meaningful = [row for row in rows if row["meaningful"]]
    caught = [row for row in meaningful if row["caught"]]
    harmless = [row for row in rows if not row["meaningful"]]
    return {
        "name": name,
        "caught": f"{len(caught)} of {len(meaningful)}",
        "all": len(caught) == len(meaningful),
        "inconclusive": sum(map(_is_named, meaningful)),
        "missed": sum(map(_is_missed, meaningful)),
        "contradicted": sum("contradicted" in row["how"] for row in caught),
        "others": f"{sum(row['caught'] for row in harmless)} of {len(harmless)}"
        if harmless
        else "",
        "runs": max((row["runs"] for row in caught), default=""),
    }
