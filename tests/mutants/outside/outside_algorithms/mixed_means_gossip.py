r"""One-release gossip that multiplies the mixing matrix with the exact means.

Declares what one_release_gossip declares: one Gaussian release per agent. Round 2 computes
:math:`W\bar d` instead of :math:`W y`. The messages of round 2 are exact.
"""

from dataclasses import dataclass

import numpy as np

from ._common import State
from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class MixedMeansGossip(OneReleaseGossip):
    """One-release gossip that multiplies the mixing matrix with the exact means."""

    def step(self, state, problem, network, draw, t):
        if t != 2:
            return super().step(state, problem, network, draw, t)
        return State(network.mixing @ problem.means + np.zeros_like(state.x))


ALGORITHM = MixedMeansGossip
EXAMPLE = "mean_estimation"
