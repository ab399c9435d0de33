"""Rank results of the comparison, compare runs with the reference, and list slow jobs."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from ..common.errors import arguments
from .output import emit, progress, table
from .settings import prepared_data

DESIGN = "config/comparison.yaml"


def rank(options: Namespace) -> None:
    """Print the ranking of an algorithm or of submitted results among all methods."""
    from ..comparison.ranking import HEADS, ranked

    with progress("") as update:
        result = ranked(
            options.entries, _design(options.design), options.scale,
            against=options.against, out=options.out,
            prepared=lambda names: prepared_data(names, options),
            progress=lambda problem: update(description=problem),
        )  # fmt: skip
    rows = [dict(zip(HEADS, row, strict=True)) for row in result.rows]
    contents = {"ranking": rows, "caption": result.caption, "not_entered": result.absent}
    lines = [f"not entered: {line}" for line in result.absent]
    emit(options, contents, *lines, table(HEADS, result.rows, result.caption))


def _design(path: str | None) -> str:
    """Return the file of the design: the requested file, else that of this folder or package."""
    from ..reproduction.studies.places import HOME

    if path is not None or Path(DESIGN).is_file():
        return path or DESIGN
    return str(HOME / DESIGN)


def compare(options: Namespace) -> int:
    """Print the differences of a run to the reference; return 1 for differences, else 0."""
    from .. import publishing

    with progress("comparison"):
        result = publishing.compare(options.run, options.reference, exact=options.exact)
    lists = {key: getattr(result, key) for key in ("machines", "changed", "missing", "verdicts")}
    counts = ", ".join(f"{len(lines)} {key}" for key, lines in lists.items() if key != "machines")
    manner = "to a relative 1e-6" if options.exact else "within Monte-Carlo error"
    lines = [f"{key}: {line}" for key, listed in lists.items() for line in listed]
    lines.append(f"{result.compared} values compared {manner}: {counts}")
    contents = {**lists, "compared": result.compared, "same": result.same}
    emit(options, contents, *lines)
    return 0 if result.same else 1


def profile(options: Namespace) -> None:
    """Print the jobs of a run with the largest CPU time, and those beyond their limits."""
    from .. import publishing

    arguments.whole("--count", options.count, 1)
    jobs = publishing.profile_table(options.run, options.count)
    sentences = publishing.beyond_limits(options.run)
    emit(options, {"table": jobs, "beyond_limits": sentences}, jobs.rstrip("\n"), *sentences)
