r"""Benefit of tuning: the loss with tuning over the loss with default parameters.

.. math:: \exp\Bigl(\frac1{|C|}\sum_{c \in C} \ln\frac{L_c^\text{tuned}}{L_c^\text{default}}\Bigr)

over cells C, below 1 if tuning helps, with the jackknife's interval over runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from private_consensus.common.multiplicity import ALPHA
from private_consensus.reproduction.claims.intervals import jackknife, limits


class Gain(NamedTuple):
    """Geometric mean of ratios of losses with its interval, and the number of cells."""

    ratio: float
    low: float
    high: float
    cells: int


def gain(tuned: np.ndarray, default: np.ndarray, alpha: float = ALPHA) -> Gain:
    """Return the ratio of losses with tuning to those without.

    Parameters
    ----------
    tuned, default : ndarray, shape (cells, runs)
        Losses in the same cells and runs. Cells with a mean that is not positive and finite are
        omitted.
    alpha : float
        Level of the interval.

    Returns
    -------
    Gain
        NaN if no cell remains.
    """
    means = np.stack([tuned, default]).mean(-1)
    valid = (np.isfinite(means) & (means > 0)).all(0)
    cells = int(valid.sum())
    if not cells:
        return Gain(np.nan, np.nan, np.nan, 0)

    def mean_log_ratio(means: np.ndarray) -> np.ndarray:
        first, second = np.split(np.log(np.maximum(means, 1e-300)), 2)
        return (first - second).mean(0, keepdims=True)

    values = np.concatenate([tuned[valid], default[valid]])
    value, error, skewness = jackknife(mean_log_ratio, values)
    low, high = limits(value, error, skewness, values.shape[1], alpha)
    return Gain(*(float(np.exp(end[0])) for end in (value, low, high)), cells)
