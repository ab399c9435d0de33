"""Events of the form "a statistic is at least (at most) a threshold", chosen from outcomes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from private_consensus.errors import require

from .bounds import Counts, ordering_tail, tabled_limits
from .claims import Measure

_RANKS = 32  # order statistics tried from either end of either sample


class Event(NamedTuple):
    """A set of outcomes: statistic at least (or at most) ``threshold``.

    ``swapped``: the event is likelier under D', and it is D' that is set against D.
    """

    threshold: float
    at_least: bool
    swapped: bool

    def counts(self, one: np.ndarray, other: np.ndarray) -> Counts:
        """Count the event under both data sets, the likelier data set first."""
        hits = [
            int(np.sum(values >= self.threshold if self.at_least else values <= self.threshold))
            for values in (one, other)
        ]
        counts = Counts(hits[0], len(one), hits[1], len(other))
        return counts.swapped() if self.swapped else counts


def best_event(
    one: np.ndarray, other: np.ndarray, measure: Measure, level: float
) -> tuple[tuple[float, float], Event]:
    """Threshold, direction and role of the data sets that promise the largest bound.

    Returns
    -------
    tuple, Event
        How promising: the measure at the two Clopper-Pearson limits, then without limits, which
        decides where few runs allow no bound.
    """
    one, other = np.sort(one), np.sort(other)
    thresholds = np.unique(np.concatenate([_spread(one), _spread(other)]))
    tail, found = ordering_tail(level), []
    for at_least in (True, False):
        hits = [_counted(values, thresholds, at_least) for values in (one, other)]
        for swapped in (False, True):
            likelier, rarer = hits[::-1] if swapped else hits
            runs = (other.size, one.size) if swapped else (one.size, other.size)
            low = tabled_limits(likelier, runs[0], tail)[0]
            high = tabled_limits(rarer, runs[1], tail)[1]
            bounds = measure.value(low, high)
            gaps = likelier / runs[0] - rarer / runs[1]
            place = max(range(thresholds.size), key=lambda i: (bounds[i], gaps[i]))
            event = Event(float(thresholds[place]), at_least, swapped)
            found.append(((float(bounds[place]), float(gaps[place])), event))
    return max(found, key=lambda pair: pair[0])


def scalar_statistic(name: str, values: np.ndarray) -> np.ndarray:
    """Reduce values to one number per run, with infinite values included."""
    values = np.asarray(values, float)
    usable = values.ndim == 1 and values.size >= 4 and not np.isnan(values).any()
    require(usable, name, f"shape {values.shape}", "one number a run, no NaN, at least 4 runs")
    return values


def _spread(ordered: np.ndarray) -> np.ndarray:
    """Order statistics: dense towards both ends, and some between."""
    half = math.ceil(ordered.size / 2)
    ranks = np.unique(np.geomspace(1, half, _RANKS).astype(int)) - 1
    return np.concatenate([ordered[ranks], ordered[::-1][ranks]])


def _counted(ordered: np.ndarray, thresholds: np.ndarray, at_least: bool) -> np.ndarray:
    if at_least:
        return ordered.size - np.searchsorted(ordered, thresholds, side="left")
    return np.searchsorted(ordered, thresholds, side="right")
