"""Measurements of a series as arrays: values [points, runs], along an axis, group by group."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import polars as pl

from ..errors import InvalidInput, require
from .schema import Series


def rows_of(series: Series, frame: pl.DataFrame) -> pl.DataFrame:
    """Rows of a series; raises :class:`InvalidInput` where there are none, or no such column."""
    kept = frame.filter(
        (pl.col("experiment") == series.experiment)
        & (pl.col("algorithm") == series.algorithm)
        & (pl.col("variant") == series.run)
    )
    for column, wanted in series.where.items():
        if column not in kept.columns:
            raise InvalidInput("series.where", column, f"one of {', '.join(kept.columns)}")
        if isinstance(wanted, list | tuple):
            kept = kept.filter(pl.col(column).is_between(*wanted))
        else:
            kept = kept.filter(pl.col(column) == wanted)
    require(kept.height > 0, "series", series.model_dump(), "at least one row of results")
    return kept


def measured(
    series: Series, runs: pl.DataFrame, x: str | None, each: Sequence[str]
) -> tuple[list[str], np.ndarray, list[np.ndarray]]:
    """Labels of groups, values [points of all groups, runs], and x of each group."""
    if x is None:
        raise InvalidInput("test.x", x, "the name of an axis")
    kept = rows_of(series, runs).filter(
        (pl.col("quantity") == series.quantity) & (pl.col("metric") == series.metric)
    )
    require(kept.height > 0, "series", series.model_dump(), "at least one measurement")
    if series.last:
        # Along an axis of horizons the last iteration is another at each point.
        axes = [name for name in (x, *each) if name != "t"]
        last = pl.col("t").max()
        kept = kept.filter(pl.col("t") == (last.over(axes) if axes else last))
    levels = [kept[column].unique().sort().to_list() for column in each]
    labels, values, grids = [], [], []
    for group in product(*levels):
        part = kept
        for column, level in zip(each, group, strict=True):
            part = part.filter(pl.col(column) == level)
        wide = part.sort(x, "run").pivot(on="run", index=x, values="value")
        grids.append(wide[x].to_numpy())
        values.append(wide.drop(x).to_numpy())
        where = ", ".join(f"{c} {v:g}" for c, v in zip(each, group, strict=True))
        labels.append(f" at {where}" if where else "")
    return labels, np.concatenate(values), grids


def paired(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values [points, runs] of two series in the same runs; one exact run is repeated."""
    runs = max(first.shape[1], second.shape[1])
    both = [np.repeat(v, runs, axis=1) if v.shape[1] == 1 else v for v in (first, second)]
    common = min(v.shape[1] for v in both)
    return both[0][:, :common], both[1][:, :common]
