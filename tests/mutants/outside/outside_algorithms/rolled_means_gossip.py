"""One-release gossip in which agents add a tenth of another exact mean in round 2.

Declares what one_release_gossip declares: one Gaussian release per agent. In round 2 each agent
adds a tenth of the exact mean of the previous agent.
"""

from dataclasses import dataclass

import numpy as np

from ._common import State
from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class RolledMeansGossip(OneReleaseGossip):
    """One-release gossip in which agents add a tenth of another exact mean in round 2."""

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        if t != 2:
            return after
        return State(0.9 * after.x + 0.1 * np.roll(problem.means, 1, axis=-2))


ALGORITHM = RolledMeansGossip
EXAMPLE = "mean_estimation"
