r"""Mean ranks of methods, with the problem as the unit of observation.

Each cell ranks the methods that ran in it. The best method has rank 1, and tied methods have their
mean rank. Cells of one problem share data and are not independent. Therefore a method's ranks are
first averaged over the cells of each problem, which gives one number per problem and method. The
mean rank is the mean of these numbers, with Student's interval over problems. A mean rank is
between 1 and the number of methods, and the interval is restricted to these values: its coverage
does not change. Friedman's test ranks them again within each problem. Its null hypothesis is that
all methods are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    mean_ranks, low, high : ndarray, shape (methods,)
        Mean ranks over problems, with intervals; NaN ends for fewer than two problems.
    by_problem : ndarray, shape (problems, methods)
        Mean ranks over the cells of each problem.
    problems : tuple of str
        Problems with cells in the comparison.
    cells, of : int
        Number of cells in the comparison, and number of cells in which any method ran.
    p : float
        p-value of Friedman's test over problems; NaN for fewer than three methods or two problems.
    left_out : dict
        Methods that did not run in all cells of the comparison, with their number of cells.
    left_out_lower : int
        Number of the ``of`` cells in which such a method has a lower value than the best method.
    """

    methods: tuple[str, ...]
    mean_ranks: np.ndarray
    low: np.ndarray
    high: np.ndarray
    by_problem: np.ndarray
    problems: tuple[str, ...]
    cells: int
    of: int
    p: float
    left_out: dict[str, int]
    left_out_lower: int

    def indistinguishable(self, alpha: float = ALPHA) -> tuple[str, ...]:
        """Return the methods whose mean rank does not differ from that of the best method.

        The level ``alpha`` of the paired differences over problems is shared by all methods
        (Bonferroni). With fewer than two problems these are all methods.
        """
        differences = self.by_problem - self.by_problem[:, :1]
        low, _ = student(differences, alpha / max(1, len(self.methods) - 1))
        return tuple(
            name for name, end in zip(self.methods[1:], low[1:], strict=True) if not end > 0
        )


def rank(methods: Sequence[str], values: np.ndarray, problems: Sequence[str]) -> Ranking:
    """Compute mean ranks over cells and problems.

    Parameters
    ----------
    methods : sequence of str
        Names of the methods.
    values : ndarray, shape (cells, methods)
        Lower is better; NaN if a method did not run, infinite if it diverged.
    problems : sequence of str, length cells
        Problem of each cell.

    Returns
    -------
    Ranking
        Restricted to the methods and cells of :func:`complete_part`.
    """
    values = significant(np.asarray(values, float))
    has_runs = ~np.isnan(values).all(1)
    rows, columns = complete_part(methods, ~np.isnan(values))
    ranks = ranks_of(values[np.ix_(rows, columns)])
    names = tuple(dict.fromkeys(problems[i] for i in rows))
    of_row = np.array([problems[i] for i in rows])
    by_problem = np.array([ranks[of_row == name].mean(0) for name in names])
    by_problem = by_problem.reshape(len(names), len(columns))
    mean = by_problem.mean(0) if len(names) else np.full(len(columns), np.nan)
    low, high = np.clip(student(by_problem), 1, max(1, len(columns)))
    order = np.lexsort(([methods[i] for i in columns], mean))
    counts = dict(zip(methods, (~np.isnan(values)).sum(0).tolist(), strict=True))
    outside = [i for i in range(len(methods)) if i not in set(columns)]
    best = columns[order[:1]]
    return Ranking(
        tuple(methods[columns[i]] for i in order),
        mean[order],
        low[order],
        high[order],
        by_problem[:, order],
        names,
        len(rows),
        int(has_runs.sum()),
        friedman(by_problem),
        {methods[i]: counts[methods[i]] for i in outside},
        int((values[:, outside, None] < values[:, None, best]).any(1).sum()),
    )


def student(values: np.ndarray, alpha: float = ALPHA) -> tuple[np.ndarray, np.ndarray]:
    """Return Student's interval of the mean of each column.

    Parameters
    ----------
    values : ndarray, shape (problems, methods)
        One value per problem and method.
    alpha : float
        Two-sided level.

    Returns
    -------
    tuple of two ndarray, shape (methods,)
        Lower and upper ends; NaN for fewer than two problems.
    """
    from scipy.special import stdtrit

    count = len(values)
    if count < 2:
        nothing = np.full(values.shape[1], np.nan)
        return nothing, nothing
    mean, error = values.mean(0), values.std(0, ddof=1) / np.sqrt(count)
    reach = -stdtrit(count - 1, alpha / 2) * error
    return mean - reach, mean + reach


def complete_part(methods: Sequence[str], ran: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Select cells and methods such that every method ran in every cell.

    The selection has the largest possible number of pairs of cell and method. Its cells are an
    intersection of the sets of cells in which methods ran. All such intersections are enumerated;
    they are few, because absences depend on few attributes of a cell. Of equally large selections,
    the one with more methods is returned, then the first by name.

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
    cells_of = [frozenset(np.flatnonzero(column).tolist()) for column in ran.T]
    intersections = set(cells_of)
    for cells in set(cells_of):
        intersections |= {cells & intersection for intersection in intersections}
    columns_of = {
        cells: [i for i, ran_in in enumerate(cells_of) if cells <= ran_in]
        for cells in intersections
        if cells
    }
    if not columns_of:
        return np.array([], int), np.array([], int)

    def preference(cells: frozenset[int]) -> tuple[int, int, list[str]]:
        columns = columns_of[cells]
        return -len(cells) * len(columns), -len(columns), sorted(methods[i] for i in columns)

    cells = min(columns_of, key=preference)
    return np.array(sorted(cells)), np.array(columns_of[cells])


def significant(values: np.ndarray) -> np.ndarray:
    """Round values to :data:`DIGITS` significant digits."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 10.0 ** (np.floor(np.log10(np.abs(values))) - DIGITS + 1)
        rounded = np.round(values / scale) * scale
    return np.where(np.isfinite(rounded), rounded, values)


def ranks_of(values: np.ndarray) -> np.ndarray:
    """Return the ranks of methods in each cell, from 1; tied methods have their mean rank."""
    from scipy.stats import rankdata

    return rankdata(values, axis=1) if values.size else np.zeros(values.shape)


def friedman(values: np.ndarray) -> float:
    """Return the p-value of Friedman's test, corrected for ties; shape (problems, methods)."""
    from scipy.stats import friedmanchisquare

    problems, methods = values.shape
    if methods < 3 or problems < 2:
        return float("nan")
    ranks = ranks_of(significant(values))
    if (ranks == ranks[:, :1]).all():
        return 1.0
    return float(friedmanchisquare(*ranks.T).pvalue)
