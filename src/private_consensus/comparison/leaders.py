r"""Who is best in one cell, and who may be: methods compared in pairs, run by run.

With k methods, j beats i where the lower end of an interval of :math:`x_i - x_j` is above 0 at the
one-sided level :math:`\alpha / (k - 1)`. Who is beaten by nobody may be best. That set contains the
method with the least mean with probability :math:`1 - \alpha` at least: by Bonferroni over its
k - 1 comparisons (subset selection, Gupta, Technometrics 7, 1965).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..claims.intervals import limits
from ..multiplicity import ALPHA


@dataclass(frozen=True)
class Place:
    """One method in one cell.

    Attributes
    ----------
    mean, low, high : float
        Mean over runs and its own interval at level 1 - alpha.
    behind, behind_low, behind_high : float
        How far its mean is above that of the method with the least, in pairs; 0 for that one.
    may_be_best : bool
    """

    method: str
    mean: float
    low: float
    high: float
    behind: float
    behind_low: float
    behind_high: float
    may_be_best: bool


def places(runs: Mapping[str, np.ndarray], alpha: float = ALPHA) -> list[Place]:
    """Methods by their mean, the best first.

    Parameters
    ----------
    runs : mapping of str to ndarray, shape (runs,)
        Values in the same runs; lower is better.
    """
    if not runs:
        return []
    names = sorted(runs, key=lambda name: (_mean(runs[name]), name))
    first = names[0]
    each = alpha / max(1, len(names) - 1)
    found = []
    for name in names:
        mean, low, high = interval(runs[name], alpha)
        behind, behind_low, behind_high = difference(runs[name], runs[first], alpha)
        beaten = any(
            difference(runs[name], runs[other], 2 * each)[1] > 0 for other in names if other != name
        )
        found.append(Place(name, mean, low, high, behind, behind_low, behind_high, not beaten))
    return found


def difference(one: np.ndarray, other: np.ndarray, alpha: float) -> tuple[float, float, float]:
    """Mean of ``one - other`` with its two-sided interval; of infinite values as they stand."""
    if np.isinf(one).any() or np.isinf(other).any():
        both = np.isinf(one).any() and np.isinf(other).any()
        apart = 0.0 if both else float(np.inf if np.isinf(one).any() else -np.inf)
        return apart, apart, apart
    return interval(one - other, alpha)


def interval(values: np.ndarray, alpha: float) -> tuple[float, float, float]:
    """Mean of runs with its interval, see :mod:`..claims.intervals`; of infinite ones infinite."""
    if np.isinf(values).any():
        return np.inf, np.inf, np.inf
    mean, runs = values.mean(), len(values)
    centred = values - mean
    # Rounding of equal numbers is no spread.
    deviation = centred.std()
    if deviation <= 1e-13 * max(abs(mean), 1e-300):
        return float(mean), float(mean), float(mean)
    skewness = (centred**3).mean() / deviation**3
    low, high = limits(mean, deviation / np.sqrt(max(1, runs - 1)), skewness, runs, alpha)
    return float(mean), float(low), float(high)


def _mean(values: np.ndarray) -> float:
    return float(values.mean())
