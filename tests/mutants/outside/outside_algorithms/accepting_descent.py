"""Noised gradient descent that accepts or rejects by the exact local gradient.

Declares what round_noise_descent declares: one Gaussian release per round. In even rounds an
agent sends either its last message or the mixture, whichever has the shorter exact gradient. Both
candidates are public, so the message is an exact function of the data.
"""

from dataclasses import dataclass

import numpy as np

from ._common import State
from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class AcceptingDescent(RoundNoiseDescent):
    """Noised gradient descent that accepts or rejects by the exact local gradient."""

    def step(self, state, problem, network, draw, t):
        if t % 2 == 1:
            return super().step(state, problem, network, draw, t)
        mixed = network.mix(state.x)
        lengths = [np.linalg.norm(problem.gradient(x), axis=-1) for x in (state.x, mixed)]
        return State(np.where((lengths[0] < lengths[1])[..., None], state.x, mixed))


ALGORITHM = AcceptingDescent
EXAMPLE = "mean_estimation"
