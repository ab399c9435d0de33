"""Pareto fronts: methods that no other method dominates in loss and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

COSTS = ("messages", "bits", "gradient_evaluations")


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
    finite = np.isfinite(points).all(-1)
    return np.asarray(finite & ~(no_worse & better).any(0))


def fronts(
    means: Mapping[str, Mapping[str, float]], loss: str, costs: Sequence[str] = COSTS
) -> dict[str, list[str]]:
    """Return the methods on the Pareto front of loss against each cost, in order of the cost.

    Parameters
    ----------
    means : mapping
        Mean of each measure, by method; lower is better. Measures may be missing.
    loss : str
        Name of the loss.
    costs : sequence of str
        Names of the costs.

    Returns
    -------
    dict of str to list of str
    """
    names = sorted(means)
    methods_by_cost = {}
    for cost in costs:
        points = np.array(
            [[means[name].get(key, np.nan) for key in (cost, loss)] for name in names]
        ).reshape(-1, 2)
        on = np.flatnonzero(front(points))
        methods_by_cost[cost] = [
            names[i] for i in sorted(on, key=lambda i: (points[i, 0], names[i]))
        ]
    return methods_by_cost
