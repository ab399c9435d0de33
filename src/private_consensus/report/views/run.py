"""Content of the page of a run: commit, versions and wall times."""

from __future__ import annotations

from collections.abc import Iterable

from ..formats import duration
from ..reading import Results, Row

LISTED_JOBS = 10
"""Number of longest jobs in the table."""


def page(results: Results) -> dict[str, object]:
    """Collect the content of the page."""
    return {
        "commit": results.commit,
        "seed": results.seed,
        "versions": results.versions,
        "jobs": jobs(results.timings),
    }


def jobs(timings: Iterable[Row]) -> dict[str, object]:
    """List the jobs with the largest wall times, with total time and peak memory."""
    rows = sorted(timings, key=lambda row: (-row["seconds"], row["job"]))
    return {
        "first": rows[:LISTED_JOBS],
        "count": len(rows),
        "total": duration(sum(row["seconds"] for row in rows)),
        "peak": round(max((row["memory"] for row in rows), default=0)),
    }
