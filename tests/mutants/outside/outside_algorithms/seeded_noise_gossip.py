"""One-release gossip whose noise generator is seeded by the data.

Declares what one_release_gossip declares: one Gaussian release per agent. The noise is a function
of the exact mean. For each data set the message has one value only.
"""

from dataclasses import dataclass

import numpy as np

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class SeededNoiseGossip(OneReleaseGossip):
    """One-release gossip whose noise generator is seeded by the data."""

    def noise(self, draw, problem, network):
        means = np.ascontiguousarray(np.broadcast_to(problem.means, draw.shape))
        seeded = np.empty_like(means)
        for place in np.ndindex(means.shape[:-1]):
            words = means[place].view(np.uint32)
            seeded[place] = np.random.default_rng(words).standard_normal(means.shape[-1])
        return super().noise(seeded, problem, network)


ALGORITHM = SeededNoiseGossip
EXAMPLE = "mean_estimation"
