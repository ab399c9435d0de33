r"""One-release gossip whose noise is proportional to the norm of the mean.

Declares what one_release_gossip declares: one Gaussian release per agent. The standard deviation
is multiplied by the norm of the exact mean over :math:`R\sqrt p`, and by at least 0.01. Near the
origin the noise is 100 times too small.
"""

from dataclasses import dataclass

import numpy as np

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class NormScaledNoise(OneReleaseGossip):
    """One-release gossip whose noise is proportional to the norm of the mean."""

    def noise(self, draw, problem, network):
        lengths = np.linalg.norm(problem.means, axis=-1, keepdims=True)
        share = np.clip(lengths / (problem.box * np.sqrt(problem.dim)), 0.01, 1.0)
        return share * super().noise(draw, problem, network)


ALGORITHM = NormScaledNoise
EXAMPLE = "mean_estimation"
