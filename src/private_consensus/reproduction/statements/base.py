"""Comparison of a statement with computed numbers, and the verdict that follows from the numbers.

A statement is expressed as inequalities between a stated and a measured quantity. The margin of a
part is the smallest quotient of stated over measured quantity, or of measured over stated quantity
for a lower bound. A part holds if its margin is at least 1, up to its slack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..claims.words import HELD, IN_PART, NOT_HELD, NOT_REFUTED, UNTESTABLE

ROUNDING = 1e-9
"""Relative error of a computation that is exact up to floating-point rounding."""
SLOPE = 0.03
"""Allowed difference between a slope over finitely many points and its limit."""

Role = Literal["main", "detail", "remark"]
"""Role of an inequality: the main clause, another clause (a constant, a symbol, an index), or an
inequality that the statement does not contain, such as a step of its proof."""


@dataclass(frozen=True)
class Part:
    """Inequality of a statement, at the compared point with the smallest margin.

    Parameters
    ----------
    quantity : str
        Compared quantity, with its unit.
    stated, measured : float
        Number of the paper and computed number at the point with the smallest margin. The slack
        changes neither.
    margin : float
        Quotient of the two numbers; at least 1 if the statement holds.
    slack : float
        Amount by which rounding or a finite range may lower the margin below 1.
    role : {"main", "detail", "remark"}
        A remark does not enter the verdict.
    erratum : str
        Number of the erratum for which the part is a counterexample if it does not hold.
    """

    quantity: str
    stated: float
    measured: float
    margin: float
    points: int
    slack: float = ROUNDING
    role: Role = "main"
    erratum: str = ""

    def marked(self, role: Role = "main", erratum: str = "") -> Part:
        """Return the part with a role and the number of its erratum."""
        return replace(self, role=role, erratum=erratum)

    @property
    def holds(self) -> bool:
        """Return True if the inequality holds at every point."""
        return self.margin >= 1 - self.slack

    def __str__(self) -> str:
        outcome = "holds" if self.holds else "does not hold"
        if self.holds and self.margin < 1 - ROUNDING:
            outcome += f" within a slack of {100 * self.slack:.2g} %"
        if self.erratum:
            outcome += f", erratum {self.erratum}"
        points = f"{self.points} {'points' if self.points > 1 else 'point'}"
        numbers = f"{self.stated:.4g} stated, {self.measured:.4g} measured"
        return f"{self.quantity}: {numbers}, {outcome} ({points})"


Parts = tuple[Part, ...]


def verdict_of(inequalities: Iterable[Part], proven: bool = True) -> str:
    """Return the verdict on a statement.

    It did not hold if a main clause failed or no clause held, and held in part if another clause
    failed. Otherwise it held if a proof is known (``proven``), and is not refuted without a proof.
    A statement whose computation only supports a remark cannot be tested.
    """
    clauses = [inequality for inequality in inequalities if inequality.role != "remark"]
    if not clauses:
        return UNTESTABLE
    if all(clause.holds for clause in clauses):
        return HELD if proven else NOT_REFUTED
    main = [clause.holds for clause in clauses if clause.role == "main"]
    return IN_PART if main and all(main) else NOT_HELD


def grid(*axes: ArrayLike) -> np.ndarray:
    """Return all combinations of values; shape (axes, combinations)."""
    return np.array(list(product(*map(np.ravel, axes)))).T


def bound(quantity: str, stated: ArrayLike, measured: ArrayLike, slack: float = ROUNDING) -> Part:
    """Compare an upper bound: ``measured`` is at most ``stated`` at every point.

    Both quantities are expected to be at least 0; they are broadcast against each other. If
    ``measured`` is 0, the margin is infinite for a nonnegative ``stated`` and minus infinity for a
    negative one. The margin may be below 1 by ``slack``. ``quantity`` has a unit.
    """
    return _at_worst(
        quantity, stated, measured, slack,
        lambda s, m: np.where(m == 0, np.where(s >= 0, np.inf, -np.inf), s / m),
    )  # fmt: skip


def at_least(
    quantity: str, stated: ArrayLike, measured: ArrayLike, slack: float = ROUNDING
) -> Part:
    """Compare a lower bound: ``measured`` is at least ``stated`` at every point.

    ``stated`` is above 0. The margin may be below 1 by ``slack``.
    """
    return _at_worst(quantity, stated, measured, slack, lambda s, m: m / s)


def equal(quantity: str, stated: ArrayLike, measured: ArrayLike, slack: float = ROUNDING) -> Part:
    """Compare two quantities that the statement calls equal at every point.

    The relative difference may be ``slack``.
    """
    return _at_worst(
        quantity, stated, measured, slack,
        lambda s, m: np.where(s == m, 1.0, np.minimum(s / m, m / s)),
    )  # fmt: skip


def falls_as(
    quantity: str, t: ArrayLike, values: ArrayLike, exponent: float, slack: float = SLOPE
) -> Part:
    """Compare a rate :math:`O(t^{-a})` with the slope of ln value on ln t.

    The slope is fitted over the last half of the points, in ln t. The values, which are positive,
    must fall at least with the stated exponent a > 0, up to a difference of slopes of ``slack``.
    """
    t, values = np.asarray(t, float), np.asarray(values, float)
    late = np.log(t) >= (np.log(t[0]) + np.log(t[-1])) / 2
    slope = -_slope(np.log(t[late]), values[late])
    return Part(quantity, exponent, slope, slope / exponent, int(late.sum()), slack / exponent)


def grows_as(
    quantity: str, x: ArrayLike, values: Sequence | np.ndarray, exponent: float,
    slack: float = SLOPE,
) -> Part:  # fmt: skip
    """Compare a growth rate :math:`O(x^a)` with the slope of ln value on ln x.

    The slope is fitted over all points. It must be at most the stated exponent a > 0, up to a
    difference of slopes of ``slack``.
    """
    slope = _slope(np.log(x), values)
    margin = exponent / slope if slope > 0 else np.inf
    return Part(quantity, exponent, slope, margin, len(values), slack / (exponent + slack))


def geometric(quantity: str, k: np.ndarray, values: np.ndarray, slack: float = 0.1) -> Part:
    """Compare a linear rate: the slope of ln value on k is equal in both halves of the points.

    A linear rate has the first slope throughout, so that the slope of the first half is the stated
    quantity and the slope of the second half is measured. For a power of k, the second slope is
    smaller by the factor by which k grows. It may be smaller by the fraction ``slack``.
    """
    half = len(k) // 2
    early, late = -_slope(k[:half], values[:half]), -_slope(k[half:], values[half:])
    margin = late / early if early > 0 else -np.inf
    return Part(quantity, early, late, margin, len(k), slack)


def _slope(x: np.ndarray, values: ArrayLike) -> float:
    """Return the slope of the logarithms of values on x."""
    return float(np.polyfit(x, np.log(values), 1)[0])


def _at_worst(
    quantity: str, stated: ArrayLike, measured: ArrayLike, slack: float,
    margin: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> Part:  # fmt: skip
    """Return the inequality at the point with the smallest margin."""
    arrays = np.broadcast_arrays(np.asarray(stated, float), measured)
    stated, measured = map(np.ravel, arrays)
    with np.errstate(divide="ignore", invalid="ignore"):
        margins = margin(stated, measured)
    margins = np.where(np.isnan(margins), -np.inf, margins)
    worst = int(np.argmin(margins))
    numbers = (float(values[worst]) for values in (stated, measured, margins))
    return Part(quantity, *numbers, points=len(margins), slack=slack)
