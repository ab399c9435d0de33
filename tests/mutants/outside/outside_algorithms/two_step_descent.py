"""Noised gradient descent whose step length depends on the exact gradient.

Declares what round_noise_descent declares: one Gaussian release per round. A thousandth of the
step is taken if the exact gradient is longer than the change that one record can cause. The step
length multiplies the noise, too, so the distance between message and mixture tells which length
was used.
"""

from dataclasses import dataclass

import numpy as np

from ._common import State
from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class TwoStepDescent(RoundNoiseDescent):
    """Noised gradient descent whose step length depends on the exact gradient."""

    def step(self, state, problem, network, draw, t):
        z = network.mix(state.x)
        exact = problem.gradient(z)
        long = np.linalg.norm(exact, axis=-1, keepdims=True) > problem.record_change("l2")
        length = self.length(problem) * np.where(long, 0.001, 1.0)
        return State(z - length * (exact + self.noise(draw, t)))


ALGORITHM = TwoStepDescent
EXAMPLE = "mean_estimation"
