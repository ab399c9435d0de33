r"""Budget that a method needs to reach a goal.

Isotonic regression makes the mean losses at a few :math:`\varepsilon` decreasing (a larger budget
needs no more noise). They are interpolated linearly in :math:`\ln\varepsilon`. If the goal is
reached at the smallest budget, or not reached at the largest, the result is censored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from private_consensus.common.multiplicity import ALPHA

from .leaders import interval


@dataclass(frozen=True)
class Needed:
    """Budget epsilon with its interval.

    0 means at or below the smallest budget that was run, and infinity above the largest.
    """

    value: float
    low: float
    high: float


def budget_needed(
    epsilons: Sequence[float], values: np.ndarray, goal: float, alpha: float = ALPHA
) -> Needed:
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
    Needed
        The interval contains the budgets at which the goal is within the mean's interval at level
        1 - alpha. This inverts the test of the hypothesis that the mean is the goal.
    """
    return Needed(*(crossing(epsilons, curve, goal) for curve in interval(values, alpha)))


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
    share = (upper - goal) / (upper - lower)
    ends = np.log([epsilons[last - 1], epsilons[last]])
    return float(np.exp(ends[0] + share * (ends[1] - ends[0])))


def _falling(losses: np.ndarray) -> np.ndarray:
    """Return the non-increasing curve nearest to the losses.

    It is infinite up to the last infinite loss.
    """
    from scipy.optimize import isotonic_regression

    wrong = np.flatnonzero(np.isposinf(losses))
    start = int(wrong[-1]) + 1 if len(wrong) else 0
    curve = np.full(len(losses), np.inf)
    if start < len(losses):
        finite = np.maximum(losses[start:], -1e300)
        curve[start:] = isotonic_regression(finite, increasing=False).x
    return curve
