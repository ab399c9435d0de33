"""Comparison of a theorem with measurements, and the verdict that follows from the numbers alone.

A theorem is expressed as inequalities between a stated and a measured quantity. The margin of a
part is the smallest quotient of stated over measured quantity, or of measured over stated quantity
for a lower bound. A part holds if its margin is at least 1, up to its slack.

``StatementResult.at(scale)`` multiplies the stated quantities, and divides the exponent of a rate.
A value below 1 makes the statement stronger than the paper's. With a ``scale`` far enough below
1 / margin it does not hold, so that tests can see every computation fail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..claims.words import HELD, IN_PART, NOT_HELD, UNDECIDED

ROUNDING = 1e-9
"""Relative error of a computation that is exact up to floating-point rounding."""
SLOPE = 0.03
"""Allowed difference between a slope over finitely many points and its limit."""


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
    repeat : callable, optional
        Return the inequality with the keyword ``scale``, a factor on the stated quantity.
    """

    quantity: str
    stated: float
    measured: float
    margin: float
    points: int
    slack: float = ROUNDING
    repeat: Callable[..., Part] | None = field(default=None, repr=False, compare=False)

    def at(self, scale: float) -> Part:
        """Return the inequality for a stated quantity that is multiplied by ``scale``."""
        if self.repeat is None:
            raise TypeError(f"{self.quantity}: the inequality has no computation at another scale")
        return self.repeat(scale=scale)

    @property
    def holds(self) -> bool:
        """Return True if the inequality holds at every point."""
        return self.margin >= 1 - self.slack

    def __str__(self) -> str:
        outcome = "holds" if self.holds else "does not hold"
        if self.holds and self.margin < 1 - ROUNDING:
            outcome += f" within a slack of {100 * self.slack:.2g} %"
        points = f"{self.points} {'points' if self.points > 1 else 'point'}"
        numbers = f"{self.stated:.4g} stated, {self.measured:.4g} measured"
        return f"{self.quantity}: {numbers}, {outcome} ({points})"


@dataclass(frozen=True)
class StatementResult:
    """Inequalities of a numbered statement, with the verdict that follows from them.

    Parameters
    ----------
    description : str
        Description of the computation, and remarks that a reader needs next to the numbers.
    compound : bool
        True if the statement consists of several statements, which may hold in part. Any other
        statement is contradicted by a single part that fails.
    proven : bool
        True if numbers that agree with the statement confirm a proof. Without a known proof the
        statement is then undecided. A part that fails is a counterexample and decides the verdict.
    """

    parts: tuple[Part, ...]
    description: str
    compound: bool = False
    proven: bool = True

    @property
    def verdict(self) -> str:
        """Verdict that follows from the parts."""
        holding = [inequality.holds for inequality in self.parts]
        if all(holding):
            return HELD if self.proven else UNDECIDED
        return IN_PART if self.compound and any(holding) else NOT_HELD

    def at(self, scale: float) -> StatementResult:
        """Return the result for stated quantities that are multiplied by ``scale``."""
        return replace(self, parts=tuple(inequality.at(scale) for inequality in self.parts))


def conclude(
    *inequalities: Part, description: str = "", compound: bool = False, proven: bool = True
) -> StatementResult:
    """Collect the inequalities of a statement in its result.

    The description is that of the computation with its numbers. An empty one stands for the
    docstring of the computation without its summary.
    """
    return StatementResult(inequalities, description, compound, proven)


def grid(*axes: ArrayLike) -> np.ndarray:
    """Return all combinations of values; shape (axes, combinations)."""
    return np.array(list(product(*map(np.ravel, axes)))).T


def _rescalable(comparison: Callable[..., Part]) -> Callable[..., Part]:
    """Let the resulting part repeat the comparison with another factor on the stated quantity."""

    @wraps(comparison)
    def compare(*args: Any, **options: Any) -> Part:
        inequality = comparison(*args, **options)
        return replace(inequality, repeat=partial(comparison, *args, **options))

    return compare


@_rescalable
def bound(
    quantity: str, stated: ArrayLike, measured: ArrayLike, slack: float = ROUNDING, *,
    scale: float = 1.0,
) -> Part:  # fmt: skip
    """Compare an upper bound: ``measured`` is at most ``stated`` times ``scale`` at every point.

    Both quantities are expected to be at least 0; they are broadcast against each other. If
    ``measured`` is 0, the margin is infinite for a nonnegative ``stated`` and minus infinity for a
    negative one. The margin may be below 1 by ``slack``. ``quantity`` has a unit.
    """
    stated, measured = np.broadcast_arrays(np.asarray(stated, float) * scale, measured)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(measured == 0, np.where(stated >= 0, np.inf, -np.inf), stated / measured)
    return _at_worst(quantity, stated, measured, ratio, slack)


@_rescalable
def at_least(
    quantity: str, stated: ArrayLike, measured: ArrayLike, slack: float = ROUNDING, *,
    scale: float = 1.0,
) -> Part:  # fmt: skip
    """Compare a lower bound: ``measured`` is at least ``stated`` over ``scale`` at every point.

    ``stated`` is above 0. The margin may be below 1 by ``slack``.
    """
    stated, measured = np.broadcast_arrays(np.asarray(stated, float) / scale, measured)
    with np.errstate(divide="ignore"):
        ratio = np.asarray(measured / stated)
    return _at_worst(quantity, stated, measured, ratio, slack)


@_rescalable
def equal(
    quantity: str, stated: ArrayLike, measured: ArrayLike, slack: float = ROUNDING, *,
    scale: float = 1.0,
) -> Part:  # fmt: skip
    """Compare two quantities that the statement calls equal at every point.

    The relative difference may be ``slack``. ``scale`` is a factor on ``stated``.
    """
    stated, measured = np.broadcast_arrays(np.asarray(stated, float) * scale, measured)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(stated == measured, 1.0, np.minimum(stated / measured, measured / stated))
    return _at_worst(quantity, stated, measured, ratio, slack)


@_rescalable
def falls_as(
    quantity: str, t: ArrayLike, values: ArrayLike, exponent: float, slack: float = SLOPE, *,
    scale: float = 1.0,
) -> Part:  # fmt: skip
    """Compare a rate :math:`O(t^{-a})` with the slope of ln value on ln t.

    The slope is fitted over the last half of the points, in ln t. The values, which are positive,
    must fall at least with the stated exponent a > 0, divided by ``scale``, up to a difference of
    slopes of ``slack``.
    """
    t, values = np.asarray(t, float), np.asarray(values, float)
    late = np.log(t) >= (np.log(t[0]) + np.log(t[-1])) / 2
    slope = -float(np.polyfit(np.log(t[late]), np.log(values[late]), 1)[0])
    stated = exponent / scale
    return Part(quantity, stated, slope, slope / stated, int(late.sum()), slack / stated)


@_rescalable
def grows_as(
    quantity: str, x: ArrayLike, values: ArrayLike, exponent: float, slack: float = SLOPE, *,
    scale: float = 1.0,
) -> Part:  # fmt: skip
    """Compare a growth rate :math:`O(x^a)` with the slope of ln value on ln x.

    The slope is fitted over all points. It must be at most the stated exponent a > 0, times
    ``scale``, up to a difference of slopes of ``slack``.
    """
    x = np.asarray(x, float)
    slope = float(np.polyfit(np.log(x), np.log(values), 1)[0])
    stated = exponent * scale
    margin = stated / slope if slope > 0 else np.inf
    return Part(quantity, stated, slope, margin, len(x), slack / (stated + slack))


@_rescalable
def geometric(
    quantity: str, k: ArrayLike, values: ArrayLike, slack: float = 0.1, *, scale: float = 1.0
) -> Part:
    """Compare a linear rate: the slope of ln value on k is equal in both halves of the points.

    A linear rate has the first slope throughout, so that the slope of the first half, divided by
    ``scale``, is the stated quantity and the slope of the second half is measured. For a power of
    k, the second slope is smaller by the factor by which k grows. It may be smaller by the fraction
    ``slack``.
    """
    k, logs = np.asarray(k, float), np.log(np.asarray(values, float))
    half = len(k) // 2
    early, late = (
        -np.polyfit(k[half_points], logs[half_points], 1)[0]
        for half_points in (slice(half), slice(half, None))
    )
    stated = float(early) / scale
    margin = float(late) / stated if early > 0 else -np.inf
    return Part(quantity, stated, float(late), margin, len(k), slack)


def _at_worst(
    quantity: str, stated: np.ndarray, measured: np.ndarray, ratio: np.ndarray, slack: float
) -> Part:
    """Return the inequality at the point with the smallest ratio."""
    stated, measured, ratio = (np.ravel(array) for array in (stated, measured, ratio))
    ratio = np.where(np.isnan(ratio), -np.inf, ratio)
    worst = int(np.argmin(ratio))
    at_worst = (float(stated[worst]), float(measured[worst]), float(ratio[worst]))
    return Part(quantity, *at_worst, points=len(ratio), slack=slack)
