"""Scalings of columns and norms of rows.

Column maxima, minima and ranges are taken from the data and treated as public, as the papers do;
the card says so.
"""

from __future__ import annotations

import numpy as np

from private_consensus.common.errors import InvalidInput


def column_max(x: np.ndarray) -> np.ndarray:
    """Divide every column by its largest absolute value."""
    largest = np.abs(x).max(axis=0, initial=0.0)
    return x / np.where(largest > 0, largest, 1.0)


def minmax(x: np.ndarray) -> np.ndarray:
    """Bring every column to [0, 1]; a constant column becomes 1 where it is not 0."""
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
    """Bring every row but zero to l2 norm one."""
    norms = _norms(x)
    return x / np.where(norms > 0, norms, 1.0)


def _norms(x: np.ndarray) -> np.ndarray:
    return np.linalg.norm(x, axis=1, keepdims=True)


COLUMNS = {
    "none": lambda x: x,
    "column_max": column_max,
    "minmax": minmax,
    "minmax_sqrt_dim": minmax_sqrt_dim,
}
ROWS = {"none": lambda x: x, "clip": clip_rows, "unit": unit_rows}


def scale(x: np.ndarray, *, scaling: str, row_norm: str) -> np.ndarray:
    """Scale columns, then rows.

    Parameters
    ----------
    x : ndarray, shape (rows, dim)
        Encoded features.
    scaling : {"none", "column_max", "minmax", "minmax_sqrt_dim"}
        Of columns.
    row_norm : {"none", "clip", "unit"}
        Of rows: ``clip`` makes norms at most one, ``unit`` exactly one.
    """
    if scaling not in COLUMNS:
        raise InvalidInput("scaling", scaling, f"one of {', '.join(COLUMNS)}")
    if row_norm not in ROWS:
        raise InvalidInput("row_norm", row_norm, f"one of {', '.join(ROWS)}")
    return ROWS[row_norm](COLUMNS[scaling](x))
