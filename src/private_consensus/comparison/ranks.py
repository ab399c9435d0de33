r"""Mean ranks of methods over cells, and their critical difference.

Each cell of the design ranks the methods that ran in it. The best method has rank 1, and tied
methods have their mean rank. Friedman's test has the null hypothesis that k methods have equal mean
ranks over n cells. By Nemenyi's test, two of them differ at level :math:`\alpha` if their mean
ranks differ by more than

.. math:: \mathrm{CD} = q_{\alpha,k} \sqrt{\frac{k(k+1)}{6n}}

with q the quantile of the studentized range over :math:`\sqrt 2` (Demsar, JMLR 7, 2006, section
3.2.2). Cells of a design share problems and are no random sample of problems: the test is a
statement about this design.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from private_consensus.common.multiplicity import ALPHA

DIGITS = 9
"""Significant digits to which values are compared, so that rounding makes no difference."""


@dataclass(frozen=True)
class Ranking:
    """Mean ranks of methods over the cells in which all of them ran.

    Attributes
    ----------
    methods : tuple of str
        Methods by mean rank, best first.
    mean_ranks : ndarray, shape (methods,)
        Their mean ranks.
    cells, of : int
        Number of cells in the comparison, and number of cells in which any method ran.
    statistic, p : float
        Friedman's statistic and p-value; NaN for fewer than three methods or two cells.
    critical_difference : float
        Nemenyi's critical difference; infinite without a cell.
    left_out : dict
        Methods that ran in too few cells, with their number of cells.
    """

    methods: tuple[str, ...]
    mean_ranks: np.ndarray
    cells: int
    of: int
    statistic: float
    p: float
    critical_difference: float
    left_out: dict[str, int]

    def alike(self) -> list[tuple[str, ...]]:
        """Return the largest groups of adjacent methods that do not differ (diagram bars)."""
        ranks, groups = self.mean_ranks, []
        for first in range(len(ranks)):
            inside = np.flatnonzero(ranks - ranks[first] <= self.critical_difference)
            last = int(inside[-1])
            if last > first and (not groups or last > groups[-1][1]):
                groups.append((first, last))
        return [self.methods[first : last + 1] for first, last in groups]


def rank(methods: Sequence[str], values: np.ndarray, alpha: float = ALPHA) -> Ranking:
    """Compute mean ranks over cells.

    Parameters
    ----------
    methods : sequence of str
        Names of the methods.
    values : ndarray, shape (cells, methods)
        Lower is better; NaN if a method did not run, infinite if it diverged.
    alpha : float
        Level of the critical difference.

    Returns
    -------
    Ranking
        Restricted to the methods and cells of :func:`complete_part`.
    """
    values = np.asarray(values, float)
    has_runs = ~np.isnan(values).all(1)
    rows, columns = complete_part(methods, ~np.isnan(values))
    compared = significant(values[np.ix_(rows, columns)])
    mean = mean_ranks(compared)
    statistic, p = friedman(compared)
    order = np.lexsort(([methods[i] for i in columns], mean))
    counts = dict(zip(methods, (~np.isnan(values)).sum(0).tolist(), strict=True))
    return Ranking(
        tuple(methods[columns[i]] for i in order),
        mean[order],
        len(rows),
        int(has_runs.sum()),
        statistic,
        p,
        critical_difference(len(columns), len(rows), alpha),
        {name: counts[name] for i, name in enumerate(methods) if i not in set(columns)},
    )


def complete_part(methods: Sequence[str], ran: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Select cells and methods such that every method ran in every cell.

    Methods are dropped one after the other, first those that ran in the fewest cells. Of several
    such methods the last by name is dropped. The selection is the step with the most pairs of cell
    and method.

    Parameters
    ----------
    methods : sequence of str
        Names of the methods.
    ran : ndarray of bool, shape (cells, methods)
        True if a method ran in a cell.

    Returns
    -------
    tuple of ndarray of int
        Indices of the cells and of the methods.
    """
    order = sorted(range(len(methods)), key=lambda i: (-ran[:, i].sum(), methods[i]))
    steps = range(1, len(order) + 1)
    complete = [ran[:, order[:size]].all(1) for size in steps]
    pairs = [size * int(cells.sum()) for size, cells in zip(steps, complete, strict=True)]
    if not any(pairs):
        return np.array([], int), np.array([], int)
    best = max(range(len(pairs)), key=lambda i: (pairs[i], i))
    return np.flatnonzero(complete[best]), np.sort(order[: best + 1])


def significant(values: np.ndarray) -> np.ndarray:
    """Round values to :data:`DIGITS` significant digits."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 10.0 ** (np.floor(np.log10(np.abs(values))) - DIGITS + 1)
        rounded = np.round(values / scale) * scale
    return np.where(np.isfinite(rounded), rounded, values)


def mean_ranks(values: np.ndarray) -> np.ndarray:
    """Return the mean over cells of ranks from 1; shape (methods,) from (cells, methods).

    Tied methods have their mean rank.
    """
    from scipy.stats import rankdata

    if not values.size:
        return np.full(values.shape[1], np.nan)
    return rankdata(values, axis=1).mean(0)


def friedman(values: np.ndarray) -> tuple[float, float]:
    """Return Friedman's statistic, corrected for ties, and its p-value."""
    from scipy.stats import friedmanchisquare, rankdata

    cells, methods = values.shape
    if methods < 3 or cells < 2:
        return np.nan, np.nan
    ranks = rankdata(values, axis=1)
    if (ranks == ranks[:, :1]).all():
        return 0.0, 1.0
    test = friedmanchisquare(*ranks.T)
    return float(test.statistic), float(test.pvalue)


def critical_difference(methods: int, cells: int, alpha: float = ALPHA) -> float:
    """Return Nemenyi's critical difference of mean ranks.

    Parameters
    ----------
    methods : int
        Number of methods.
    cells : int
        Number of cells.
    alpha : float
        Level.

    Returns
    -------
    float
        Infinite for fewer than two methods or without a cell.
    """
    if methods < 2 or cells < 1:
        return np.inf
    return float(_quantile(methods, alpha) * np.sqrt(methods * (methods + 1) / (6 * cells)))


@cache
def _quantile(methods: int, alpha: float) -> float:
    r"""Return the upper quantile of the studentized range over :math:`\sqrt 2`."""
    from scipy.stats import studentized_range

    return float(studentized_range.isf(alpha, methods, np.inf) / np.sqrt(2))
