"""Statistics of exactly repeated values: zeros, equal messages, values shared by runs.

Noise with a continuous distribution repeats values only by the resolution of its grid. If a
transcript repeats more values under D than under D', the repetitions distinguish the two, and no
smooth statistic detects it. The numbers of repetitions per run are statistics. Which values are
atoms, and at which index, is learned from the runs for fitting.
"""

from __future__ import annotations

import numpy as np

from .distinguishers import Scorer

_MIN_RUNS = 3  # smallest number of runs that contain an atom
_MAX_FEATURES = 300  # number of features whose atoms are learned: those with the most atoms
_MIN_FRACTION = 0.002  # smallest fraction of the runs that contain an atom


def atom_statistics(
    transcripts: np.ndarray, transcripts_other: np.ndarray
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the number of atoms of each run, by kind; omit kinds that are constant over all runs.

    The transcripts are all messages of each run, [runs, ..., dim], under D and under D'. Axes
    between are those of rounds and agents. Each kind has one number per run, under D and under D'.
    """
    pairs = zip(
        _counts_per_run(transcripts).items(),
        _counts_per_run(transcripts_other).values(),
        strict=True,
    )
    return {kind: (a, b) for (kind, a), b in pairs if np.unique(np.concatenate([a, b])).size > 1}


def fit_atoms(features_one: np.ndarray, features_other: np.ndarray) -> Scorer:
    """Fit the log-likelihood ratio of the atoms of a run, with independent features.

    Both arrays of features, under D and under D', and those of the result are [runs, features].
    """
    ordered = np.sort(np.concatenate([features_one, features_other]).T, axis=1)
    repeats = np.sum(np.diff(ordered, axis=1) == 0, axis=1)
    columns = np.argsort(-repeats, kind="stable")[:_MAX_FEATURES]
    tables = [
        (column, *_table(features_one[:, column], features_other[:, column]))
        for column in columns[repeats[columns] > 0]
    ]

    def score(features: np.ndarray) -> np.ndarray:
        total = np.zeros(len(features))
        for column, values, weights in tables:
            total += _looked_up(features[:, column], values, weights)
        return total

    return score


def _table(values_one: np.ndarray, values_other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the atoms in ascending order and their log ratios.

    The last ratio is that of all other values.
    """
    values, counts = np.unique(np.concatenate([values_one, values_other]), return_counts=True)
    min_count = max(_MIN_RUNS, _MIN_FRACTION * (values_one.size + values_other.size))
    atoms = values[counts >= min_count]
    chances = []
    for sample in (values_one, values_other):
        hits = np.sum(sample[:, None] == atoms, axis=0)
        cells = np.append(hits, sample.size - hits.sum()) + 0.5
        chances.append(cells / cells.sum())
    return atoms, np.log(chances[0] / chances[1])


def _looked_up(values: np.ndarray, atoms: np.ndarray, weights: np.ndarray) -> np.ndarray:
    if not atoms.size:
        return np.zeros(values.shape)
    index = np.minimum(np.searchsorted(atoms, values), atoms.size - 1)
    return np.where(atoms[index] == values, weights[index], weights[-1])


def _counts_per_run(transcripts: np.ndarray) -> dict[str, np.ndarray]:
    """Count, for each run, the zeros, repeated values and repeated messages."""
    transcripts = np.asarray(transcripts)
    runs, dim = len(transcripts), transcripts.shape[-1]
    flat = transcripts.reshape(runs, -1)
    values, messages = np.sort(flat, axis=1), _fingerprints(transcripts.reshape(runs, -1, dim))
    repeated = (np.diff(values, axis=1) == 0) & (values[:, 1:] != 0)
    return {
        "exact zeros": np.sum(flat == 0, axis=1).astype(float),
        "repeated values": np.sum(repeated, axis=1).astype(float),
        "equal messages": np.sum(np.diff(np.sort(messages, axis=1), axis=1) == 0, axis=1) * 1.0,
    }


def _fingerprints(messages: np.ndarray) -> np.ndarray:
    """Hash messages [runs, messages, dim] to one number per message, equal for equal messages."""
    weights = np.random.default_rng(0).uniform(1, 2, messages.shape[-1])
    return np.where(np.isfinite(messages), messages, 0.0) @ weights
