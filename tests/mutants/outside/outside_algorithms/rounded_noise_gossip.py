"""One-release gossip that rounds the noise and not the message.

Declares what one_release_gossip declares: one Gaussian release per agent. The noise is a multiple
of a tenth of its standard deviation. The remainder of a message modulo this grid is the remainder
of the exact mean.
"""

from dataclasses import dataclass

import numpy as np

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class RoundedNoiseGossip(OneReleaseGossip):
    """One-release gossip that rounds the noise and not the message."""

    def noise(self, draw, problem, network):
        return super().noise(np.round(10.0 * draw) / 10.0, problem, network)


ALGORITHM = RoundedNoiseGossip
EXAMPLE = "mean_estimation"
