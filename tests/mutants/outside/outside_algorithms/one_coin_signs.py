"""Gossip of signs in which one coin flips all signs of an agent.

Declares what random_sign_gossip declares: d randomised signs. All signs of an agent are flipped
together, so the product of two signs is exact.
"""

from dataclasses import dataclass

import numpy as np

from .random_sign_gossip import RandomSignGossip


@dataclass(frozen=True, kw_only=True)
class OneCoinSigns(RandomSignGossip):
    """Gossip of signs in which one coin flips all signs of an agent."""

    def draws(self, problem, streams):
        for uniform in super().draws(problem, streams):
            yield uniform[..., :1] + np.zeros_like(uniform)


ALGORITHM = OneCoinSigns
EXAMPLE = "mean_estimation"
