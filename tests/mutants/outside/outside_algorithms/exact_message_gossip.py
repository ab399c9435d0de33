"""One-release gossip that releases the noised value and mixes the exact value.

Declares what one_release_gossip declares: one Gaussian release per agent. Agents add noise to the
value that they show in round 1. Their neighbours receive the exact means. All messages from round
2 on are exact.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from private_consensus.core.algorithms.base import origin

from .one_release_gossip import OneReleaseGossip


class ExactState(NamedTuple):
    """Shown values and sent values, [settings, runs, agents, dim]."""

    x: np.ndarray
    sent: np.ndarray


@dataclass(frozen=True, kw_only=True)
class ExactMessageGossip(OneReleaseGossip):
    """One-release gossip that releases the noised value and mixes the exact value."""

    def start(self, problem, network, streams, settings):
        zero = origin(problem, streams, settings)
        return ExactState(zero, zero)

    def step(self, state, problem, network, draw, t):
        if t == 1:
            noised = problem.means + self.noise(draw, problem, network)
            return ExactState(noised, problem.means + np.zeros_like(noised))
        mixed = network.mix(state.sent)
        return ExactState(mixed, mixed)


ALGORITHM = ExactMessageGossip
EXAMPLE = "mean_estimation"
