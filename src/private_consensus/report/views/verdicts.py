"""Format claims, their verdicts, and remarks that explain a verdict."""

import math
import re
from collections.abc import Iterable, Mapping
from itertools import product
from operator import itemgetter
from typing import Any

from private_consensus.common.grouping import grouped
from private_consensus.reproduction.claims.intervals import MIN_RUNS
from private_consensus.reproduction.claims.statements import RATIO_TESTS
from private_consensus.reproduction.claims.words import (
    HELD,
    IN_PART,
    MEANINGS,
    NOT_HELD,
    NOT_REFUTED,
    UNDECIDED,
    UNTESTABLE,
    UNTESTED,
)

from ..formats import exponential, interval, method_title, number, region
from ..reading import Results, Row

ICONS = {
    HELD: "held", IN_PART: "part", NOT_HELD: "not", NOT_REFUTED: "unrefuted", UNDECIDED: "open",
    UNTESTED: "untested", UNTESTABLE: "never",
}  # fmt: skip
"""Verdict to the name of its icon (shape and colour)."""

ADDITIONS = "Claims that no total counts: of other papers, and additions of this project"

METHOD = re.compile(r"\b([a-z]\w*)\.(\w+)")
"""Method ``algorithm.variant`` in the words for a statistic."""

EXCLUDED = {
    HELD: "“held” is excluded, since a part is contradicted",
    NOT_HELD: "“did not hold” is excluded, since a part is confirmed",
}
"""Remark on each verdict that an undecided claim excludes."""

MAX_RECOMMENDED_RUNS = 100_000
"""Largest number of runs that a remark recommends."""

MAX_DIGITS = 8
"""Largest number of significant digits that separate a statistic from its bound."""


def counts(rows: Iterable[Row]) -> list[dict[str, object]]:
    """Count statements, or the claims that the papers make, by verdict.

    The number of restricted claims is that of held claims with a caveat, with another verdict by
    interpretation, or with methods no better than a constant model.
    """
    rows = [row for row in rows if not row.get("addition")]
    number_restricted = sum(row["verdict"] == HELD and bool(row.get("restriction")) for row in rows)
    restricted = f", {number_restricted} of them with a restriction" if number_restricted else ""
    return [
        {
            "verdict": verdict,
            "icon": ICONS[verdict],
            "meaning": meaning,
            "count": sum(row["verdict"] == verdict for row in rows),
            "restricted": restricted if verdict == HELD else "",
        }
        for verdict, meaning in MEANINGS.items()
    ]


def of_figure(results: Results, figure: str) -> list[dict[str, object]]:
    """Return the claims on a figure, each with one row per variant, the primary one first."""
    formatted_rows = [
        formatted(row, results.labels) for row in results.claims if row["figure"] == figure
    ]
    return [
        {**rows[0], "variants": rows}
        for variants in grouped(formatted_rows, itemgetter("id")).values()
        if (rows := sorted(variants, key=lambda row: not row["is_primary"]))
    ]


def formatted(row: Row, labels: Mapping[str, str]) -> dict[str, Any]:
    """Add the formatted numbers of a verdict to its row; logarithms of ratios become ratios.

    ``labels`` are those of the curves of figures, by ``algorithm.variant``.
    """
    kind = "ratio" if row["kind"] in RATIO_TESTS else row["kind"] or "value"
    scale = exponential if kind == "ratio" else float
    numbers = {
        key: None if row[key] is None or math.isnan(row[key]) else float(scale(row[key]))
        for key in ("value", "low", "high", "accept_low", "accept_high")
    }
    value, low, high, accept_low, accept_high = numbers.values()
    if kind == "ratio":
        accept_low = accept_low if accept_low else float("-inf")
    digits = _digits((value, low, high), (accept_low, accept_high))
    shown = number(value, digits)
    ends = interval(low, high, digits) if low != high else "exact"
    accepted = region(accept_low, accept_high, digits)
    size = f"{shown} {ends.removeprefix('exact')}".strip()
    if row["verdict"] in (UNTESTED, UNTESTABLE) or not row["parts"]:
        in_words = ""
    elif row["kind"] == "private":
        in_words = f"{size} times the claimed ε"
    else:
        noun = kind if kind in ("ratio", "slope", "difference") else "value"
        in_words = f"{noun} {size}; claimed: {accepted}"
    restrictions = _restrictions(row, labels)
    remark = "; ".join(filter(None, _clauses(row, restrictions)))
    restriction = "; ".join(restrictions)
    is_open = row["verdict"] in (UNDECIDED, UNTESTED, UNTESTABLE)
    note = remark if is_open or row.get("theorems") else restriction
    return {
        **row,
        **numbers,
        "icon": ICONS[row["verdict"]],
        "surrogate": "surrogate" in row["source"],
        "measure": kind,
        "statistic": _titled(row["statistic"] or "", labels),
        "shown": shown,
        "interval": ends,
        "accepted": accepted,
        "in_words": in_words,
        "remark": remark,
        "restriction": restriction,
        "note": note and f"{'Reason' if is_open else 'Restriction'}: {note}",
    }


def _titled(text: str, labels: Mapping[str, str]) -> str:
    """Replace each method ``algorithm.variant`` of a text by its title."""
    return METHOD.sub(lambda match: method_title(match[0], labels), text)


def _digits(numbers: Iterable[float | None], bounds: Iterable[float | None]) -> int:
    """Return the number of digits with which rounding does not move a number onto a bound."""
    pairs = [(a, b) for a, b in product(numbers, bounds) if None not in (a, b) and a != b]
    for digits in range(3, MAX_DIGITS + 1):
        if all(number(a, digits) != number(b, digits) for a, b in pairs):
            return digits
    return 3


def _clauses(row: Row, restrictions: list[str]) -> list[str]:
    """Return the reason of a verdict, the runs that it needs, and its restrictions."""
    if row.get("theorems"):
        verdict = f"verdict of {row['theorems']}; the runs alone: {row['verdict_unadjusted']}"
        return [verdict, *restrictions]
    if row["verdict"] in (UNTESTED, UNTESTABLE):
        # The variants of the claim have the same reason.
        return [row["untestable_because"]] if row["is_primary"] else []
    clauses = [f"exactly equal values: {row['tied']}" if row.get("tied") else ""]
    if row["verdict"] == UNDECIDED:
        excluded = filter(None, (row.get("excluded") or "").split(", "))
        clauses = [_undecided(row), *(EXCLUDED[name] for name in excluded)]
    # If the verdicts of all interpretations are equal, this is no restriction.
    verdicts = [f"by interpretation: {v}" for v in [row.get("interpretations")] if v]
    same = [clause for clause in verdicts if clause not in restrictions]
    return [*clauses, *restrictions, *same, row.get("related") or ""]


def _undecided(row: Row) -> str:
    if row["verdict_unadjusted"] != UNDECIDED:
        return f"without adjustment for the number of claims: {row['verdict_unadjusted']}"
    runs_needed = row.get("runs_needed")
    if row["kind"] == "private":
        return "neither proven nor refuted"
    if runs_needed is None:
        return ""
    if 1 < row["runs"] < MIN_RUNS:
        return f"not enough runs by design: {row['runs']}, and an interval needs {MIN_RUNS}"
    if math.isinf(runs_needed) or runs_needed > MAX_RECOMMENDED_RUNS:
        return "more runs would not decide: the estimate is too close to the limit of the claim"
    return f"about {number(int(runs_needed))} runs would decide"


def _restrictions(row: Row, labels: Mapping[str, str]) -> list[str]:
    """Return the caveat, differing verdicts, and methods no better than a constant model."""
    differences = f"not as in the paper: {row['differences']}" if row.get("differences") else ""
    others = filter(None, (row.get("interpretations") or "").split(", "))
    is_same = all(text.endswith(f") {row['verdict']}") for text in others)
    constants = (line.partition(": ") for line in (row.get("no_better") or "").splitlines())
    no_better = [
        f"no better than {name}, so that a comparison is weak evidence: {_titled(methods, labels)}"
        for name, _, methods in constants
    ]
    by_interpretation = "" if is_same else f"by interpretation: {row['interpretations']}"
    restrictions = [row.get("caveat") or "", differences, by_interpretation, *no_better]
    return list(filter(None, restrictions))
