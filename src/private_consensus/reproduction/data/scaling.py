"""Scalings of columns and rows of the features.

Column maxima and ranges are computed from the data and treated as public, as in the papers. The
data card states this.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


def column_max(x: np.ndarray) -> np.ndarray:
    """Divide every column by its largest absolute value."""
    largest = np.abs(x).max(axis=0, initial=0.0)
    return x / np.where(largest > 0, largest, 1.0)


def minmax(x: np.ndarray) -> np.ndarray:
    """Scale every column linearly to [0, 1]; a constant nonzero column becomes 1."""
    low, high = x.min(axis=0), x.max(axis=0)
    constant = low == high
    scaled = (x - low) / np.where(constant, 1.0, high - low)
    return np.where(constant, x != 0, scaled)


def minmax_sqrt_dim(x: np.ndarray) -> np.ndarray:
    """Scale every column linearly to [0, 1/sqrt(d)], so that the l2 norm of rows is at most one."""
    return minmax(x) / np.sqrt(x.shape[1])


def clip_rows(x: np.ndarray) -> np.ndarray:
    """Scale rows with l2 norm above one to norm one."""
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1.0)


def unit_rows(x: np.ndarray) -> np.ndarray:
    """Scale every row to l2 norm one; rows of zeros remain zero."""
    norms = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(norms > 0, norms, 1.0)


@dataclass(frozen=True)
class Scaling:
    """Scaling of columns or rows.

    Attributes
    ----------
    apply : callable
        From features [rows, dim] to scaled features.
    note : str, optional
        Sentence for the data card.
    data_use : str, optional
        Use of private data whose privacy cost is not counted.
    """

    apply: Callable[[np.ndarray], np.ndarray]
    note: str | None = None
    data_use: str | None = None


_RANGES = "columns are scaled by their smallest and largest value over all rows"
COLUMNS = {
    "none": Scaling(lambda x: x),
    "column_max": Scaling(
        column_max,
        "Columns are divided by their largest value, which is treated as public.",
        "columns are divided by their largest value over all rows",
    ),
    "minmax": Scaling(
        minmax, "Columns are scaled to [0, 1]; their ranges are treated as public.", _RANGES
    ),
    "minmax_sqrt_dim": Scaling(
        minmax_sqrt_dim,
        "Columns are scaled to [0, 1/sqrt(d)]; their ranges are treated as public.",
        _RANGES,
    ),
}
ROWS = {
    "none": Scaling(lambda x: x),
    "clip": Scaling(
        clip_rows,
        "Each row with l2 norm above one is scaled to norm one.",
        "the norm of each row is public to be at most one, to which the row is scaled",
    ),
    "unit": Scaling(
        unit_rows,
        "Each row is scaled to l2 norm one.",
        "the norm of each row is public to be one, to which the row is scaled",
    ),
}
