"""Gossip of signs in which each round flips the exact signs again.

Declares what random_sign_gossip declares: d randomised signs, once. Each of T rounds sends the
exact signs with fresh flips.
"""

from dataclasses import dataclass

from .random_sign_gossip import RandomSignGossip


@dataclass(frozen=True, kw_only=True)
class FreshSignRounds(RandomSignGossip):
    """Gossip of signs in which each round flips the exact signs again."""

    def step(self, state, problem, network, draw, t):
        return super().step(state, problem, network, draw, 1)


ALGORITHM = FreshSignRounds
EXAMPLE = "mean_estimation"
