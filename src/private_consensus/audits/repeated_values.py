"""Check of noise that repeats a value: a continuous distribution has no value twice.

Code that omits noise in rare runs, or that cuts its tails, sends a value that is a function of the
data in a few of many runs. Bounds of epsilon need far more runs to see this. Equal values suffice:
continuous noise has none, and noise on a grid has them everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from .evidence import WHOLE, Evidence
from .neighbours import Attack
from .result import DIFFERS, CheckReport, Finding, Untested, listed

LEVEL = 1e-8
"""Probability with which noise on a grid is taken for continuous noise with a repeated value."""
ZERO, SEVERAL = 1e-10, 3
"""Size of recovered noise that is zero but for rounding errors, and fewest messages with it."""
MARGIN = 3
"""Added to the number of other equal values, as a bound of their expected number."""
MOST = 3
"""Values that are examined, the most frequent first."""


def audit_repeated_values(attack: Attack, evidence: Sequence[Evidence]) -> CheckReport:
    """Find values of the first message that several runs on one of two data sets share.

    Parameters
    ----------
    attack : Attack
    evidence : sequence of Evidence
        Runs on D and on D'.

    Returns
    -------
    CheckReport
        At most one finding. A value that also occurs on the other data set, such as a bound to
        which messages are clipped, is none.
    """
    both = [observed.whole[:, : attack.pair[0].dim] for observed in evidence]
    if not all(messages.shape[1] for messages in both):
        item = f"repeated values in the first message of agent {attack.agent}"
        return CheckReport(untested=(Untested(item, f"more than {WHOLE} numbers", decisive=False),))
    for first, second in (both, both[::-1]):
        for coordinate in range(min(first.shape[1], second.shape[1])):
            for value, count in repeated(first[:, coordinate]):
                if not np.any(second[:, coordinate] == value):
                    text = (
                        f"the first message of agent {attack.agent} has the same value in {count} "
                        f"of {len(first)} runs on one data set and in none on the other "
                        f"(coordinate {coordinate}): continuous noise never repeats a value"
                    )
                    return CheckReport((Finding(DIFFERS, text),))
    return CheckReport()


def audit_missing_noise(evidence: Sequence[Evidence]) -> CheckReport:
    """Find messages whose recovered noise is zero in all coordinates, in some of the runs.

    Parameters
    ----------
    evidence : sequence of Evidence
        Runs on D and on D'.

    Returns
    -------
    CheckReport
        At most one finding.
    """
    for observed in evidence:
        for site, units in observed.noise.items():
            is_zero = (np.abs(units) < ZERO).all(-1)
            if SEVERAL <= is_zero.sum() < is_zero.size / 2:
                agents = sorted(set(np.nonzero(is_zero)[2].tolist()))
                text = (
                    f"{is_zero.sum()} of {is_zero.size} messages carry no noise at all "
                    f"({site}, {listed(agents)})"
                )
                return CheckReport((Finding(DIFFERS, text),))
    return CheckReport()


def repeated(values: np.ndarray) -> Iterator[tuple[float, int]]:
    """Yield values that occur more often than on a grid with the other values.

    There are none if most values occur several times, since noise on a coarse grid is discrete.
    If ``n`` values have expected numbers of equal ones of at most ``m``, the probability that
    ``k`` are equal is at most ``n m^(k - 1) / k!``.

    Parameters
    ----------
    values : ndarray, shape (n,)

    Yields
    ------
    value, count : float, int
    """
    distinct, counts = np.unique(values, return_counts=True)
    total = len(values)
    if 2 * np.count_nonzero(counts == 1) < total:
        return
    for index in np.argsort(-counts)[:MOST]:
        count = int(counts[index])
        others = counts[counts < count]
        expected = (float((others * (others - 1)).sum()) + MARGIN) / total
        bound = math.log(total) + (count - 1) * math.log(expected) - math.lgamma(count + 1)
        if count > 1 and bound < math.log(LEVEL):
            yield float(distinct[index]), count
