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
        """Whether there is a gap."""
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
    if np.isinf(local).any() or np.isinf(central).any():
        return NONE
    if interval(local - central, alpha)[1] <= 0:
        return NONE
    if np.isinf(method).any():
        return Share(-np.inf, -np.inf, -np.inf)
    values = np.stack([method, local, central])
    value, error, skewness = jackknife(_share, values)
    low, high = limits(value, error, skewness, len(local), alpha)
    return Share(float(value[0]), float(low[0]), float(high[0]))


def _share(means: np.ndarray) -> np.ndarray:
    method, local, central = means
    return ((local - method) / (local - central))[None]
