"""List algorithms, problems and data sets, test statements, and compare runs with the reference."""

import inspect
import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from ..core import algorithms, problems
from .output import print_error, progress, show, table


def list_names(options: Namespace) -> int:
    """Print algorithms, problems and prepared data; return 1 if two algorithms share a name."""
    from ..reproduction.data import PREPARATIONS

    show(
        table(["algorithm", ""], [(name, _algorithm(name)) for name in algorithms.names()]),
        table(["problem", ""], [(n, summary_of(problems.load(n))) for n in problems.names()]),
        table(["prepared data", ""], [(name, p.because) for name, p in PREPARATIONS.items()]),
    )
    collisions = algorithms.collisions()
    for name, (used, *unused) in collisions.items():
        print_error(f"algorithm {name}: {used} is used, {', '.join(unused)} is not")
    return 1 if collisions else 0


def _algorithm(name: str) -> str:
    """Return the summary of an algorithm and the problems that it fits."""
    algorithm, names = algorithms.load(name), problems.names()
    fits = [n for n in names if all(map(problems.class_of(n).offers, algorithm.needs))]
    listed = "all" if fits == names else ", ".join(fits)
    return f"{summary_of(sys.modules[algorithm.__module__])}\nProblems: {listed}"


def summary_of(documented: object) -> str:
    """Return the first paragraph of a docstring in one line."""
    return " ".join((inspect.getdoc(documented) or "").partition("\n\n")[0].split())


def data(options: Namespace) -> int:
    """Print data sets with source, licence and checksum; return 1 if one was not found."""
    from ..reproduction.data.acquisition import Acquisition, summary

    acquisition = Acquisition(source=options.source)
    acquisition.check()
    with progress("data sets"):
        rows = summary(acquisition)
    show(*(table([row["dataset"], row["title"]], _card(row)) for row in rows))
    show(f"Downloads: {acquisition.cache}")
    replaced = sum(row["source"] == "surrogate" for row in rows)
    if replaced == 0 or options.source == "surrogate":
        return 0
    show(
        f"{replaced} of {len(rows)} data sets are surrogates, since no source was reachable: allow "
        "downloads, or name a folder with the publishers' files in PRIVATE_CONSENSUS_MIRROR"
    )
    return 1


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
    ]


def statement(options: Namespace) -> None:
    """Print the inequalities of a statement with their errata, or the list of all statements."""
    from ..reproduction.statements import COMPUTATIONS, compute, description_of

    if options.computation is None:
        rows = [(name, summary_of(function)) for name, function in COMPUTATIONS.items()]
        show(table(["statement", "computation"], rows))
        return
    with progress(f"statement {options.computation}"):
        inequalities = compute(options.computation)
    show(description_of(options.computation), *inequalities)


def compare(options: Namespace) -> int:
    """Print the differences of a run to the reference; return 1 for differences, else 0."""
    from .. import publishing

    with progress("comparison"):
        result = publishing.compare(options.run, options.reference, exact=options.exact)
    manner = "to a relative 1e-6" if options.exact else "within Monte-Carlo error"
    show(*result.lines)
    show(
        f"{result.compared} values compared {manner}: {result.changed} changed; rows: "
        f"{result.absent} absent, {result.new} new; {result.missing} tables and columns missing"
    )
    return 0 if result.same else 1
