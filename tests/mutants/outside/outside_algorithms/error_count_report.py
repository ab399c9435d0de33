"""Noised gradient descent that also reports the exact number of misclassified records.

Declares what round_noise_descent declares: one Gaussian release per round. The quantity
``errors`` counts the misclassified records of all agents exactly.
"""

from dataclasses import dataclass
from typing import ClassVar

from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class ErrorCountReport(RoundNoiseDescent):
    """Noised gradient descent that also reports the exact number of misclassified records."""

    needs: ClassVar[tuple[str, ...]] = ("labels",)
    quantities: ClassVar[tuple[str, ...]] = ("released", "errors")

    def observables(self, state, problem, t):
        errors = problem.local_error_counts(state.x).sum(-1).astype(float)
        return {"released": state.x, "errors": errors}


ALGORITHM = ErrorCountReport
EXAMPLE = "logistic_regression"
