"""Pareto fronts: methods to which no other is preferable in one measure and as good in the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

COSTS = ("messages", "bits", "gradient_evaluations")


def front(points: np.ndarray) -> np.ndarray:
    """Return which points no other point dominates; [n] from [n, measures], lower is better.

    A point dominates another if it is at most as large in every measure and smaller in one; equal
    points stay together. What is not a number or infinite in a measure is on no front.
    """
    points = np.asarray(points, float)
    no_worse = (points[:, None] <= points[None]).all(-1)
    better = (points[:, None] < points[None]).any(-1)
    finite = np.isfinite(points).all(-1)
    return np.asarray(finite & ~(no_worse & better).any(0))


def fronts(
    means: Mapping[str, Mapping[str, float]], loss: str, costs: Sequence[str] = COSTS
) -> dict[str, list[str]]:
    """Return the methods on the Pareto front of loss against each cost, from cheapest to most
    expensive.

    Parameters
    ----------
    means : mapping
        By method, its mean of each measure, lower is better; a measure that is missing is none.
    """
    names = sorted(means)
    found = {}
    for cost in costs:
        points = np.array(
            [[means[name].get(key, np.nan) for key in (cost, loss)] for name in names]
        ).reshape(-1, 2)
        on = np.flatnonzero(front(points))
        found[cost] = [names[i] for i in sorted(on, key=lambda i: (points[i, 0], names[i]))]
    return found
