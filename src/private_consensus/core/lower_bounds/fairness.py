"""Attacks on classifiers by the functional mechanism (Ding).

The observer receives the noisy coefficients, of which the classifier is a function.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from private_consensus.privacy.functional import pair_l1


def _coefficients(algorithm, problem, network, horizon, releases):
    """Return the loss of two stated records, which change the coefficients before the noise."""
    (release,) = releases
    if not algorithm.noise_rest:
        return releases
    columns = len(problem.columns_of(algorithm.selected))
    # Only coefficients that the objective uses are counted.
    term = algorithm.fair if np.all(algorithm.alpha) else "off"
    used = algorithm.sensitivity(problem, term)
    scales = algorithm.noise_selected, algorithm.noise_rest, columns
    largest = float(np.max(release.losses()))
    attained = _attained(algorithm.mechanism, used, scales, largest, problem.dim)
    return [replace(release, **attained)]


def _attained(mechanism: str, tight, scales, largest: float, dim: int) -> dict[str, Any]:
    """Return the fraction of the largest loss that a pair of records attains.

    With Gaussian noise, if two or more columns have the smaller noise, rows within these columns
    attain the whole l2 change. Otherwise, the two records have equal rows.
    """
    if not tight.known:
        return {}
    selected_scale, remaining_scale, columns = scales
    if mechanism == "laplace":
        return {"reached": min(tight.reached_laplace_loss(*scales) / largest, 1.0)}
    quiet = columns if columns and selected_scale < remaining_scale else dim - columns
    change = tight.l2 if quiet >= 2 else tight.same_row_l2
    loss = change / (min(selected_scale, remaining_scale) if columns else remaining_scale)
    return {"attained": min(loss / largest, 1.0)}


def _sums(algorithm, problem, network, horizon, releases):
    """Return the losses of two stated records, which change both sums before the noise."""
    fairness, _ = releases
    if not algorithm.noise_fairness:
        return [fairness]
    losses = _losses(algorithm, problem)
    return [
        replace(release, reached=min(loss / float(np.max(release.losses())), 1.0))
        for release, loss in zip(releases, losses, strict=True)
    ]


def _losses(algorithm, problem) -> tuple[float, float]:
    """Return the losses of g and b for the pair of records with the largest privacy loss.

    The two records have opposite labels and opposite protected attributes.
    """
    if not algorithm.sensitivity(problem, algorithm.fair).known or not np.all(algorithm.alpha):
        return 0.0, 0.0
    groups, dim = np.array([-problem.mean, 1.0 - problem.mean])[:, None], problem.dim
    losses = [
        (
            pair_l1(dim, k, *groups, quadratic=0.0) / algorithm.noise_fairness,
            pair_l1(dim, k, [-0.5], [0.5]) / algorithm.noise_objective,
        )
        for k in range(1, dim + 1)
    ]
    return max(losses, key=sum)
