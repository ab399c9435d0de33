"""The heaviest jobs of a run, from Snakemake's benchmark files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import InvalidInput

TITLES = ("job", "wall s", "CPU s", "memory MB")


def jobs(folder: str | Path) -> list[dict[str, Any]]:
    """Every job with its wall and CPU time, those first that take most of the latter."""
    files = sorted(Path(folder, "timings").glob("*.tsv"))
    if not files:
        raise InvalidInput("run", str(folder), "a folder of results with timings")
    found = [_job(file) for file in files]
    return sorted(found, key=lambda row: (-row["CPU s"], row["job"]))


def heaviest(folder: str | Path, count: int = 10) -> list[dict[str, Any]]:
    """The jobs that cost most."""
    return jobs(folder)[:count]


def profile_table(after: str | Path, before: str | Path | None = None, count: int = 10) -> str:
    """Markdown: the heaviest jobs of a run, or of two, ranked by the first one named last."""
    rows = jobs(before or after)
    first = rows[:count]
    if before is None:
        lines = [_line(TITLES), "|" + "---|" * len(TITLES)]
        lines += [_line(row[title] for title in TITLES) for row in [*first, _total(rows)]]
        return "\n".join(lines) + "\n"
    later_rows = jobs(after)
    later = {row["job"]: row for row in later_rows}
    titles = ("job", "CPU s before", "CPU s after", "wall s before", "wall s after")
    lines = [_line(titles), "|" + "---|" * len(titles)]
    pairs = [(row, later.get(row["job"])) for row in first]
    for one, two in [*pairs, (_total(rows), _total(later_rows))]:
        two = two or dict.fromkeys(TITLES, "gone")
        lines.append(_line((one["job"], one["CPU s"], two["CPU s"], one["wall s"], two["wall s"])))
    return "\n".join(lines) + "\n"


def _job(file: Path) -> dict[str, Any]:
    rows = list(csv.DictReader(file.read_text().splitlines(), delimiter="\t"))
    most = lambda key: max((_number(row.get(key)) for row in rows), default=0.0)  # noqa: E731
    # A job too short to be sampled has no CPU time; its wall time bounds it.
    wall = most("s")
    return {
        "job": file.stem,
        "wall s": round(wall, 1),
        "CPU s": round(most("cpu_time") or wall, 1),
        "memory MB": round(most("max_rss")),
    }


def _number(text: str | None) -> float:
    try:
        return float(text or "")
    except ValueError:
        return 0.0


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
