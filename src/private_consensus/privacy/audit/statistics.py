r"""Tell two neighbouring data sets apart by all that an observer sees, and bound epsilon by it.

Half of the runs learn and choose, half judge. Of the first half three fifths fit the learned
statistics (:mod:`.distinguishers`, :mod:`.atoms`) and the rest chooses their events; a statistic
that was given is chosen on all of the half. On the judging half each statistic has one event, and a
share of the error 1 - confidence: four fifths go to the statistic that promised most, the others
divide the rest. So all bounds of the list are right together with probability ``confidence``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from private_consensus.errors import require

from .atoms import atom_statistics, fit_atoms
from .bounds import Bound
from .claims import Epsilon, Measure, Mu
from .distinguishers import fit_distinguishers
from .events import Event, best_event, scalar_statistic

FAVOURITE = 0.8
"""Share of the error that goes to the statistic that promised most."""

_FITTING = 0.6  # of the half that learns
_FEWEST = 40
_CAUTION = 2
"""Events are chosen by limits at this power of the level: at the level itself, the noisiest of many
thresholds would look best too often (75 instead of 90 of 100 found at 4,000 runs)."""

Pair = tuple[np.ndarray, np.ndarray]


class _Candidate(NamedTuple):
    """A statistic on runs that choose, the same on runs that judge, and what it promises."""

    name: str
    judged: Pair
    event: Event
    promise: tuple[float, float]


def audit_statistics(
    one: np.ndarray | None,
    other: np.ndarray | None,
    *,
    statistics: Mapping[str, Pair],
    delta: float,
    confidence: float,
    seed: int,
    ordering: str = "epsilon",
) -> list[Bound]:
    """Lower bounds of epsilon and mu, one a statistic, right together at ``confidence``.

    Parameters
    ----------
    one, other : ndarray, shape (runs, features) or (runs, ..., dim), or None
        All that is seen of each run under D and under D', at least 40 runs; None to use the given
        statistics alone. Values that are not finite are a feature of their own. With axes between,
        the last is that of one message's coordinates, and repeats within a run are counted.
    statistics : mapping from name to (array, array)
        One number a run under D and under D', above all a log-likelihood ratio; infinite values are
        welcome. They may depend on their own run only.
    delta, confidence : float
    seed : int
        Of the partition into halves and of the classifiers.
    ordering : {"epsilon", "mu"}
        Which bound the events are chosen for; both are given, and both hold.

    Returns
    -------
    list of Bound
        The one that promised most first.
    """
    require(ordering in ("epsilon", "mu"), "ordering", ordering, "epsilon or mu")
    measure = Epsilon(delta) if ordering == "epsilon" else Mu()
    level = (1 - confidence) ** _CAUTION
    rng = np.random.default_rng(seed)
    learned = one is not None and other is not None
    counted = atom_statistics(one, other) if learned and np.ndim(one) > 2 else {}
    given = {
        name: tuple(scalar_statistic(name, values) for values in pair)
        for name, pair in {**counted, **statistics}.items()
    }
    candidates = [_given(name, pair, measure, level, rng) for name, pair in given.items()]
    if learned:
        candidates += _learned(_features(one), _features(other), measure, level, rng)
    require(bool(candidates), "statistics", list(statistics), "at least one, or transcripts")
    candidates.sort(key=lambda candidate: candidate.promise, reverse=True)
    return [
        Bound(
            candidate.event.counts(*candidate.judged),
            delta, confidence, share, measure, False, candidate.name, candidate.event,
        )
        for candidate, share in zip(candidates, _shares(len(candidates)), strict=True)
    ]  # fmt: skip


def best_bound(bounds: list[Bound]) -> Bound:
    """The largest bound on epsilon of a list; where none is above 0, of the favourite."""
    return max(bounds, key=lambda bound: bound.epsilon)


def _shares(count: int) -> list[float]:
    if count == 1:
        return [1.0]
    return [FAVOURITE] + [(1 - FAVOURITE) / (count - 1)] * (count - 1)


def _given(name: str, pair: Pair, measure: Measure, level: float, rng) -> _Candidate:
    halves = [np.array_split(values[rng.permutation(values.size)], 2) for values in pair]
    promise, event = best_event(halves[0][0], halves[1][0], measure, level)
    return _Candidate(name, (halves[0][1], halves[1][1]), event, promise)


def _learned(
    one: np.ndarray, other: np.ndarray, measure: Measure, level: float, rng
) -> list[_Candidate]:
    """Of each family of learned statistics the one that promises most."""
    (fit_one, choose_one, judge_one), (fit_other, choose_other, judge_other) = (
        _thirds(features, rng) for features in (one, other)
    )
    scorers = fit_distinguishers(fit_one, fit_other, int(rng.integers(2**31)))
    scorers["atoms"] = fit_atoms(fit_one, fit_other)
    best: dict[str, _Candidate] = {}
    for name, score in scorers.items():
        chosen = score(choose_one), score(choose_other)
        if np.unique(np.concatenate(chosen)).size < 2:
            continue
        promise, event = best_event(*chosen, measure, level)
        family = name.split(",")[0]
        if family not in best or promise > best[family].promise:
            best[family] = _Candidate(name, (score(judge_one), score(judge_other)), event, promise)
    return list(best.values())


def _thirds(features: np.ndarray, rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows that fit, rows that choose, rows that judge; in random order."""
    half = len(features) // 2
    ends = [int(_FITTING * half), half]
    return tuple(features[rows] for rows in np.split(rng.permutation(len(features)), ends))


def _features(transcripts: np.ndarray) -> np.ndarray:
    """Of each run one row of finite numbers."""
    transcripts = np.asarray(transcripts, float)
    require(len(transcripts) >= _FEWEST, "transcripts", len(transcripts), f"{_FEWEST} runs or more")
    flat = transcripts.reshape(len(transcripts), -1)
    finite = np.isfinite(flat)
    return np.column_stack([np.where(finite, flat, 0.0), np.sum(~finite, axis=1)])
