"""Data sets of fair classification: rows, labels and protected attributes of one training set."""

from typing import Any

import numpy as np

from private_consensus.core.problems.fair_classification import FairLogisticRegression

from . import Background, Record, Universe


class FairUniverse(Universe):
    """Rows without negative entries, of norm at most 1. The mean protected attribute is public."""

    def __init__(self, problem: FairLogisticRegression):
        super().__init__(problem)
        self.training = np.setdiff1d(np.arange(len(problem.features)), problem.test[0])

    def extremes(self) -> list[tuple[Record, Record]]:
        unit = np.eye(self.problem.dim)
        return [
            ((unit[0], 1, 1), (unit[-1], 0, 1)),
            ((unit[0], 1, 0), (unit[-1], 1, 1)),
            ((unit[0], 1, 1), (0.0 * unit[0], 0, 0)),
        ]

    def own(self) -> Background:
        data = self.problem.features, self.problem.labels, self.problem.protected
        features, labels, protected = (array[self.training][None] for array in data)
        return features, labels, protected

    def random(self, rng: np.random.Generator, *shape: int) -> Background:
        rows = rng.random((*shape, self.problem.dim))
        rows /= (1 + 1e-12) * np.linalg.norm(rows, axis=-1, keepdims=True)
        return rows, rng.integers(0, 2, shape), rng.integers(0, 2, shape)

    def problem_of(self, background: Background) -> Any:
        features, labels = np.array(self.problem.features, float), np.array(self.problem.labels)
        protected = np.array(self.problem.protected)
        for array, values in zip((features, labels, protected), background, strict=True):
            array[self.training] = values[0]
        test, columns = self.problem.test[:1], self.problem.columns
        data_set = FairLogisticRegression(features, labels, protected, test, columns)
        vars(data_set)["mean"] = self.problem.mean
        return data_set

    @property
    def counts(self) -> np.ndarray:
        return np.array([len(self.training)])


UNIVERSE = FairUniverse
