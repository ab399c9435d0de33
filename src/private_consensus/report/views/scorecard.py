"""Scorecard of the claims: one row per claim, with verdicts adjusted for the number of claims."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from functools import lru_cache

import polars as pl

from private_consensus.common.multiplicity import ALPHA, holm
from private_consensus.common.spreadsheets import code, csv, markdown_table
from private_consensus.common.spreadsheets import markdown as cell
from private_consensus.reproduction.claims import HELD, MEANINGS, UNDECIDED, UNTESTABLE
from private_consensus.reproduction.claims.intervals import limits
from private_consensus.reproduction.experiments.freshness import command

from ..formats import NONE, exponential, interval, number
from ..names import short_title
from ..reading import Results, Row
from . import run, theorems
from .verdicts import ICONS, formatted

COLUMNS = (
    "id", "paper", "figure", "location", "claim", "variant", "interpretation", "verdict",
    "verdict_holm", "p", "p_holm", "statistic", "measure", "value", "low", "high",
    "low_holm", "high_holm", "accept_low", "accept_high", "verdict_margin", "parts",
    "confirmed", "contradicted", "tied", "runs", "runs_needed", "remark", "source",
    "command", "seconds",
)  # fmt: skip
"""Columns of the files. Statistics that are logarithms of ratios are converted to ratios."""

FILES = ("scorecard.csv", "scorecard.md", "scorecard.json")


def page(results: Results) -> dict[str, object]:
    """Collect the content of the page of all claims."""
    claims = scored(results)
    return {
        "scorecard": claims,
        "papers_with_claims": {key: name for key, name in results.names.items()
                   if any(row["paper"] == key for row in claims)},
        "verdict_names": {icon: verdict for verdict, icon in ICONS.items()},
        "counts": counts(claims),
        "statements": theorems.by_claim(results.theorems),
    }  # fmt: skip


def adjusted(claims: Iterable[Row]) -> list[Row]:
    """Apply Holm's method to the primary variants of the claims of all papers.

    A verdict that is not significant at its adjusted level becomes "undecided". A claim without
    a p-value has the p-value 1.
    """
    rows = [row for row in claims if row["is_primary"]]
    p = [1.0 if row.get("p") is None else row["p"] for row in rows]
    p_holm, levels = holm(p)
    return [
        {
            **row,
            "p": p_alone,
            "p_holm": after,
            "verdict_holm": _verdict_after_holm(row["verdict"], after),
            **_interval(row, level),
        }
        for row, p_alone, after, level in zip(
            rows, p, p_holm.tolist(), levels.tolist(), strict=True
        )
    ]


def _verdict_after_holm(verdict: str, p: float) -> str:
    return UNDECIDED if p > ALPHA and verdict != UNTESTABLE else verdict


def _interval(row: Row, level: float) -> dict[str, float]:
    """Compute the interval of the deciding statistic at its level of Holm's method."""
    moments = (row["value"], row.get("error"), row.get("skewness"))
    finite = [number for number in moments if number is not None and not math.isnan(number)]
    if len(finite) < len(moments):
        return {"low_holm": math.nan, "high_holm": math.nan}
    if row["low"] == row["high"] or row["kind"] in ("private", "tight"):
        return {"low_holm": row["low"], "high_holm": row["high"]}
    low, high = limits(*finite, row["runs"], level / max(1, row["level_divisor"]))
    return {"low_holm": float(low), "high_holm": float(high)}


@lru_cache(maxsize=1)
def scored(results: Results) -> list[dict[str, object]]:
    """Return one row per claim, for its primary variant, with the command to reproduce it.

    The rows have formatted numbers, wall times, and the verdicts after Holm's adjustment.
    """
    seconds = run.seconds_of_figures(results.papers, results.timings)
    rows = []
    for claim in adjusted(results.claims):
        row = formatted(claim)
        paper, figure = results.papers[row["paper"]], row["figure"]
        number = paper["paper"]["number"]
        title = {**paper["figures"], **paper.get("tables", {})}[figure]["title"]
        scale = exponential if row["measure"] == "ratio" else float
        low, high = scale(row["low_holm"]), scale(row["high_holm"])
        rows.append({
            **row,
            "number": number,
            "short": short_title(title, number),
            "interval_holm": "exact" if low == high else interval(low, high),
            "command": command(figure, results.scale),
            "seconds": seconds.get(figure),
        })  # fmt: skip
    return rows


def counts(claims: Iterable[Row]) -> list[dict[str, object]]:
    """Count the claims by verdict, before and after Holm's adjustment."""
    claims = list(claims)
    return [
        {
            "verdict": verdict,
            "icon": ICONS[verdict],
            "meaning": meaning,
            "count": sum(row["verdict"] == verdict for row in claims),
            "count_after_holm": sum(row["verdict_holm"] == verdict for row in claims),
            "restricted": _restricted(claims) if verdict == HELD else "",
        }
        for verdict, meaning in MEANINGS.items()
    ]


def _restricted(claims: Iterable[Row]) -> str:
    """Count the held claims with a caveat or with methods no better than a constant model."""
    count = sum(row["verdict"] == HELD and bool(row["restriction"]) for row in claims)
    return f", {count} of them with a restriction" if count else ""


def table(claims: Iterable[Row]) -> pl.DataFrame:
    """Return the scorecard as a table with the columns :data:`COLUMNS`."""
    return pl.DataFrame([_unformatted(row) for row in claims], infer_schema_length=None)


def _unformatted(row: Row) -> dict[str, object]:
    numbers = ("value", "low", "high", "low_holm", "high_holm", "accept_low", "accept_high")
    scale = exponential if row["measure"] == "ratio" else float
    plain = {key: row.get(key) for key in COLUMNS}
    for key in numbers:
        plain[key] = None if row[key] is None or math.isnan(row[key]) else float(scale(row[key]))
    plain["seconds"] = None if row["seconds"] is None else round(row["seconds"], 2)
    return plain


def files(claims: Iterable[Row]) -> dict[str, str]:
    """Return the scorecard as CSV, Markdown and JSON, by file name."""
    claims = list(claims)
    frame = table(claims) if claims else pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.String))
    return {
        "scorecard.csv": csv(frame),
        "scorecard.md": markdown(claims),
        "scorecard.json": json.dumps(
            {"alpha": ALPHA,
             "adjustment": "Holm, over the primary variants of the claims of all papers",
             "counts": [{key: c[key] for key in ("verdict", "count", "count_after_holm")}
                        for c in counts(claims)],
             "claims": [_finite(row) for row in frame.to_dicts()]},
            indent=1,
        ) + "\n",
    }  # fmt: skip


def _finite(row: Row) -> dict[str, object]:
    """Replace infinite numbers by None, since JSON has no infinity."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in row.items()
    }


def markdown(claims: Iterable[Row]) -> str:
    """Format the counts of verdicts and one row per claim as Markdown."""
    claims = list(claims)
    titles = ("claim", "verdict", "statistic", "value", "interval", "after Holm", "runs", "remark",
              "figure")  # fmt: skip
    tallies = [
        f"- {item['verdict']}: {item['count']}{item['restricted']} "
        f"({item['count_after_holm']} after Holm's adjustment)\n"
        for item in counts(claims)
    ]
    rows = [
        (f"{code(row['id'])} {cell(row['claim'])}",
         *map(cell, (row["verdict"], row["statistic"] or NONE, row["shown"],
                     row["interval"] or NONE, f"{row['verdict_holm']}, {row['interval_holm']}",
                     number(row["runs"]), row["remark"] or NONE)),
         code(row["command"]))
        for row in claims
    ]  # fmt: skip
    return f"# Scorecard\n\n{''.join(tallies)}\n{markdown_table(titles, rows)}"
