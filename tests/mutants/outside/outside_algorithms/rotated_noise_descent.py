r"""Noised gradient descent whose noise is reflected at the exact gradient.

The noise is :math:`(I - 2uu^T)\,N(0, \sigma^2 I)` with u the direction of the exact gradient. For
each data set and each point the reflection is orthogonal, so the noise has the distribution of
round_noise_descent given all earlier messages.
"""

from dataclasses import dataclass

import numpy as np

from ._common import State
from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class RotatedNoiseDescent(RoundNoiseDescent):
    """Noised gradient descent whose noise is reflected at the exact gradient."""

    def step(self, state, problem, network, draw, t):
        z = network.mix(state.x)
        gradient = problem.gradient(z)
        length = np.linalg.norm(gradient, axis=-1, keepdims=True)
        direction = gradient / np.where(length > 0, length, 1.0)
        noise = self.noise(draw, t)
        along = (direction * noise).sum(-1, keepdims=True)
        reflected = noise - 2.0 * along * direction
        return State(z - self.length(problem) * (gradient + reflected))


ALGORITHM = RotatedNoiseDescent
EXAMPLE = "mean_estimation"
