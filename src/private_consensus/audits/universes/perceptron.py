"""Data sets of the perceptron: images and their classes."""

from dataclasses import replace
from typing import Any

import numpy as np

from private_consensus.core.problems.perceptron import CLASSES

from . import Background, Record, Universe


class PerceptronUniverse(Universe):
    """Images of one of the classes, with entries in [0, 1] or up to 1000: they have no bound."""

    def extremes(self) -> list[tuple[Record, Record]]:
        bright = np.ones(self.problem.inputs)
        pairs = ((bright, 0), (bright, CLASSES - 1)), ((bright, 0), (0.0 * bright, 0))
        return list(pairs)

    def own(self) -> Background:
        rows = self.problem.agent_rows[0]
        return self.problem.features[rows], self.problem.labels[rows]

    def random(self, rng: np.random.Generator, *shape: int) -> Background:
        images = rng.random((*shape, self.problem.inputs)) ** rng.choice([0.0, 1.0])
        images *= rng.choice([1.0, 10.0 ** rng.uniform(0, 3)])
        return images, rng.integers(0, CLASSES, shape)

    def problem_of(self, background: Background) -> Any:
        rows = self.problem.agent_rows[:1]
        features, labels = self.problem.features.copy(), self.problem.labels.copy()
        features[rows[0]], labels[rows[0]] = background
        return replace(self.problem, features=features, labels=labels, agent_rows=rows)


UNIVERSE = PerceptronUniverse
