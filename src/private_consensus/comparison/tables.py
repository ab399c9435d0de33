"""Table of the comparison as arrays: cells by methods by runs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np
import polars as pl

from .schema import ANYONE, CELL, PRIMARY

LARGER_IS_BETTER = ("accuracy_mean", "accuracy_worst")


class Cube(NamedTuple):
    """Values of one metric [cells, methods, runs]; NaN if a method did not run; lower is better.

    ``cells`` are rows of :data:`.schema.CELL`.
    """

    cells: list[tuple]
    methods: list[str]
    values: np.ndarray

    @property
    def means(self) -> np.ndarray:
        """Means over the available runs; shape (cells, methods)."""
        counts = (~np.isnan(self.values)).sum(-1)
        return np.where(counts > 0, np.nansum(self.values, -1) / np.maximum(counts, 1), np.nan)

    def part(self, rows: list[int]) -> Cube:
        """Return the cube of some cells."""
        return Cube([self.cells[i] for i in rows], self.methods, self.values[rows])

    def runs(self, cell: tuple, method: str) -> np.ndarray:
        """Return the values of a method in a cell, shape (runs,); empty if there are none.

        Parameters
        ----------
        cell : tuple
            Row of :data:`.schema.CELL`.
        method : str
            Name of the method.

        Returns
        -------
        ndarray
        """
        if cell not in self.cells or method not in self.methods:
            return np.empty(0)
        return self.values[self.cells.index(cell), self.methods.index(method)]

    def of_cell(self, cell: int) -> dict[str, np.ndarray]:
        """Return the values, shape (runs,), of the methods that ran in a cell.

        They are restricted to common runs, so that methods can be compared in pairs.
        """
        values = self.values[cell]
        ran = ~np.isnan(values).all(-1)
        common = ~np.isnan(values[ran]).any(0)
        return {name: values[i, common] for i, name in enumerate(self.methods) if ran[i]}


def signed(measure: str) -> int:
    """Return -1 for a measure whose larger values are better, else 1."""
    return -1 if measure in LARGER_IS_BETTER else 1


def cube(table: pl.DataFrame, measure: str, tuning: str = PRIMARY) -> Cube:
    """Return the values of a measure for one kind of tuning.

    Parameters
    ----------
    table : DataFrame
        Results with the columns of :mod:`.schema`.
    measure : str
        Name of the measure.
    tuning : str
        Kind of tuning.

    Returns
    -------
    Cube
        Measures whose larger values are better have the opposite sign.
    """
    rows = table.filter((pl.col("measure") == measure) & (pl.col("tuning") == tuning))
    cells = sorted(rows.select(*CELL).unique().rows())
    methods = sorted(rows["method"].unique())
    if not cells:
        return Cube([], [], np.empty((0, 0, 0)))
    wide = rows.pivot(on="run", index=[*CELL, "method"], values="value", sort_columns=True).sort(
        *CELL, "method"
    )
    row_of, column_of = ({key: i for i, key in enumerate(keys)} for keys in (cells, methods))
    runs = wide.drop(*CELL, "method").cast(pl.Float64).fill_null(np.nan).to_numpy()
    values = np.full((len(cells), len(methods), runs.shape[1]), np.nan)
    indices = [
        (row_of[tuple(cell)], column_of[name])
        for *cell, name in wide.select(*CELL, "method").rows()
    ]
    values[tuple(np.transpose(indices))] = runs
    return Cube(cells, methods, signed(measure) * values)


class PartitionedRows:
    """Rows of the comparison, partitioned once by measure and tuning.

    Parameters
    ----------
    table : DataFrame
        Results with the columns of :mod:`.schema`.
    """

    def __init__(self, table: pl.DataFrame) -> None:
        self._empty = table.clear()
        self._cubes: dict[tuple[str, str], Cube] = {}
        self._rows = table.partition_by("measure", "tuning", as_dict=True)

    def rows(self, measure: str, tuning: str = PRIMARY) -> pl.DataFrame:
        """Return the rows of a measure and a kind of tuning.

        Parameters
        ----------
        measure : str
            Name of the measure.
        tuning : str
            Kind of tuning.

        Returns
        -------
        DataFrame
        """
        return self._rows.get((measure, tuning), self._empty)

    def cube(self, measure: str, tuning: str = PRIMARY) -> Cube:
        """Return the values of a measure and a kind of tuning; results are cached.

        Parameters
        ----------
        measure : str
            Name of the measure.
        tuning : str
            Kind of tuning.

        Returns
        -------
        Cube
        """
        if (measure, tuning) not in self._cubes:
            self._cubes[measure, tuning] = cube(self.rows(measure, tuning), measure, tuning)
        return self._cubes[measure, tuning]

    def kept(self, choose: Callable[[pl.DataFrame], pl.DataFrame]) -> PartitionedRows:
        """Return the rows that a filter selects from each part.

        Parameters
        ----------
        choose : callable
            Map from a DataFrame to some of its rows.

        Returns
        -------
        PartitionedRows
        """
        selected = PartitionedRows(self._empty)
        selected._rows = {key: choose(rows) for key, rows in self._rows.items()}
        return selected


def compared(table: pl.DataFrame, observer: str, references: Collection[str] = ()) -> pl.DataFrame:
    """Return the rows of methods that are ranked for an observer: proven ones, and baselines.

    Parameters
    ----------
    table : DataFrame
        Results with the columns of :mod:`.schema`.
    observer : str
        Observer of the ranking.
    references : collection of str
        Methods with a guarantee against a stronger observer, which are ranked as references.

    Returns
    -------
    DataFrame
    """
    ranked = pl.col("observer").is_in([observer, ANYONE]) | pl.col("method").is_in(list(references))
    return table.filter(ranked & pl.col("proven") & (pl.col("observer") != "none"))
