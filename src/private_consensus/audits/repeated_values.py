"""Check of noise that repeats a value: a continuous distribution has no value twice.

Code that omits noise in rare runs, or that cuts its tails, sends a value that is a function of the
data in a few of many runs. Bounds of epsilon need far more runs to see this. Equal values suffice:
continuous noise has none, and noise on a grid has them everywhere.

Messages of a later iteration are compared among runs with equal random numbers, and thus equal
messages, before it. The second data set is executed with these messages.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.randomness import Law

from .evidence import WHOLE, Evidence
from .neighbours import Attack
from .replay import RELEASED, run_traced
from .result import DIFFERS, CheckReport, Finding, Untested, listed
from .streams import AuditStreams

LEVEL = 1e-8
"""Probability with which noise on a grid is taken for continuous noise with a repeated value."""
ZERO, SEVERAL = 1e-10, 3
"""Size of recovered noise that is zero but for rounding errors, and fewest messages with it."""
MARGIN = 3
"""Added to the number of other equal values, as a bound of their expected number."""
MOST = 3
"""Values that are examined, the most frequent first."""
RUNS = 1000
"""Runs with equal messages before an iteration."""


def audit_repeated_values(attack: Attack, evidence: Sequence[Evidence]) -> CheckReport:
    """Find values of the first message that several runs on one of two data sets share.

    A value that also occurs on the other data set, such as a bound to which messages are clipped,
    is no finding.
    """
    both = [observed.whole[:, : attack.pair[0].dim] for observed in evidence]
    if not all(messages.shape[1] for messages in both):
        item = f"repeated values in the first message of agent {attack.agent}"
        return CheckReport(untested=(Untested(item, f"more than {WHOLE} numbers", decisive=False),))
    for first, second in (both, both[::-1]):
        for value in _hidden(_repeated_by_coordinate(first[:, : second.shape[1]]), second):
            text = (
                f"the first message of agent {attack.agent} has the same value in {value.count} of "
                f"{len(first)} runs on one data set and in none on the other "
                f"(coordinate {value.coordinate}): continuous noise never repeats a value"
            )
            return CheckReport((Finding(DIFFERS, text),))
    return CheckReport()


@dataclass(frozen=True)
class _EqualStarts(AuditStreams):
    """Streams whose runs have equal random numbers before an iteration.

    Parameters
    ----------
    iteration : int
        First iteration with independent numbers, at least 2.
    """

    iteration: int = 2

    def sequence(
        self, purpose: str, law: str | Law, shape: tuple[int, ...], name: str = ""
    ) -> Iterator[np.ndarray]:
        for t, units in enumerate(super().sequence(purpose, law, shape, name), start=1):
            yield units if t >= self.iteration else np.broadcast_to(units[:1], units.shape)


def audit_repeated_later_values(
    algorithm: Algorithm, attack: Attack, horizon: int, *, seed: int
) -> CheckReport:
    """Find values that several runs share in messages of iterations 2, 3 and the last one.

    A value that other noise gives on the other data set is no finding.
    """
    untested: list[Untested] = []
    for t in sorted({2, 3, horizon} & set(range(2, horizon + 1))):
        label = AuditStreams.labelled("repeated values", RUNS, seed)
        streams = _EqualStarts(**vars(label), iteration=t)
        setting = attack.network, streams, t, attack.agent
        for problem, other in (attack.pair, attack.pair[::-1]):
            try:
                recorded = run_traced(algorithm, problem, *setting)
                values = _repeated_by_coordinate(recorded.outputs[RELEASED, t][:, attack.agent])
                if not values:
                    continue
                replayed = run_traced(algorithm, other, *setting, recorded)
                of_other = replayed.bare[t][:, attack.agent]
            except Exception:  # code from outside may raise anything
                return CheckReport()
            hidden = _hidden(values, of_other)
            if not hidden:
                continue
            text = (
                f"of agent {attack.agent} in iteration {t} has the same value in "
                f"{hidden[0].count} of {RUNS} runs with equal earlier messages "
                f"(coordinate {hidden[0].coordinate})"
            )
            if all(replayed.replayed.get(earlier, False) for earlier in range(1, t)):
                text = f"the message {text}, and in none on the other data set: "
                text += "continuous noise never repeats a value"
                return CheckReport((Finding(DIFFERS, text),))
            reason = "earlier messages could not be repeated on the other data set"
            untested = [Untested(f"whether data determine that the message {text}", reason)]
    return CheckReport(untested=tuple(untested))


class _Repeated(NamedTuple):
    coordinate: int
    value: float
    count: int


def _repeated_by_coordinate(sent: np.ndarray) -> list[_Repeated]:
    return [
        _Repeated(coordinate, *repetition)
        for coordinate in range(sent.shape[1])
        for repetition in repeated(sent[:, coordinate])
    ]


def _hidden(values: Sequence[_Repeated], sent: np.ndarray) -> list[_Repeated]:
    """Return the values that no message ``sent`` on the other data set has."""
    return [v for v in values if not np.any(sent[:, v.coordinate] == v.value)]


def audit_missing_noise(evidence: Sequence[Evidence]) -> CheckReport:
    """Find messages whose recovered noise is zero in all coordinates, in some of the runs."""
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
    """Yield values, and their numbers, that occur more often than on a grid with the other values.

    There are none if most values occur several times, since noise on a coarse grid is discrete.
    If ``n`` values have expected numbers of equal ones of at most ``m``, the probability that
    ``k`` are equal is at most ``n m^(k - 1) / k!``.
    """
    distinct, counts = np.unique(values, return_counts=True)
    total = len(values)
    if 2 * np.count_nonzero(counts == 1) < total:
        return
    for index in np.argsort(-counts)[:MOST]:
        count = int(counts[index])
        smaller = counts[counts < count]
        expected = (float((smaller * (smaller - 1)).sum()) + MARGIN) / total
        bound = math.log(total) + (count - 1) * math.log(expected) - math.lgamma(count + 1)
        if count > 1 and bound < math.log(LEVEL):
            yield float(distinct[index]), count
