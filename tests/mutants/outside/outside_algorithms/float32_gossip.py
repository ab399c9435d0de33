"""One-release gossip whose messages are float32 numbers.

The noised message is rounded as a whole, which is a function of the message of
one_release_gossip. Later messages are functions of rounded messages. The loss is that of one
Gaussian mechanism.
"""

from dataclasses import dataclass

import numpy as np

from ._common import State
from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class Float32Gossip(OneReleaseGossip):
    """One-release gossip whose messages are float32 numbers."""

    def step(self, state, problem, network, draw, t):
        sent = super().step(state, problem, network, draw, t).x
        return State(sent.astype(np.float32).astype(float))


ALGORITHM = Float32Gossip
EXAMPLE = "mean_estimation"
