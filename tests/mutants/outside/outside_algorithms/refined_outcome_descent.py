"""Noised gradient descent whose outcome is refined by an exact gradient step.

Declares what round_noise_descent declares: one Gaussian release per round. The outcome ``final``
is one exact local gradient step from the last message.
"""

from dataclasses import dataclass
from typing import ClassVar

from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class RefinedOutcomeDescent(RoundNoiseDescent):
    """Noised gradient descent whose outcome is refined by an exact gradient step."""

    quantities: ClassVar[tuple[str, ...]] = ("released", "final")

    def outcome(self, state, problem, network, t):
        return {"final": state.x - self.length(problem) * problem.gradient(state.x)}


ALGORITHM = RefinedOutcomeDescent
EXAMPLE = "mean_estimation"
