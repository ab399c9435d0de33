r"""Derive the verdict on a claim from the confidence intervals of its statistics.

Each statistic of the tests of a claim is an element of the claim. It is confirmed if its interval
lies inside the region in which the claim is true, and contradicted if the interval lies outside. It
is tied if it is exactly equal although the claim states a strict inequality. Otherwise it is
undecided. A claim of k elements

- held if all elements are confirmed at level :math:`1 - \alpha` each. This is an intersection-union
  test, which needs no correction for multiplicity;
- is otherwise judged by intervals at level :math:`1 - \alpha / k` each (Bonferroni). All statements
  about its parts are then correct with probability at least :math:`1 - \alpha`.

The ``quantifier`` of a test (:class:`.schema.Test`) determines how its elements are combined.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from private_consensus.common.multiplicity import ALPHA

from .intervals import MIN_RUNS, quantile, runs_needed
from .schema import PRIVATE, Test
from .statements import Estimates, estimates
from .words import CONFIRMED, CONTRADICTED, HELD, NOT_HELD, OPEN, TIED, UNDECIDED, combined

ROUNDING = 1e-12
EQUAL_SLACK = 1e-9
"""Largest difference of two slacks that are equal up to the rounding of measurements."""
NEVER, EXACT = 1.0, 0.0
"""p-value of an undecided claim, and of a verdict on values that are equal in all runs."""

MIN_P = 1e-12
"""Smallest positive p-value that is reported."""

Ends = tuple[np.ndarray, np.ndarray]
"""Lower and upper ends of the intervals of all elements, [elements] each."""


@dataclass(frozen=True)
class Element:
    """Statistic of a test with its confidence interval; fields as in :class:`.Estimates`.

    Attributes
    ----------
    state : str
        Confirmed, contradicted, tied or undecided.
    group : str
        Quantifier and number or name of the part of the claim. Elements of one group are combined
        by its quantifier.
    """

    kind: str
    statistic: str
    value: float
    low: float
    high: float
    accept_low: float
    accept_high: float
    state: str
    error: float
    skewness: float
    group: str = ""
    is_step: bool = False
    means: tuple[float, ...] = ()

    @property
    def slack(self) -> float:
        """Signed distance of the estimate to the edge of the region; negative outside."""
        return min(self.value - self.accept_low, self.accept_high - self.value)


@dataclass(frozen=True)
class Verdict:
    """Verdict on one variant of a claim.

    Attributes
    ----------
    verdict : str
        Held, held in part, did not hold, undecided or cannot be tested.
    deciding : Element
        Element whose interval determines the verdict: if the claim holds, the one with the largest
        p-value, or the fewest standard errors inside its region if all p-values are below
        :data:`MIN_P`; otherwise the one furthest outside its region, of those that contradict the
        claim at the level ``p``. If the claim is undecided, the one that needs the most runs.
    opening : Element
        Element that is undecided at levels below ``p``, so that the verdict differs there.
    runs : int
        Smallest number of runs of a test.
    p : float
        Smallest error level at which the verdict equals that at 5 %.
    runs_needed : float
        Number of runs that would decide an undecided claim if its estimates stay equal. Infinite if
        an estimate is on an edge or no number of runs decides; NaN for a decided claim.
    level_divisor : int
        Number by which the error level of each interval is divided (Bonferroni).
    excluding : dict
        Smallest error level at which "held", and "did not hold", is impossible whatever the
        undecided elements are; 1 if it is possible at 5 %.
    """

    verdict: str
    deciding: Element
    opening: Element
    elements: tuple[Element, ...]
    runs: int
    p: float
    runs_needed: float
    level_divisor: int
    excluding: Mapping[str, float] = field(default_factory=dict)


AGAINST = (CONTRADICTED, TIED)
"""States that keep a decided claim from holding; ties of a best value do not."""


def evaluate(
    tests: Sequence[Test],
    runs: pl.DataFrame,
    privacy: pl.DataFrame,
    *,
    deterministic: Collection[str] = (),
) -> Verdict:
    """Test one variant of a claim on measurements of runs.

    A single run of an algorithm is exact if it is ``deterministic``, without randomness; a single
    run of any other algorithm gives no verdict. ``privacy`` has the columns experiment, algorithm,
    variant, epsilon_claimed, epsilon_accountant, epsilon_lower, proven and axes.
    """
    return Judgement([estimates(test, runs, privacy) for test in tests], deterministic).verdict()


class Judgement:
    """Derivation of the verdict on a claim from its estimates, at any error level."""

    def __init__(self, estimates: Sequence[Estimates], deterministic: Collection[str] = ()) -> None:
        self.parts = estimates
        self.sources = [(estimate, k) for estimate in estimates for k in range(len(estimate.names))]
        self.groups = [
            _group(estimate.test, number, k + 1)
            for number, estimate in enumerate(estimates, 1)
            for k in range(len(estimate.names))
        ]
        self.accept = np.concatenate([estimate.accept for estimate in estimates])
        self.value = np.concatenate([estimate.value for estimate in estimates])
        self.is_step = np.concatenate([estimate.is_step for estimate in estimates])
        # The steps of a test share one error level.
        self.count = int((~self.is_step).sum() + sum(e.is_step.any() for e in estimates))
        self.strict = np.array([estimate.strict for estimate, _ in self.sources]) & ~self.is_step
        random = [
            e.test.kind != PRIVATE and any(s.method not in deterministic for s in e.test.all_series)
            for e, _ in self.sources
        ]
        self.single = np.array([e.runs == 1 for e, _ in self.sources]) & random

    def ends(self, alpha: float) -> Ends:
        """Return lower and upper ends of the intervals of all elements, [elements] each.

        A single run of a random algorithm gives infinite ends.
        """
        low, high = (
            np.concatenate(side)
            for side in zip(*(estimate.ends(alpha) for estimate in self.parts), strict=True)
        )
        return np.where(self.single, -np.inf, low), np.where(self.single, np.inf, high)

    def states(self, alpha: float) -> np.ndarray:
        """Return confirmed, contradicted, tied or undecided for each element, [elements]."""
        (low, high), (lowest, highest) = self.ends(alpha), self.accept.T
        with np.errstate(invalid="ignore"):  # infinite on both sides is not equal to a border
            exact = high - low <= ROUNDING
            equal = (np.abs(high - highest) <= ROUNDING) | (np.abs(low - lowest) <= ROUNDING)
        inside = (lowest <= low) & (high <= highest)
        outside = (high < lowest) | (low > highest)
        choices = [self.strict & exact & equal, inside, outside]
        return np.select(choices, [TIED, CONFIRMED, CONTRADICTED], OPEN)

    def at(self, alpha: float) -> str:
        """Return the verdict at error level ``alpha``.

        It is "held" if the unadjusted intervals, at the full error level, confirm all elements;
        otherwise it is the verdict by the intervals after Bonferroni's adjustment.
        """
        if np.all(self.states(alpha) == CONFIRMED):
            return HELD
        return self._combined(self.states(alpha / self.count))

    def _combined(self, states: np.ndarray) -> str:
        """Return the verdict from the states of all elements; confirmed steps do not count."""
        groups = defaultdict(list)
        for group, is_step, state in zip(self.groups, self.is_step, states, strict=True):
            if not (is_step and state == CONFIRMED):
                groups[group].append(state)
        return combined([_verdict_on_group(g.split()[0], states) for g, states in groups.items()])

    def verdict(self) -> Verdict:
        """Return the verdict at the error level of 5 %, with its numbers."""
        outcome = self.at(ALPHA)
        level_divisor = 1 if outcome == HELD else self.count
        is_decided = outcome != UNDECIDED
        p = _smallest_level(lambda level: self.at(level) == outcome) if is_decided else NEVER
        if p == MIN_P and all(np.all(estimate.error == 0) for estimate in self.parts):
            p = EXACT
        elements = self._elements(ALPHA / level_divisor)
        levels = [ALPHA, ALPHA] if p == NEVER else [p, p * (1 - 1e-6)]
        remaining, below = (self.states(level / level_divisor) for level in levels)
        changed = np.flatnonzero(below != remaining).tolist()
        needed = {} if is_decided else self._runs_to_decide()
        against = np.flatnonzero(np.isin(remaining, AGAINST)).tolist() if outcome != HELD else []
        # Steps of a monotone claim confirm nothing.
        confirmed = np.flatnonzero(~self.is_step & (remaining == CONFIRMED)).tolist()
        position = (
            max(needed, key=lambda index: needed[index])
            if needed
            else _closest(elements, against or changed or _weakest(elements, confirmed))
        )
        return Verdict(
            outcome, elements[position], elements[changed[0] if changed else position], elements,
            min(estimate.runs for estimate in self.parts), p,
            max(needed.values(), default=np.nan), level_divisor,
            {name: self._excludes(name) for name in (HELD, NOT_HELD)},
        )  # fmt: skip

    def _elements(self, alpha: float) -> tuple[Element, ...]:
        numbers = zip(self.value, *self.ends(alpha), *self.accept.T, strict=True)
        return tuple(
            Element(
                estimate.test.kind, estimate.names[k], *map(float, row), str(state),
                float(estimate.error[k]), float(estimate.skewness[k]), group,
                bool(estimate.is_step[k]), tuple(estimate.means[k].tolist()),
            )
            for (estimate, k), group, row, state in zip(
                self.sources, self.groups, numbers, self.states(alpha), strict=True
            )
        )  # fmt: skip

    def _excludes(self, verdict: str) -> float:
        """Compute the smallest error level at which no undecided element permits a verdict."""
        state = CONFIRMED if verdict == HELD else CONTRADICTED

        def is_excluded(alpha: float) -> bool:
            states = self.states(alpha / self.count)
            return self._combined(np.where(states == OPEN, state, states)) != verdict

        return _smallest_level(is_excluded)

    def _runs_to_decide(self) -> dict[int, float]:
        """Estimate the number of runs that decides each undecided element."""
        inside = (self.accept[:, 0] <= self.value) & (self.value <= self.accept[:, 1])
        level = ALPHA if np.all(inside) else ALPHA / self.count
        low, high = self.ends(level)
        counts = {}
        for i in np.flatnonzero(self.states(level) == OPEN).tolist():
            gaps = np.abs(self.accept[i] - self.value[i])
            is_above = self.accept[i, np.argmin(gaps)] > self.value[i]
            width = abs((high if is_above else low)[i] - self.value[i])
            estimate, k = self.sources[i]
            error = float(estimate.error[k])
            if estimate.runs == 1 or not np.isfinite(error):
                counts[i] = np.inf
                continue
            # With fewer runs the interval is infinite, and the standard error replaces its width.
            if estimate.runs >= MIN_RUNS:
                error = width / float(quantile(level, estimate.runs))
            counts[i] = runs_needed(gaps.min(), error, estimate.runs, level)
        return counts


def _smallest_level(condition: Callable[[float], bool]) -> float:
    """Find the smallest level from MIN_P to 5 % that meets a condition; NEVER without one."""
    if not condition(ALPHA):
        return NEVER
    if condition(MIN_P):
        return MIN_P
    low, high = np.log(MIN_P), np.log(ALPHA)
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if condition(np.exp(middle)) else (middle, high)
    return float(np.exp(high))


def _weakest(elements: Sequence[Element], indices: Sequence[int]) -> list[int]:
    """Return the index with the fewest standard errors to the edge; all indices if none varies."""
    random = [i for i in indices if elements[i].error > 0]
    return sorted(random, key=lambda i: elements[i].slack / elements[i].error)[:1] or list(indices)


def _closest(elements: Sequence[Element], indices: Sequence[int]) -> int:
    """Return the index of the element closest to failing; the first one of equal elements."""
    closest = min(indices, key=lambda i: elements[i].slack)
    limit = elements[closest].slack + EQUAL_SLACK
    return next(i for i in indices if i == closest or elements[i].slack <= limit)


def _group(test: Test, number: int, index: int) -> str:
    """Return the group of element ``index`` of test ``number``."""
    if test.quantifier in ("most", "some"):
        return f"{test.quantifier} {test.part}".strip()
    if test.kind == "largest":
        return f"best {number}"
    if test.quantifier == "universal":
        return f"universal {number}"
    return f"each {number}.{index}"


def _verdict_on_group(quantifier: str, states: Sequence[str]) -> str:
    """Return the verdict on a group of elements."""
    # An equal value does not contradict that a value is the best, and does not confirm it.
    contrary = (CONTRADICTED,) if quantifier == "best" else AGAINST
    count, against = len(states), sum(state in contrary for state in states)
    confirming = {"some": 1, "most": count // 2 + 1}.get(quantifier, count)
    contradicting = {"some": count, "most": (count + 1) // 2}.get(quantifier, 1)
    if states.count(CONFIRMED) >= confirming:
        return HELD
    return NOT_HELD if against >= contradicting else UNDECIDED
