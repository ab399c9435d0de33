"""Data sets of fair classification: rows and labels of one training set."""

from typing import Any

import numpy as np

from private_consensus.core.problems.fair_classification import FairLogisticRegression

from . import Background, Record, Universe


class FairUniverse(Universe):
    """Rows without negative entries, of norm at most 1. Protected attributes are public."""

    def __init__(self, problem: FairLogisticRegression):
        super().__init__(problem)
        self.training = np.setdiff1d(np.arange(len(problem.features)), problem.test[0])

    def extremes(self) -> list[tuple[Record, Record]]:
        unit = np.eye(self.problem.dim)
        return [((unit[0], 1), (unit[-1], 0)), ((unit[0], 1), (0.0 * unit[0], 0))]

    def own(self) -> Background:
        features, labels = self.problem.features, self.problem.labels
        return features[self.training][None], labels[self.training][None]

    def random(self, rng: np.random.Generator, *shape: int) -> Background:
        rows = rng.random((*shape, self.problem.dim))
        rows /= (1 + 1e-12) * np.linalg.norm(rows, axis=-1, keepdims=True)
        return rows, rng.integers(0, 2, shape)

    def problem_of(self, background: Background) -> Any:
        features, labels = np.array(self.problem.features, float), np.array(self.problem.labels)
        features[self.training], labels[self.training] = (array[0] for array in background)
        data = features, labels, self.problem.protected, self.problem.test[:1]
        return FairLogisticRegression(*data, self.problem.columns)

    @property
    def counts(self) -> np.ndarray:
        return np.array([len(self.training)])


UNIVERSE = FairUniverse
