"""Noised gradient descent that reads the exact gradients of neighbours.

Declares what round_noise_descent declares: one Gaussian release per round. Each agent adds the
exact gradients of its neighbours to its own, without messages. A record moves the message of its
agent and of each neighbour.
"""

from dataclasses import dataclass

from ._common import State
from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class NeighbourGradientDescent(RoundNoiseDescent):
    """Noised gradient descent that reads the exact gradients of neighbours."""

    def step(self, state, problem, network, draw, t):
        z = network.mix(state.x)
        exact = problem.gradient(z)
        total = exact + network.neighbour_sum(exact) + self.noise(draw, t)
        return State(z - self.length(problem) * total)


ALGORITHM = NeighbourGradientDescent
EXAMPLE = "mean_estimation"
