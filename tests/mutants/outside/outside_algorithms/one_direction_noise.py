"""One-release gossip whose noise vector has equal coordinates.

Declares what one_release_gossip declares: one Gaussian release per agent. The difference of two
coordinates of a message is exact.
"""

from dataclasses import dataclass

import numpy as np

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class OneDirectionNoise(OneReleaseGossip):
    """One-release gossip whose noise vector has equal coordinates."""

    def noise(self, draw, problem, network):
        return super().noise(draw[..., :1] + np.zeros_like(draw), problem, network)


ALGORITHM = OneDirectionNoise
EXAMPLE = "mean_estimation"
