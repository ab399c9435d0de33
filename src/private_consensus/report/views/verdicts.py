"""Claims and their verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ...claims import HELD, IN_PART, NOT_HELD, UNTESTED
from ..formats import exponential, interval, number, region
from .figures import short

Row = Mapping[str, Any]

LOOKS = {HELD: "held", IN_PART: "part", NOT_HELD: "not", UNTESTED: "open"}
"""Verdict to the name of its shape and colour, in the order in which verdicts are counted."""

MEANINGS = {
    HELD: "every part of the claim is confirmed",
    IN_PART: "some parts are confirmed, some are not",
    NOT_HELD: "no part is confirmed and at least one is contradicted",
    UNTESTED: "the runs do not suffice, or what the claim needs is not given",
}

RATIOS = {
    "decreasing", "increasing", "falls", "flat", "below", "ratio", "differs", "private", "tight",
}  # fmt: skip
"""Kinds of test whose statistic is the logarithm of a ratio."""


def look(verdict: str) -> str:
    """Name of the shape and colour of a verdict."""
    return LOOKS.get(verdict, "open")


def counts(claims: Iterable[Row]) -> list[dict[str, Any]]:
    """How many headline verdicts of each kind, none left out."""
    found = Counter(row["verdict"] for row in claims if row["headline"])
    return [
        {"verdict": verdict, "look": name, "count": found[verdict], "meaning": MEANINGS[verdict]}
        for verdict, name in LOOKS.items()
    ]


def scorecard(claims: Iterable[Row], papers: Mapping[str, Mapping[str, Any]]) -> list[dict]:
    """One row a claim: its headline verdict and the number that decides."""
    return [_scored(row, papers[row["paper"]]) for row in claims if row["headline"]]


def _scored(row: Row, paper: Mapping[str, Any]) -> dict[str, Any]:
    number = paper["paper"]["number"]
    title = {**paper["figures"], **paper.get("tables", {})}[row["figure"]]["title"]
    return {**judged(row), "number": number, "short": short(title, number)}


def of_figure(claims: Iterable[Row], figure: str) -> list[dict[str, Any]]:
    """Claims that a figure shows, each with a row a variant, the headline first."""
    grouped: dict[str, list[dict]] = {}
    for row in claims:
        if row["figure"] == figure:
            grouped.setdefault(row["id"], []).append(judged(row))
    return [
        {**rows[0], "variants": rows}
        for rows in (sorted(g, key=lambda row: not row["headline"]) for g in grouped.values())
    ]


def judged(row: Row) -> dict[str, Any]:
    """A verdict with its numbers in words; logarithms of ratios are shown as ratios."""
    kind = measure(row)
    shown = exponential if kind == "ratio" else float
    value, low, high, accept_low, accept_high = (
        shown(row[key]) if row[key] is not None else None
        for key in ("value", "low", "high", "accept_low", "accept_high")
    )
    if kind == "ratio":
        accept_low = accept_low if accept_low else float("-inf")
    return {
        **row,
        "look": look(row["verdict"]),
        "surrogate": "surrogate" in row["source"],
        "measure": kind,
        "statistic": _without_logarithm(row["statistic"]) if kind == "ratio" else row["statistic"],
        "shown": number(value),
        "interval": interval(low, high) if low != high else "exact",
        "accepted": region(accept_low, accept_high),
    }


def measure(row: Row) -> str:
    """What kind of number the deciding statistic is: ratio, slope, level, or simply value."""
    return "ratio" if row["kind"] in RATIOS else row["kind"] or "value"


def _without_logarithm(statistic: str) -> str:
    """``ln(a / b), where`` to ``a / b, where``."""
    if not statistic.startswith("ln("):
        return statistic
    inside, _, rest = statistic[3:].partition(")")
    return inside + rest
