"""Data sets of mean estimation: records in the box."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from . import Background, Record, Universe


class MeanUniverse(Universe):
    """Records in the box; a background has the mean of the other records of each agent."""

    def extremes(self) -> list[tuple[Record, Record]]:
        corner = np.full(self.problem.dim, self.problem.box)
        face = corner * np.eye(self.problem.dim)[0]
        pairs = (corner, -corner), (face, -face), (corner, 0.0 * corner), (0.0 * corner, face)
        return [((first,), (second,)) for first, second in pairs]

    def own(self) -> Background:
        return (self.problem.means[0],)

    def background(
        self, style: str, records: tuple[Record, Record], agent: int, rng: np.random.Generator
    ) -> Background:
        (background,) = super().background(style, records, agent, rng)
        return (np.reshape(background, self.problem.means.shape[1:]),)

    def random(self, rng: np.random.Generator, *shape: int) -> Background:
        # A background has one mean per agent; a single record has the shape [1, dim].
        size = (self.n_agents, self.problem.dim) if len(shape) > 1 else (1, self.problem.dim)
        corners = rng.choice([-1.0, 0.0, 1.0], size) * self.problem.box
        return (corners * rng.choice([1.0, rng.random()]),)

    def holding(self, background: Background, record: Record, agent: int, index: int) -> Any:
        means, records = np.array(background[0], float), self.problem.records
        means[agent] = (means[agent] * (records - 1) + record[0]) / records
        return replace(self.problem, means=means[None])


UNIVERSE = MeanUniverse
