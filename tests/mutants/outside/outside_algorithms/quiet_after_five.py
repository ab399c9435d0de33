"""Noised gradient descent without noise after round 5.

Declares what round_noise_descent declares: one Gaussian release per round. From round 6 on
messages give exact gradients.
"""

from dataclasses import dataclass

from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class QuietAfterFive(RoundNoiseDescent):
    """Noised gradient descent without noise after round 5."""

    def noise(self, draw, t):
        return (t <= 5) * super().noise(draw, t)


ALGORITHM = QuietAfterFive
EXAMPLE = "mean_estimation"
