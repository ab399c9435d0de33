"""One-release gossip in which one agent in the middle adds no noise.

Declares what one_release_gossip declares: one Gaussian release per agent. Agent n // 2 sends its
exact mean in round 1.
"""

from dataclasses import dataclass

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class SilentMiddleAgent(OneReleaseGossip):
    """One-release gossip in which one agent in the middle adds no noise."""

    def noise(self, draw, problem, network):
        noise = super().noise(draw, problem, network)
        noise[..., problem.n_agents // 2, :] = 0.0
        return noise


ALGORITHM = SilentMiddleAgent
EXAMPLE = "mean_estimation"
