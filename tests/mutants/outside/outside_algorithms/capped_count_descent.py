"""Noised gradient descent whose privacy accounting counts at most ten rounds.

Declares at most ten Gaussian releases, as if agents stopped after ten rounds. They do not stop.
"""

from dataclasses import dataclass

from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class CappedCountDescent(RoundNoiseDescent):
    """Noised gradient descent whose privacy accounting counts at most ten rounds."""

    def count(self, horizon):
        return min(horizon, 10)


ALGORITHM = CappedCountDescent
EXAMPLE = "mean_estimation"
