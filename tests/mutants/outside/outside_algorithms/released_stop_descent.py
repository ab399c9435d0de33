"""Noised gradient descent that stops by a test of its messages.

An agent stops computing gradients if its message moved by less than a tolerance in the last
round. The rule is a function of messages. The account counts all T rounds, whether the agent
stops or not.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from private_consensus.core.algorithms.base import column, origin
from private_consensus.core.algorithms.parameters import positive

from .round_noise_descent import RoundNoiseDescent


class StoppingState(NamedTuple):
    """Messages [settings, runs, agents, dim] and which agents go on [settings, runs, agents, 1]."""

    x: np.ndarray
    active: np.ndarray


@dataclass(frozen=True, kw_only=True)
class ReleasedStopDescent(RoundNoiseDescent):
    """Noised gradient descent that stops by a test of its messages.

    Parameters
    ----------
    tolerance : float
        Distance of two messages in a row below which an agent stops.
    """

    tolerance: float = positive(0.05)

    def start(self, problem, network, streams, settings):
        zero = origin(problem, streams, settings)
        return StoppingState(zero, np.ones((*zero.shape[:-1], 1), bool))

    def goes_on(self, problem, before, after):
        """Return which agents go on after a round."""
        moved = np.linalg.norm(after - before, axis=-1, keepdims=True)
        return moved >= column(self.tolerance)

    def step(self, state, problem, network, draw, t):
        stepped = super().step(state, problem, network, draw, t).x
        x = np.where(state.active, stepped, network.mix(state.x))
        active = state.active & self.goes_on(problem, state.x, x)
        return StoppingState(x, active)


ALGORITHM = ReleasedStopDescent
EXAMPLE = "mean_estimation"
