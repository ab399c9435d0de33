"""Noised gradient descent without noise in round 2.

Declares what round_noise_descent declares: one Gaussian release per round. The message of round 2
gives the exact gradient at a public point.
"""

from dataclasses import dataclass

from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class QuietSecondRound(RoundNoiseDescent):
    """Noised gradient descent without noise in round 2."""

    def noise(self, draw, t):
        return (t != 2) * super().noise(draw, t)


ALGORITHM = QuietSecondRound
EXAMPLE = "mean_estimation"
