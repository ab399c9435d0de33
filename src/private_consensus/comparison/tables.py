"""The table of the comparison as matrices: cells by methods, and the runs of one cell."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import polars as pl

from .schema import CELL

LARGER_IS_BETTER = ("accuracy_mean", "accuracy_worst")


class Matrix(NamedTuple):
    """Means over runs [cells, methods], not a number where a method did not run; lower is better.

    ``cells`` are rows of :data:`.schema.CELL`.
    """

    cells: list[tuple]
    methods: list[str]
    values: np.ndarray


def signed(measure: str) -> int:
    """-1 for a measure of which more is better, else 1."""
    return -1 if measure in LARGER_IS_BETTER else 1


def matrix(table: pl.DataFrame, measure: str, tuning: str = "default") -> Matrix:
    """Means of a measure by cell and method, of what ran with one kind of tuning."""
    chosen = table.filter((pl.col("measure") == measure) & (pl.col("tuning") == tuning))
    means = chosen.group_by([*CELL, "method"]).agg(pl.col("value").mean())
    methods = sorted(means["method"].unique())
    cells = sorted(means.select(*CELL).unique().rows())
    values = np.full((len(cells), len(methods)), np.nan)
    row, column = ({key: i for i, key in enumerate(keys)} for keys in (cells, methods))
    for *cell, method, value in means.select(*CELL, "method", "value").iter_rows():
        values[row[tuple(cell)], column[method]] = signed(measure) * value
    return Matrix(cells, methods, values)


def runs_of_cell(
    table: pl.DataFrame, measure: str, tuning: str = "default"
) -> dict[str, np.ndarray]:
    """Values [runs] of each method in the rows of one cell, in the order of runs; lower is better.

    Methods are given in the runs that all of them have, so that they can be compared in pairs.
    """
    chosen = table.filter((pl.col("measure") == measure) & (pl.col("tuning") == tuning))
    wide = chosen.pivot(on="method", index="run", values="value").sort("run").drop_nulls()
    return {
        name: signed(measure) * wide[name].to_numpy().astype(float)
        for name in wide.columns
        if name != "run"
    }


def compared(table: pl.DataFrame, observer: str, apart: Collection[str] = ()) -> pl.DataFrame:
    """Rows of methods that are ranked for an observer: those that are proven, cell by cell.

    ``apart`` are methods that serve as ends of the scale and are not ranked.
    """
    return table.filter(
        (pl.col("observer") == observer) & pl.col("proven") & ~pl.col("method").is_in(list(apart))
    )
