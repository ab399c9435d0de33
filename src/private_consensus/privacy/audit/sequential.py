r"""Audits that stop early and keep their level, and what an audit can find, said before it runs.

Looks are taken at run counts that double up to the most that is allowed. Each has a share of the
error 1 - confidence, fixed in advance (alpha spending, Lan and DeMets); shares double too, so that
the last look has at least half of it, and a gross violation, for which a 16th suffices, is found at
the first. By Bonferroni's inequality a true claim is contradicted at any look with probability at
most 1 - confidence, whatever the rule by which one stops.

References
----------
Lan, DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 1983.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from private_consensus.errors import require

from .bounds import Bound, Counts
from .claims import Epsilon
from .families import claim_p_value
from .statistics import FAVOURITE


class Look(NamedTuple):
    """Runs on each data set, and the share of the error that this look may spend."""

    runs: int
    share: float


@dataclass(frozen=True)
class SequentialAudit:
    """Outcome of :func:`sequential`.

    Parameters
    ----------
    bounds : list of Bound
        Of the last look taken; right at ``confidence``, as all looks are together.
    looks : tuple of Look
        Those taken.
    p_value : float
        Of the claim, over all looks taken.
    contradicted : bool
    confidence : float
    """

    bounds: list[Bound]
    looks: tuple[Look, ...]
    p_value: float
    contradicted: bool
    confidence: float

    @property
    def runs(self) -> int:
        """Return the number of runs on each data set so far."""
        return self.looks[-1].runs


def planned_looks(runs: int, *, first: int) -> tuple[Look, ...]:
    """Run counts ``runs``, half of it, a quarter, ... down to ``first``, and their shares."""
    require(0 < first <= runs, "first", first, f"a number of runs from 1 to {runs}")
    counts = [runs]
    while counts[0] // 2 >= first:
        counts.insert(0, counts[0] // 2)
    total = 2 ** len(counts) - 1
    return tuple(Look(count, 2**i / total) for i, count in enumerate(counts))


def sequential(
    audit: Callable[[int, float], list[Bound]],
    claim: Mapping[str, float],
    *,
    runs: int,
    first: int,
    confidence: float,
) -> SequentialAudit:
    """Audit more and more runs until the claim is contradicted or the runs are used up.

    Parameters
    ----------
    audit : callable
        From a number of runs on each data set and a confidence to bounds; those of a larger number
        may contain the runs of a smaller one.
    claim : mapping
        ``{"epsilon": value}``, ``{"mu": value}`` or ``{"profile": Profile}``.
    runs, first : int
        Runs of the last and about those of the first look.
    confidence : float
    """
    p_value, taken = 1.0, []
    for look in planned_looks(runs, first=first):
        bounds = audit(look.runs, 1 - (1 - confidence) * look.share)
        taken.append(look)
        p_value = min(p_value, claim_p_value(bounds, claim) / look.share)
        if p_value <= 1 - confidence:
            break
    contradicted = p_value <= 1 - confidence
    return SequentialAudit(bounds, tuple(taken), p_value, contradicted, confidence)


@cache
def detectable_epsilon(runs: int, *, delta: float, confidence: float) -> float:
    """Largest claim that an audit of ``runs`` runs on each data set can contradict.

    Where each of the runs that judge tells the data set; a claim above it cannot fail.
    """
    judging = runs - runs // 2
    require(judging >= 1, "runs", runs, "at least 1")
    perfect = Counts(judging, judging, 0, judging)
    return Bound(perfect, delta, confidence, FAVOURITE, Epsilon(delta), both=False).epsilon
