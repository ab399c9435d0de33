"""One-release gossip that loses the noise of an agent with probability 1/20.

Declares what one_release_gossip declares: one Gaussian release per agent. With probability 1/20
an agent sends its exact mean.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .one_release_gossip import OneReleaseGossip


class Draw(NamedTuple):
    """Unit noise [runs, agents, dim] and uniform numbers [runs, agents, 1]."""

    noise: np.ndarray
    coins: np.ndarray


@dataclass(frozen=True, kw_only=True)
class LostNoiseGossip(OneReleaseGossip):
    """One-release gossip that loses the noise of an agent with probability 1/20."""

    @property
    def hidden_sampling(self):
        return True

    def draws(self, problem, streams):
        coins = streams.sequence("sampling", "uniform", (problem.n_agents, 1), "loss")
        for noise, uniform in zip(super().draws(problem, streams), coins, strict=False):
            yield Draw(noise, uniform)

    def noise(self, draw, problem, network):
        kept = draw.coins >= 0.05
        return kept * super().noise(draw.noise, problem, network)


ALGORITHM = LostNoiseGossip
EXAMPLE = "mean_estimation"
