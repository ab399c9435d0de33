r"""ADMM whose minimiser uses a quarter of the declared penalty.

Declares what output_noise_admm declares: a minimiser with noise per round. The penalty of the
minimisation is :math:`D_i/4`, so a record moves the minimiser by :math:`\Delta_2/(\mu + D_i/4)`.
"""

from dataclasses import dataclass

from .output_noise_admm import OutputNoiseADMM


@dataclass(frozen=True, kw_only=True)
class QuarterPenaltyADMM(OutputNoiseADMM):
    """ADMM whose minimiser uses a quarter of the declared penalty."""

    def minimise(self, problem, state, linear, penalty, centre, t):
        return super().minimise(problem, state, linear, penalty / 4.0, centre, t)


ALGORITHM = QuarterPenaltyADMM
EXAMPLE = "mean_estimation"
