r"""Noised gradient descent in which each agent participates in every third round.

Agent i computes a gradient in the rounds t with :math:`t + i` divisible by 3. In all other rounds
it sends the mixture of messages. Within T rounds an agent takes part at most :math:`\lceil
T/3\rceil` times, and so often the Gaussian mechanism is counted.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np

from private_consensus.core.algorithms.base import column
from private_consensus.core.algorithms.parameters import positive_integer

from ._common import State
from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class AlternatingDescent(RoundNoiseDescent):
    """Noised gradient descent in which each agent participates in every third round.

    Parameters
    ----------
    period : int
        Number of rounds from one gradient step of an agent to the next.
    """

    period: int = positive_integer(3)

    def count(self, horizon):
        return ceil(horizon / self.period)

    def takes_part(self, problem, t):
        """Return which agents compute a gradient, broadcastable to [settings, runs, agents, 1]."""
        agents = np.arange(problem.n_agents)[:, None]
        return (t + agents) % column(self.period) == 0

    def step(self, state, problem, network, draw, t):
        mixed = network.mix(state.x)
        stepped = super().step(state, problem, network, draw, t).x
        return State(np.where(self.takes_part(problem, t), stepped, mixed))


ALGORITHM = AlternatingDescent
EXAMPLE = "mean_estimation"
