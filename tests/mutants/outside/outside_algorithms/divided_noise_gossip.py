r"""One-release gossip that divides the noise by the root of the dimension.

Declares what one_release_gossip declares: one Gaussian release per agent. The standard deviation
of a coordinate is :math:`\sigma/\sqrt p`, as if :math:`\sigma` were the norm of the whole noise
vector.
"""

from dataclasses import dataclass

import numpy as np

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class DividedNoiseGossip(OneReleaseGossip):
    """One-release gossip that divides the noise by the root of the dimension."""

    def noise(self, draw, problem, network):
        return super().noise(draw, problem, network) / np.sqrt(problem.dim)


ALGORITHM = DividedNoiseGossip
EXAMPLE = "mean_estimation"
