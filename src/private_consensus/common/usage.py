"""Measure time and memory of a process and write them to a file."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from .provenance import write_text
from .readable import readable

TITLES = ("s", "cpu_time", "max_rss")
"""Columns of the table: wall seconds, CPU seconds, and peak memory in MB."""
_BYTES = 1 if sys.platform == "darwin" else 1024
"""Bytes per unit in which the operating system counts memory."""


@contextmanager
def measured(path: str | Path | None) -> Generator[None]:
    """Write time and memory of this process if the context ends without an error.

    CPU seconds and peak memory are the counts of the operating system since the start of this
    process, with imports and with finished child processes. Wall seconds are those of the context.
    The file has one row with the columns ``TITLES``; without a path, no file is written.
    """
    begin = time.perf_counter()
    yield
    if path is not None:
        row = (time.perf_counter() - begin, *used())
        lines = ("\t".join(TITLES), "\t".join(f"{number:.2f}" for number in row))
        write_text(path, "\n".join(lines) + "\n")


def used() -> tuple[float, float]:
    """Return CPU seconds and peak memory in MB of this process and its finished children."""
    usages = [
        resource.getrusage(owner) for owner in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    seconds = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    return seconds, max(usage.ru_maxrss for usage in usages) * _BYTES / 2**20


def read_usage(path: str | Path) -> dict[str, float]:
    """Read a file of :func:`measured` by column; raises the errors of :func:`.readable`."""
    with readable(path):
        titles, row = Path(path).read_text(encoding="utf-8").splitlines()
        values = dict(zip(titles.split("\t"), map(float, row.split("\t")), strict=True))
        return {title: values[title] for title in TITLES}


def was_measured(path: Path) -> bool:
    """Return True if a job has ended normally, so that its file of :func:`measured` has a row."""
    return path.is_file() and path.stat().st_size > 0
