"""What varies from run to run: wall times, versions, commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..formats import duration, number

SHOWN = 10
"""Heaviest jobs that are shown at once; the others are one click away."""


def jobs(timings: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Jobs, the longest first, and what they add up to."""
    rows = sorted(timings, key=lambda row: (-row["seconds"], row["job"]))
    shown = [
        {"job": row["job"], "time": duration(row["seconds"]),
         "memory": f"{number(round(row['memory']))} MB" if row["memory"] else "not measured"}
        for row in rows
    ]  # fmt: skip
    return {
        "first": shown[:SHOWN],
        "rest": shown[SHOWN:],
        "count": len(rows),
        "total": duration(sum(row["seconds"] for row in rows)),
        "peak": f"{number(round(max((row['memory'] for row in rows), default=0)))} MB",
    }
