r"""Methods that are, or may be, best in one cell: pairwise comparison over common runs.

With k methods, j beats i if the lower end of an interval of :math:`x_i - x_j` is above 0 at the
one-sided level :math:`\alpha / (k - 1)`. A method that no other method beats may be best. The set
of these methods contains the method with the smallest mean with probability at least
:math:`1 - \alpha`, by Bonferroni over its k - 1 comparisons (subset selection, Gupta, Technometrics
7, 1965).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from private_consensus.common.multiplicity import ALPHA
from private_consensus.reproduction.claims.intervals import limits


@dataclass(frozen=True)
class Place:
    """Rank and loss of a method in a cell.

    Attributes
    ----------
    mean, low, high : float
        Mean over runs and its interval at level 1 - alpha.
    behind, behind_low, behind_high : float
        Paired difference of its mean and the smallest mean, with interval; 0 for the best method.
    may_be_best : bool
        True if no other method beats it.
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
    """Return the methods ordered by their mean, best first.

    Parameters
    ----------
    runs : mapping of str to ndarray, shape (runs,)
        Values of each method in the same runs; lower is better.
    alpha : float
        Level of the intervals.

    Returns
    -------
    list of Place
    """
    names = sorted(runs)
    values = np.array([runs[name] for name in names], float)
    if not values.size:
        return []
    with np.errstate(invalid="ignore"):  # infinity minus infinity
        differences = values[:, None] - values[None]
    order = sorted(range(len(names)), key=lambda i: (values[i].mean(), names[i]))
    pair_level = alpha / max(1, len(names) - 1)
    beaten = np.any(interval(differences, 2 * pair_level)[1] > 0, axis=1)
    mean_intervals, behind = interval(values, alpha), interval(differences[:, order[0]], alpha)
    return [
        Place(names[i], *(float(end[i]) for end in (*mean_intervals, *behind)), not beaten[i])
        for i in order
    ]


def interval(values: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means over the last axis (runs) with two-sided intervals (:mod:`..claims.intervals`).

    If a run has an infinite value, the mean and both ends are that infinity. If infinite values of
    both signs, or values that are not numbers, occur, all three are 0.

    Parameters
    ----------
    values : ndarray, shape (..., runs)
        Values of the runs.
    alpha : float
        Two-sided level; the coverage is 1 - alpha.

    Returns
    -------
    tuple of three ndarray, shape (...)
        Mean, lower and upper end.
    """
    values = np.asarray(values, float)
    wild = ~np.isfinite(values)
    tame = np.where(wild, 0.0, values)
    mean, runs = tame.mean(-1), values.shape[-1]
    centred = tame - mean[..., None]
    deviation = centred.std(-1)
    # Rounding errors of equal numbers are not a deviation.
    deviation = np.where(deviation <= 1e-13 * np.abs(mean), 0.0, deviation)
    unit = centred / np.where(deviation > 0, deviation, 1.0)[..., None]
    error = deviation / np.sqrt(max(1, runs - 1))
    low, high = limits(mean, error, (unit**3).mean(-1), runs, alpha)
    with np.errstate(invalid="ignore"):
        ends = np.nan_to_num(
            np.where(wild, values, 0.0).sum(-1), nan=0.0, posinf=np.inf, neginf=-np.inf
        )
    diverged = wild.any(-1)
    mean, low, high = (np.where(diverged, ends, end) for end in (mean, low, high))
    return mean, low, high
