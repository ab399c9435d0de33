r"""Derive verdicts from estimates: the state of each element, and the verdict of the claim.

An element is confirmed if its interval lies inside the region in which the claim is true, and
contradicted if its interval lies outside. It is tied if it is exactly equal although the claim
states a strict inequality. Otherwise it is undecided. A claim of k elements

- held, if all are confirmed at level :math:`1 - \alpha` each. This is an intersection-union test,
  which needs no correction, since the claim is wrong if one of them is;
- otherwise is judged by intervals that share the level, :math:`1 - \alpha / k` each (Bonferroni).
  Any statement about its parts is then wrong with probability :math:`\alpha` at most.

The ``quantifier`` of a test (:class:`.schema.Test`) determines how its elements are combined.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from private_consensus.common.multiplicity import ALPHA

from .intervals import MIN_RUNS, quantile, runs_needed
from .schema import Test
from .statements import Estimates, estimates
from .words import (
    CONFIRMED,
    CONTRADICTED,
    HELD,
    IN_PART,
    NOT_HELD,
    OPEN,
    TIED,
    UNDECIDED,
    UNTESTABLE,
    combined,
)

ROUNDING = 1e-12
NEVER, EXACT = 1.0, 0.0
"""``p`` of a verdict that does not stand at all, and of one that no run varies."""

SMALLEST = 1e-12
"""Levels below this are reported as this."""

Ends = tuple[np.ndarray, np.ndarray]
"""Lower and upper ends of the intervals of all elements, [elements] each."""


@dataclass(frozen=True)
class Element:
    """Statistic of one part of a claim, its interval, and the region in which the claim is true."""

    kind: str
    name: str
    value: float
    low: float
    high: float
    accept: tuple[float, float]
    state: str

    @property
    def slack(self) -> float:
        """Signed distance of the estimate to the edge of the region; negative outside."""
        return min(self.value - self.accept[0], self.accept[1] - self.value)


@dataclass(frozen=True)
class Verdict:
    """Verdict on one variant of a claim, with value and interval of the deciding element.

    The deciding element is nearest to failing among the elements that determine the verdict.

    Attributes
    ----------
    p : float
        Smallest level at which the verdict equals that at 5 %.
    flip : float
        Shift of the border of the accepted region that changes the verdict, in units of the
        statistic: positive looser, negative stricter.
    needed : float
        Number of runs that would decide an undecided claim if its estimates stay. Infinite if an
        estimate is on the border or no number of runs decides; NaN for a decided claim.
    shared : int
        Number of elements among which the level of the intervals is shared.
    error, skewness : float
        Standard error and skewness that determine the interval of the deciding element, see
        :mod:`.intervals`.
    """

    verdict: str
    kind: str
    statistic: str
    value: float
    low: float
    high: float
    accept: tuple[float, float]
    elements: tuple[Element, ...]
    runs: int
    p: float
    flip: float
    needed: float
    shared: int
    error: float
    skewness: float


DECIDING = {
    UNDECIDED: (OPEN,), NOT_HELD: (CONTRADICTED, TIED), IN_PART: (CONTRADICTED, TIED),
}  # fmt: skip
"""States of the elements without which a verdict would be a better one."""

NOTHING = Verdict(
    UNTESTABLE, kind="", statistic="", value=np.nan, low=np.nan, high=np.nan,
    accept=(np.nan, np.nan), elements=(), runs=0, p=NEVER, flip=np.nan, needed=np.nan, shared=0,
    error=np.nan, skewness=np.nan,
)  # fmt: skip
"""The verdict on a claim without a test."""


def evaluate(
    tests: Sequence[Test],
    runs: pl.DataFrame,
    privacy: pl.DataFrame,
    *,
    deterministic: Collection[str] = (),
) -> Verdict:
    """Test one variant of a claim on measurements of runs.

    Parameters
    ----------
    tests : sequence of Test
        Tests of the variant.
    runs : DataFrame
        Columns experiment, algorithm, variant, quantity, metric, run, value and those of the axes.
    privacy : DataFrame
        Columns experiment, algorithm, variant, epsilon_claimed, epsilon_accountant, epsilon_lower,
        proven and axes.
    deterministic : collection of str
        Algorithms without randomness, whose single run is exact. A single run of any other
        algorithm gives no verdict.

    Returns
    -------
    Verdict
        The verdict with its elements.
    """
    return judge([estimates(test, runs, privacy) for test in tests], deterministic)


def judge(estimates: Sequence[Estimates], deterministic: Collection[str] = ()) -> Verdict:
    """Derive the verdict on a claim from the estimates of its tests.

    Parameters
    ----------
    estimates : sequence of Estimates
        Estimates of each test.
    deterministic : collection of str
        Algorithms without randomness, whose single run is exact.

    Returns
    -------
    Verdict
        :data:`NOTHING` for a claim without tests.
    """
    return Judgement(estimates, deterministic).verdict() if estimates else NOTHING


class Judgement:
    """Estimates of all elements of a claim, and the resulting verdict at any level."""

    def __init__(self, estimates: Sequence[Estimates], deterministic: Collection[str]) -> None:
        self.parts = estimates
        self.sizes = [len(estimate.names) for estimate in estimates]
        self.count = sum(self.sizes)
        self.accept = np.concatenate([estimate.accept for estimate in estimates])
        self.value = np.concatenate([estimate.value for estimate in estimates])
        self.strict = np.repeat([estimate.strict for estimate in estimates], self.sizes)
        self.single = np.repeat(
            [
                estimate.runs == 1 and not _exact(estimate.test, deterministic)
                for estimate in estimates
            ],
            self.sizes,
        )

    def ends(self, alpha: float) -> Ends:
        """Return the intervals of all elements, [elements] each; one random run gives no bounds."""
        low, high = (
            np.concatenate(side)
            for side in zip(*(estimate.ends(alpha) for estimate in self.parts), strict=True)
        )
        return np.where(self.single, -np.inf, low), np.where(self.single, np.inf, high)

    def _borders(self, shift: float) -> Ends:
        return self.accept[:, 0] - shift, self.accept[:, 1] + shift

    def _inside(self, ends: Ends, shift: float) -> np.ndarray:
        (low, high), (lowest, highest) = ends, self._borders(shift)
        return (lowest <= low) & (high <= highest)

    def _tied(self, ends: Ends, shift: float) -> np.ndarray:
        (low, high), (lowest, highest) = ends, self._borders(shift)
        with np.errstate(invalid="ignore"):  # infinite on both sides is not equal to a border
            exact = high - low <= ROUNDING
            equal = (np.abs(high - highest) <= ROUNDING) | (np.abs(low - lowest) <= ROUNDING)
        return self.strict & exact & equal

    def states(self, ends: Ends, shift: float = 0.0) -> np.ndarray:
        """Return the state of each element after the borders are moved outwards.

        Parameters
        ----------
        ends : (ndarray, ndarray)
            Lower and upper ends of the intervals, [elements] each.
        shift : float
            Outward shift of both borders, in units of the statistic.

        Returns
        -------
        ndarray of str, [elements]
            Confirmed, contradicted, tied or undecided.
        """
        (low, high), (lowest, highest) = ends, self._borders(shift)
        outside = (high < lowest) | (low > highest)
        choices = [self._inside(ends, shift), outside]
        states = np.select(choices, [CONFIRMED, CONTRADICTED], OPEN)
        return np.where(self._tied(ends, shift), TIED, states)

    def holds(self, alone: Ends, shift: float = 0.0) -> bool:
        """Return True if all elements are confirmed, without naming the state of each element.

        Parameters
        ----------
        alone : (ndarray, ndarray)
            Ends of the intervals at the full level, [elements] each.
        shift : float
            Outward shift of both borders, in units of the statistic.

        Returns
        -------
        bool
            True if all elements are confirmed and none is tied.
        """
        return bool(np.all(self._inside(alone, shift)) and not np.any(self._tied(alone, shift)))

    def outcome(self, alone: Ends, together: Ends, shift: float = 0.0) -> str:
        """Return the verdict that follows from intervals at the full level and at the shared level.

        Parameters
        ----------
        alone : (ndarray, ndarray)
            Ends of the intervals at the full level, [elements] each.
        together : (ndarray, ndarray)
            Ends of the intervals at the shared level (Bonferroni), [elements] each.
        shift : float
            Outward shift of both borders, in units of the statistic.

        Returns
        -------
        str
            Held if all elements are confirmed at the full level; otherwise by the shared level.
        """
        return HELD if self.holds(alone, shift) else self._in_parts(together, shift)

    def _in_parts(self, together: Ends, shift: float = 0.0) -> str:
        states = np.split(self.states(together, shift), np.cumsum(self.sizes)[:-1])
        verdicts, counted = [], defaultdict(list)
        for estimate, element_states in zip(self.parts, states, strict=True):
            quantifier = estimate.test.quantifier
            if quantifier in _COUNTED:
                counted[quantifier, estimate.test.part] += list(element_states)
            elif quantifier == "universal" or estimate.test.kind in ("largest", "smallest"):
                verdicts.append(_universal(list(element_states)))
            else:
                verdicts += [_of_element(state) for state in element_states]
        return combined(
            verdicts
            + [_COUNTED[key](element_states) for (key, _), element_states in counted.items()]
        )

    def at(self, alpha: float) -> str:
        """Return the verdict at error level ``alpha``."""
        holds = self.holds(self.ends(alpha))
        return HELD if holds else self._in_parts(self.ends(alpha / self.count))

    def verdict(self) -> Verdict:
        """Return the verdict at the error level of this package, with all its numbers."""
        alone, together = self.ends(ALPHA), self.ends(ALPHA / self.count)
        outcome = self.outcome(alone, together)
        shared = 1 if outcome == HELD else self.count
        ends = alone if outcome == HELD else together
        states = self.states(ends)
        kinds = np.repeat([estimate.test.kind for estimate in self.parts], self.sizes)
        names = [name for estimate in self.parts for name in estimate.names]
        elements = tuple(
            Element(str(kind), name, float(v), float(lo), float(hi), (float(a), float(b)), str(s))
            for kind, name, v, lo, hi, (a, b), s in zip(
                kinds, names, self.value, *ends, self.accept, states, strict=True
            )
        )
        deciding = np.flatnonzero(np.isin(states, DECIDING.get(outcome, ()))).tolist()
        position = min(deciding or range(self.count), key=lambda i: elements[i].slack)
        worst = elements[position]
        error, skewness = (
            np.concatenate([getattr(estimate, key) for estimate in self.parts])[position]
            for key in ("error", "skewness")
        )
        return Verdict(
            outcome, worst.kind, worst.name, worst.value, worst.low, worst.high, worst.accept,
            elements, min(estimate.runs for estimate in self.parts), self._p(outcome),
            self._flip(outcome, alone, together), self._needed(outcome, alone, together),
            shared, float(error), float(skewness),
        )  # fmt: skip

    def _p(self, outcome: str) -> float:
        """Compute the smallest level with an unchanged verdict, by bisection on ln alpha."""
        if outcome in (UNDECIDED, UNTESTABLE):
            return NEVER
        if self.at(SMALLEST) == outcome:
            return EXACT if self._exact() else SMALLEST
        low, high = np.log(SMALLEST), np.log(ALPHA)
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (low, middle) if self.at(np.exp(middle)) == outcome else (middle, high)
        return float(np.exp(high))

    def _exact(self) -> bool:
        return all(np.all(estimate.error == 0) for estimate in self.parts)

    def _flip(self, outcome: str, alone: Ends, together: Ends) -> float:
        """Compute the smallest shift of the borders, in or out, that changes the verdict."""
        lowest, highest = self.accept.T
        with np.errstate(invalid="ignore"):  # unbounded on both sides: no move reaches it
            moves = np.concatenate([
                np.concatenate([lowest - low, high - highest, lowest - high, low - highest])
                for low, high in (alone, together)
            ])  # fmt: skip
        moves = np.unique(moves[np.isfinite(moves)])
        for move in sorted(moves, key=abs):
            nudge = 1e-9 * max(abs(move), 1e-3)
            for shift in (move - nudge, move + nudge):
                if self.outcome(alone, together, shift) != outcome:
                    return float(move)
        return np.nan

    def _needed(self, outcome: str, alone: Ends, together: Ends) -> float:
        """Estimate the runs at which every open interval ends at the nearest border."""
        if outcome != UNDECIDED:
            return np.nan
        inside = (self.accept[:, 0] <= self.value) & (self.value <= self.accept[:, 1])
        ends, shared = (alone, 1) if np.all(inside) else (together, self.count)
        owners = [(estimate, k) for estimate in self.parts for k in range(len(estimate.names))]
        counts = []
        for i in np.flatnonzero(self.states(ends) == OPEN):
            gaps = np.abs(self.accept[i] - self.value[i])
            border = self.accept[i, np.argmin(gaps)]
            end = ends[1][i] if border > self.value[i] else ends[0][i]
            counts.append(_runs(*owners[i], gaps.min(), abs(end - self.value[i]), ALPHA / shared))
        return max(counts, default=np.inf)


def _runs(estimate: Estimates, index: int, distance: float, width: float, alpha: float) -> float:
    """Estimate the number of runs until the width of an interval equals a distance."""
    if distance == 0 or estimate.runs == 1 or not np.isfinite(estimate.error[index]):
        return np.inf
    # Below the least number of runs there is no width to go by.
    has_width = estimate.runs >= MIN_RUNS
    error = width / quantile(alpha, estimate.runs) if has_width else estimate.error[index]
    return runs_needed(distance, float(error), estimate.runs, alpha)


def _exact(test: Test, deterministic: Collection[str]) -> bool:
    sides = [side for side in (test.series, test.against) if side]
    return test.kind in ("private", "tight") or all(s.method in deterministic for s in sides)


def _universal(states: Sequence[str]) -> str:
    if any(state in (CONTRADICTED, TIED) for state in states):
        return NOT_HELD
    return HELD if all(state == CONFIRMED for state in states) else UNDECIDED


def _of_element(state: str) -> str:
    return {CONFIRMED: HELD, CONTRADICTED: NOT_HELD, TIED: NOT_HELD}.get(state, UNDECIDED)


def _most(states: Sequence[str]) -> str:
    confirmed = sum(state == CONFIRMED for state in states)
    against = sum(state in (CONTRADICTED, TIED) for state in states)
    if 2 * confirmed > len(states):
        return HELD
    return NOT_HELD if 2 * against >= len(states) else UNDECIDED


def _some(states: Sequence[str]) -> str:
    if any(state == CONFIRMED for state in states):
        return HELD
    return UNDECIDED if OPEN in states else NOT_HELD


_COUNTED = {"most": _most, "some": _some}
"""Quantifiers of which all points of a part are counted together."""
