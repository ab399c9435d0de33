"""Scalings of columns and norms of rows.

Column maxima, minima and ranges are taken from the data and treated as public, as the papers do;
the card says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from private_consensus.common.errors import arguments


def column_max(x: np.ndarray) -> np.ndarray:
    """Divide every column by its largest absolute value."""
    largest = np.abs(x).max(axis=0, initial=0.0)
    return x / np.where(largest > 0, largest, 1.0)


def minmax(x: np.ndarray) -> np.ndarray:
    """Bring every column to [0, 1]; a constant column that is not 0 becomes 1."""
    low, high = x.min(axis=0), x.max(axis=0)
    constant = low == high
    scaled = (x - low) / np.where(constant, 1.0, high - low)
    return np.where(constant, np.sign(np.abs(x)), scaled)


def minmax_sqrt_dim(x: np.ndarray) -> np.ndarray:
    """Bring every column to [0, 1/sqrt(d)], so that every row's l2 norm is at most one."""
    return minmax(x) / np.sqrt(x.shape[1])


def clip_rows(x: np.ndarray) -> np.ndarray:
    """Shorten rows of l2 norm above one to norm one."""
    return x / np.maximum(_norms(x), 1.0)


def unit_rows(x: np.ndarray) -> np.ndarray:
    """Bring every row to l2 norm one; rows of zeros are unchanged."""
    norms = _norms(x)
    return x / np.where(norms > 0, norms, 1.0)


def _norms(x: np.ndarray) -> np.ndarray:
    return np.linalg.norm(x, axis=1, keepdims=True)


@dataclass(frozen=True)
class Scaling:
    """A scaling, the note on it for the data card, and its unaccounted use of private data."""

    apply: Callable[[np.ndarray], np.ndarray]
    note: str | None = None
    oracle: str | None = None


_RANGES = "columns are scaled by their least and largest value, over all rows"
COLUMNS = {
    "none": Scaling(lambda x: x),
    "column_max": Scaling(
        column_max,
        "Columns are divided by their largest value, which is treated as public.",
        "columns are divided by their largest value, over all rows",
    ),
    "minmax": Scaling(
        minmax, "Columns are brought to [0, 1]; their ranges are treated as public.", _RANGES
    ),
    "minmax_sqrt_dim": Scaling(
        minmax_sqrt_dim,
        "Columns are brought to [0, 1/sqrt(d)]; their ranges are treated as public.",
        _RANGES,
    ),
}
ROWS = {
    "none": Scaling(lambda x: x),
    "clip": Scaling(
        clip_rows,
        "Rows longer than one are shortened to l2 norm one, each by itself.",
        "the bound one on the norm of rows is public, each being shortened by itself",
    ),
    "unit": Scaling(
        unit_rows,
        "Rows are brought to l2 norm one, each by itself.",
        "that rows have norm one is public, each being scaled by itself",
    ),
}


def scale(x: np.ndarray, *, scaling: str, row_norm: str) -> np.ndarray:
    """Scale columns, then rows.

    Parameters
    ----------
    x : ndarray, shape (rows, dim)
        Encoded features.
    scaling : {"none", "column_max", "minmax", "minmax_sqrt_dim"}
        Scaling of columns.
    row_norm : {"none", "clip", "unit"}
        Scaling of rows: ``clip`` makes norms at most one, ``unit`` exactly one.

    Returns
    -------
    ndarray, shape (rows, dim)
    """
    arguments.choice("scaling", scaling, COLUMNS)
    arguments.choice("row_norm", row_norm, ROWS)
    return ROWS[row_norm].apply(COLUMNS[scaling].apply(x))
