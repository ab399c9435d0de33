"""Claims and their verdicts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

from ...claims import HELD, IN_PART, MEANINGS, NOT_HELD, UNDECIDED, UNTESTABLE
from ...claims.intervals import MIN_RUNS, too_few_runs
from ..formats import exponential, grouped, interval, number, region
from .figures import short

Row = Mapping[str, Any]

LOOKS = {HELD: "held", IN_PART: "part", NOT_HELD: "not", UNDECIDED: "open", UNTESTABLE: "never"}
"""Verdict to the name of its shape and colour."""

HEADINGS = {
    "not": "Claims that do not hold",
    "part": "Claims that hold in part",
    "held": "Claims that hold",
    "open": "Undecided claims",
    "never": "Claims that cannot be tested",
}
"""Headings of the lists of claims by verdict, in the order of the page."""

RATIOS = {
    "decreasing", "increasing", "largest", "smallest", "falls", "below", "lower", "steadier",
    "ratio", "differs", "private", "tight",
}  # fmt: skip
"""Kinds of test whose statistic is the logarithm of a ratio."""

MANY_RUNS = 100_000
"""Largest number of runs that a remark recommends."""

NO_BOUND = "without any bound"
EQUAL = 1e-9
"""Smallest change of a bound that a remark mentions."""
UNBOUNDED = 500.0
"""Logarithm of a ratio from which on the ratio counts as infinite."""

MANY_TIMES = 3.0
"""Ratio from which on an excess is written as a multiple instead of a percentage."""


def look(verdict: str) -> str:
    """Return the name of the shape and colour of a verdict."""
    return LOOKS.get(verdict, "open")


def counts(claims: Iterable[Row]) -> list[dict[str, Any]]:
    """Count the primary verdicts by kind, with zero counts included."""
    numbers = Counter(row["verdict"] for row in claims if row["is_primary"])
    return [
        {"verdict": verdict, "look": LOOKS[verdict], "count": numbers[verdict], "meaning": meaning}
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
    return [_scored(row, papers[row["paper"]]) for row in claims if row["is_primary"]]


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
    judged_rows = [judged(row) for row in claims if row["figure"] == figure]
    return [
        {**rows[0], "variants": rows}
        for variants in grouped(judged_rows, itemgetter("id")).values()
        if (rows := sorted(variants, key=lambda row: not row["is_primary"]))
    ]


def judged(row: Row) -> dict[str, Any]:
    """Format the numbers of a verdict, with logarithms of ratios as ratios."""
    kind = measure(row)
    scale = exponential if kind == "ratio" else float
    value, low, high, accept_low, accept_high = (
        scale(row[key]) if row[key] is not None else None
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
        return row.get("untestable_because") or "no measurement could decide the claim"
    clauses = [_undecided(row)] if row["verdict"] == UNDECIDED else [_violation(row), _equal(row)]
    return "; ".join(filter(None, [*clauses, _flip(row)]))


def _undecided(row: Row) -> str:
    needed = row.get("runs_needed")
    if row["kind"] in ("private", "tight"):
        return "neither proven nor refuted"
    if needed is None:
        return ""
    if 1 < row["runs"] < MIN_RUNS:
        return too_few_runs(row["runs"])
    if math.isinf(needed) or needed > MANY_RUNS:
        return "no affordable number of runs would decide: an estimate is at the bound"
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
    """Describe the change of the bound that would change the verdict."""
    move = row.get("verdict_margin")
    if move is None or abs(move) < EQUAL:
        return ""
    if measure(row) == "ratio" and abs(move) > UNBOUNDED:
        return ""
    word = "looser" if move > 0 else "stricter"
    return f"the verdict would change if the bound were {_size(row, abs(move))} {word}"


def _size(row: Row, size: float) -> str:
    """Format a distance of the statistic; for the logarithm of a ratio in percent."""
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
    inside, _, condition = statistic[3:].partition(")")
    return inside + condition
