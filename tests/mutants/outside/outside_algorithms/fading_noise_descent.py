"""Noised gradient descent whose noise falls geometrically and is declared as constant.

Declares what round_noise_descent declares: one Gaussian release per round. The noise of round t
is multiplied by :math:`0.7^t`.
"""

from dataclasses import dataclass

from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class FadingNoiseDescent(RoundNoiseDescent):
    """Noised gradient descent whose noise falls geometrically and is declared as constant."""

    def noise(self, draw, t):
        return 0.7**t * super().noise(draw, t)


ALGORITHM = FadingNoiseDescent
EXAMPLE = "mean_estimation"
