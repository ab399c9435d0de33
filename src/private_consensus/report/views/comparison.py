"""Present the comparison of methods: the answer, pairwise wins, and public records to beat."""

import math
from pathlib import Path
from typing import Any

import polars as pl

from private_consensus.common.spreadsheets import markdown as escaped
from private_consensus.common.spreadsheets import markdown_table
from private_consensus.privacy.safe_digits import rounded_up
from private_consensus.reproduction.comparison import (
    EXPECTED_RUNS,
    KINDS,
    PUBLIC,
    ranking,
    thresholds,
    wins,
)
from private_consensus.reproduction.results.files import rows_of

from ..reading import Results

METRICS = {"excess_loss": "logistic regression", "normalised_error": "mean estimation"}
SAMPLE = f"{PUBLIC[1]} public records"
"""Baseline of the answer."""
CLOSE = 1.25
"""Methods are named together if their mean losses are at most this multiple of the lowest."""
NOTE = (
    "The accountant sets the noise of each method for an eavesdropper and one replaced record. All "
    "methods start at the origin. The loss is that of the mean of the agents' last messages. "
    "Parameters are those that are best on the other data sets. Ratio: geometric mean over cells "
    "of the loss over the lowest loss of methods without shared secrets. In hindsight: the loss "
    "over that of the best parameters of the cell. Edge: cells with the first or last parameters "
    "of the grid. Methods with shared secrets (*) have less noise against agents who know them. "
    "Then, per column: share of cells in which the row has the lower mean loss, and the number of "
    "cells that paired runs decide at the level 0.05, of all common cells."
)


def page(results: Results) -> dict[str, Any]:
    """Return the variables of the page, from the published comparison."""
    if results.comparison is None:
        return {"answer": "", "tables": [], "note": ""}
    means, losses = published(results.comparison)
    return {"answer": answer(means), "tables": tables(means, losses), "note": note(means)}


def published(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read mean losses per cell, and losses per run, from a folder."""
    return rows_of(folder / "means.parquet"), rows_of(folder / "losses.parquet")


def note(means: pl.DataFrame) -> str:
    """Explain the tables, and state how well models learn without privacy."""
    origin = means.filter(metric="excess_loss", algorithm="no data")
    lowest = math.log(2) - origin.group_by("problem").agg(pl.col("loss").mean())["loss"]
    return (
        f"{NOTE} The minimiser of the private records of a logistic regression has a loss per "
        f"record of {lowest.min():.2f} to {lowest.max():.2f} by problem, the origin "
        f"{math.log(2):.2f}."
    )


def answer(means: pl.DataFrame) -> str:
    """State in three sentences which method to use, and when public records are better."""
    rank, sentences = ranking(means).filter(pl.col("kind") != KINDS[2]), []
    for metric, problem in METRICS.items():
        ranked = rank.filter(metric=metric)
        plain, secret = (ranked.filter(kind=kind) for kind in KINDS[:2])
        lowest, highest = plain["ratio"][0], plain["ratio"][-1]
        close = plain.filter(pl.col("ratio") <= CLOSE * lowest)
        count = means.filter(metric=metric)["problem"].n_unique()
        sentences.append(
            f"For {problem} ({count} problems), use {_listed(close['method'].to_list(), 'or')} "
            f"(other methods have up to {highest / lowest:.2g} times the loss), or "
            f"{secret['method'][0]} if agents share secrets, which divides the loss by "
            f"{lowest / secret['ratio'][0]:.2g}."
        )
    smallest = thresholds(means.filter(metric="excess_loss"))
    smallest = smallest.filter(kind=KINDS[0], algorithm=SAMPLE)
    smallest = smallest.with_columns(size=pl.col("records").rank("dense").over("problem"))
    beaten = []
    for _, rows in smallest.sort("size").group_by("size", maintain_order=True):
        epsilons = [*map(_number, rows["epsilon"].unique().sort(nulls_last=True))]
        suffix = " or more" * (rows["records"].n_unique() > 1)
        records = f"{rows['records'].min():,}{suffix} records"
        beaten.append(f"from epsilon = {_listed(epsilons, 'or')} if agents hold {records}")
    sentences.append(
        "For logistic regression without shared secrets, the best method has a lower loss than a "
        f"model of {SAMPLE} {_listed(beaten)}, depending on the problem."
    )
    return " ".join(sentences)


def tables(means: pl.DataFrame, losses: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the tables: one per metric, that of public records, and that of tuning."""
    rank, won = ranking(means), wins(losses)
    result = []
    for metric, problem in METRICS.items():
        ranked = rank.filter(metric=metric)
        counts = won.filter(metric=metric).select("row", "column", "share", "decided", "cells")
        pairs = {
            (row, column): f"{share:.0%} ({decided}/{cells})"
            for row, column, share, decided, cells in counts.iter_rows()
        }
        methods = ranked["method"].to_list()
        rows = [
            [
                f"{row['method']}{'*' * (row['kind'] == KINDS[1])}",
                f"{row['ratio']:.3g}",
                f"{row['hindsight']:.3g}",
                f"{row['edge']}/{row['cells']}",
                *(pairs.get((row["method"], column), "") for column in methods),
            ]
            for row in ranked.to_dicts()
        ]
        columns = ["method", "ratio", "in hindsight", "edge", *methods]
        title = f"{problem[0].upper()}{problem[1:]}: mean losses and pairwise wins"
        result.append({"title": title, "columns": columns, "rows": rows})
    beaten = thresholds(means)
    keys = ["problem", "agents", "records"]
    columns = [(k, kind) for kind in KINDS[:2] for k in PUBLIC]
    rows = []
    for (problem, agents, records), cells in beaten.group_by(keys, maintain_order=True):
        public = [cells.filter(algorithm=f"{k} public records", kind=kind) for k, kind in columns]
        epsilons = [_number(cell["epsilon"].item()) for cell in public]
        rows.append([problem, f"{agents}", f"{records:,}", *epsilons])
    titles = [*keys, *(f"{k}{'*' * (kind == KINDS[1])}" for k, kind in columns)]
    title = "Smallest epsilon at which the best private method beats 50, 200 or 1000 public records"
    return [*result, {"title": title, "columns": titles, "rows": rows}, tuning(means)]


def tuning(means: pl.DataFrame) -> dict[str, Any]:
    """Return the table of tuning by random stopping, with one row per epsilon of a run."""
    ratio, by = pl.col("tuned") / pl.col("loss"), ["epsilon", "total"]
    ratios = (
        means.drop_nulls("tuned")
        .group_by(*by, "metric")
        .agg(ratio=ratio.log().mean().exp(), lower=(ratio < 1).sum(), cells=pl.len())
    )
    rounded = pl.col("ratio").round_sig_figs(3)
    texts = ratios.with_columns(text=pl.format("{} ({}/{})", rounded, "lower", "cells"))
    table = texts.pivot("metric", index=by, values="text").sort(by).select(*by, *METRICS)
    rows = [
        [f"{epsilon:g}", rounded_up(total, 3), *cells] for epsilon, total, *cells in table.rows()
    ]
    note = (
        "Tuning draws the parameters of K runs from the grid, and keeps the best run. K has a "
        f"logarithmic distribution with mean {EXPECTED_RUNS:.3g} (Papernot and Steinke 2022). "
        f"Tuning has {ratios['ratio'].min():.2g} to {ratios['ratio'].max():.2g} times the loss of "
        "transferred parameters with the epsilon of one run. This favours tuning: its total "
        "epsilon is larger. It is no guarantee, since the exact loss on private records selects "
        "the run, which no budget covers. "
        "In parentheses: cells in which tuning has the lower loss, of all cells of methods with "
        "Gaussian privacy and several points."
    )
    title = "Tuning by random stopping: loss over that of transferred parameters"
    columns = [
        "epsilon of one run",
        "total epsilon of all runs, without the selection",
        *METRICS.values(),
    ]
    return {"title": title, "columns": columns, "rows": rows, "note": note}


def markdown(means: pl.DataFrame, losses: pl.DataFrame) -> str:
    """Write answer, figure and tables as Markdown."""
    heading, figure = "# Which method should I use?", "![Losses](comparison.svg)"
    sections = [heading, answer(means), figure, note(means)]
    for table in tables(means, losses):
        cells = [[escaped(cell) for cell in row] for row in [table["columns"], *table["rows"]]]
        sections += [f"## {table['title']}", *filter(None, [table.get("note")])]
        sections.append(markdown_table(cells[0], cells[1:]).rstrip())
    return "\n\n".join(sections) + "\n"


def _number(epsilon: float | None) -> str:
    return "never" if epsilon is None else f"{epsilon:g}"


def _listed(texts: list[str], word: str = "and") -> str:
    return f" {word} ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))
