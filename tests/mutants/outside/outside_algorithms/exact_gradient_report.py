"""Noised gradient descent that also reports exact gradients.

Declares what round_noise_descent declares: one Gaussian release per round. The quantity ``slope``
is the exact local gradient at the message.
"""

from dataclasses import dataclass
from typing import ClassVar

from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class ExactGradientReport(RoundNoiseDescent):
    """Noised gradient descent that also reports exact gradients."""

    quantities: ClassVar[tuple[str, ...]] = ("released", "slope")

    def observables(self, state, problem, t):
        return {"released": state.x, "slope": problem.gradient(state.x)}


ALGORITHM = ExactGradientReport
EXAMPLE = "mean_estimation"
