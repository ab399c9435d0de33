"""Content of the page of theorems: numbered statements with verdicts and computations."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from operator import itemgetter

from private_consensus.common.grouping import grouped
from private_consensus.reproduction.experiments.schema import cited

from ..reading import Results, Row
from .verdicts import ICONS


def page(results: Results) -> dict[str, object]:
    """Collect the content of the page of theorems."""
    papers = {key: paper["paper"] for key, paper in results.papers.items()}
    return {"theorems": by_paper(results.theorems, papers), "verdicts": counts(results.theorems)}


def counts(rows: Iterable[Row]) -> list[dict[str, object]]:
    """Count the statements by verdict."""
    numbers = Counter(row["verdict"] for row in rows)
    return [
        {"verdict": verdict, "icon": icon, "count": numbers[verdict]}
        for verdict, icon in ICONS.items()
        if numbers[verdict]
    ]


def by_paper(rows: Iterable[Row], papers: Mapping[str, Row]) -> list[dict[str, object]]:
    """Group the statements by paper, in the order of their rows.

    Papers that were not run may be absent from ``papers``.
    """
    groups = grouped(rows, itemgetter("paper"))
    return [
        {
            "key": key,
            "name": cited(papers[key]) if key in papers else key,
            "title": papers[key]["title"] if key in papers and papers[key]["authors"] else "",
            "counts": counts(group),
            "statements": [_statement(row) for row in group],
        }
        for key, group in groups.items()
    ]


def by_claim(rows: Iterable[Row]) -> dict[str, list[dict[str, object]]]:
    """Map each claim to the numbered statements that refer to it."""
    statements = defaultdict(list)
    for row in rows:
        for line in row["claims"].splitlines():
            statements[line.partition(": ")[0]].append(_statement(row))
    return statements


def _statement(row: Row) -> dict[str, object]:
    return {
        **row,
        "anchor": f"{row['paper']}-{row['number'].lower().replace(' ', '-').replace('.', '-')}",
        "icon": ICONS[row["verdict"]],
    }
