r"""What tuning brings: the loss with it over the loss with default parameters.

.. math:: \exp\Bigl(\frac1{|C|}\sum_{c \in C} \ln\frac{L_c^\text{tuned}}{L_c^\text{default}}\Bigr)

over cells C, below 1 where it helps, with the jackknife's interval over runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..claims.intervals import jackknife, limits
from ..multiplicity import ALPHA


class Gain(NamedTuple):
    """Geometric mean of ratios with its interval, over how many cells."""

    ratio: float
    low: float
    high: float
    cells: int


def gain(tuned: np.ndarray, default: np.ndarray, alpha: float = ALPHA) -> Gain:
    """Ratio of losses with tuning to those without.

    Parameters
    ----------
    tuned, default : ndarray, shape (cells, runs)
        The same cells and runs. Cells in which a mean is not above 0 or not finite have no ratio.
    """
    means = np.stack([tuned, default]).mean(-1)
    kept = (np.isfinite(means) & (means > 0)).all(0)
    cells = int(kept.sum())
    if not cells:
        return Gain(np.nan, np.nan, np.nan, 0)

    def mean_log_ratio(means: np.ndarray) -> np.ndarray:
        first, second = np.split(np.log(np.maximum(means, 1e-300)), 2)
        return (first - second).mean(0, keepdims=True)

    values = np.concatenate([tuned[kept], default[kept]])
    value, error, skewness = jackknife(mean_log_ratio, values)
    low, high = limits(value, error, skewness, values.shape[1], alpha)
    return Gain(*(float(np.exp(end[0])) for end in (value, low, high)), cells)
