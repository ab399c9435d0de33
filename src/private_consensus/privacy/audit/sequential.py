"""Audits that stop early and keep their level, and the claims that an audit can contradict.

Looks are taken at run counts that double up to the allowed maximum. Each has a fraction of the
error 1 - confidence, fixed in advance (alpha spending, Lan and DeMets). The fractions double too,
so that the last look has at least half of the error. A large violation, which a 16th of the runs
reveals, is found at the first look. By Bonferroni's inequality a true claim is contradicted at any
look with probability at most 1 - confidence, for every stopping rule.

References
----------
Lan, DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 1983.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from private_consensus.common.errors import require

from .bounds import Bound, Counts
from .claims import Epsilon
from .statistics import LARGEST_FRACTION


class Look(NamedTuple):
    """Number of runs on each data set, and the fraction of the error used by this look."""

    runs: int
    share: float


def planned_looks(runs: int, *, first: int) -> tuple[Look, ...]:
    """Return looks at ``runs``, half of it, a quarter, ... down to ``first`` runs."""
    require(0 < first <= runs, "first", first, f"a number of runs from 1 to {runs}")
    counts = [runs]
    while counts[0] // 2 >= first:
        counts.insert(0, counts[0] // 2)
    total = 2 ** len(counts) - 1
    return tuple(Look(count, 2**i / total) for i, count in enumerate(counts))


@cache
def detectable_epsilon(runs: int, *, delta: float, confidence: float) -> float:
    """Return the largest claim that an audit of ``runs`` runs on each data set can contradict.

    It is attained if each run for testing identifies the data set. A larger claim cannot fail.
    """
    test_runs = runs - runs // 2
    require(test_runs >= 1, "runs", runs, "at least 1")
    perfect = Counts(test_runs, test_runs, 0, test_runs)
    return Bound(perfect, delta, confidence, LARGEST_FRACTION, Epsilon(delta), both=False).epsilon
