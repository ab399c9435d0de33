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
    reading, or with methods no better than a constant model.
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
    kind = measure(row)
    scale = exponential if kind == "ratio" else float
    numbers = {
        key: None if row[key] is None or math.isnan(row[key]) else float(scale(row[key]))
        for key in ("value", "low", "high", "accept_low", "accept_high")
    }
    value, low, high, accept_low, accept_high = numbers.values()
    if kind == "ratio":
        accept_low = accept_low if accept_low else float("-inf")
    digits = _digits((value, low, high), (accept_low, accept_high))
    size = number(value, digits)
    ends = interval(low, high, digits) if low != high else "exact"
    accepted = region(accept_low, accept_high, digits)
    return {
        **row,
        **numbers,
        "icon": ICONS[row["verdict"]],
        "surrogate": "surrogate" in row["source"],
        "measure": kind,
        "statistic": METHOD.sub(lambda m: method_title(m[0], labels), row["statistic"] or ""),
        "shown": size,
        "interval": ends,
        "accepted": accepted,
        "in_words": _in_words(row, f"{size} {ends.removeprefix('exact')}".strip(), accepted),
        "remark": (text := remark(row, labels)),
        "restriction": (restriction := "; ".join(filter(None, _restrictions(row, labels)))),
        "note": text
        if row["verdict"] in (UNDECIDED, UNTESTED, UNTESTABLE) or row.get("theorems")
        else restriction,
    }


def _in_words(row: Row, size: str, accepted: str) -> str:
    """Describe the deciding number of a claim and the values for which the claim is true."""
    if row["verdict"] in (UNTESTED, UNTESTABLE) or not row["parts"]:
        return ""
    if row["kind"] == "private":
        return f"{size} times the claimed ε"
    kind = measure(row)
    noun = kind if kind in ("ratio", "slope", "difference") else "value"
    return f"{noun} {size}; claimed: {accepted}"


def _digits(numbers: Iterable[float | None], bounds: Iterable[float | None]) -> int:
    """Return the number of digits with which rounding does not move a number onto a bound."""
    pairs = [(a, b) for a, b in product(numbers, bounds) if None not in (a, b) and a != b]
    for digits in range(3, MAX_DIGITS + 1):
        if all(number(a, digits) != number(b, digits) for a, b in pairs):
            return digits
    return 3


def remark(row: Row, labels: Mapping[str, str]) -> str:
    """Explain a verdict: its reason, the runs that it needs, and its restrictions."""
    if row.get("theorems"):
        runs = f"verdict of {row['theorems']}; the runs alone: {row['verdict_unadjusted']}"
        return "; ".join(filter(None, [runs, *_restrictions(row, labels)]))
    if row["verdict"] in (UNTESTED, UNTESTABLE):
        # The readings of the claim have the same reason.
        return row["untestable_because"] if row["is_primary"] else ""
    readings = row.get("readings") or ""
    same = f"by reading: {readings}" if readings else ""
    clauses = [_equal(row)]
    if row["verdict"] == UNDECIDED:
        excluded = [EXCLUDED[name] for name in (row.get("excluded") or "").split(", ") if name]
        clauses = [_undecided(row), *excluded]
    restrictions = _restrictions(row, labels)
    same = "" if same in restrictions else same
    return "; ".join(filter(None, [*clauses, *restrictions, same, row.get("related")]))


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


def _equal(row: Row) -> str:
    return f"exactly equal values: {row['tied']}" if row.get("tied") else ""


def _restrictions(row: Row, labels: Mapping[str, str]) -> list[str]:
    """Return the caveat, the verdict by reading, and methods no better than a constant model."""
    lines = []
    for line in (row.get("no_better") or "").splitlines():
        constant, _, compared = line.partition(": ")
        method, _, setting = compared.partition(" ")
        title = method_title(method, labels)
        lines.append({"constant": constant, "method": title, "setting": setting})
    no_better = [
        f"no better than {constant}, so that a comparison is weak evidence: {_methods(group)}"
        for constant, group in grouped(lines, itemgetter("constant")).items()
    ]
    by_reading = (row.get("readings") or "").split(", ")
    has_same = [text.endswith(f") {row['verdict']}") for text in by_reading]
    differ = any(by_reading) and not all(has_same)
    readings = f"by reading: {row['readings']}" if differ else ""
    differences = f"not as in the paper: {row['differences']}" if row.get("differences") else ""
    return [row.get("caveat") or "", differences, readings, *no_better]


def _methods(lines: Iterable[Row]) -> str:
    """Join methods by setting, such as "DVP and R-ADMM at epsilon 1"."""
    clauses = [
        f"{' and '.join(dict.fromkeys(map(itemgetter('method'), group)))} {setting}".strip()
        for setting, group in grouped(lines, itemgetter("setting")).items()
    ]
    return ", and ".join(clauses)


def measure(row: Row) -> str:
    """Return the kind of the deciding statistic: ratio, slope, level, or value."""
    return "ratio" if row["kind"] in RATIO_TESTS else row["kind"] or "value"
