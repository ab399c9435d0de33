"""Events of the form "a statistic is at least (at most) a threshold", selected from outcomes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from private_consensus.common.errors import require

from .bounds import Counts, ordering_tail, tabled_limits
from .claims import Measure

_RANKS = 32  # number of order statistics from either end of either sample


class Event(NamedTuple):
    """Set of outcomes: statistic at least (or at most) ``threshold``.

    If ``swapped``, the event is more likely under D', and the roles of D and D' are exchanged.
    """

    threshold: float
    at_least: bool
    swapped: bool

    def counts(self, statistic: np.ndarray, statistic_other: np.ndarray) -> Counts:
        """Count the event under both data sets, the likelier data set first."""
        hits = [
            int(np.sum(values >= self.threshold if self.at_least else values <= self.threshold))
            for values in (statistic, statistic_other)
        ]
        counts = Counts(hits[0], len(statistic), hits[1], len(statistic_other))
        return counts.swapped() if self.swapped else counts


def best_event(
    statistic: np.ndarray, statistic_other: np.ndarray, measure: Measure, level: float
) -> tuple[tuple[float, float], Event]:
    """Select threshold, direction and order of the data sets for the largest lower bound.

    The statistics, [runs], are those of each run under D and under D'. The score has the measure at
    the two Clopper-Pearson limits, and the difference of the two rates, which decides if the first
    numbers are equal.
    """
    statistic, statistic_other = np.sort(statistic), np.sort(statistic_other)
    thresholds = np.unique(
        np.concatenate([_candidate_thresholds(statistic), _candidate_thresholds(statistic_other)])
    )
    tail, candidates = ordering_tail(level), []
    for at_least in (True, False):
        hits = [_hits(values, thresholds, at_least) for values in (statistic, statistic_other)]
        for swapped in (False, True):
            likelier, rarer = hits[::-1] if swapped else hits
            runs = (
                (statistic_other.size, statistic.size)
                if swapped
                else (statistic.size, statistic_other.size)
            )
            low = tabled_limits(likelier, runs[0], tail)[0]
            high = tabled_limits(rarer, runs[1], tail)[1]
            bounds = measure.value(low, high)
            gaps = likelier / runs[0] - rarer / runs[1]
            index = max(range(thresholds.size), key=lambda i: (bounds[i], gaps[i]))
            event = Event(float(thresholds[index]), at_least, swapped)
            candidates.append(((float(bounds[index]), float(gaps[index])), event))
    return max(candidates, key=lambda pair: pair[0])


def scalar_statistic(name: str, values: np.ndarray) -> np.ndarray:
    """Return a statistic with one number per run, [runs], without NaN, for at least 4 runs.

    Infinite values are allowed.
    """
    values = np.asarray(values, float)
    usable = values.ndim == 1 and values.size >= 4 and not np.isnan(values).any()
    require(usable, name, f"shape {values.shape}", "one number per run, no NaN, at least 4 runs")
    return values


def _candidate_thresholds(ordered: np.ndarray) -> np.ndarray:
    """Return order statistics as candidate thresholds, most of them near both ends."""
    half = math.ceil(ordered.size / 2)
    ranks = np.unique(np.geomspace(1, half, _RANKS).astype(int)) - 1
    return np.concatenate([ordered[ranks], ordered[::-1][ranks]])


def _hits(ordered: np.ndarray, thresholds: np.ndarray, at_least: bool) -> np.ndarray:
    if at_least:
        return ordered.size - np.searchsorted(ordered, thresholds, side="left")
    return np.searchsorted(ordered, thresholds, side="right")
