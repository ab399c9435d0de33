"""Noised gradient descent that also reports a cost computed from exact gradients.

Declares what round_noise_descent declares: one Gaussian release per round. The quantity ``cost``
is the sum over agents of the squared length of the exact gradient, one number per run.
"""

from dataclasses import dataclass
from typing import ClassVar

from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class ExactCostReport(RoundNoiseDescent):
    """Noised gradient descent that also reports a cost computed from exact gradients."""

    quantities: ClassVar[tuple[str, ...]] = ("released", "cost")

    def observables(self, state, problem, t):
        cost = (problem.gradient(state.x) ** 2).sum((-2, -1))
        return {"released": state.x, "cost": cost}


ALGORITHM = ExactCostReport
EXAMPLE = "mean_estimation"
