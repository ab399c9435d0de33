"""PP-ADMM as published, with a proven privacy bound."""

from dataclasses import dataclass, replace

import numpy as np

from private_consensus.common.errors import require

from ..parameters import Calibration
from ..problems.logistic_regression import LogisticRegression
from .families.admm import Conversion
from .pp_admm import PlausiblyPrivateADMM


@dataclass(frozen=True, kw_only=True)
class RenyiAccountedPPADMM(PlausiblyPrivateADMM):
    r"""PP-ADMM with the smallest noise whose Rényi divergences meet the budget.

    The divergences of the perturbed objective are proven for generalised linear models
    (:mod:`private_consensus.privacy.objective_perturbation`). The proof of Theorem 6 of Ding does
    not cover that the shift of the noise depends on the output (errata E4.3). An iteration releases
    the exact minimiser for the sampled noise and, given this minimiser, the output of a Gaussian
    mechanism: on both data sets, the approximate solution has a distance of at most :math:`\beta/m`
    from it.
    """

    calibration: Calibration = "accountant"
    rho_conversion: Conversion = "safe"

    source = "Ding, Algorithm 2; Redberg, Koskela, Wang, NeurIPS 2023"

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

    def hidden_minimiser(self, problem, penalty):
        # The loss is largest for the smallest curvature of any setting and agent.
        ridge = max(float(np.min(self.ridge)), problem.least_convexity)
        kappa = float(problem.record_curvature / (ridge + np.min(penalty)))
        return replace(
            super().hidden_minimiser(problem, penalty),
            sensitivity=2.0 * problem.largest_record_gradient,
            kappa=kappa,
            proven=True,
            note="",
        )


ALGORITHM = RenyiAccountedPPADMM
