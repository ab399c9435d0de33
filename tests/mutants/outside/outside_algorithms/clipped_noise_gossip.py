"""One-release gossip whose noise is clipped at one standard deviation.

Declares what one_release_gossip declares: one Gaussian release per agent. A third of all draws
are clipped in each coordinate, and their sum with the mean then takes one of two values. These
atoms differ between data sets.
"""

from dataclasses import dataclass

import numpy as np

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class ClippedNoiseGossip(OneReleaseGossip):
    """One-release gossip whose noise is clipped at one standard deviation."""

    def noise(self, draw, problem, network):
        return super().noise(np.clip(draw, -1.0, 1.0), problem, network)


ALGORITHM = ClippedNoiseGossip
EXAMPLE = "mean_estimation"
