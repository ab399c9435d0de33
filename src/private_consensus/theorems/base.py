"""What is measured of a theorem, and the verdict that follows from the numbers alone.

A theorem is put as inequalities, stated against measured. ``scale`` multiplies what is stated, and
divides the exponent of a rate: below 1 the statement is stronger than the paper's. A part's margin
is the least of stated over measured, of a lower bound measured over stated. The part holds
where that is at least 1 but for its slack, and with a ``scale`` far enough below 1 / margin it
does not, so that every computation can be seen to fail.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..claims.words import HELD, IN_PART, NOT_HELD, UNDECIDED

ROUNDING = 1e-9
"""Relative error of a computation that is exact but for floating point."""
SLOPE = 0.03
"""By how much a slope over finitely many points may miss its limit."""


@dataclass(frozen=True)
class Part:
    """Inequality at the point with the smallest margin.

    Parameters
    ----------
    what : str
        What is compared, with its unit.
    stated, measured : float
        The paper's number and the computed number, neither changed by the slack, at the point
        with the least margin.
    margin : float
        That quotient; at least 1 where the statement holds.
    points : int
        How many points were compared.
    slack : float
        What the quotient may be short of 1 for reasons of computation.
    """

    what: str
    stated: float
    measured: float
    margin: float
    points: int
    slack: float = ROUNDING

    @property
    def holds(self) -> bool:
        """Return True if the inequality holds at every point."""
        return self.margin >= 1 - self.slack


@dataclass(frozen=True)
class Finding:
    """Result of the computation for a theorem.

    Parameters
    ----------
    parts : tuple of Part
    verdict : str
        Held, where all parts do. A statement with parts of its own holds in part where some do;
        any other is contradicted by one part that fails.
    lines : tuple of str
        What was computed, and what a reader has to know beside the numbers.
    """

    parts: tuple[Part, ...]
    verdict: str
    lines: tuple[str, ...]


def found(*parts: Part, lines: str | tuple[str, ...], compound: bool = False) -> Finding:
    """The finding of some parts; ``compound`` where the statement consists of several."""
    holding = [part.holds for part in parts]
    verdict = HELD if all(holding) else IN_PART if compound and any(holding) else NOT_HELD
    return Finding(parts, verdict, (lines,) if isinstance(lines, str) else lines)


def open_question(*parts: Part, lines: str | tuple[str, ...]) -> Finding:
    """The finding where neither a proof nor a counterexample is known.

    A part that fails is a counterexample, and decides.
    """
    decided = found(*parts, lines=lines)
    if decided.verdict == NOT_HELD:
        return decided
    return Finding(decided.parts, UNDECIDED, decided.lines)


def bound(
    what: str, stated: ArrayLike, measured: ArrayLike, scale: float = 1.0, slack: float = ROUNDING
) -> Part:
    """``measured`` is at most ``stated`` at every point; both are at least 0 unless the statement
    is absurd, and nothing is below anything that is not negative."""
    stated, measured = np.broadcast_arrays(np.asarray(stated, float) * scale, measured)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(measured == 0, np.where(stated >= 0, np.inf, -np.inf), stated / measured)
    return _at_worst(what, stated, measured, ratio, slack)


def at_least(
    what: str, stated: ArrayLike, measured: ArrayLike, scale: float = 1.0, slack: float = ROUNDING
) -> Part:
    """``measured`` is at least ``stated`` at every point; ``stated`` is above 0."""
    stated, measured = np.broadcast_arrays(np.asarray(stated, float) / scale, measured)
    with np.errstate(divide="ignore"):
        ratio = np.asarray(measured / stated)
    return _at_worst(what, stated, measured, ratio, slack)


def equal(
    what: str, stated: ArrayLike, measured: ArrayLike, scale: float = 1.0, slack: float = ROUNDING
) -> Part:
    """The two are the same at every point, up to ``slack``."""
    stated, measured = np.broadcast_arrays(np.asarray(stated, float) * scale, measured)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(stated == measured, 1.0, np.minimum(stated / measured, measured / stated))
    return _at_worst(what, stated, measured, ratio, slack)


def falls_as(
    what: str, t: ArrayLike, values: ArrayLike, exponent: float, scale: float = 1.0,
    slack: float = SLOPE,
) -> Part:  # fmt: skip
    r""":math:`O(t^{-a})`: over the last half of the points (in ln t), the values fall at least with
    the slope of ln value on ln t that is stated, up to ``slack``."""
    t, values = np.asarray(t, float), np.asarray(values, float)
    late = np.log(t) >= (np.log(t[0]) + np.log(t[-1])) / 2
    slope = -float(np.polyfit(np.log(t[late]), np.log(values[late]), 1)[0])
    stated = exponent / scale
    return Part(what, stated, slope, slope / stated, int(late.sum()), slack / stated)


def grows_as(
    what: str, x: ArrayLike, values: ArrayLike, exponent: float, scale: float = 1.0,
    slack: float = SLOPE,
) -> Part:  # fmt: skip
    r""":math:`O(x^a)`: the slope of ln value on ln x, over all points, is at most a, up to
    ``slack``."""
    x = np.asarray(x, float)
    slope = float(np.polyfit(np.log(x), np.log(values), 1)[0])
    stated = exponent * scale
    margin = stated / slope if slope > 0 else np.inf
    return Part(what, stated, slope, margin, len(x), slack / (stated + slack))


def geometric(
    what: str, k: ArrayLike, values: ArrayLike, scale: float = 1.0, slack: float = 0.1
) -> Part:
    """A linear rate: the slope of ln value on k in the second half is that in the first half.

    A linear rate that has the first slope has it throughout, so that this is what is stated; the
    second slope is measured. It may be less by the fraction ``slack``: a power of k slows down by
    as much as k grows.
    """
    k, logs = np.asarray(k, float), np.log(np.asarray(values, float))
    half = len(k) // 2
    early, late = (
        -np.polyfit(k[part], logs[part], 1)[0] for part in (slice(half), slice(half, None))
    )
    stated = float(early) / scale
    margin = float(late) / stated if early > 0 else -np.inf
    return Part(what, stated, float(late), margin, len(k), slack)


def _at_worst(
    what: str, stated: np.ndarray, measured: np.ndarray, ratio: np.ndarray, slack: float
) -> Part:
    stated, measured, ratio = (np.ravel(array) for array in (stated, measured, ratio))
    ratio = np.where(np.isnan(ratio), -np.inf, ratio)
    worst = int(np.argmin(ratio))
    return Part(
        what, float(stated[worst]), float(measured[worst]), float(ratio[worst]), len(ratio), slack
    )
