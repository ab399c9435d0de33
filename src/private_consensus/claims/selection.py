"""Measurements of a series as arrays: values [points, runs], along an axis, group by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
import polars as pl

from ..errors import InvalidInput, require
from .schema import Series, Test

CURVE = ("experiment", "algorithm", "variant")
"""What a series is found by."""

Curves = Mapping[tuple[Any, ...], pl.DataFrame]


def by_curve(frame: pl.DataFrame) -> Curves:
    """Rows by :data:`CURVE`, so that a series is found without a look at all rows of all cells.

    Rows of a curve stand together in what a cell writes: they are views of ``frame``, whose copy
    would be three times as large.
    """
    keys = frame.select(CURVE)
    begins = keys.select(pl.any_horizontal(pl.all().ne_missing(pl.all().shift())).arg_true())
    starts = begins.to_series().to_list()
    found: dict[tuple[Any, ...], list[pl.DataFrame]] = {}
    for key, (start, end) in zip(
        keys[starts].iter_rows(), pairwise([*starts, frame.height]), strict=True
    ):
        found.setdefault(key, []).append(frame[start:end])
    return {key: pl.concat(pieces) for key, pieces in found.items()}


def rows_for(tests: Sequence[Test], curves: Curves, none: pl.DataFrame) -> pl.DataFrame:
    """Rows of all series of some tests, each once; those of ``none`` where there are no others."""
    asked = [series for test in tests for series in (test.series, test.against) if series]
    keys = dict.fromkeys((one.experiment, one.algorithm, one.run) for one in asked)
    return pl.concat([none, *(curves[key] for key in keys if key in curves)])


def rows_of(series: Series, frame: pl.DataFrame) -> pl.DataFrame:
    """Rows of a series; raises :class:`InvalidInput` where there are none, or no such column."""
    kept = frame.filter(
        (pl.col("experiment") == series.experiment)
        & (pl.col("algorithm") == series.algorithm)
        & (pl.col("variant") == series.run)
    )
    for column in series.where:
        if column not in kept.columns:
            raise InvalidInput("series.where", column, f"one of {', '.join(kept.columns)}")
    if series.where:
        kept = kept.filter(*(_at(column, wanted) for column, wanted in series.where.items()))
    require(kept.height > 0, "series", series.model_dump(), "at least one row of results")
    return kept


def _at(column: str, wanted: Any) -> pl.Expr:
    if isinstance(wanted, list | tuple):
        return pl.col(column).is_between(*wanted)
    return pl.col(column) == wanted


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
