"""Data sets of the lasso: rows within the bound, and responses."""

from dataclasses import replace
from typing import Any

import numpy as np

from private_consensus.core.problems.lasso import Lasso

from . import Background, Opposites, Record, Universe

FAR_RESPONSE = 1e3
"""Response of a regression with Huber's loss, at which the gradient has its largest norm."""


class LassoUniverse(Universe):
    """Rows within the bound; responses of any size, since Huber's loss bounds gradients."""

    def __init__(self, problem: Lasso):
        super().__init__(problem)
        self.length = float(min(1.0, problem.row_bound))
        self.far = FAR_RESPONSE if np.isfinite(problem.gradient_bound) else 0.5

    def extremes(self) -> list[tuple[Record, Record]]:
        row = self.length * np.eye(self.problem.dim)[0]
        return [((row, self.far), (row, -self.far)), ((row, self.far), (0.0 * row, 0.0))]

    def opposites(self, angle: float) -> list[Opposites]:
        dim = self.problem.dim
        if dim < 2 or not np.isfinite(self.problem.gradient_bound):
            return []
        # Huber's loss has slopes of opposite signs on two rows next to a middle row.
        middle, across = np.eye(dim)[[0, -1]]
        left, right = (
            self.length * (np.cos(angle) * middle + side * np.sin(angle) * across)
            for side in (-1, 1)
        )
        attracting = self.length * across, self.far
        return [Opposites((left, 0.0), (right, 0.0), across, attracting)]

    def own(self) -> Background:
        return self.problem.features[0], self.problem.responses[0]

    def random(self, rng: np.random.Generator, *shape: int) -> Background:
        rows = rng.standard_normal((*shape, self.problem.dim))
        rows *= self.length / ((1 + 1e-12) * np.linalg.norm(rows, axis=-1, keepdims=True))
        return rows, rng.choice([-1.0, 1.0], shape) * rng.choice([0.0, 1.0, self.far], shape)

    def problem_of(self, background: Background) -> Any:
        features, responses = (np.array(array, float) for array in background)
        return replace(self.problem, features=features[None], responses=responses[None])


UNIVERSE = LassoUniverse
