r"""The budget that a method needs to reach a goal.

Means of a loss at a few :math:`\varepsilon` are made to fall by isotonic regression (more budget
needs no more noise) and joined by lines over :math:`\ln\varepsilon`. A goal that is reached at the
smallest budget, or not at the largest, gives an end only: such a number is censored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..multiplicity import ALPHA
from .leaders import interval


@dataclass(frozen=True)
class Needed:
    """Budget epsilon with its interval: 0 means at or below the smallest that was run, infinity
    above the largest."""

    value: float
    low: float
    high: float


def budget_needed(
    epsilons: Sequence[float], values: np.ndarray, goal: float, alpha: float = ALPHA
) -> Needed:
    """Epsilon at which the mean loss is at most the goal.

    Parameters
    ----------
    epsilons : sequence of float
        Increasing.
    values : ndarray, shape (epsilons, runs)
        Lower is better.

    Returns
    -------
    Needed
        The interval has the budgets at which the goal is within the mean's interval at level
        1 - alpha: the test of "the mean is the goal", inverted.
    """
    return Needed(*(crossing(epsilons, curve, goal) for curve in interval(values, alpha)))


def crossing(epsilons: Sequence[float], losses: np.ndarray, goal: float) -> float:
    """Return where the decreasing curve through the losses reaches the goal; 0 if it starts
    there, infinity if it never does.
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
    """The non-increasing curve nearest to the finite losses; infinite until the last that is so."""
    from scipy.optimize import isotonic_regression

    wrong = np.flatnonzero(np.isposinf(losses))
    start = int(wrong[-1]) + 1 if len(wrong) else 0
    curve = np.full(len(losses), np.inf)
    if start < len(losses):
        finite = np.maximum(losses[start:], -1e300)
        curve[start:] = isotonic_regression(finite, increasing=False).x
    return curve
