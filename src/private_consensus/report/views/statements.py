"""Content of the page of statements: verdicts, computations, and errata with their corrections."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from operator import itemgetter

from private_consensus.common.grouping import grouped
from private_consensus.reproduction.experiments.schema import cited

from ..formats import words
from ..names import algorithm_title
from ..reading import Results, Row
from .verdicts import ICONS

SEVERITIES = {
    "breaks": "breaks a guarantee", "argument": "proof of a guarantee", "proof": "proof",
    "noise": "excess noise", "ambiguous": "ambiguous", "misprint": "misprint",
}  # fmt: skip
"""Severity of an erratum to its name in the report."""
WITH_EFFECT = ("breaks", "argument")
"""Severities of errata whose effect on the figures is stated."""


def page(results: Results) -> dict[str, object]:
    """Collect the content of the page of statements."""
    papers = by_paper(results)
    statements = [statement for paper in papers for statement in paper["statements"]]
    slips = Counter(SEVERITIES[row["severity"]] for row in results.statements if row["erratum"])
    return {"papers": papers, "verdicts": counts(statements), "slips": slips}


def counts(rows: Iterable[Row]) -> list[dict[str, object]]:
    """Count the statements by verdict."""
    numbers = Counter(row["verdict"] for row in rows)
    return [
        {"verdict": verdict, "icon": icon, "count": numbers[verdict]}
        for verdict, icon in ICONS.items()
        if numbers[verdict]
    ]


def by_paper(results: Results) -> list[dict]:
    """Group the statements by paper, in the order of their rows, each with its errata.

    Papers that were not run are listed by their key.
    """
    papers = {key: paper["paper"] for key, paper in results.papers.items()}
    groups = []
    for key, rows in grouped(results.statements, itemgetter("paper")).items():
        statements = [
            _statement(same[0]) | {"errata": [_erratum(row, results) for row in _slips(same)]}
            for same in grouped(rows, itemgetter("number")).values()
        ]
        groups.append({
            "key": key,
            "name": cited(papers[key]) if key in papers else key,
            "title": papers[key]["title"] if key in papers and papers[key]["authors"] else "",
            "counts": counts(statements),
            "statements": statements,
        })  # fmt: skip
    return groups


def by_claim(rows: Iterable[Row]) -> dict[str, list[dict[str, object]]]:
    """Map each claim to the statements that refer to it."""
    statements = defaultdict(list)
    for same in grouped(rows, itemgetter("paper", "number")).values():
        for line in same[0]["claims"].splitlines():
            statements[line.partition(": ")[0]].append(_statement(same[0]))
    return statements


def _slips(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that describe an erratum."""
    return [row for row in rows if row["erratum"]]


def _statement(row: Row) -> dict[str, object]:
    return {
        **row,
        "anchor": f"{row['paper']}-{row['number'].lower().replace(' ', '-').replace('.', '-')}",
        "icon": ICONS[row["verdict"]],
    }


def _erratum(row: Row, results: Results) -> dict[str, object]:
    """Describe an erratum, with the affected figures and the corrected variants."""
    names = _split_names(row["repaired"]) if row["severity"] in WITH_EFFECT else []
    affected = _split_names(row["affects"]) if row["severity"] in WITH_EFFECT else []
    return {
        **row,
        "severity": SEVERITIES[row["severity"]],
        "figures": _figures(affected, results.papers),
        "corrections": [_correction(name, results) for name in names],
    }


def _figures(names: Iterable[str], papers: Mapping[str, Row]) -> list[str]:
    """Return the figures with a curve of one of some algorithms or variants."""
    return [
        name
        for paper in papers.values()
        for name, figure in paper["figures"].items()
        if any(
            curve["method"] in names or f"{curve['method']}.{curve['variant']}" in names
            for panel in figure.get("panels", [])
            for curve in panel["curves"]
        )
    ]


def _correction(name: str, results: Results) -> dict[str, object]:
    """Describe a corrected variant: its verdicts, and the figures that show it."""
    algorithm, _, variant = name.partition(".")
    verdicts = dict.fromkeys(
        row["verdict"]
        for row in results.privacy
        if (row["algorithm"], row["variant"]) == (algorithm, variant)
    )
    return {
        "name": f"{algorithm_title(algorithm)}, {words(variant)}",
        "verdict": "; ".join(verdicts) or "not run at this scale",
        "figures": _figures([name], results.papers),
    }


def _split_names(text: str) -> list[str]:
    return [name for name in text.split("; ") if name]
