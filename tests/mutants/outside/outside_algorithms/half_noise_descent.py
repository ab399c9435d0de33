"""Noised gradient descent that halves the noise inside the step.

Declares what round_noise_descent declares: one Gaussian release per round. The noise of the step
has half of the declared standard deviation.
"""

from dataclasses import dataclass

from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class HalfNoiseDescent(RoundNoiseDescent):
    """Noised gradient descent that halves the noise inside the step."""

    def noise(self, draw, t):
        return 0.5 * super().noise(draw, t)


ALGORITHM = HalfNoiseDescent
EXAMPLE = "mean_estimation"
