"""One-release gossip whose noise misses the last coordinate.

Declares what one_release_gossip declares: one Gaussian release per agent. The last coordinate of
each mean is sent exactly.
"""

from dataclasses import dataclass

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class SilentLastCoordinate(OneReleaseGossip):
    """One-release gossip whose noise misses the last coordinate."""

    def noise(self, draw, problem, network):
        noise = super().noise(draw, problem, network)
        noise[..., -1] = 0.0
        return noise


ALGORITHM = SilentLastCoordinate
EXAMPLE = "mean_estimation"
