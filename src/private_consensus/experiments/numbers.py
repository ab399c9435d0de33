"""From measurements of runs to the numbers of a figure: tidy, one row a plotted point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ..errors import require

FIXED = (
    "experiment",
    "algorithm",
    "variant",
    "reading",
    "quantity",
    "metric",
    "t",
    "run",
    "value",
    "source",
)
INTERVAL = "mean +- standard error"


def figure_numbers(
    panels: Sequence[Mapping[str, Any]],
    cells: Mapping[tuple[str, str], tuple[pl.DataFrame, pl.DataFrame]],
    *,
    source: str,
) -> pl.DataFrame:
    """All points of a figure.

    Parameters
    ----------
    panels : sequence of mapping
        As :class:`private_consensus.experiments.schema.Panel` dumps them.
    cells : mapping
        (experiment, algorithm) to runs and privacy of the cell.
    source : str
        Where the data came from.

    Returns
    -------
    DataFrame
        Columns panel, algorithm, variant, reading, those of the axes, x, y, low, high, runs,
        interval, source, and ``series``, which tells apart curves of one variant.
    """
    parts = []
    for panel in panels:
        for curve in panel["curves"]:
            runs, privacy = cells[panel["experiment"], curve["algorithm"]]
            points = curve_points(runs, privacy, curve, curve["x"] or panel["x"])
            parts.append(points.with_columns(panel=pl.lit(panel["title"])))
    numbers = pl.concat(parts, how="diagonal_relaxed").with_columns(source=pl.lit(source))
    first = ["panel", "algorithm", "variant", "reading"]
    last = ["series", "x", "y", "low", "high", "runs", "interval", "source"]
    axes = [column for column in numbers.columns if column not in first + last]
    return numbers.select(first + axes + last)


def curve_points(
    runs: pl.DataFrame, privacy: pl.DataFrame, curve: Mapping[str, Any], x: str
) -> pl.DataFrame:
    """The points of one curve: mean over runs and its standard error."""
    axes = [column for column in runs.columns if column not in FIXED]
    kept = runs.filter(
        (pl.col("variant") == curve["run"])
        & (pl.col("quantity") == curve["quantity"])
        & (pl.col("metric") == curve["metric"])
    )
    for column, value in curve["where"].items():
        kept = kept.filter(pl.col(column) == value)
    require(kept.height > 0, "curve", dict(curve), "at least one measurement")
    if x not in kept.columns:
        keys = ["variant", *axes]
        require(x in privacy.columns, "panel.x", x, "an axis, t, or a column of the privacy table")
        kept = kept.join(privacy.select(*keys, x), on=keys)
    spread = pl.col("value").std(ddof=1).fill_null(0.0) / pl.len().sqrt()
    by = curve["by"]
    keys = dict.fromkeys([*axes, x])
    return (
        kept.group_by(*keys)
        .agg(y=pl.col("value").mean(), error=spread, runs=pl.len())
        .with_columns(
            pl.col(x).cast(float).alias("x"),
            low=pl.col("y") - pl.col("error"),
            high=pl.col("y") + pl.col("error"),
            algorithm=pl.lit(curve["algorithm"]),
            variant=pl.lit(curve["variant"]),
            reading=pl.lit(curve["reading"]),
            series=pl.format("{} = {}", pl.lit(by), pl.col(by)) if by else pl.lit(""),
            interval=pl.lit(INTERVAL),
        )
        .drop("error", *([] if x in axes else [x]))
        .sort("series", "x")
    )
