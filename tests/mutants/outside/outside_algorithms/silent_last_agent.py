"""One-release gossip in which the last agent adds no noise.

Declares what one_release_gossip declares: one Gaussian release per agent. The last agent sends
its exact mean in round 1.
"""

from dataclasses import dataclass

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class SilentLastAgent(OneReleaseGossip):
    """One-release gossip in which the last agent adds no noise."""

    def noise(self, draw, problem, network):
        noise = super().noise(draw, problem, network)
        noise[..., -1, :] = 0.0
        return noise


ALGORITHM = SilentLastAgent
EXAMPLE = "mean_estimation"
