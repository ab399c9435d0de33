r"""Fraction of the gap between local training and central noise that a method closes.

.. math:: g = \frac{L_\text{local} - L}{L_\text{local} - L_\text{central}}

with mean losses over the same runs, and the jackknife's interval of a function of means. 0 is as
good as local training, and 1 as good as noise that a trusted server adds. Below 0, communication is
harmful.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from private_consensus.common.multiplicity import ALPHA
from private_consensus.reproduction.claims.intervals import jackknife, limits

from .leaders import interval

LOCAL, CENTRAL = "local_training", "secure_aggregation"


@dataclass(frozen=True)
class Share:
    """Fraction of the gap with its interval; NaN if there is no gap to close."""

    value: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Return True if there is a gap to close."""
        return not np.isnan(self.value)


NONE = Share(np.nan, np.nan, np.nan)


def closed(
    method: np.ndarray, local: np.ndarray, central: np.ndarray, alpha: float = ALPHA
) -> Share:
    """Return the fraction of the gap that a method closes.

    Parameters
    ----------
    method, local, central : ndarray, shape (runs,)
        Losses in the same runs; lower is better.
    alpha : float
        Level of the intervals.

    Returns
    -------
    Share
        NaN unless the runs show that central noise is better than local training: otherwise the
        denominator of the quotient may be 0.
    """
    return closed_by_each(method[None], local, central, alpha)[0]


def closed_by_each(
    methods: np.ndarray, local: np.ndarray, central: np.ndarray, alpha: float = ALPHA
) -> list[Share]:
    """Return the fraction of the gap that each of several methods closes.

    Parameters
    ----------
    methods : ndarray, shape (methods, runs)
        Losses of the methods; lower is better.
    local, central : ndarray, shape (runs,)
        Losses of local training and of central noise in the same runs.
    alpha : float
        Level of the intervals.

    Returns
    -------
    list of Share
        Minus infinity for a method with an infinite loss.
    """
    if np.isinf(local).any() or np.isinf(central).any():
        return [NONE] * len(methods)
    if interval(local - central, alpha)[1] <= 0:
        return [NONE] * len(methods)
    wild = [bool(np.isinf(method).any()) for method in methods]
    values = np.concatenate([methods[np.logical_not(wild)], [local, central]])
    value, error, skewness = jackknife(_share, values)
    low, high = limits(value, error, skewness, len(local), alpha)
    shares = iter(zip(value, low, high, strict=True))
    diverged = Share(-np.inf, -np.inf, -np.inf)
    return [diverged if is_wild else Share(*map(float, next(shares))) for is_wild in wild]


def _share(means: np.ndarray) -> np.ndarray:
    methods, (local, central) = means[:-2], means[-2:]
    return (local - methods) / (local - central)
