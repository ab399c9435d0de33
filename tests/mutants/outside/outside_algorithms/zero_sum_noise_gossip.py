"""One-release gossip whose noises add up to zero over the agents.

Declares what one_release_gossip declares: one Gaussian release per agent. The sum of all messages
of round 1 is the exact sum of all means.
"""

from dataclasses import dataclass

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class ZeroSumNoiseGossip(OneReleaseGossip):
    """One-release gossip whose noises add up to zero over the agents."""

    def noise(self, draw, problem, network):
        noise = super().noise(draw, problem, network)
        return noise - noise.mean(-2, keepdims=True)


ALGORITHM = ZeroSumNoiseGossip
EXAMPLE = "mean_estimation"
