"""Content of the page of a run: commit, versions and wall times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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


def seconds_of_figures(papers: Mapping[str, Row], timings: Iterable[Row]) -> dict[str, float]:
    """Sum the wall times of the jobs that each figure or table needs, in seconds.

    A figure of which no job was timed is left out.
    """
    seconds = {row["job"]: row["seconds"] for row in timings}
    totals = {}
    for paper in papers.values():
        for name, spec in {**paper["figures"], **paper.get("tables", {})}.items():
            timed = [seconds[job] for job in _jobs(name, spec) if job in seconds]
            if timed:
                totals[name] = sum(timed)
    return totals


FIGURE_JOBS = ("figure", "table")
"""Jobs whose log files are named by a figure or table."""


def _jobs(name: str, spec: Row) -> set[str]:
    """Return the names of the jobs of a figure or table: its cells, and its drawing."""
    cells = {
        f"{curve.get('experiment') or panel['experiment']}.{curve['method']}"
        for panel in spec.get("panels", ())
        for curve in panel["curves"]
    } | {
        f"{block['experiment']}.{method['method']}"
        for block in spec.get("blocks", ())
        for method in block["methods"]
    }
    return cells | {f"{job}.{name}" for job in FIGURE_JOBS}
