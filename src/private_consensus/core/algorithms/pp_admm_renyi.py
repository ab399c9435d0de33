r"""PP-ADMM as published, with a proven account of its perturbed objective.

The algorithm is PP-ADMM's, with both noises. What Theorem 6 of paper 004 leaves open (errata E4.3),
that the shift of the noise depends on the output, is bounded for generalised linear models in
Renyi divergences: :mod:`private_consensus.privacy.objective_perturbation`. An iteration is the
minimiser that this noise leads to, and, given it, a Gaussian mechanism: the approximate solution is
within :math:`\beta/m` of it, on either data set.
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
    """PP-ADMM with the least noise that the Renyi account of its two parts accepts."""

    calibration: str = "accountant"
    rho_conversion: str | None = "safe"

    source: ClassVar[str] = "Paper 004, Algorithm 2; Redberg, Koskela, Wang, NeurIPS 2023"
    lower_bound_because: ClassVar[str] = (
        "a label flip shifts both noises of a message, which together are one Gaussian mechanism"
    )

    def __post_init__(self):
        super().__post_init__()
        expected = "objective: pp_admm accounts for noise of the output alone"
        require(self.perturbed == "objective", "algorithm.perturbed", self.perturbed, expected)

    def check(self, problem, network):
        """Require logistic regression without a box, and warn outside the convergent range.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        """
        model = isinstance(problem, LogisticRegression)
        name = type(problem).__name__
        require(model, "problem.name", name, "logistic_regression, a generalised linear model")
        require(
            np.isinf(problem.box),
            "problem.box",
            problem.box,
            "inf, since projections are not covered",
        )
        super().check(problem, network)

    def curvature_share(self, problem, network) -> float:
        r"""Return the curvature ratio :math:`\kappa`.

        It is the largest eigenvalue of a record's Hessian over the least curvature.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.

        Returns
        -------
        float
            Ratio of the curvatures, with the penalty of iteration 1.
        """
        least = max(float(self.ridge), problem.least_convexity)
        return float(problem.record_curvature / (least + np.min(self.penalty(network, 1))))

    def releases(self, problem, network, horizon):
        r"""Return the releases of the exact minimisers and of the approximation.

        A minimiser has the profile of its
        :class:`~..privacy.objective_perturbation.PerturbedObjective`, with :math:`\mu =
        2w/\sigma_1` for rows of norm 1.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        list of Release
            Mechanisms whose composition bounds the privacy loss.
        """
        plain = super().releases(problem, network, horizon)
        if not self.noisy:
            return plain
        shift, _, approximation = plain
        minimiser = PerturbedObjective(
            mu=2.0 * problem.weight / float(self.noise.scale),
            kappa=self.curvature_share(problem, network),
            one_sign=True,
        )
        attack = shift.attack
        return [Release("profile", profile=minimiser, count=horizon, attack=attack), approximation]


ALGORITHM = RenyiAccountedPPADMM
