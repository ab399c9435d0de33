"""One-release gossip in which the first edge carries an exact value.

Declares what one_release_gossip declares: one Gaussian release per agent. In round 2 the agent at
the end of the first edge receives the exact mean of the agent at the start of the edge. All other
edges carry noised values.
"""

from dataclasses import dataclass

import numpy as np

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class OneEdgeGossip(OneReleaseGossip):
    """One-release gossip in which the first edge carries an exact value."""

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        if t != 2:
            return after
        links = network.of_run(0)
        sender, receiver = np.argwhere(links.adjacency)[0]
        weight = links.mixing[receiver, sender]
        exact = problem.means[..., sender, :] - state.x[..., sender, :]
        after.x[..., receiver, :] += weight * exact
        return after


ALGORITHM = OneEdgeGossip
EXAMPLE = "mean_estimation"
