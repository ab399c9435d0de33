"""Build the table of verdicts ``claims.parquet``, with one row per claim and variant.

Verdicts are adjusted for the number of claims of all papers.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import polars as pl

from private_consensus.common.multiplicity import ALPHA, holm

from .constant_models import no_better
from .intervals import limits
from .judging import NEVER, Element, Verdict, evaluate
from .schema import PRIVATE, Claim
from .statements import UNITS, without_sign
from .words import (
    CONFIRMED,
    CONTRADICTED,
    HELD,
    NOT_HELD,
    TIED,
    UNDECIDED,
    UNTESTABLE,
    UNTESTED,
    combined,
)

STATISTIC = {
    **dict.fromkeys(("kind", "statistic", "unit", "means"), pl.String),
    **dict.fromkeys(("value", "low", "high", "accept_low", "accept_high"), pl.Float64),
    **dict.fromkeys(("error", "skewness"), pl.Float64),
}  # fmt: skip
"""Columns of the deciding statistic, and of the statistic that is undecided at levels below p."""
OF_CLAIM = ("figure", "location", "quotation", "addition", "because")
"""Columns that are equal for all variants of a claim."""
OF_PRIMARY = ("caveat", "setting", "differences")
"""Columns of the primary variant, empty for the other ones."""
SCHEMA = {
    **dict.fromkeys(("id", "paper", "figure", "claim", "location", "quotation"), pl.String),
    "addition": pl.Boolean, "variant": pl.String, "is_primary": pl.Boolean,
    **dict.fromkeys(("interpretation", "verdict"), pl.String),
    **STATISTIC, "opening": pl.Struct(STATISTIC), "tolerance": pl.Float64,
    **dict.fromkeys(("parts", "confirmed", "contradicted", "tied"), pl.Int64),
    "elements": pl.String,
    "excluding": pl.Struct(dict.fromkeys((HELD, NOT_HELD), pl.Float64)),
    "p": pl.Float64, "level_divisor": pl.Int64, "runs": pl.Int64, "runs_needed": pl.Float64,
    **dict.fromkeys(("because", "untestable_because", "caveat", "theorems"), pl.String),
    **dict.fromkeys(("setting", "differences", "no_better", "source", "experiments"), pl.String),
}  # fmt: skip
ADJUSTED = {
    **{key: SCHEMA[key] for key in SCHEMA if key not in ("opening", "excluding")},
    "verdict_unadjusted": pl.String, "p_holm": pl.Float64, "interpretations": pl.String,
    "related": pl.String, "excluded": pl.String,
}  # fmt: skip


def judge_all(
    claims: Mapping[str, Claim],
    runs: pl.DataFrame,
    privacy: pl.DataFrame,
    *,
    paper: str,
    deterministic: Collection[str] = (),
    reduced: bool = False,
) -> pl.DataFrame:
    """Compute the verdicts on all variants of all claims of a paper.

    Parameters
    ----------
    runs : DataFrame
        Measurements as in :func:`.judging.evaluate`.
    privacy : DataFrame
        Privacy rows as in :func:`.judging.evaluate`, with the additional column ``source``.
    deterministic : collection of str
        Algorithms without randomness, whose single run is exact.
    reduced : bool
        True if the experiments are smaller than those of the paper. Every testable claim is then
        undecided, and its numbers are kept. Methods are not compared with constant models.

    Returns
    -------
    DataFrame
        One row per claim and variant, with the columns of ``SCHEMA``.
    """
    rows = [
        {"id": identity, "paper": paper}
        | _row(claim, name, runs, privacy, deterministic, reduced=reduced)
        for identity, claim in claims.items()
        for name in claim.variants
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


def _row(
    claim: Claim, name: str, runs: pl.DataFrame, privacy: pl.DataFrame,
    deterministic: Collection[str], *, reduced: bool,
) -> dict[str, Any]:  # fmt: skip
    """Return the row of one variant of a claim."""
    variant, is_primary = claim.variants[name], name == claim.primary_variant
    tested = [series.experiment for test in variant.tests for series in test.all_series]
    experiments = list(dict.fromkeys(tested))
    is_tested = pl.col("experiment").is_in(experiments)
    tested_runs, sources = runs.filter(is_tested), privacy.filter(is_tested)["source"]
    verdict = evaluate(variant.tests, tested_runs, privacy, deterministic=deterministic)
    # Variants of another sentence have tests of their own.
    reason = "" if variant.claim else claim.untestable or claim.untested
    row = {
        **{key: getattr(claim, key) for key in OF_CLAIM},
        **{key: getattr(claim, key) if is_primary else "" for key in OF_PRIMARY},
        "theorems": "; ".join(claim.theorems) if is_primary else "",
        "claim": variant.claim or claim.claim,
        "variant": name,
        "is_primary": is_primary,
        "interpretation": variant.interpretation,
        "untestable_because": reason,
        "tolerance": max(test.tolerance for test in variant.tests),
        "no_better": "" if reduced else no_better(variant.tests, tested_runs),
        "source": "; ".join(sources.unique().sort()),
        "experiments": ", ".join(experiments),
        **_numbers(verdict),
        "elements": "\n".join(map(_line, verdict.elements)) if is_primary else "",
    }
    if reason or reduced:
        # No measurement decides.
        untested = UNTESTABLE if claim.untestable else UNTESTED
        row |= {"verdict": untested if reason else UNDECIDED, "p": None if reason else NEVER,
                "runs_needed": None, "excluding": None}  # fmt: skip
    return row


def adjusted(claims: pl.DataFrame, theorems: pl.DataFrame | None = None) -> pl.DataFrame:
    """Adjust the verdicts on the claims of all papers by Holm's method.

    The method is applied to the primary variants, separately for claims of the papers and for
    additions of this project, so that additions change no verdict on a paper. A verdict that is not
    significant becomes "undecided", with the statistic that keeps it from being significant. The
    verdicts that an undecided claim excludes are named; their level is divided by the number of
    claims (Bonferroni). Intervals have the adjusted level. A claim that is a theorem of its paper
    has the verdict of the theorem.

    Parameters
    ----------
    claims : DataFrame
        Rows of :func:`judge_all` for all papers.
    theorems : DataFrame, optional
        Verdicts by paper and number. Without it, the runs decide all claims.

    Returns
    -------
    DataFrame
        The same rows with the columns of ``ADJUSTED``.
    """
    rows = [{**row, "verdict_unadjusted": row["verdict"]} for row in claims.to_dicts()]
    columns = [] if theorems is None else theorems.select("paper", "number", "verdict").rows()
    proven = {(paper, number): verdict for paper, number, verdict in columns}
    for addition in (False, True):
        primary = [row for row in rows if row["is_primary"] and row["addition"] == addition]
        family = [row for row in primary if not (row["theorems"] and proven)]
        # A claim without a p-value counts as one that cannot be significant.
        p_values, levels = holm([NEVER if row["p"] is None else row["p"] for row in family])
        for row, p, level in zip(family, p_values.tolist(), levels.tolist(), strict=True):
            is_tested = row["p"] is not None
            if is_tested and p > ALPHA:
                row |= {**row["opening"], "verdict": UNDECIDED}
            row |= {"p_holm": p if is_tested else None, **_interval(row, level)}
            if row["verdict"] == UNDECIDED:
                levels, limit = row["excluding"] or {}, ALPHA / len(family)
                excluded = [n for n, p in levels.items() if p is not None and p <= limit]
                row["excluded"] = ", ".join(excluded)
        for row in primary:
            row["interpretations"] = _other_interpretations(row, rows)
            row["related"] = _related(row, proven)
            if row not in family:
                numbers = row["theorems"].split("; ")
                row["verdict"] = combined([proven[row["paper"], number] for number in numbers])
    return pl.DataFrame(rows, schema=SCHEMA | ADJUSTED).select(*ADJUSTED)


def _other_interpretations(primary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """List the verdicts on the other interpretations of a claim.

    Ablations of this project, and variants that test another sentence, are no interpretations.
    """
    return ", ".join(
        f"{row['variant']} ({row['interpretation']}) {row['verdict']}"
        for row in rows
        if (row["id"], row["claim"]) == (primary["id"], primary["claim"])
        and not row["is_primary"]
        and row["interpretation"] != "ablation"
    )


def _related(row: Mapping[str, Any], proven: Mapping[tuple[str, str], str]) -> str:
    """List the verdicts on the numbered statements in the location of a claim.

    A claim that is such a statement has the verdict of the statement, and needs no list.
    """
    return "; ".join(
        f"{number} {verdict}"
        for (paper, number), verdict in proven.items()
        if paper == row["paper"]
        and not row["theorems"]
        and re.search(rf"\b{re.escape(number)}(?!\.?\w)", row["location"])
    )


def _interval(row: Mapping[str, Any], level: float) -> dict[str, float]:
    """Compute the interval of a random deciding statistic at its level of Holm's method."""
    moments = [row["value"], row["error"], row["skewness"]]
    if None in moments or row["low"] == row["high"] or row["kind"] == PRIVATE:
        return {}
    low, high = limits(*moments, row["runs"], level / max(1, row["level_divisor"]))
    if row["kind"] == "differs":
        low, high = without_sign(low, high)
    return {"low": float(low), "high": float(high)}


def _numbers(verdict: Verdict) -> dict[str, Any]:
    # A step of a monotone claim confirms nothing; it counts if it does not agree with the claim.
    states = [e.state for e in verdict.elements if not e.is_step or e.state != CONFIRMED]
    return {
        **_defined({key: vars(verdict)[key] for key in ("verdict", "runs", "p", "runs_needed")}),
        "level_divisor": verdict.level_divisor,
        "excluding": verdict.excluding,
        **_statistic(verdict.deciding),
        "opening": _statistic(verdict.opening),
        "parts": len(states),
        "confirmed": states.count(CONFIRMED),
        "contradicted": states.count(CONTRADICTED),
        "tied": states.count(TIED),
    }


def _line(element: Element) -> str:
    """Describe an element: group, state, value, interval, region of the claim, and statistic."""
    interval = f"{element.value:.6g} [{element.low:.6g}, {element.high:.6g}]"
    region = f"[{element.accept_low:.6g}, {element.accept_high:.6g}]"
    state = f"{'step ' if element.is_step else ''}{element.state}"
    return f"{element.group}: {state}, {interval} in {region}: {element.statistic}"


def _statistic(element: Element) -> dict[str, Any]:
    means = ", ".join(f"{mean:.9g}" for mean in element.means)
    numbers = {**vars(element), "unit": UNITS.get(element.kind, ""), "means": means}
    return _defined({key: numbers[key] for key in STATISTIC})


def _defined(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers with null for an undefined one."""
    return {
        key: None if isinstance(value, float) and math.isnan(value) else value
        for key, value in numbers.items()
    }
