"""List the jobs of a run with the largest CPU time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from private_consensus.common.errors import arguments, require
from private_consensus.common.secrets import redacted
from private_consensus.common.spreadsheets import markdown_table
from private_consensus.common.usage import read_usage, was_measured

TITLES = ("job", "wall s", "CPU s", "memory MB")
MEMORY_LIMIT_MB = 1500
"""Peak memory that a job may use, in MB."""
CELL_CPU_LIMIT_S = 60.0
"""CPU time that a cell may use, in seconds; a longer cell delays the end of a run."""


def jobs(folder: str | Path) -> list[dict[str, Any]]:
    """Return all jobs with wall and CPU time, in descending order of CPU time."""
    expected = "a folder of results with timings"
    folder = arguments.path("run", folder, expected)
    files = filter(was_measured, (folder / "timings").glob("*.tsv"))
    rows = [dict(zip(TITLES, _numbers(file), strict=True)) for file in files]
    require(bool(rows), "run", redacted(str(folder)), expected)
    return sorted(rows, key=lambda row: (-row["CPU s"], row["job"]))


def _numbers(file: Path) -> tuple[str, float, float, int]:
    usage = read_usage(file)
    return file.stem, round(usage["s"], 1), round(usage["cpu_time"], 1), round(usage["max_rss"])


def profile_table(folder: str | Path, count: int = 10) -> str:
    """Format the jobs with the largest CPU time as a Markdown table.

    Parameters
    ----------
    folder : path
        Results of a run, with timings.
    count : int, default 10
        Largest number of listed jobs.

    Returns
    -------
    str
        Table in descending order of CPU time; the last row has the totals.
    """
    rows = [tuple(row.values()) for row in jobs(folder)]
    _, wall, cpu, memory = zip(*rows, strict=True)
    total = (f"all {len(rows)}", round(sum(wall), 1), round(sum(cpu), 1), max(memory))
    return markdown_table(TITLES, [map(str, row) for row in (*rows[:count], total)])


def beyond_limits(folder: str | Path) -> list[str]:
    """Return one sentence per job above the memory limit and per cell above the CPU time limit."""
    sentences = []
    for row in jobs(folder):
        if row["memory MB"] > MEMORY_LIMIT_MB:
            sentences.append(f"{row['job']} used {row['memory MB']} MB, above {MEMORY_LIMIT_MB} MB")
        if _is_cell(row["job"], folder) and row["CPU s"] > CELL_CPU_LIMIT_S:
            sentences.append(
                f"{row['job']} took {row['CPU s']} CPU-s, above {CELL_CPU_LIMIT_S:g} CPU-s"
            )
    return sentences


def _is_cell(job: str, folder: str | Path) -> bool:
    experiment, _, algorithm = job.partition(".")
    return Path(folder, "runs", experiment, f"{algorithm}.parquet").is_file()
