"""One-release gossip in which an agent of strictly largest degree adds no noise.

Declares what one_release_gossip declares: one Gaussian release per agent. On a star the hub sends
its exact mean. On a regular graph nothing is wrong.
"""

from dataclasses import dataclass

import numpy as np

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class SilentHub(OneReleaseGossip):
    """One-release gossip in which an agent of strictly largest degree adds no noise."""

    def noise(self, draw, problem, network):
        degrees = network.degrees
        largest = degrees.max(-1, keepdims=True)
        alone = (degrees == largest).sum(-1, keepdims=True) == 1
        hub = (degrees == largest) & alone
        return np.where(hub[..., None], 0.0, super().noise(draw, problem, network))


ALGORITHM = SilentHub
EXAMPLE = "mean_estimation"
