"""Scorecard of the claims: one row per claim. No total counts additions and other papers."""

from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter

import polars as pl

from private_consensus.common.grouping import grouped
from private_consensus.common.spreadsheets import code, csv, markdown_table
from private_consensus.common.spreadsheets import markdown as cell
from private_consensus.reproduction.claims.words import MEANINGS
from private_consensus.reproduction.results.freshness import command

from ..formats import NONE, number
from ..reading import Results, Row
from . import statements
from .verdicts import ADDITIONS, counts, formatted

COLUMNS = (
    "id", "paper", "figure", "location", "quotation", "addition", "claim", "setting", "variant",
    "interpretation", "verdict", "verdict_unadjusted", "p", "p_holm", "statistic", "measure",
    "value", "low", "high", "accept_low", "accept_high", "parts", "confirmed",
    "contradicted", "tied", "experiments", "runs", "runs_needed", "remark", "restriction",
    "source", "command",
)  # fmt: skip
"""Columns of the files. Statistics that are logarithms of ratios are converted to ratios."""

LEGEND = (
    "The setting lists data, budget, N agents with their graph, and T iterations. "
    "The number is that of the tested point that is nearest to failing. *literal* follows the "
    "text, *resolved* corrects or completes it. *released* values leave an agent, *own* ones are "
    "of an agent's own model. An *exact* number has no random part. *By interpretation* lists the "
    "verdict of each interpretation alone. *verdict of Theorem ...* is that of the statement; "
    "*the runs alone* that of the experiment. Intervals and verdicts are adjusted for the number "
    "of claims (Holm)."
)
"""Words of the scorecard."""


def page(results: Results) -> dict[str, object]:
    """Collect the content of the page of all claims."""
    papers = [
        {"key": key, "claims": rows, "counts": counts(rows)}
        for key, rows in grouped(scored(results), itemgetter("paper")).items()
    ]
    return {
        "papers": papers,
        "counted": [paper for paper in papers if any(c["count"] for c in paper["counts"])],
        "counts": counts(scored(results)),
        "statements": statements.by_claim(results.statements),
    }  # fmt: skip


@lru_cache(maxsize=1)
def scored(results: Results) -> list[dict[str, object]]:
    """Return one row per claim, for its primary variant, with the command to reproduce it.

    The rows have formatted numbers. Additions of this project are the last rows.
    """
    primary = [claim for claim in results.claims if claim["is_primary"]]
    return [
        {**formatted(row, results.labels), "command": command(row["figure"], results.scale)}
        for row in sorted(primary, key=itemgetter("addition"))
    ]


def files(claims: Sequence[Row]) -> dict[str, str]:
    """Return the scorecard as CSV and Markdown, by file name."""
    rows = [[row.get(key) for key in COLUMNS] for row in claims]
    frame = pl.DataFrame(rows, schema=COLUMNS, orient="row", infer_schema_length=None)
    return {"scorecard.csv": csv(frame), "scorecard.md": markdown(claims)}


def markdown(claims: Sequence[Row]) -> str:
    """Format the counts of verdicts and one row per claim as Markdown; additions stand apart."""
    titles = ("claim", "verdict", "quotation", "setting", "statistic", "value", "interval",
              "claimed", "unadjusted verdict", "runs", "remark", "figure")  # fmt: skip
    by_paper = grouped([row for row in claims if not row["addition"]], itemgetter("paper"))
    tallies = [
        (paper, *(f"{item['count']}{item['restricted']}" for item in counts(group)))
        for paper, group in [*by_paper.items(), ("all", claims)]
    ]
    tally = markdown_table(("paper", *MEANINGS), tallies)
    text = f"# Scorecard\n\n{tally}\n{LEGEND}\n"
    for addition, rows in grouped(claims, itemgetter("addition")).items():
        heading = f"\n## {ADDITIONS}\n" * addition
        text += f"{heading}\n{markdown_table(titles, map(_cells, rows))}"
    return text


def _cells(row: Row) -> list[str]:
    texts = (row["verdict"], cited(row), row["setting"], row["statistic"], row["shown"],
             row["interval"], row["accepted"], row["verdict_unadjusted"], number(row["runs"]),
             row["remark"])  # fmt: skip
    claim = f"{code(row['id'])} {cell(row['claim'])}"
    return [claim, *(cell(text or NONE) for text in texts), code(row["command"])]


def cited(row: Row) -> str:
    """Return the quotation of a claim with its location; only the location without a quotation."""
    return row["location"] if not row["quotation"] else f"“{row['quotation']}” ({row['location']})"
