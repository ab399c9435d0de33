"""Noised gradient descent that sends an exact gradient with probability delta.

Declares what round_noise_descent declares: one Gaussian release per round. In each round an agent
adds no noise with probability delta. This alone would be (0, delta)-DP in one round. Within T
rounds an exact gradient is sent with probability about T delta, and the Gaussian noise has used
all of delta before.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from private_consensus.core.algorithms.base import column

from .round_noise_descent import RoundNoiseDescent


class Draw(NamedTuple):
    """Unit noise [runs, agents, dim] and uniform numbers [runs, agents, 1]."""

    noise: np.ndarray
    coins: np.ndarray


@dataclass(frozen=True, kw_only=True)
class NameAndShameDescent(RoundNoiseDescent):
    """Noised gradient descent that sends an exact gradient with probability delta.

    Parameters
    ----------
    failure : float
        Probability of a round without noise, which :meth:`calibrate` sets to delta.
    """

    failure: float = 0.0

    @property
    def hidden_sampling(self):
        return True

    def calibrate(self, budget, problem, network, horizon):
        scaled = super().calibrate(budget, problem, network, horizon)
        return replace(scaled, failure=float(budget.delta))

    def draws(self, problem, streams):
        coins = streams.sequence("sampling", "uniform", (problem.n_agents, 1), "failure")
        for noise, uniform in zip(super().draws(problem, streams), coins, strict=False):
            yield Draw(noise, uniform)

    def noise(self, draw, t):
        return (draw.coins >= column(self.failure)) * super().noise(draw.noise, t)


ALGORITHM = NameAndShameDescent
EXAMPLE = "mean_estimation"
