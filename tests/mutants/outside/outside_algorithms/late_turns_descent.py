r"""Gradient descent with participation in turns, which ignores the turns after round 7.

Declares what alternating_descent declares: :math:`\lceil T/k\rceil` Gaussian releases for turns
of period k. From round 8 on every agent takes part in every round.
"""

from dataclasses import dataclass

from .alternating_descent import AlternatingDescent


@dataclass(frozen=True, kw_only=True)
class LateTurnsDescent(AlternatingDescent):
    """Gradient descent with participation in turns, which ignores the turns after round 7."""

    def takes_part(self, problem, t):
        return super().takes_part(problem, t) | (t > 7)


ALGORITHM = LateTurnsDescent
EXAMPLE = "mean_estimation"
