r"""Gossip that starts from randomised signs of means.

Each agent sends the sign of each coordinate of its mean, flipped with probability :math:`p = 1/(1
+ e^{\epsilon_0})` independently. A sign is :math:`\epsilon_0`-DP whatever changes in the agent's
data, and d signs are :math:`d\epsilon_0`-DP. The signs are divided by :math:`1 - 2p`. Later
messages are functions of the first messages.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

import numpy as np

from private_consensus.core.algorithms.base import Iterative, column, origin
from private_consensus.core.algorithms.parameters import positive
from private_consensus.privacy import Release

from ._common import State


@dataclass(frozen=True, kw_only=True)
class RandomSignGossip(Algorithm):
    """Gossip that starts from randomised signs of means.

    Parameters
    ----------
    loss : float
        Pure epsilon of one sign; infinite for exact signs.
    """

    loss: float = positive(inf)

    needs: ClassVar[tuple[str, ...]] = ("means",)

    def calibrate(self, budget, problem, network, horizon):
        return replace(self, loss=budget.epsilon / problem.dim)

    def releases(self, problem, network, horizon):
        return [Release("pure", epsilon=problem.dim * self.loss)]

    def claimed_epsilon(self, delta, problem, network, horizon):
        return problem.dim * self.loss

    def start(self, problem, network, streams, settings):
        return State(origin(problem, streams, settings))

    def draws(self, problem, streams):
        return streams.sequence("noise", "uniform", (problem.n_agents, problem.dim))

    def step(self, state, problem, network, draw, t):
        if t > 1:
            return State(network.mix(state.x))
        probability = 1.0 / (1.0 + np.exp(column(self.loss)))
        signs = np.where(problem.means >= 0, 1.0, -1.0)
        flipped = np.where(draw < probability, -signs, signs)
        return State(flipped / (1.0 - 2.0 * probability))

    def observables(self, state, problem, t):
        return {"released": state.x}


ALGORITHM = RandomSignGossip
EXAMPLE = "mean_estimation"
