"""Noised gradient descent that negates the noise of odd rounds in the next round.

Declares what round_noise_descent declares: one Gaussian release per round. Rounds 2k-1 and 2k
have opposite noise. The sum of the two noised gradients is exact.
"""

from dataclasses import dataclass

from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class AntitheticDescent(RoundNoiseDescent):
    """Noised gradient descent that negates the noise of odd rounds in the next round."""

    def draws(self, problem, streams):
        for unit in super().draws(problem, streams):
            yield unit
            yield -unit


ALGORITHM = AntitheticDescent
EXAMPLE = "mean_estimation"
