"""Compare runs with the reference."""

from __future__ import annotations

from argparse import Namespace

from .output import emit, progress


def compare(options: Namespace) -> int:
    """Print the differences of a run to the reference; return 1 for differences, else 0."""
    from .. import publishing

    with progress("comparison"):
        result = publishing.compare(options.run, options.reference, exact=options.exact)
    lists = {key: getattr(result, key) for key in ("changed", "missing", "verdicts")}
    counts = ", ".join(f"{len(lines)} {key}" for key, lines in lists.items())
    manner = "to a relative 1e-6" if options.exact else "within Monte-Carlo error"
    lines = [f"{key}: {line}" for key, listed in lists.items() for line in listed]
    lines.append(f"{result.compared} values compared {manner}: {counts}")
    contents = {**lists, "compared": result.compared, "same": result.same}
    emit(options, contents, *lines)
    return 0 if result.same else 1
