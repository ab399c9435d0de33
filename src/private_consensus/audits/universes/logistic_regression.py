"""Data sets of logistic regression: rows of norm at most 1, and labels."""

from dataclasses import replace
from typing import Any

import numpy as np

from private_consensus.core.problems.logistic_regression import LogisticRegression

from . import Background, Opposites, Record, Universe


class LogisticUniverse(Universe):
    """Rows of norm at most 1 and labels in the coding of the problem."""

    def __init__(self, problem: LogisticRegression):
        super().__init__(problem)
        self.negative = 0.0 if problem.coding == "zero_one" else -1.0

    def extremes(self) -> list[tuple[Record, Record]]:
        dim = self.problem.dim
        diagonal, axis = np.full(dim, dim**-0.5), np.eye(dim)[0]
        opposite = np.eye(dim)[-1] if self.problem.nonnegative else -axis
        return [
            ((diagonal, 1.0), (diagonal, self.negative)),
            ((axis, 1.0), (opposite, 1.0)),
            ((axis, self.negative), (opposite, 1.0)),
            ((axis, 1.0), (0.0 * axis, 1.0)),
            ((diagonal, 1.0), (diagonal / 2, 1.0)),
        ]

    def opposites(self, angle: float) -> list[Opposites]:
        dim, axes = self.problem.dim, np.eye(self.problem.dim)
        if dim < 2:
            return []
        diagonal = np.full(dim, dim**-0.5)
        if self.negative == 0 and self.problem.nonnegative:
            # Records with label 0 have no gradient, and rows cannot be opposite.
            rows = axes[: dim // 2].sum(0), axes[dim // 2 :].sum(0)
            first, second = ((row / np.linalg.norm(row), 1.0) for row in rows)
            return [Opposites(first, second, -diagonal, (0.0 * diagonal, 1.0))]
        # Two rows without negative entries next to a middle row, and opposite labels or signs.
        angle = min(angle, dim**-0.5)
        cos, sin = np.cos(angle), np.sin(angle)
        middles = [
            (cos * axes[0] + sin * axes[-1], cos * axes[-1] - sin * axes[0]),
            (diagonal, (axes[-1] - axes[0]) * 0.5**0.5),
            (cos * axes[-1] + sin * axes[0], cos * axes[0] - sin * axes[-1]),
        ]
        pairs = []
        for middle, across in middles:
            left, right = cos * middle - sin * across, cos * middle + sin * across
            second = (-right, 1.0) if self.negative == 0 else (right, self.negative)
            row = np.maximum(across, 0.0) if self.problem.nonnegative else across
            pairs.append(Opposites((left, 1.0), second, across, (row, 1.0)))
            if self.negative != 0 and not self.problem.nonnegative:
                mirrored = (-right, 1.0), (-left, self.negative)
                pairs.append(Opposites(*mirrored, across, (row, 1.0)))
        return pairs

    def own(self) -> Background:
        features = self.problem.features.reshape(-1, *self.problem.features.shape[-3:])[0]
        return features, self.problem.labels.reshape(-1, *self.problem.labels.shape[-2:])[0]

    def random(self, rng: np.random.Generator, *shape: int) -> Background:
        rows = rng.standard_normal((*shape, self.problem.dim))
        rows = np.abs(rows) if self.problem.nonnegative else rows
        rows /= (1 + 1e-12) * np.linalg.norm(rows, axis=-1, keepdims=True)
        rows *= rng.choice([1.0, rng.random()], (*shape, 1))
        return rows, rng.choice([1.0, self.negative], shape)

    @property
    def counts(self) -> np.ndarray:
        return self.problem.record_counts

    def problem_of(self, background: Background) -> Any:
        features, labels = (np.array(array, float) for array in background)
        padding = np.arange(features.shape[1]) >= self.counts[:, None]
        features[padding], labels[padding] = 0.0, self.negative
        first_run = (0,) * (self.problem.test_labels.ndim - 1)
        return replace(
            self.problem, features=features, labels=labels,
            test_features=self.problem.test_features[first_run],
            test_labels=self.problem.test_labels[first_run],
        )  # fmt: skip


UNIVERSE = LogisticUniverse
