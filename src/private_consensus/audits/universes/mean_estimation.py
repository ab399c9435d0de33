"""Data sets of mean estimation: records in the box."""

from dataclasses import replace
from typing import Any

import numpy as np

from . import Background, Record, Universe


class MeanUniverse(Universe):
    """Records in the box, of which a problem stores the means."""

    def extremes(self) -> list[tuple[Record, Record]]:
        corner = np.full(self.problem.dim, self.problem.box)
        face = corner * np.eye(self.problem.dim)[0]
        pairs = (corner, -corner), (face, -face), (corner, 0.0 * corner), (0.0 * corner, face)
        return [((first,), (second,)) for first, second in pairs]

    def own(self) -> Background:
        return (np.repeat(self.problem.means[0][:, None], self.problem.records, axis=1),)

    def random(self, rng: np.random.Generator, *shape: int) -> Background:
        corners = rng.choice([-1.0, 0.0, 1.0], (*shape, self.problem.dim)) * self.problem.box
        return (corners * rng.choice([1.0, rng.random()]),)

    def problem_of(self, background: Background) -> Any:
        return replace(self.problem, means=background[0].mean(1)[None])


UNIVERSE = MeanUniverse
