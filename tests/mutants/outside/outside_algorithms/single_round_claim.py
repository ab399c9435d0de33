r"""Noised gradient descent that claims epsilon of one round for the whole run.

Declares one Gaussian release of sensitivity :math:`\Delta_2` in place of T releases.
"""

from dataclasses import dataclass

from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class SingleRoundClaim(RoundNoiseDescent):
    """Noised gradient descent that claims epsilon of one round for the whole run."""

    def count(self, horizon):
        return 1


ALGORITHM = SingleRoundClaim
EXAMPLE = "mean_estimation"
