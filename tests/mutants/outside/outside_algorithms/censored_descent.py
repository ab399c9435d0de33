"""Noised gradient descent that repeats its message if its gradient is short.

Declares what round_noise_descent declares: one Gaussian release per round. An agent sends a new
message only if its exact gradient is longer than the change that one record can cause. Else it
repeats its last message, which has probability 0 otherwise.
"""

from dataclasses import dataclass

import numpy as np

from ._common import State
from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class CensoredDescent(RoundNoiseDescent):
    """Noised gradient descent that repeats its message if its gradient is short."""

    def step(self, state, problem, network, draw, t):
        stepped = super().step(state, problem, network, draw, t).x
        exact = problem.gradient(network.mix(state.x))
        long = np.linalg.norm(exact, axis=-1, keepdims=True) > problem.record_change("l2")
        return State(np.where(long, stepped, state.x))


ALGORITHM = CensoredDescent
EXAMPLE = "mean_estimation"
