"""List the jobs of a run with the largest CPU time, from the measurements of each job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from private_consensus.common.errors import InvalidInput, require
from private_consensus.common.secrets import redacted
from private_consensus.common.usage import read_usage, was_measured

TITLES = ("job", "wall s", "CPU s", "memory MB")
MOST_MEMORY = 1500
"""MB that a job asks a cluster for."""
LONGEST_CELL = 60.0
"""CPU-seconds above which a cell makes the longest chain of a run longer."""


def jobs(folder: str | Path) -> list[dict[str, Any]]:
    """Return all jobs with wall and CPU time, in descending order of CPU time."""
    is_path = isinstance(folder, str | Path) and "\0" not in str(folder)
    require(is_path, "run", folder, "a folder of results with timings")
    files = sorted(filter(was_measured, Path(folder, "timings").glob("*.tsv")))
    if not files:
        raise InvalidInput("run", redacted(str(folder)), "a folder of results with timings")
    rows = [_job(file) for file in files]
    return sorted(rows, key=lambda row: (-row["CPU s"], row["job"]))


def heaviest(folder: str | Path, count: int = 10) -> list[dict[str, Any]]:
    """Return the jobs with the largest CPU time.

    Parameters
    ----------
    folder : path
        Results of a run, with timings.
    count : int
        Maximum number of jobs.

    Returns
    -------
    list of dict
        Rows of :func:`jobs`, in descending order of CPU time.
    """
    return jobs(folder)[:count]


def profile_table(after: str | Path, before: str | Path | None = None, count: int = 10) -> str:
    """Format the jobs with the largest CPU time of one or two runs as a Markdown table.

    Parameters
    ----------
    after : path
        Results of a run, with timings.
    before : path, optional
        Results of an earlier run. Jobs are then ranked by the larger of both CPU times.
    count : int
        Maximum number of jobs.

    Returns
    -------
    str
        The table; its last row has the totals.
    """
    if before is not None:
        return _two_runs(jobs(before), jobs(after), count)
    rows = jobs(after)
    lines = [_line(row[title] for title in TITLES) for row in [*rows[:count], _total(rows)]]
    return _table(TITLES, lines)


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


def _two_runs(before: list[dict[str, Any]], after: list[dict[str, Any]], count: int) -> str:
    earlier, later = ({row["job"]: row for row in rows} for rows in (before, after))
    none = dict.fromkeys(TITLES, "-")

    def line(name: str, earlier_row: Mapping[str, Any], later_row: Mapping[str, Any]) -> str:
        """Format the row of one job in both runs.

        Parameters
        ----------
        name : str
            Name of the job.
        one, two : mapping
            CPU and wall time (s) in the earlier and in the later run.
        """
        return _line(
            (
                name,
                earlier_row["CPU s"],
                later_row["CPU s"],
                earlier_row["wall s"],
                later_row["wall s"],
            )
        )

    def heavier(name: str) -> float:
        return max(rows[name]["CPU s"] for rows in (earlier, later) if name in rows)

    names = sorted(earlier.keys() | later.keys(), key=lambda name: (-heavier(name), name))
    lines = [line(n, earlier.get(n, none), later.get(n, none)) for n in names[:count]]
    lines.append(line(f"all {len(before)} and {len(after)}", _total(before), _total(after)))
    return _table(("job", "CPU s before", "CPU s after", "wall s before", "wall s after"), lines)


def _table(titles: Iterable[str], lines: Iterable[str]) -> str:
    titles = list(titles)
    return "\n".join([_line(titles), "|" + "---|" * len(titles), *lines]) + "\n"


def _job(file: Path) -> dict[str, Any]:
    used = read_usage(file)
    return {
        "job": file.stem,
        "wall s": round(used["s"], 1),
        "CPU s": round(used["cpu_time"], 1),
        "memory MB": round(used["max_rss"]),
    }


def _total(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    rows = list(rows)
    return {
        "job": f"all {len(rows)}",
        "wall s": round(sum(row["wall s"] for row in rows), 1),
        "CPU s": round(sum(row["CPU s"] for row in rows), 1),
        "memory MB": max((row["memory MB"] for row in rows), default=0),
    }


def _line(cells: Iterable[Any]) -> str:
    return f"| {' | '.join(map(str, cells))} |"
