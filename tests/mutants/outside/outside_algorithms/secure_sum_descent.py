r"""Gradient descent along a sum that secure aggregation forms.

Each of n agents adds noise of standard deviation :math:`\sigma/\sqrt n` to its gradient, and all
agents receive the sum only. The sum has noise :math:`N(0, \sigma^2 I)`, and a replaced record
moves it by at most :math:`\Delta_2`. All models are functions of the sums. T rounds are T
Gaussian mechanisms.
"""

from dataclasses import dataclass

import numpy as np

from ._common import State
from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class SecureSumDescent(RoundNoiseDescent):
    """Gradient descent along a sum that secure aggregation forms."""

    def share(self, problem):
        """Return the fraction of the standard deviation that one agent adds."""
        return 1.0 / np.sqrt(problem.n_agents)

    def step(self, state, problem, network, draw, t):
        noised = problem.gradient(state.x) + self.share(problem) * self.noise(draw, t)
        sums = noised.sum(-2, keepdims=True)
        moved = state.x - self.length(problem) * sums / problem.n_agents
        return State(moved)


ALGORITHM = SecureSumDescent
EXAMPLE = "mean_estimation"
