"""Select the measurements of a series as arrays with one row per point and one column per run."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import polars as pl

from private_consensus.common.errors import InvalidInput, require
from private_consensus.common.row_filters import selected

from .schema import Series
from .words import point_words


def rows_of(series: Series, frame: pl.DataFrame) -> pl.DataFrame:
    """Select the rows of a series; a series without rows raises ``InvalidInput``."""
    curve = {"experiment": series.experiment, "algorithm": series.method, "variant": series.variant}
    rows = frame.filter(**curve).filter(*selected(series.where))
    expected = "a series with results: check experiment, method, variant and where"
    require(rows.height > 0, "series", series.model_dump(), expected)
    return rows


def measured(
    series: Series, runs: pl.DataFrame, x: str | None, other_axes: Sequence[str]
) -> tuple[list[str], np.ndarray, list[np.ndarray]]:
    """Return the measurements of a series along x, for each group of settings.

    Parameters
    ----------
    x : str or None
        Axis of the points; None is an error.
    other_axes : sequence of str
        Further axes; each combination of their values is a group.

    Returns
    -------
    labels : list of str
        Label of each group, such as " at delta 0.001"; empty without further axes.
    values : ndarray, [points of all groups, runs]
        Measurements.
    grids : list of ndarray
        Values of x of each group.
    """
    if x is None:
        raise InvalidInput("test.x", x, "the name of an axis")
    quantity, metric = series.measure or ("", "")
    rows = rows_of(series, runs).filter(quantity=quantity, metric=metric)
    expected = "a series with measurements: check the measures and iterations of the experiment"
    require(rows.height > 0, "series", series.model_dump(), expected)
    if series.last_iteration_only:
        # The last iteration depends on the point if an axis varies the horizon.
        axes = [name for name in (x, *other_axes) if name != "t"]
        last = pl.col("t").max()
        rows = rows.filter(pl.col("t") == (last.over(axes) if axes else last))
    levels = [rows[column].unique().sort().to_list() for column in other_axes]
    labels, values, grids = [], [], []
    for group in product(*levels):
        group_rows = rows.filter(**dict(zip(other_axes, group, strict=True))).sort(x, "run")
        wide = group_rows.pivot(on="run", index=x, values="value")
        grids.append(wide[x].to_numpy())
        values.append(wide.drop(x).to_numpy())
        point = ", ".join(map(point_words, other_axes, group))
        labels.append(f" at {point}" if point else "")
    return labels, np.concatenate(values), grids


def paired(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Restrict two series, [points, runs], to the runs of both; a single run is repeated."""
    pair = first, second
    runs = min((values.shape[1] for values in pair if values.shape[1] > 1), default=1)
    first, second = (np.broadcast_to(v[:, :runs], (len(v), runs)) for v in pair)
    return first, second
