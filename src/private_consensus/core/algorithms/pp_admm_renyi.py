r"""PP-ADMM as published, with a proven privacy bound.

The algorithm is PP-ADMM with both noises. Its noise is set by Rényi divergences of the perturbed
objective, which are proven for generalised linear models
(:mod:`private_consensus.privacy.objective_perturbation`). The proof of Theorem 6 of Ding does
not cover that the shift of the noise depends on the output (errata E4.3). An iteration releases the
exact minimiser for the sampled noise and, given this minimiser, the output of a Gaussian mechanism:
on both data sets, the approximate solution has a distance of at most :math:`\beta/m` from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import Release
from private_consensus.privacy.objective_perturbation import PerturbedObjective

from ..problems.logistic_regression import LogisticRegression
from .families.approximate_admm import ApproximateADMM


@dataclass(frozen=True, kw_only=True)
class RenyiAccountedPPADMM(ApproximateADMM):
    """PP-ADMM with the smallest noise whose Rényi divergences meet the budget."""

    calibration: str = "accountant"
    rho_conversion: str | None = "safe"

    source: ClassVar[str] = "Ding, Algorithm 2; Redberg, Koskela, Wang, NeurIPS 2023"
    lower_bound_because: ClassVar[str] = (
        "a changed label shifts a message, whose two noises are jointly Gaussian"
    )

    def __post_init__(self):
        super().__post_init__()
        expected = "objective; use pp_admm for noise on the output only"
        require(self.perturbed == "objective", "algorithm.perturbed", self.perturbed, expected)

    def check(self, problem, network):
        is_logistic, name = isinstance(problem, LogisticRegression), type(problem).__name__
        expected = "logistic_regression, a generalised linear model"
        require(is_logistic, "problem.name", name, expected)
        expected = "inf, since the proof does not cover projections"
        require(np.isinf(problem.box), "problem.box", problem.box, expected)
        super().check(problem, network)

    def curvature_share(self, problem, network) -> float:
        r"""Return the ratio :math:`\kappa` of a record's curvature to the smallest total curvature.

        The penalty is that of iteration 1.
        """
        ridge = max(float(self.ridge), problem.least_convexity)
        return float(problem.record_curvature / (ridge + np.min(self.penalty(network, 1))))

    def releases(self, problem, network, horizon):
        """Return the releases of the exact minimisers and of their approximations.

        The privacy profile of a minimiser is that of a
        :class:`~..privacy.objective_perturbation.PerturbedObjective`.
        """
        plain = super().releases(problem, network, horizon)
        if not self.noisy:
            return plain
        shift, _, approximation = plain
        minimiser = PerturbedObjective(
            mu=2.0 * problem.largest_record_gradient / float(self.noise.scale),
            kappa=self.curvature_share(problem, network),
            one_sign=True,
        )
        attack = shift.attack
        return [Release("profile", profile=minimiser, count=horizon, attack=attack), approximation]


ALGORITHM = RenyiAccountedPPADMM
