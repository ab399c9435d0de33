r"""Statistics of the runs of one cell or of some cells, with their intervals.

**Best methods of a cell** (:func:`methods_by_mean`). With k methods, j beats i if the lower end of
an interval of :math:`x_i - x_j` is above 0 at the one-sided level :math:`\alpha / (k - 1)`. A
method that no other method beats may be best. The set of these methods contains the method with the
smallest mean with probability at least :math:`1 - \alpha`, by Bonferroni over its k - 1 comparisons
(subset selection, Gupta, Technometrics 7, 1965).

**Pareto front** (:func:`front`). Methods that no other method dominates in loss and cost.

**Fraction of a gap** (:func:`closed_fractions`).

.. math:: g = \frac{L_\text{local} - L}{L_\text{local} - L_\text{central}}

with mean losses over the same runs, and the jackknife's interval of a function of means. 0 is as
good as local training, and 1 as good as noise that a trusted server adds. Below 0, communication is
harmful.

**Budget for a goal** (:func:`budget_needed`). Isotonic regression makes the mean losses at a few
:math:`\varepsilon` decreasing (a larger budget needs no more noise). They are interpolated linearly
in :math:`\ln\varepsilon`. If the goal is reached at the smallest budget, or not reached at the
largest, the result is censored.

**Benefit of tuning** (:func:`tuning_ratio`): the loss with tuning over the loss without,

.. math:: \exp\Bigl(\frac1{|C|}\sum_{c \in C} \ln\frac{L_c^\text{tuned}}{L_c^\text{default}}\Bigr)

over cells C, below 1 if tuning helps, with the jackknife's interval over runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from private_consensus.common.multiplicity import ALPHA
from private_consensus.reproduction.claims.intervals import jackknife, limits

COSTS = ("messages", "bits", "gradient_evaluations")
"""Measures whose Pareto fronts against the loss are published."""
LOCAL, CENTRAL = "local_training", "secure_aggregation"
"""Methods at the two ends of the gap."""


class Estimate(NamedTuple):
    """Estimate with the lower and upper end of its interval; NaN if it is undefined."""

    value: float
    low: float
    high: float


UNDEFINED = Estimate(np.nan, np.nan, np.nan)


class MethodRank(NamedTuple):
    """Rank and loss of a method in a cell.

    Attributes
    ----------
    mean, low, high : float
        Mean over runs and its interval at level 1 - alpha.
    behind_low, behind_high : float
        Interval of the paired difference of its mean and the smallest mean; 0 for the best method.
    may_be_best : bool
        True if no other method beats it.
    """

    method: str
    mean: float
    low: float
    high: float
    behind_low: float
    behind_high: float
    may_be_best: bool


def methods_by_mean(runs: Mapping[str, np.ndarray], alpha: float = ALPHA) -> list[MethodRank]:
    """Return the methods ordered by their mean, best first.

    Parameters
    ----------
    runs : mapping of str to ndarray, shape (runs,)
        Values of each method in the same runs; lower is better.
    alpha : float
        Level of the intervals.

    Returns
    -------
    list of MethodRank
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
    _, *behind = interval(differences[:, order[0]], alpha)
    ends = np.array([*interval(values, alpha), *behind])
    return [MethodRank(names[i], *ends[:, i].tolist(), not beaten[i]) for i in order]


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
    is_infinite = ~np.isfinite(values)
    finite_values = np.where(is_infinite, 0.0, values)
    mean, runs = finite_values.mean(-1), values.shape[-1]
    centred = finite_values - mean[..., None]
    deviation = centred.std(-1)
    # Rounding errors of equal numbers are not a deviation.
    deviation = np.where(deviation <= 1e-13 * np.abs(mean), 0.0, deviation)
    unit = centred / np.where(deviation > 0, deviation, 1.0)[..., None]
    error = deviation / np.sqrt(max(1, runs - 1))
    low, high = limits(mean, error, (unit**3).mean(-1), runs, alpha)
    with np.errstate(invalid="ignore"):
        ends = np.nan_to_num(
            np.where(is_infinite, values, 0.0).sum(-1), nan=0.0, posinf=np.inf, neginf=-np.inf
        )
    diverged = is_infinite.any(-1)
    mean, low, high = (np.where(diverged, ends, end) for end in (mean, low, high))
    return mean, low, high


def front(points: np.ndarray) -> np.ndarray:
    """Return a mask of the points that no other point dominates.

    A point dominates another if it is at most as large in every measure and smaller in one. Equal
    points do not dominate each other. A point with a non-finite value is not on the front.

    Parameters
    ----------
    points : ndarray, shape (n, measures)
        Values of each point; lower is better.

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    points = np.asarray(points, float)
    no_worse = (points[:, None] <= points[None]).all(-1)
    better = (points[:, None] < points[None]).any(-1)
    return np.asarray(np.isfinite(points).all(-1) & ~(no_worse & better).any(0))


def closed_fractions(
    methods: np.ndarray, local: np.ndarray, central: np.ndarray, alpha: float = ALPHA
) -> list[Estimate]:
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
    list of Estimate
        Minus infinity for a method with an infinite loss. All are NaN unless the runs show that
        central noise is better than local training: otherwise the denominator may be 0.
    """
    if np.isinf([local, central]).any() or interval(local - central, alpha)[1] <= 0:
        return [UNDEFINED] * len(methods)
    diverged = np.isinf(methods).any(1)
    values = np.concatenate([methods[~diverged], [local, central]])
    value, error, skewness = jackknife(_fractions, values)
    ends = np.full((3, len(methods)), -np.inf)
    ends[:, ~diverged] = value, *limits(value, error, skewness, len(local), alpha)
    return [Estimate(*column) for column in ends.T.tolist()]


def _fractions(means: np.ndarray) -> np.ndarray:
    methods, (local, central) = means[:-2], means[-2:]
    return (local - methods) / (local - central)


def budget_needed(
    epsilons: Sequence[float], values: np.ndarray, goal: float, alpha: float = ALPHA
) -> Estimate:
    """Return the epsilon at which the mean loss is at most the goal.

    Parameters
    ----------
    epsilons : sequence of float
        Budgets, increasing.
    values : ndarray, shape (epsilons, runs)
        Losses; lower is better.
    goal : float
        Loss to reach.
    alpha : float
        Level of the interval.

    Returns
    -------
    Estimate
        0 means at or below the smallest budget that was run, and infinity above the largest. The
        interval contains the budgets at which the goal is within the mean's interval at level
        1 - alpha. This inverts the test of the hypothesis that the mean is the goal.
    """
    return Estimate(*(crossing(epsilons, curve, goal) for curve in interval(values, alpha)))


def crossing(epsilons: Sequence[float], losses: np.ndarray, goal: float) -> float:
    """Return the epsilon at which the decreasing curve through the losses reaches the goal.

    Parameters
    ----------
    epsilons : sequence of float
        Budgets, increasing.
    losses : ndarray, shape (epsilons,)
        Losses at these budgets.
    goal : float
        Loss to reach.

    Returns
    -------
    float
        0 if the first loss is at most the goal, infinity if the curve never reaches the goal.
    """
    falling = _falling(np.asarray(losses, float))
    below = np.flatnonzero(falling <= goal)
    if not len(below):
        return np.inf
    last = below[0]
    if last == 0:
        return 0.0
    upper, lower = falling[last - 1], falling[last]
    if np.isinf(upper) or np.isinf(lower):
        return float(epsilons[last])
    fraction = (upper - goal) / (upper - lower)
    ends = np.log([epsilons[last - 1], epsilons[last]])
    return float(np.exp(ends[0] + fraction * (ends[1] - ends[0])))


def _falling(losses: np.ndarray) -> np.ndarray:
    """Return the non-increasing curve nearest to the losses.

    It is infinite up to the last infinite loss.
    """
    infinite = np.flatnonzero(np.isposinf(losses))
    start = int(infinite[-1]) + 1 if len(infinite) else 0
    curve = np.full(len(losses), np.inf)
    if start < len(losses):
        finite = np.maximum(losses[start:], -1e300)
        curve[start:] = isotonic_regression(finite, increasing=False).x
    return curve


def tuning_ratio(
    tuned: np.ndarray, default: np.ndarray, alpha: float = ALPHA
) -> tuple[Estimate, int]:
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
    ratio : Estimate
        Geometric mean over cells; NaN if no cell remains.
    cells : int
        Number of cells.
    """
    means = np.stack([tuned, default]).mean(-1)
    valid = (np.isfinite(means) & (means > 0)).all(0)
    if not valid.any():
        return UNDEFINED, 0

    def mean_log_ratio(means: np.ndarray) -> np.ndarray:
        first, second = np.split(np.log(np.maximum(means, 1e-300)), 2)
        return (first - second).mean(0, keepdims=True)

    values = np.concatenate([tuned[valid], default[valid]])
    value, error, skewness = jackknife(mean_log_ratio, values)
    low, high = limits(value, error, skewness, values.shape[1], alpha)
    return Estimate(*(float(np.exp(end[0])) for end in (value, low, high))), int(valid.sum())
