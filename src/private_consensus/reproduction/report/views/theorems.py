"""The theorems: every numbered statement by paper, with its verdict and what was computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ..reading import Results
from .verdicts import LOOKS

Row = Mapping[str, Any]


BESIDE = {"observers": "Methods for single observers"}
"""Titles of groups that are no paper of the reproduction."""


def page(results: Results) -> dict[str, Any]:
    """Collect the content of the page of theorems."""
    papers = {key: paper["paper"] for key, paper in results.papers.items()}
    return {"theorems": by_paper(results.theorems, papers), "verdicts": counts(results.theorems)}


def counts(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Count the statements by verdict."""
    found = Counter(row["verdict"] for row in rows)
    return [
        {"verdict": verdict, "look": look, "count": found[verdict]}
        for verdict, look in LOOKS.items()
        if found[verdict]
    ]


def by_paper(rows: Iterable[Row], papers: Mapping[str, Row]) -> list[dict[str, Any]]:
    """Group the theorems by paper, in the order of their rows.

    Parameters
    ----------
    rows : iterable of rows
        One row per numbered statement.
    papers : mapping
        Key to paper; papers that were not run may be absent.

    Returns
    -------
    list of dict
        One group per paper in ``rows``.
    """
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["paper"], []).append(row)
    return [
        {
            "key": key,
            "title": " ".join(filter(None, _name(papers.get(key, {}), key))),
            "statements": [_statement(row) for row in group],
        }
        for key, group in groups.items()
    ]


def _name(paper: Row, key: str) -> tuple[str, str]:
    return paper.get("number", ""), paper.get("title", BESIDE.get(key, key))


def _statement(row: Row) -> dict[str, Any]:
    return {
        "anchor": f"{row['paper']}-{row['number'].lower().replace(' ', '-').replace('.', '-')}",
        "number": row["number"],
        "says": row["says"],
        "verdict": row["verdict"],
        "look": LOOKS[row["verdict"]],
        "because": row["because"],
        "errata": [name for name in row["errata"].split("; ") if name],
        "claims": row["claims"].splitlines(),
        "parts": row["parts"].splitlines(),
        "lines": " ".join(row["lines"].splitlines()),
        "command": f"private-consensus theorem {row['computation']}",
    }
