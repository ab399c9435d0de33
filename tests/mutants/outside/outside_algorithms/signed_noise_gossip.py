r"""One-release gossip whose noise is multiplied by a sign of the data.

The noise is :math:`s\,N(0, \sigma^2 I)` with s the sign of the first coordinate of the mean. The
normal distribution is symmetric, so for each data set the message is :math:`\bar d_i + N(0,
\sigma^2 I)`. The loss is that of one_release_gossip.
"""

from dataclasses import dataclass

import numpy as np

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class SignedNoiseGossip(OneReleaseGossip):
    """One-release gossip whose noise is multiplied by a sign of the data."""

    def noise(self, draw, problem, network):
        sign = np.where(problem.means[..., :1] >= 0, 1.0, -1.0)
        return sign * super().noise(draw, problem, network)


ALGORITHM = SignedNoiseGossip
EXAMPLE = "mean_estimation"
