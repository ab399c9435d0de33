"""One-release gossip in which all agents add the noise of agent 0.

Declares what one_release_gossip declares: one Gaussian release per agent. The difference of two
messages is the exact difference of two means.
"""

from dataclasses import dataclass

import numpy as np

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class SharedNoiseGossip(OneReleaseGossip):
    """One-release gossip in which all agents add the noise of agent 0."""

    def noise(self, draw, problem, network):
        return super().noise(draw[..., :1, :] + np.zeros_like(draw), problem, network)


ALGORITHM = SharedNoiseGossip
EXAMPLE = "mean_estimation"
