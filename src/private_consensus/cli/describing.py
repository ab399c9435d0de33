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


def _facts(name: str) -> dict[str, Any]:
    """Return the summary of an algorithm and the problems that it fits."""
    algorithm = algorithms.load(name)
    offers = {problem: problems.class_of(problem).offers for problem in problems.names()}
    return {
        "summary": summary_of(sys.modules[algorithm.__module__]),
        "problems": [key for key, has in offers.items() if all(map(has, algorithm.needs))],
    }


def _described(facts: Mapping[str, Any]) -> str:
    """Return the facts on an algorithm as lines of text."""
    fits_all = facts["problems"] == problems.names()
    return f"{facts['summary']}\nProblems: {'all' if fits_all else ', '.join(facts['problems'])}"


def list_names(options: Namespace) -> int:
    """Print algorithms, problems and prepared data; return 1 if two algorithms share a name."""
    from ..reproduction.data import PREPARATIONS

    methods: dict[str, dict[str, Any]] = {title: {} for title in KINDS}
    for name in algorithms.names():
        methods[_kind(name)][name] = _facts(name)
    problems_and_data = {
        "problem": {name: summary_of(problems.load(name)) for name in problems.names()},
        "prepared data": {name: p.because for name, p in PREPARATIONS.items()},
    }

    tables = {
        title: {name: _described(facts) for name, facts in rows.items()}
        for title, rows in methods.items()
    } | problems_and_data
    output = [table([title, ""], list(rows.items())) for title, rows in tables.items()]
    contents = methods | problems_and_data
    emit(options, {title.replace(" ", "_"): rows for title, rows in contents.items()}, *output)
    collisions = algorithms.collisions()
    for name, (used, *unused) in collisions.items():
        print_error(f"algorithm {name}: {used} is used, {', '.join(unused)} is not")
    return 1 if collisions else 0


def data(options: Namespace) -> int:
    """Print data sets with source, licence and checksum; return 1 if one was not found."""
    from ..reproduction.data.acquisition import Acquisition
    from ..reproduction.data.summary import summary

    cache = Path(options.cache)
    acquisition = Acquisition(source=options.source, mirror=options.mirror, cache=cache)
    acquisition.check()
    with progress("data sets"):
        rows = summary(acquisition)
    tables = [table([row["dataset"], row["title"]], _card(row)) for row in rows]
    replaced = sum(row["source"] == "surrogate" for row in rows)
    is_failure = replaced > 0 and options.source != "surrogate"
    lines = [f"Downloads: {cache}"]
    if is_failure:
        lines.append(
            f"{replaced} of {len(rows)} data sets are surrogates, since no source was reachable: "
            "allow downloads, or state a folder with the publishers' files by --mirror FOLDER"
        )
    emit(options, {"data_sets": rows, "cache": cache}, *tables, *lines)
    return 1 if is_failure else 0


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
