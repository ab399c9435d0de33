"""Noised gradient descent whose messages are rounded to a public grid.

The rounding is applied to the noised message as a whole, so it is a function of the message of
round_noise_descent. The next gradient is computed at a mixture of rounded messages.
"""

from dataclasses import dataclass

import numpy as np

from private_consensus.core.algorithms.base import column
from private_consensus.core.algorithms.parameters import positive

from ._common import State
from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class GridMessageDescent(RoundNoiseDescent):
    """Noised gradient descent whose messages are rounded to a public grid.

    Parameters
    ----------
    grid : float
        Distance of two points of the grid.
    """

    grid: float = positive(0.01)

    def step(self, state, problem, network, draw, t):
        sent = super().step(state, problem, network, draw, t).x
        grid = column(self.grid)
        return State(grid * np.round(sent / grid))


ALGORITHM = GridMessageDescent
EXAMPLE = "mean_estimation"
