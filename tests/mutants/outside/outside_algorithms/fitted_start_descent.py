"""Noised gradient descent that starts at one exact gradient step.

Declares what round_noise_descent declares: one Gaussian release per round. Each agent starts at
its exact step of length 1/L from the origin, which for means is the exact mean. The first mixture
then contains exact values of the agent and of its neighbours.
"""

from dataclasses import dataclass

from private_consensus.core.algorithms.base import origin

from ._common import State, public_smoothness
from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class FittedStartDescent(RoundNoiseDescent):
    """Noised gradient descent that starts at one exact gradient step."""

    def start(self, problem, network, streams, settings):
        zero = origin(problem, streams, settings)
        return State(zero - problem.gradient(zero) / public_smoothness(problem))


ALGORITHM = FittedStartDescent
EXAMPLE = "mean_estimation"
