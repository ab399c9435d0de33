"""Times of the jobs of a full run.

    python -m benchmarks.jobs results/paper 1265     wall time of the whole run in seconds

stores them in ``benchmarks/measured/jobs.jsonl``; ``make docs`` writes their tables.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from private_consensus.common.spreadsheets import markdown_table

from . import measuring

KEPT = measuring.ROOT / "benchmarks" / "measured" / "jobs.jsonl"
TITLES = ("job", "wall s", "CPU s", "memory MB")
HEAVIEST = 8
"""Number of jobs in the table of the heaviest jobs."""
SMALL = 10.0
"""CPU-seconds below which groups of jobs share one row."""


def jobs(folder: Path) -> list[dict[str, Any]]:
    """Return all jobs of a run with wall and CPU time, in descending order of CPU time."""
    rows = []
    for file in (folder / "logs").glob("*.tsv"):
        if not file.stat().st_size:  # the job has failed
            continue
        usage = pl.read_csv(file, separator="\t", glob=False).row(0, named=True)
        times = round(usage["s"], 1), round(usage["cpu_time"], 1), round(usage["max_rss"])
        rows.append(dict(zip(TITLES, (file.stem, *times), strict=True)))
    return sorted(rows, key=lambda row: (-row["CPU s"], row["job"]))


def store(folder: Path, wall: float | None) -> None:
    """Store the jobs of a full run.

    Parameters
    ----------
    folder : path
        Results of the run.
    wall : float, optional
        Wall time of the run, in seconds.
    """
    commit = subprocess.check_output(["git", "rev-parse", "--short=8", "HEAD"], text=True).strip()
    times = {"commit": commit, "cores": os.cpu_count(), "wall": wall, "jobs": jobs(folder)}
    measuring.keep(KEPT, {**measuring.here(), **times}, [])


def seconds(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return the time of each job; a job with several processes takes less than its CPU time."""
    return {row["job"]: min(row["CPU s"], row["wall s"]) for row in rows}


def tables(run: Mapping[str, Any]) -> str:
    """Return the totals, groups of jobs and the heaviest jobs of a full run."""
    rows = run["jobs"]
    heaviest = [[f"`{row['job']}`", *(f"{row[key]:,.0f}" for key in TITLES[1:])] for row in rows]
    return "\n".join(
        [
            markdown_table(("jobs", *TITLES[1:], "measured"), [_totals(run)]),
            markdown_table(("jobs", "number", "CPU s"), _groups(rows)),
            markdown_table(TITLES, heaviest[:HEAVIEST]),
        ]
    )


def _totals(run: Mapping[str, Any]) -> list[str]:
    cpu = sum(row["CPU s"] for row in run["jobs"])
    memory = max(row["memory MB"] for row in run["jobs"])
    wall = f"{run['wall']:,.0f}" if run["wall"] else "not measured"
    origin = f"{run['day']}, {run['cores']} cores of {run['machine']}, commit {run['commit']}"
    return [f"{len(run['jobs'])}", wall, f"{cpu:,.0f}", f"{memory:,}", origin]


def _groups(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return number and CPU time of the jobs whose names have equal first words."""
    groups = defaultdict(list)
    for row in rows:
        groups[f"`{re.split('[._]', row['job'])[0]}`"].append(row["CPU s"])
    for name in [name for name, times in groups.items() if sum(times) < SMALL]:
        groups["other jobs"] += groups.pop(name)
    ordered = sorted(groups.items(), key=lambda group: (group[0] == "other jobs", -sum(group[1])))
    return [[name, str(len(times)), f"{sum(times):,.0f}"] for name, times in ordered]


if __name__ == "__main__":
    store(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else None)
