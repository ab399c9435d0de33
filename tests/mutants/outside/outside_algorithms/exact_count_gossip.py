"""One-release gossip that also reports the exact number of positive coordinates.

Declares what one_release_gossip declares: one Gaussian release per agent. The quantity
``positive`` counts the positive coordinates of the exact means of all agents. For a pair of data
sets whose means lie on two sides of 0 the counts differ with certainty.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class ExactCountGossip(OneReleaseGossip):
    """One-release gossip that also reports the exact number of positive coordinates."""

    quantities: ClassVar[tuple[str, ...]] = ("released", "positive")

    def observables(self, state, problem, t):
        count = (problem.means > 0).sum((-2, -1)).astype(float)
        return {"released": state.x, "positive": count + np.zeros(state.x.shape[:2])}


ALGORITHM = ExactCountGossip
EXAMPLE = "mean_estimation"
