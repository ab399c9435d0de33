"""Build the table of verdicts ``claims.parquet``, with one row per claim and variant."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import polars as pl

from .intervals import MIN_RUNS, too_few_runs
from .judging import NEVER, NOTHING, Verdict, evaluate
from .schema import Claim, Test, TestedVariant
from .selection import CURVE, rows_for
from .words import CONFIRMED, CONTRADICTED, TIED, UNDECIDED, UNTESTABLE

SCHEMA = {
    "id": pl.String,
    "paper": pl.String,
    "figure": pl.String,
    "claim": pl.String,
    "location": pl.String,
    "variant": pl.String,
    "is_primary": pl.Boolean,
    "interpretation": pl.String,
    "verdict": pl.String,
    "kind": pl.String,
    "statistic": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "accept_low": pl.Float64,
    "accept_high": pl.Float64,
    "tolerance": pl.Float64,
    "verdict_margin": pl.Float64,
    "parts": pl.Int64,
    "confirmed": pl.Int64,
    "contradicted": pl.Int64,
    "tied": pl.Int64,
    "p": pl.Float64,
    "error": pl.Float64,
    "skewness": pl.Float64,
    "level_divisor": pl.Int64,
    "runs": pl.Int64,
    "runs_needed": pl.Float64,
    "because": pl.String,
    "untestable_because": pl.String,
    "source": pl.String,
}


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
    claims : mapping
        Identifier of each claim to the claim.
    runs : DataFrame
        Measurements as in :func:`.judging.evaluate`.
    privacy : DataFrame
        Privacy rows as in :func:`.judging.evaluate`, with the additional column ``source``.
    paper : str
        Key of the paper.
    deterministic : collection of str
        Algorithms without randomness, whose single run is exact.
    reduced : bool
        True if the experiments are smaller than those of the paper. Every testable claim is then
        undecided, and its numbers are kept.

    Returns
    -------
    DataFrame
        One row per claim and variant, with the columns of ``SCHEMA``.
    """
    curves = runs.partition_by(*CURVE, as_dict=True, maintain_order=True)
    none = runs.clear()
    rows = [
        {
            **_described(identity, claim, variant),
            "paper": paper,
            **_judged(claim, variant, tests, rows_for(tests, curves, none), privacy, deterministic),
            **(_OPEN if reduced and not _never(claim, variant) else {}),
        }
        for identity, claim in claims.items()
        for variant, tests in _tests_of(claim).items()
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


def _tests_of(claim: Claim) -> dict[str, list[Test]]:
    if not claim.variants:
        return {claim.primary_variant: []}
    return {name: variant.tests for name, variant in claim.variants.items()}


_OPEN = {
    "verdict": UNDECIDED,
    "p": NEVER,
    "verdict_margin": None,
    "runs_needed": None,
    "untestable_because": "",
}
"""Values of columns for a claim that results of a smaller scale do not decide."""


def _never(claim: Claim, variant: str) -> bool:
    """Return True if no measurement can decide a variant: it has no test, or states a reason."""
    return not claim.variants or bool(claim.untestable and variant == claim.primary_variant)


def _described(identity: str, claim: Claim, variant: str) -> dict[str, Any]:
    is_primary = variant == claim.primary_variant
    tested = claim.variants.get(variant, TestedVariant(tests=[]))
    return {
        "id": identity,
        "figure": claim.figure,
        "claim": tested.claim or claim.claim,
        "location": claim.location,
        "variant": variant,
        "is_primary": is_primary,
        "interpretation": tested.interpretation,
        "because": claim.because,
        "untestable_because": claim.untestable if is_primary else "",
    }


def _judged(
    claim: Claim,
    variant: str,
    tests: Sequence[Test],
    runs: pl.DataFrame,
    privacy: pl.DataFrame,
    deterministic: Collection[str],
) -> dict[str, Any]:
    verdict = evaluate(tests, runs, privacy, deterministic=deterministic) if tests else NOTHING
    lacking = _lacks_runs(verdict) and not _never(claim, variant)
    reason = {"untestable_because": too_few_runs(verdict.runs)} if lacking else {}
    used = [series.experiment for test in tests for series in (test.series, test.against) if series]
    return {
        **_numbers(verdict),
        **reason,
        "verdict": UNTESTABLE if _never(claim, variant) else verdict.verdict,
        "tolerance": max((test.tolerance for test in tests), default=0.0),
        "source": "; ".join(
            privacy.filter(pl.col("experiment").is_in(used))["source"].unique().sort()
        ),
    }


def _lacks_runs(verdict: Verdict) -> bool:
    """Return True if a random statistic has too few runs for an interval."""
    measured = verdict.kind not in ("private", "tight")
    return verdict.verdict == UNDECIDED and measured and 1 < verdict.runs < MIN_RUNS


def _numbers(verdict: Verdict) -> dict[str, Any]:
    states = [element.state for element in verdict.elements]
    accept_low, accept_high = verdict.accept
    numbers = {
        **vars(verdict),
        "accept_low": accept_low,
        "accept_high": accept_high,
        "verdict_margin": verdict.margin,
    }
    return {
        # Undefined numbers are null.
        **{
            key: None if _missing(value) else value
            for key, value in numbers.items()
            if key in SCHEMA
        },
        "parts": len(states),
        "confirmed": states.count(CONFIRMED),
        "contradicted": states.count(CONTRADICTED),
        "tied": states.count(TIED),
    }


def _missing(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
