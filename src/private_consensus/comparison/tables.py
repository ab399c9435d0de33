"""Table of the comparison as arrays: cells by methods by runs.

A baseline is a model without privacy cost. It depends on no record of an agent: the model without
data, the class frequencies of the public records, and the minimiser on the public records. A
private method is of use in a cell only if it is better than all baselines (:func:`learnable`). The
budget of a cell without such a method is too small. This depends on the kind of tuning: the trials
share the budget if tuning is counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from private_consensus.common.multiplicity import ALPHA
from private_consensus.reproduction.claims.intervals import MIN_RUNS

from .schema import ANYONE, CELL, PRIMARY, TRANSFERRED
from .statistics import interval

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


def rows_of(table: pl.DataFrame, measure: str, tuning: str) -> pl.DataFrame:
    """Return the rows of a measure and a kind of tuning.

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
    DataFrame
    """
    return table.filter((pl.col("measure") == measure) & (pl.col("tuning") == tuning))


def base_cells(cells: Iterable[Mapping[str, Any]]) -> set[tuple]:
    """Return the base cells among the cells of ``cells.json``, as rows of :data:`.schema.CELL`."""
    return {tuple(cell[key] for key in CELL) for cell in cells if cell["axis"] == "base"}


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
    rows = rows_of(table, measure, tuning)
    cells = rows.select(*CELL).unique().sort(*CELL)
    methods = rows.select("method").unique().sort("method")
    if cells.is_empty():
        return Cube([], [], np.empty((0, 0, 0)))
    index = [*CELL, "method"]
    wide = rows.pivot(on="run", index=index, values="value", sort_columns=True)
    grid = cells.join(methods, how="cross").join(wide, on=index, how="left").sort(index)
    runs = grid.drop(index).cast(pl.Float64).fill_null(np.nan).to_numpy(order="c")
    values = runs.reshape(cells.height, methods.height, -1)
    return Cube(cells.rows(), methods["method"].to_list(), signed(measure) * values)


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


def baselines_of(table: pl.DataFrame) -> list[str]:
    """Return the names of the baselines that have rows in a table."""
    return table.filter(pl.col("observer") == ANYONE)["method"].unique().sort().to_list()


def learnable(
    runs: Mapping[str, np.ndarray], baselines: Collection[str], alpha: float = ALPHA
) -> bool | None:
    """Return True if some private method is better than all baselines of a cell.

    A method is better if, for each baseline, the lower end of the interval of the paired
    difference of losses is above 0. The one-sided level ``alpha`` is shared by the private methods
    (Bonferroni). It need not be shared by the baselines, because all of them must be beaten.

    Parameters
    ----------
    runs : mapping of str to ndarray, shape (runs,)
        Losses of each method in the same runs; lower is better.
    baselines : collection of str
        Names of the baselines; those without runs in the cell are ignored.
    alpha : float
        One-sided level.

    Returns
    -------
    bool or None
        None if the cell has too few runs, no baseline or no private method: it is not judged.
    """
    private = [values for name, values in runs.items() if name not in baselines]
    free = [values for name, values in runs.items() if name in baselines]
    if not private or not free or len(free[0]) < MIN_RUNS:
        return None
    with np.errstate(invalid="ignore"):  # infinity minus infinity
        gains = np.array(free)[None] - np.array(private)[:, None]
    low = interval(gains, 2 * alpha / len(private))[1]
    return bool((low > 0).all(axis=1).any())


def learnable_cells(losses: Cube, baselines: Collection[str]) -> dict[tuple, bool | None]:
    """Return the outcome of :func:`learnable` for each cell of a cube.

    Parameters
    ----------
    losses : Cube
        Losses of the methods that are ranked for one observer, with baselines.
    baselines : collection of str
        Names of the baselines.

    Returns
    -------
    dict of tuple to bool or None
    """
    return {cell: learnable(losses.of_cell(i), baselines) for i, cell in enumerate(losses.cells)}


def learnable_by_transfer(ranked: pl.DataFrame, measure: str) -> dict[tuple, bool | None]:
    """Compare private methods that have parameters from other problems with all baselines.

    Baselines with public records have no such parameters. Their rows of the primary tuning are
    used.

    Parameters
    ----------
    ranked : DataFrame
        Result of :func:`compared` for one observer.
    measure : str
        Name of the measure.

    Returns
    -------
    dict of tuple to bool or None
        Outcome of :func:`learnable` for each cell.
    """
    is_baseline = pl.col("observer") == ANYONE
    tuning = pl.when(is_baseline).then(pl.lit(PRIMARY)).otherwise(pl.lit(TRANSFERRED))
    rows = ranked.filter(pl.col("tuning") == tuning).with_columns(tuning=pl.lit(TRANSFERRED))
    return learnable_cells(cube(rows, measure, TRANSFERRED), baselines_of(ranked))


def remaining(losses: Cube, outcomes: Mapping[tuple, Any]) -> Cube:
    """Return a cube without the cells whose budget is too small.

    Parameters
    ----------
    losses : Cube
        Losses by cell and method.
    outcomes : mapping
        Results of :func:`learnable_cells`; cells that are not judged remain.

    Returns
    -------
    Cube
    """
    return losses.part(
        [i for i, cell in enumerate(losses.cells) if outcomes.get(cell) is not False]
    )
