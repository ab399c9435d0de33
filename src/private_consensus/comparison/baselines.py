"""Baselines without privacy cost, and the rule for cells in which nothing private is learned.

A baseline depends on no record of an agent: the model without data, the class frequencies of the
public records, and the minimiser on the public records. A private method is of use in a cell only
if it is better than all of them. A cell without such a method is marked "budget too small for
these data".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import polars as pl

from private_consensus.common.multiplicity import ALPHA
from private_consensus.reproduction.claims.intervals import MIN_RUNS

from .schema import ANYONE
from .statistics import interval
from .tables import Cube


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
