"""List algorithms, problems and data sets."""

from __future__ import annotations

import inspect
import math
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core import algorithms, problems
from .output import emit, print_error, progress, table
from .settings import example_of

KINDS = ("private algorithm", "algorithm without privacy", "analysis")
"""Tables of algorithms in a list."""


def _kind(name: str) -> str:
    """Return the table of an algorithm; an analysis runs like an algorithm."""
    if name in algorithms.ANALYSES:
        return "analysis"
    is_private = math.isfinite(example_of(name).get("epsilon", 1.0))
    return "private algorithm" if is_private else "algorithm without privacy"


def list_names(options: Namespace) -> int:
    """Print algorithms, problems and prepared data; return 1 if two algorithms share a name."""
    from ..reproduction.data import PREPARATIONS

    summaries: dict[str, dict[str, str]] = {title: {} for title in KINDS}
    for name in algorithms.names():
        text = summary_of(sys.modules[algorithms.load(name).__module__])
        summaries[_kind(name)][name] = text
    tables = {
        **summaries,
        "problem": {name: summary_of(problems.load(name)) for name in problems.names()},
        "prepared data": {name: p.because for name, p in PREPARATIONS.items()},
    }
    unusable, collisions = algorithms.unusable(), algorithms.collisions()

    contents = {title.replace(" ", "_"): rows for title, rows in tables.items()}
    output = [table([title, ""], list(rows.items())) for title, rows in tables.items()]
    if unusable:
        output.append(table(["unused entry point", "reason"], list(unusable.items())))
    emit(options, {**contents, "unusable": unusable}, *output)
    for name, reason in collisions.items():
        print_error(f"entry point {name}: {reason}")
    return 1 if collisions else 0


def data(options: Namespace) -> int:
    """Print data sets with source, licence and checksum; return 1 if one was not found."""
    from ..reproduction.data import Acquisition, summary

    cache = Path(options.cache)
    acquisition = Acquisition(source=options.source, mirror=options.mirror, cache=cache)
    acquisition.check()
    with progress("data sets"):
        rows = summary(acquisition)
    tables = [table([row["dataset"], row["title"]], _card(row)) for row in rows]
    replaced = sum(row["source"] == "surrogate" for row in rows)
    lines = [f"Downloads: {cache}"]
    if replaced:
        hint = "--mirror FOLDER reads the publishers' files"
        lines.append(f"{replaced} of {len(rows)} data sets are surrogates; {hint}")
    emit(options, {"data_sets": rows, "cache": cache}, *tables, *lines)
    return 1 if replaced and options.source != "surrogate" else 0


def _card(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    warning = "SURROGATE, not the real data; " if row["source"] == "surrogate" else ""
    return [
        ("source", f"{row['source']}: {row['where']}, {row['version']}"),
        ("reason", f"{warning}{row['because']}"),
        ("rows, columns", f"{row['rows']:,}, {row['columns']:,}"),
        ("label", f"{row['label']}: {row['label_rate']:.1%}"),
        ("licence", row["licence"]),
        ("needs", row["needs"]),
        ("SHA-256", row["checksum"]),
        ("prepared as", ", ".join(row["preparations"])),
        ("search time", f"{row['seconds']:.1f} s"),
    ]


def summary_of(documented: object) -> str:
    """Return the first paragraph of a docstring in one line."""
    return " ".join((inspect.getdoc(documented) or "").partition("\n\n")[0].split())
