"""Lower bounds of epsilon and mu from statistics of the observations on two data sets.

One half of the runs is used for learning and selection, the other half for testing. Three fifths of
the first half fit the learned statistics (:mod:`.distinguishers`, :mod:`.atoms`) and the remainder
selects their events; the event of a given statistic is selected on the entire first half. On the
second half each statistic has one event and a fraction of the error 1 - confidence: four fifths for
the statistic with the largest expected bound, the remainder divided among the others. Therefore all
bounds of the list hold simultaneously with probability ``confidence``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from private_consensus.common.errors import require

from .atoms import atom_statistics, fit_atoms
from .bounds import Bound
from .claims import Epsilon, Measure, Mu
from .distinguishers import fit_distinguishers
from .events import Event, best_event, scalar_statistic

LARGEST_FRACTION = 0.8
"""Fraction of the error used by the statistic with the largest expected bound."""

_FITTING = 0.6  # fraction of the first half that is used for fitting
_MIN_RUNS = 40
_SELECTION_POWER = 2
"""Events are selected by limits at this power of the level.

At the level itself, thresholds with large sampling errors are selected too often: 75 instead of 90
of 100 violations are detected with 4,000 runs."""

Pair = tuple[np.ndarray, np.ndarray]


class _Split(NamedTuple):
    """Values of a statistic on runs that select its event, and on runs that test it."""

    name: str
    selection_values: Pair
    test_values: Pair


class _CandidateStatistic(NamedTuple):
    """Statistic with its values on test runs, its event, and the score of the event."""

    name: str
    test_values: Pair
    event: Event
    score: tuple[float, float]


def audit_statistics(
    transcripts: np.ndarray | None,
    transcripts_other: np.ndarray | None,
    *,
    statistics: Mapping[str, Pair],
    delta: float,
    confidence: float,
    seed: int,
    orderings: Sequence[str] = ("epsilon",),
) -> list[Bound]:
    """Return lower bounds of epsilon and mu, one per statistic, valid together at ``confidence``.

    Parameters
    ----------
    transcripts, transcripts_other : ndarray, shape (runs, features) or (runs, ..., dim), or None
        All observations of each run under D and under D', at least 40 runs; None to use
        ``statistics`` only. The number of non-finite values is an additional feature. If there are
        axes between, the last axis contains the coordinates of one message, and repetitions in a
        run are counted.
    statistics : mapping from name to (array, array)
        One number per run under D and under D', for example a log-likelihood ratio; values may be
        infinite. The value of a run must not depend on other runs.
    delta, confidence : float
        delta of the bounds on epsilon, and simultaneous confidence of all bounds.
    seed : int
        Seed of the partition into halves and of the classifiers.
    orderings : sequence of "epsilon" or "mu"
        Bounds for which the events are selected. Several orderings give one list each and share the
        error. Every event has both bounds, and both hold.

    Returns
    -------
    list of Bound
        For each ordering, first the bound of the statistic with the highest score.
    """
    measures = {"epsilon": Epsilon(delta), "mu": Mu()}
    for ordering in orderings:
        require(ordering in measures, "orderings", ordering, "epsilon or mu")
    rng = np.random.default_rng(seed)
    observed = None
    if transcripts is not None and transcripts_other is not None:
        observed = transcripts, transcripts_other
    counted = atom_statistics(*observed) if observed and np.ndim(observed[0]) > 2 else {}
    checked = {
        name: (scalar_statistic(name, values), scalar_statistic(name, other))
        for name, (values, other) in {**counted, **statistics}.items()
    }
    splits = [_split(name, pair, rng) for name, pair in checked.items()]
    if observed:
        splits += _learned(_features(observed[0]), _features(observed[1]), rng)
    expected = "at least one statistic, or transcripts of both data sets"
    require(bool(splits), "statistics", list(statistics), expected)
    ordering_fraction = 1 / len(orderings)
    level = ((1 - confidence) * ordering_fraction) ** _SELECTION_POWER
    return [
        Bound(
            candidate.event.counts(*candidate.test_values),
            delta, confidence, ordering_fraction * share, measures[ordering], False, candidate.name,
            candidate.event,
        )
        for ordering in orderings
        for candidate, share in _ranked(splits, measures[ordering], level)
    ]  # fmt: skip


def _ranked(
    splits: list[_Split], measure: Measure, level: float
) -> Iterator[tuple[_CandidateStatistic, float]]:
    """Yield the statistic of each family with the highest score, and its error fraction."""
    best: dict[str, _CandidateStatistic] = {}
    for split in splits:
        score, event = best_event(*split.selection_values, measure, level)
        family = split.name.split(",")[0]
        if family not in best or score > best[family].score:
            best[family] = _CandidateStatistic(split.name, split.test_values, event, score)
    candidates = sorted(best.values(), key=lambda candidate: candidate.score, reverse=True)
    yield from zip(candidates, _shares(len(candidates)), strict=True)


def best_bound(bounds: list[Bound]) -> Bound:
    """Return the largest bound on epsilon of a list, or the first bound if none is above 0."""
    best, *candidates = bounds
    for bound in candidates:
        # A bound that does not refute the best one so far is no larger and is not computed.
        if bound.refutes(best.epsilon) and bound.epsilon > best.epsilon:
            best = bound
    return best


def _shares(count: int) -> list[float]:
    if count == 1:
        return [1.0]
    return [LARGEST_FRACTION] + [(1 - LARGEST_FRACTION) / (count - 1)] * (count - 1)


def _split(name: str, pair: Pair, rng) -> _Split:
    halves = [np.array_split(values[rng.permutation(values.size)], 2) for values in pair]
    return _Split(name, (halves[0][0], halves[1][0]), (halves[0][1], halves[1][1]))


def _learned(features_one: np.ndarray, features_other: np.ndarray, rng) -> list[_Split]:
    """Fit statistics, and return those that are not constant on the runs for selection."""
    (fit_one, choose_one, judge_one), (fit_other, choose_other, judge_other) = (
        _split_rows(features, rng) for features in (features_one, features_other)
    )
    scorers = fit_distinguishers(fit_one, fit_other, int(rng.integers(2**31)))
    scorers["atoms"] = fit_atoms(fit_one, fit_other)
    splits = []
    for name, score in scorers.items():
        selection_values = score(choose_one), score(choose_other)
        if np.unique(np.concatenate(selection_values)).size >= 2:
            splits.append(_Split(name, selection_values, (score(judge_one), score(judge_other))))
    return splits


def _split_rows(features: np.ndarray, rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Split rows randomly into rows for fitting, for selecting and for testing."""
    half = len(features) // 2
    ends = [int(_FITTING * half), half]
    return tuple(features[rows] for rows in np.split(rng.permutation(len(features)), ends))


def _features(transcripts: np.ndarray) -> np.ndarray:
    """Convert each run to one row of finite numbers."""
    transcripts = np.asarray(transcripts, float)
    require(
        len(transcripts) >= _MIN_RUNS, "transcripts", len(transcripts), f"{_MIN_RUNS} runs or more"
    )
    flat = transcripts.reshape(len(transcripts), -1)
    finite = np.isfinite(flat)
    return np.column_stack([np.where(finite, flat, 0.0), np.sum(~finite, axis=1)])
