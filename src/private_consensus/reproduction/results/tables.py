"""Tables of computed and published numbers, as data frame and Markdown."""

import math
from collections.abc import Mapping
from typing import Any, cast

import polars as pl

from private_consensus.common.fields import split_measure
from private_consensus.common.spreadsheets import markdown as escaped
from private_consensus.common.spreadsheets import markdown_table

NONE = "–"
"""Text of an absent number."""


def table_numbers(
    table: Mapping[str, Any], cells: Mapping[tuple[str, str], pl.DataFrame]
) -> pl.DataFrame:
    """Compute the numbers of a table, one row per method and value of the row axis.

    ``value`` is the mean over runs, ``std`` the standard deviation over runs, ``se`` the standard
    error of the mean. ``difference`` is computed minus published mean in combined standard errors,
    where the published standard deviation is that of ``published_runs`` runs. Each measure of
    ``extra_columns`` has a column of its own.
    """
    rows = [
        row
        for block in table["blocks"]
        for method in block["methods"]
        for row in _method_rows(table, block, method, cells)
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    order = {block["label"]: index for index, block in enumerate(table["blocks"])}
    position = pl.col("block").replace_strict(order, return_dtype=pl.Int64)
    return frame.sort(position, "row", maintain_order=True)


def _method_rows(table, block, method, cells) -> list[dict[str, Any]]:
    runs = cells[block["experiment"], method["method"]].filter(variant=method["variant"])
    published = {row: numbers for row, *numbers in method["published"]}
    axis = table["row_axis"]
    return [
        {
            "block": block["label"],
            "row": float(level),
            "method": method["label"],
            "algorithm": method["method"],
            "variant": method["variant"],
            "interpretation": method["interpretation"],
            **_compared(table, runs.filter(pl.col(axis) == level), *published.get(level, ())),
            "source": str(runs["source"][0]),
        }
        for level in runs[axis].unique().sort()
    ]


def _compared(
    table: Mapping[str, Any], runs: pl.DataFrame, mean: float | None = None, std: float = 0.0
) -> dict[str, Any]:
    """Return the numbers of a cell next to the published mean and standard deviation."""
    values = _measured(runs, table["measure"])
    value, deviation = cast(float, values.mean()), cast(float, values.std() or 0.0)
    se = deviation / math.sqrt(len(values))
    combined = math.hypot(std / math.sqrt(table["published_runs"]), se)
    return {
        "published": mean,
        "published_std": None if mean is None else std,
        "value": value,
        "std": deviation,
        "se": se,
        "runs": len(values),
        "difference": None if mean is None else _quotient(value - mean, combined),
        **{title: _measured(runs, m).mean() for title, m in table["extra_columns"].items()},
    }


def _quotient(difference: float, error: float) -> float:
    return difference / error if error else math.nan


def _measured(runs: pl.DataFrame, measure: str) -> pl.Series:
    quantity, metric = split_measure(measure)
    return runs.filter(quantity=quantity, metric=metric)["value"]


def formatted(numbers: pl.DataFrame, table: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the column titles and the texts of all cells of a table from :func:`table_numbers`."""
    titles = ["", table["row_title"], "", "printed", "ours", "s.e.", "difference / s.e."]
    extra = list(table["extra_columns"])
    rows = [
        [
            row["block"],
            f"{row['row']:g}",
            row["method"],
            _pair(row["published"], row["published_std"]),
            _pair(row["value"], row["std"]),
            f"{row['se']:.4f}",
            NONE if row["difference"] is None else f"{row['difference']:+.1f}",
            *(f"{row[title]:.3f}" for title in extra),
        ]
        for row in numbers.iter_rows(named=True)
    ]
    return titles + extra, rows


def _pair(mean: float | None, std: float | None) -> str:
    return NONE if mean is None else f"{mean:.3f} ± {std:.3f}"


def markdown(numbers: pl.DataFrame, table: Mapping[str, Any]) -> str:
    """Format a table as Markdown, with title, caption and data sources."""
    titles, rows = formatted(numbers, table)
    header, *cells = [[escaped(text) for text in row] for row in [titles, *rows]]
    body = markdown_table(header, cells)
    return f"# {table['title']}\n\n{body}\n{table['caption']}\n\nData: {sources_of(numbers)}.\n"


def sources_of(numbers: pl.DataFrame) -> str:
    """Return the distinct data sources of a table, joined by semicolons."""
    return "; ".join(numbers["source"].unique().sort())
