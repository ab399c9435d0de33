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
    """Rank and loss of a method in a cell.

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
    names = sorted(runs)
    values = np.array([runs[name] for name in names], float)
    if not values.size:
        return []
    with np.errstate(invalid="ignore"):  # two that diverged differ by nothing
        apart = values[:, None] - values[None]
    order = sorted(range(len(names)), key=lambda i: (values[i].mean(), names[i]))
    each = alpha / max(1, len(names) - 1)
    beaten = np.any(interval(apart, 2 * each)[1] > 0, axis=1)
    own, behind = interval(values, alpha), interval(apart[:, order[0]], alpha)
    return [
        Place(names[i], *(float(end[i]) for end in (*own, *behind)), not beaten[i]) for i in order
    ]


def interval(values: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means over the last axis, of runs, with two-sided intervals (:mod:`..claims.intervals`).

    Infinite values in any run make the mean what they are, without an interval; where they cancel
    each other (not a number) it is 0.
    """
    values = np.asarray(values, float)
    wild = ~np.isfinite(values)
    tame = np.where(wild, 0.0, values)
    mean, runs = tame.mean(-1), values.shape[-1]
    centred = tame - mean[..., None]
    deviation = centred.std(-1)
    # Rounding of equal numbers is no spread.
    deviation = np.where(deviation <= 1e-13 * np.abs(mean), 0.0, deviation)
    unit = centred / np.where(deviation > 0, deviation, 1.0)[..., None]
    error = deviation / np.sqrt(max(1, runs - 1))
    low, high = limits(mean, error, (unit**3).mean(-1), runs, alpha)
    with np.errstate(invalid="ignore"):
        ends = np.nan_to_num(
            np.where(wild, values, 0.0).sum(-1), nan=0.0, posinf=np.inf, neginf=-np.inf
        )
    some = wild.any(-1)
    mean, low, high = (np.where(some, ends, found) for found in (mean, low, high))
    return mean, low, high
