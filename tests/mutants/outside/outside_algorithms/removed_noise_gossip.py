"""One-release gossip that subtracts its noise again in round 3.

Declares what one_release_gossip declares: one Gaussian release per agent. In round 3 each agent
subtracts its noise from the mixture. The mixture of round 2 is public, so the difference is the
noise, and the message of round 1 minus the noise is the exact mean.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from private_consensus.core.algorithms.base import origin

from .one_release_gossip import OneReleaseGossip


class NoisyState(NamedTuple):
    """Messages and the noise of round 1, [settings, runs, agents, dim]."""

    x: np.ndarray
    noise: np.ndarray


@dataclass(frozen=True, kw_only=True)
class RemovedNoiseGossip(OneReleaseGossip):
    """One-release gossip that subtracts its noise again in round 3."""

    def start(self, problem, network, streams, settings):
        zero = origin(problem, streams, settings)
        return NoisyState(zero, zero)

    def step(self, state, problem, network, draw, t):
        if t == 1:
            noise = self.noise(draw, problem, network)
            return NoisyState(problem.means + noise, noise)
        mixed = network.mix(state.x)
        return NoisyState(mixed - state.noise if t == 3 else mixed, state.noise)


ALGORITHM = RemovedNoiseGossip
EXAMPLE = "mean_estimation"
