"""One-release gossip whose outcome is the exact average of the network.

Declares what one_release_gossip declares: one Gaussian release per agent. The outcome after the
last round is computed from the exact means.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class ExactOutcomeGossip(OneReleaseGossip):
    """One-release gossip whose outcome is the exact average of the network."""

    quantities: ClassVar[tuple[str, ...]] = ("released", "average")

    def outcome(self, state, problem, network, t):
        average = problem.means.mean(-2, keepdims=True)
        return {"average": average + np.zeros_like(state.x)}


ALGORITHM = ExactOutcomeGossip
EXAMPLE = "mean_estimation"
