r"""Noised gradient descent on a sum of losses that declares the sensitivity of a mean.

Declares T Gaussian releases of sensitivity :math:`\Delta_2/N`. The gradient of the problem is a
sum over N records for means, so a replaced record moves it by :math:`\Delta_2`.
"""

from dataclasses import dataclass

from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class MeanForSumDescent(RoundNoiseDescent):
    """Noised gradient descent on a sum of losses that declares the sensitivity of a mean."""

    def change(self, problem):
        return super().change(problem) / problem.records


ALGORITHM = MeanForSumDescent
EXAMPLE = "mean_estimation"
