"""Count the faults that audits catch, and the findings about correct algorithms."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from private_consensus.common.grouping import grouped

from ..names import algorithm_title
from ..reading import Row

AUTHORS = {
    False: "faults that the authors of this repository applied to its algorithms",
    True: "broken algorithms of a package written without knowledge of the audit's implementation",
}
"""Description of the faults, by whether another package contains them."""


def audit_counts(rows: Iterable[Row]) -> dict[str, object]:
    """Count caught faults and false alarms; empty if no algorithm with a fault was audited."""
    rows = list(rows)
    if not rows:
        return {}
    broken = [row for row in rows if not row["correct"]]
    correct = [row for row in rows if row["correct"]]
    return {
        "sentence": " ".join(_sentence(broken, outside) for outside in AUTHORS).strip(),
        "classes": _counts_by("class", broken),
        "faults": _counts_by("fault", broken),
        "algorithms": _counts_by("algorithm", broken),
        "missed": [
            f"{algorithm_title(row['algorithm'])}: {row['fault']}"
            for row in broken
            if _is_missed(row)
        ],
        "commit": rows[0]["commit"],
        "correct": len(correct),
        "alarms": sum(row["caught"] for row in correct),
        "correct_algorithms": _counts_of_correct(correct),
    }


def _counts_of_correct(rows: list[Row]) -> list[dict[str, object]]:
    """Count audits of correct algorithms with a finding, and inconclusive ones, by algorithm."""
    groups = grouped(rows, lambda row: algorithm_title(row["algorithm"]))
    return [
        {
            "name": name,
            "audits": len(group),
            "alarms": sum(row["caught"] for row in group),
            "inconclusive": sum(row["verdict"] == "inconclusive" for row in group),
        }
        for name, group in groups.items()
    ]


def _is_named(row: Row) -> bool:
    """Return True if the audit was inconclusive and named the faulty item."""
    return not row["caught"] and row["inconclusive"]


def _is_missed(row: Row) -> bool:
    return row["meaningful"] and not row["caught"] and not _is_named(row)


def _sentence(broken: list[Row], outside: bool) -> str:
    """Describe the numbers of caught and missed faults in one sentence; empty without faults."""
    serious = [r for r in broken if r["meaningful"] and r["outside"] == outside]
    if not serious:
        return ""
    caught = sum(row["caught"] for row in serious)
    undecided = sum(map(_is_named, serious))
    missed = len(serious) - caught - undecided
    return (
        f"Audits caught {caught} of {len(serious)} {AUTHORS[outside]}. In {undecided} cases the "
        f"audit was inconclusive and named the faulty item, and {missed} faults were missed."
    )


def _counts_by(key: str, rows: list[Row]) -> list[dict[str, object]]:
    return [
        _counts(algorithm_title(name) if key == "algorithm" else name, group)
        for name, group in grouped(rows, itemgetter(key)).items()
    ]


def _counts(name: str, rows: list[Row]) -> dict[str, object]:
    meaningful = [row for row in rows if row["meaningful"]]
    caught = [row for row in meaningful if row["caught"]]
    minor = [row for row in rows if not row["meaningful"]]
    return {
        "name": name,
        "caught": f"{len(caught)} of {len(meaningful)}",
        "all_caught": len(caught) == len(meaningful),
        "inconclusive": sum(map(_is_named, meaningful)),
        "missed": sum(map(_is_missed, meaningful)),
        "contradicted": sum("contradicted" in row["how"] for row in caught),
        "other_faults": f"{sum(row['caught'] for row in minor)} of {len(minor)}" if minor else "",
        "runs": max((row["runs"] for row in caught), default=""),
    }
