"""Commit, versions, wall times, and the tested faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..formats import duration, number
from ..reading import Results

SHOWN = 10
"""Number of longest jobs that are listed; the others are folded."""


def page(results: Results) -> dict[str, Any]:
    """Collect the content of the page of the run."""
    return {
        "commit": results.commit,
        "versions": results.versions,
        "jobs": jobs(results.timings),
        "faults": results.faults,
    }


def jobs(timings: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """List the jobs by decreasing wall time, with their total."""
    rows = sorted(timings, key=lambda row: (-row["seconds"], row["job"]))
    formatted = [
        {"job": row["job"], "time": duration(row["seconds"]),
         "memory": f"{number(round(row['memory']))} MB" if row["memory"] else "not measured"}
        for row in rows
    ]  # fmt: skip
    return {
        "first": formatted[:SHOWN],
        "rest": formatted[SHOWN:],
        "count": len(rows),
        "total": duration(sum(row["seconds"] for row in rows)),
        "peak": f"{number(round(max((row['memory'] for row in rows), default=0)))} MB",
    }


def seconds_of_figures(
    papers: Mapping[str, Mapping[str, Any]], timings: Iterable[Mapping[str, Any]]
) -> dict[str, float]:
    """Sum the wall times of the cells that each figure or table needs.

    Parameters
    ----------
    papers : mapping
        Key to paper, with its figures and tables.
    timings : iterable of rows
        Columns ``job`` and ``seconds``.

    Returns
    -------
    dict of str to float
        Seconds per figure or table; absent if none of its cells was timed.
    """
    seconds = {row["job"]: row["seconds"] for row in timings}
    totals = {}
    for paper in papers.values():
        for name, spec in {**paper["figures"], **paper.get("tables", {})}.items():
            timed = [seconds[job] for job in _jobs(name, spec) if job in seconds]
            if timed:
                totals[name] = sum(timed)
    return totals


OF_FIGURES = ("figure", "table", "summarize_partition", "compute_views")
"""Jobs that are named by the figure or table that they are for."""


def _jobs(name: str, spec: Mapping[str, Any]) -> set[str]:
    """Return the jobs of a figure or table: its cells, and its drawing."""
    cells = {
        f"{curve.get('experiment') or panel['experiment']}.{curve['method']}"
        for panel in spec.get("panels", ())
        for curve in panel["curves"]
    } | {
        f"{block['experiment']}.{method['method']}"
        for block in spec.get("blocks", ())
        for method in block["methods"]
    }
    return cells | {f"{job}.{name}" for job in OF_FIGURES}
