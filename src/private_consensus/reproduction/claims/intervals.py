r"""Compute confidence intervals of statistics of mean measurements over runs.

For a statistic :math:`\theta = f(\bar x)` of means over n runs, the jackknife gives pseudo-values
:math:`\theta_i = n f(\bar x) - (n - 1) f(\bar x_{-i})` (for a linear f, the values of the runs).
Let s be their standard error and g their skewness. The interval is the union of two intervals:

- Student's: :math:`\theta \pm s\, t_{n-1}`;
- Hall's (Journal of the Royal Statistical Society B 54, 1992), which corrects the skewness: with
  :math:`y = \pm t_{n-1} / \sqrt n`, the end
  :math:`\theta - s \sqrt n\, (3 / g) \{[1 + g (y - g / 6n)]^{1/3} - 1\}`.

Both have a closed form at any level, unlike a bootstrap, which would need too many resamples at the
small levels of many simultaneous claims. Fewer than :data:`MIN_RUNS` runs give infinite bounds. A
value that is equal in all runs is exact.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

MIN_RUNS = 5
"""Smallest number of runs that gives an interval."""


def quantile(alpha: float | np.ndarray, runs: int) -> np.ndarray:
    """Return the upper ``alpha / 2`` quantile of Student's t, ``runs - 1`` degrees."""
    return -stdtrit(runs - 1, np.asarray(alpha) / 2)


def limits(
    value: ArrayLike, error: ArrayLike, skewness: ArrayLike, runs: int, alpha: float
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the ends of confidence intervals at level ``1 - alpha``, elementwise.

    ``skewness`` is that of the pseudo-values. An estimate with error 0 is exact. Fewer than
    :data:`MIN_RUNS` runs give infinite ends.
    """
    value, error, skewness = np.broadcast_arrays(*map(np.asarray, (value, error, skewness)))
    exact = error == 0
    if runs < MIN_RUNS:
        return np.where(exact, value, -np.inf), np.where(exact, value, np.inf)
    t = quantile(alpha, runs)
    below = np.minimum(-t, _skewed(-t, skewness, runs))
    above = np.maximum(t, _skewed(t, skewness, runs))
    with np.errstate(invalid="ignore"):
        low, high = value - error * above, value - error * below
    return np.where(exact, value, low), np.where(exact, value, high)


def _skewed(t: float | np.ndarray, skewness: np.ndarray, runs: int) -> np.ndarray:
    """Return the quantile ``t`` after Hall's correction for skewness."""
    flat = np.abs(skewness) < 1e-6
    g = np.where(flat, 1.0, skewness)
    root = np.cbrt(1 + g * (t / np.sqrt(runs) - g / (6 * runs)))
    return np.where(flat, t, np.sqrt(runs) * 3 / g * (root - 1))


def jackknife(
    statistic: Callable[[np.ndarray], np.ndarray], values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute estimate, standard error and skewness, [elements], of statistics of means.

    ``statistic`` maps means [points, k] to statistics [elements, k], and ``values`` are the
    measurements of each run, [points, runs]. The error is 0 for a single run and for elements that
    do not vary between runs.
    """
    runs = values.shape[1]
    means = values.mean(1, keepdims=True)
    # A value that is equal in all runs is exact; rounding of its mean must not change it.
    constant = np.ptp(values, axis=1, keepdims=True) == 0
    estimate = statistic(np.where(constant, values[:, :1], means))
    if runs == 1:
        return estimate[:, 0], np.zeros(len(estimate)), np.zeros(len(estimate))
    without = np.where(constant, values[:, :1], (runs * means - values) / (runs - 1))
    pseudo = runs * estimate - (runs - 1) * statistic(without)
    centred = pseudo - pseudo.mean(1, keepdims=True)
    size = np.abs(centred).max(1, keepdims=True)
    unit = centred / np.where(size > 0, size, 1.0)
    variance = (unit**2).mean(1)
    skewness = (unit**3).mean(1) / np.where(variance > 0, variance, 1.0) ** 1.5
    error = size[:, 0] * np.sqrt(variance / (runs - 1))
    # Differences within rounding error are not a standard error.
    error = np.where(error <= 1e-13 * np.maximum(np.abs(estimate[:, 0]), 1e-3), 0.0, error)
    return estimate[:, 0], error, skewness


def runs_needed(distance: float, error: float, runs: int, alpha: float) -> float:
    r"""Estimate the number of runs after which half an interval is shorter than a distance.

    Solves :math:`t_{m-1}(\alpha) s \sqrt{n / m} = d` for m by fixed-point iteration, with the
    distance d from the estimate to the edge of the region in which the claim is true, and the
    standard error s after n runs. m is rounded up, and infinite for a distance of 0.
    """
    if distance <= 0:
        return np.inf
    needed = float(max(MIN_RUNS, runs))
    for _ in range(8):
        t = float(quantile(alpha, max(MIN_RUNS, int(min(needed, 1e9)))))
        needed = max(float(MIN_RUNS), runs * (t * error / distance) ** 2)
    return float(np.ceil(needed))
