r"""How much of the gap between local training and central noise a method closes.

.. math:: g = \frac{L_\text{local} - L}{L_\text{local} - L_\text{central}}

of mean losses over the same runs, with the jackknife's interval of a function of means: 0 is as
good as to train alone, 1 as if a trusted server added the noise; below 0 talking does harm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..claims.intervals import jackknife, limits
from ..multiplicity import ALPHA
from .leaders import interval

LOCAL, CENTRAL = "local_training", "secure_aggregation"


@dataclass(frozen=True)
class Share:
    """Share of the gap with its interval; not numbers where there is no gap to close."""

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
    """Share of the gap that a method closes.

    Parameters
    ----------
    method, local, central : ndarray, shape (runs,)
        Losses in the same runs; lower is better.

    Returns
    -------
    Share
        Without numbers where the runs do not show that central noise is better than local training:
        the quotient of two numbers of which one may be 0 says nothing.
    """
    return closed_by_each(method[None], local, central, alpha)[0]


def closed_by_each(
    methods: np.ndarray, local: np.ndarray, central: np.ndarray, alpha: float = ALPHA
) -> list[Share]:
    """Apply :func:`closed` to several methods [methods, runs]."""
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
