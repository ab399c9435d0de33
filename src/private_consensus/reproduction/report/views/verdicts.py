"""Claims and their verdicts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ...claims import HELD, IN_PART, MEANINGS, NOT_HELD, UNDECIDED, UNTESTABLE
from ..formats import exponential, interval, number, region
from .figures import short

Row = Mapping[str, Any]

LOOKS = {HELD: "held", IN_PART: "part", NOT_HELD: "not", UNDECIDED: "open", UNTESTABLE: "never"}
"""Verdict to the name of its shape and colour."""

HEADINGS = {"held": "What holds", "part": "What holds in part", "not": "What does not",
            "open": "What is undecided", "never": "What cannot be tested"}  # fmt: skip
"""What stands before the claims of one verdict."""

RATIOS = {
    "decreasing", "increasing", "largest", "smallest", "falls", "below", "lower", "steadier",
    "ratio", "differs", "private", "tight",
}  # fmt: skip
"""Kinds of test whose statistic is the logarithm of a ratio."""

MANY_RUNS = 100_000
"""More than this many runs are not affordable."""

NO_BOUND = "without any bound"
EQUAL = 1e-9
"""A bound that is moved by less stays where it is."""
UNBOUNDED = 500.0
"""Logarithms of ratios above this stand for infinity."""

MANY_TIMES = 3.0
"""Above this a ratio's excess is said in times, below in per cent."""


def look(verdict: str) -> str:
    """Name of the shape and colour of a verdict."""
    return LOOKS.get(verdict, "open")


def counts(claims: Iterable[Row]) -> list[dict[str, Any]]:
    """Count the primary verdicts by kind, with zero counts included."""
    found = Counter(row["verdict"] for row in claims if row["headline"])
    return [
        {"verdict": verdict, "look": LOOKS[verdict], "count": found[verdict], "meaning": meaning}
        for verdict, meaning in MEANINGS.items()
    ]


def scorecard(claims: Iterable[Row], papers: Mapping[str, Mapping[str, Any]]) -> list[dict]:
    """Return one row per claim: its primary verdict and the deciding number.

    Parameters
    ----------
    claims : iterable of rows
        One row per claim and variant.
    papers : mapping
        Key to paper.

    Returns
    -------
    list of dict
    """
    return [_scored(row, papers[row["paper"]]) for row in claims if row["headline"]]


def _scored(row: Row, paper: Mapping[str, Any]) -> dict[str, Any]:
    number = paper["paper"]["number"]
    title = {**paper["figures"], **paper.get("tables", {})}[row["figure"]]["title"]
    return {**judged(row), "number": number, "short": short(title, number)}


def of_figure(claims: Iterable[Row], figure: str) -> list[dict[str, Any]]:
    """Return the claims that a figure shows, with one row per variant, the primary first.

    Parameters
    ----------
    claims : iterable of rows
        One row per claim and variant.
    figure : str
        Name of the figure.

    Returns
    -------
    list of dict
    """
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
        "remark": remark(row),
    }


def remark(row: Row) -> str:
    """Explain a verdict: reason, distance, number of runs, and the change that would flip it."""
    if row["verdict"] == UNTESTABLE:
        return row.get("untestable") or "nothing is measured that could decide"
    said = [_undecided(row)] if row["verdict"] == UNDECIDED else [_violation(row), _equal(row)]
    return "; ".join(filter(None, [*said, _flip(row)]))


def _undecided(row: Row) -> str:
    needed = row.get("needed")
    if row["kind"] in ("private", "tight"):
        return "neither proven nor refuted"
    if needed is None:
        return ""
    if math.isinf(needed) or needed > MANY_RUNS:
        return "no affordable number of runs decides: an estimate is at the border"
    return f"about {number(int(needed))} runs would decide"


def _violation(row: Row) -> str:
    """Describe the distance by which the worst element contradicts the claim."""
    if row["verdict"] != NOT_HELD or not row["contradicted"]:
        return ""
    beyond = max(row["value"] - row["accept_high"], row["accept_low"] - row["value"])
    size = _size(row, beyond)
    return size if size == NO_BOUND else f"by at most {size}"


def _equal(row: Row) -> str:
    return f"{row['tied']} exactly equal" if row.get("tied") else ""


def _flip(row: Row) -> str:
    """The tolerance at which the verdict would be another."""
    move = row.get("flip")
    if move is None or abs(move) < EQUAL:
        return ""
    if measure(row) == "ratio" and abs(move) > UNBOUNDED:
        return ""
    word = "looser" if move > 0 else "stricter"
    return f"another verdict if the bound were {_size(row, abs(move))} {word}"


def _size(row: Row, size: float) -> str:
    """A distance of the statistic: of the logarithm of a ratio, in per cent."""
    if measure(row) != "ratio":
        return number(size)
    if size > UNBOUNDED:
        return NO_BOUND
    grown = math.expm1(size)
    return f"{number(100 * grown)} %" if grown < MANY_TIMES else f"{number(grown + 1)} times"


def measure(row: Row) -> str:
    """Return the kind of the deciding statistic: ratio, slope, level, or value."""
    return "ratio" if row["kind"] in RATIOS else row["kind"] or "value"


def _without_logarithm(statistic: str) -> str:
    """``ln(a / b), where`` to ``a / b, where``."""
    if not statistic.startswith("ln("):
        return statistic
    inside, _, rest = statistic[3:].partition(")")
    return inside + rest
