"""One-release gossip in which agent 1 reads the exact mean of agent 2.

Declares what one_release_gossip declares: one Gaussian release per agent. In round 2 the message
of agent 1 is the mixture plus a quarter of the difference between the exact mean of agent 2 and
its message. The mixture is public, so the exact mean follows.
"""

from dataclasses import dataclass

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class OneNeighbourGossip(OneReleaseGossip):
    """One-release gossip in which agent 1 reads the exact mean of agent 2."""

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        if t == 2:
            missing = (problem.means - state.x)[..., 2, :]
            after.x[..., 1, :] += 0.25 * missing
        return after


ALGORITHM = OneNeighbourGossip
EXAMPLE = "mean_estimation"
