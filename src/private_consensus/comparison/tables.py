"""The table of the comparison as arrays: cells by methods by runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

import numpy as np
import polars as pl

from .schema import CELL

LARGER_IS_BETTER = ("accuracy_mean", "accuracy_worst")


class Cube(NamedTuple):
    """Values [cells, methods, runs], not a number where a method did not run; lower is better.

    ``cells`` are rows of :data:`.schema.CELL`.
    """

    cells: list[tuple]
    methods: list[str]
    values: np.ndarray

    @property
    def means(self) -> np.ndarray:
        """Means over the runs that there are; [cells, methods]."""
        counts = (~np.isnan(self.values)).sum(-1)
        return np.where(counts > 0, np.nansum(self.values, -1) / np.maximum(counts, 1), np.nan)

    def of_cell(self, cell: int) -> dict[str, np.ndarray]:
        """Values [runs] of the methods that ran in a cell, in the runs that all of them have, so
        that they can be compared in pairs."""
        values = self.values[cell]
        ran = ~np.isnan(values).all(-1)
        common = ~np.isnan(values[ran]).any(0)
        return {name: values[i, common] for i, name in enumerate(self.methods) if ran[i]}


def signed(measure: str) -> int:
    """-1 for a measure of which more is better, else 1."""
    return -1 if measure in LARGER_IS_BETTER else 1


def cube(table: pl.DataFrame, measure: str, tuning: str = "default") -> Cube:
    """Values of a measure of what ran with one kind of tuning."""
    chosen = table.filter((pl.col("measure") == measure) & (pl.col("tuning") == tuning))
    cells = sorted(chosen.select(*CELL).unique().rows())
    methods = sorted(chosen["method"].unique())
    runs = sorted(chosen["run"].unique())
    place = [{key: i for i, key in enumerate(keys)} for keys in (cells, methods, runs)]
    values = np.full((len(cells), len(methods), len(runs)), np.nan)
    for *cell, method, run, value in chosen.select(*CELL, "method", "run", "value").iter_rows():
        values[place[0][tuple(cell)], place[1][method], place[2][run]] = value
    return Cube(cells, methods, signed(measure) * values)


def compared(table: pl.DataFrame, observer: str, apart: Collection[str] = ()) -> pl.DataFrame:
    """Rows of methods that are ranked for an observer: those that are proven, cell by cell.

    ``apart`` are methods that serve as ends of the scale and are not ranked.
    """
    return table.filter(
        (pl.col("observer") == observer) & pl.col("proven") & ~pl.col("method").is_in(list(apart))
    )


def of_methods(table: pl.DataFrame, methods: Iterable[str]) -> pl.DataFrame:
    """Rows of some methods, whoever their observer is."""
    return table.filter(pl.col("method").is_in(list(methods)))
