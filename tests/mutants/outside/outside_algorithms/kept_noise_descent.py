"""Noised gradient descent that draws its noise once and keeps it.

Declares what round_noise_descent declares: one Gaussian release per round. The noise is the same
in all rounds. The difference of two noised gradients is the difference of exact gradients at two
public points.
"""

from dataclasses import dataclass
from itertools import repeat

from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class KeptNoiseDescent(RoundNoiseDescent):
    """Noised gradient descent that draws its noise once and keeps it."""

    def draws(self, problem, streams):
        return repeat(next(super().draws(problem, streams)))


ALGORITHM = KeptNoiseDescent
EXAMPLE = "logistic_regression"
