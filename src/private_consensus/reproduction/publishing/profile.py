"""List the jobs of a run with the largest CPU time, from the measurements of each job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from private_consensus.common.errors import InvalidInput, arguments
from private_consensus.common.secrets import redacted
from private_consensus.common.spreadsheets import markdown_table
from private_consensus.common.usage import read_usage, was_measured

TITLES = ("job", "wall s", "CPU s", "memory MB")
MOST_MEMORY = 1500
"""MB that a job asks a cluster for."""
LONGEST_CELL = 60.0
"""CPU-seconds above which a cell makes the longest chain of a run longer."""


def jobs(folder: str | Path) -> list[dict[str, Any]]:
    """Return all jobs with wall and CPU time, in descending order of CPU time."""
    expected = "a folder of results with timings"
    folder = arguments.path("run", folder, expected)
    files = filter(was_measured, (folder / "timings").glob("*.tsv"))
    rows = [dict(zip(TITLES, _numbers(file), strict=True)) for file in files]
    if not rows:
        raise InvalidInput("run", redacted(str(folder)), expected)
    return sorted(rows, key=lambda row: (-row["CPU s"], row["job"]))


def _numbers(file: Path) -> tuple[str, float, float, int]:
    used = read_usage(file)
    return file.stem, round(used["s"], 1), round(used["cpu_time"], 1), round(used["max_rss"])


def profile_table(folder: str | Path, count: int = 10) -> str:
    """Format the jobs with the largest CPU time as a Markdown table.

    Parameters
    ----------
    folder : path
        Results of a run, with timings.
    count : int
        Maximum number of jobs.

    Returns
    -------
    str
        The table; its last row has the totals.
    """
    rows = [tuple(row.values()) for row in jobs(folder)]
    _, wall, cpu, memory = zip(*rows, strict=True)
    total = (f"all {len(rows)}", round(sum(wall), 1), round(sum(cpu), 1), max(memory))
    return markdown_table(TITLES, [map(str, row) for row in (*rows[:count], total)])


def beyond_limits(folder: str | Path) -> list[str]:
    """Return one sentence per job above `MOST_MEMORY` and per cell above `LONGEST_CELL`."""
    sentences = []
    for row in jobs(folder):
        if row["memory MB"] > MOST_MEMORY:
            sentences.append(f"{row['job']} held {row['memory MB']} MB, above {MOST_MEMORY}")
        if _is_cell(row["job"], folder) and row["CPU s"] > LONGEST_CELL:
            sentences.append(f"{row['job']} took {row['CPU s']} CPU-s, above {LONGEST_CELL:g}")
    return sentences


def _is_cell(job: str, folder: str | Path) -> bool:
    experiment, _, algorithm = job.partition(".")
    return Path(folder, "runs", experiment, f"{algorithm}.parquet").is_file()
