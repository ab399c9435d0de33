r"""Reconstruction of PFLR*: private and fair logistic regression by a shifted mean.

Ding compares methods with PFLR* of Xu, Yuan and Wu (WWW 2019 companion), and describes PFLR* in
one sentence: Laplace noise with a shifted mean is added to the objective with the fairness
constraint. The reconstruction is

.. math::
    \tilde g &= \sum_i (z_i - \bar z) x_i + \mathrm{Lap}(\Delta_g/\epsilon_g) \\
    \tilde b &= \sum_i (\tfrac12 - y_i) x_i + \mathrm{Lap}(\text{mean } s\,\tilde g,\ \text{scale }
        \Delta_f/\epsilon_f) \\
    \tilde M &= \tfrac18 \sum_i x_i x_i^T + \mathrm{Lap}(\Delta_f/\epsilon_f)

where s is the sign of :math:`\tilde g^T w` (``fair: penal``) or 1 (``plus``), and
:math:`\epsilon = \epsilon_f + \epsilon_g`. The mean of the noise depends on the data. If it is the
exact covariance g (``shift: raw``), the release is not private.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import Release
from private_consensus.privacy.functional import FAIRNESS, covariance_l1, pair_l1

from .families.functional_mechanism import (
    FunctionalMechanism,
    Scales,
    by_columns,
    paper_sensitivity,
)
from .noise import Noise
from .parameters import fraction, noise_field, one_of

SHIFTS = ("noised", "raw")


@dataclass(frozen=True, kw_only=True)
class Pflr(FunctionalMechanism):
    r"""Reconstruction of PFLR*, private and fair logistic regression by a shifted mean.

    Parameters
    ----------
    share : float
        Fraction of the budget for the covariance, :math:`\epsilon_g/\epsilon`.
    shift : {"noised", "raw"}
        Whether the mean of the noise is the noisy or the exact covariance.
    noise_objective, noise_fairness : float
        Laplace scales of the noise on the objective and on the covariance; set by the calibration.
    """

    mechanism: str = one_of("laplace", ("laplace",))
    fair: str = one_of("penal", [term for term in FAIRNESS if term != "off"])
    share: float = fraction(0.1, calibration=True)
    shift: str = one_of("noised", SHIFTS)
    noise_objective: Noise = noise_field("objective", law=None)
    noise_fairness: Noise = noise_field("fairness", law=None)

    source: ClassVar[str] = "Reconstruction of Xu, Yuan and Wu (2019) from Ding, section 6.3.1"
    lower_bound_because: ClassVar[str] = (
        "two stated records change both sums by the stated lengths before noise is added"
    )

    def calibrate(self, budget, problem, network, horizon):
        require(horizon == 1, "horizon", horizon, "1, since the method has a single iteration")
        if not budget.private:
            return replace(self, noise_objective=0.0, noise_fairness=0.0)
        objective, fairness = self._assumed(problem)
        factor = self.emulation(problem) / budget.epsilon
        fraction = 0.0 if self.shift == "raw" else self.share
        return replace(
            self,
            noise_objective=factor * objective / (1.0 - fraction),
            noise_fairness=factor * fairness / fraction if fraction else 0.0,
        )

    def _assumed(self, problem) -> tuple[float, float]:
        r"""Return the sensitivities :math:`\Delta_f` and :math:`\Delta_g` of the calibration.

        The published values are :math:`d^2/4 + d` and 2d.
        """
        if self.sens == "tight":
            return self._tight(problem)
        return paper_sensitivity("l1", problem.dim, fair=False), 2.0 * problem.dim

    def _tight(self, problem) -> tuple[float, float]:
        is_public = self.zbar == "public"
        objective = self.sensitivity(problem, "off").l1
        return objective, covariance_l1(problem.dim, problem.mean, public_mean=is_public)

    def releases(self, problem, network, horizon):
        if not self.noise_fairness:
            return [Release("exact", scale=0.0, note="the mean of the noise is the covariance")]
        objective, fairness = self._tight(problem)
        reached_fairness, reached_objective = self._reached(problem)
        terms = (
            (fairness, self.noise_fairness, reached_fairness),
            (objective, self.noise_objective, reached_objective),
        )
        return [
            Release(noise.law, change, noise.scale, reached=min(reached / change, 1.0))
            for change, noise, reached in terms
        ]

    def _reached(self, problem) -> tuple[float, float]:
        """Return the l1 changes of g and b by the pair of records with the largest privacy loss."""
        if not self.sensitivity(problem, self.fair).known or not np.all(self.alpha):
            return 0.0, 0.0
        groups = np.array([-problem.mean, 1.0 - problem.mean])[:, None]
        changes = [
            (
                pair_l1(problem.dim, k, *groups, quadratic=0.0),
                pair_l1(problem.dim, k, [-0.5], [0.5]),
            )
            for k in range(1, problem.dim + 1)
        ]
        scales = self.noise_fairness.scale, self.noise_objective.scale
        return max(changes, key=lambda c: c[0] / scales[0] + c[1] / scales[1])

    def epsilon_by_formula(self, delta, problem, network, horizon):
        """Return the sum of the published sensitivities over the noise scales.

        Without noise on g, the sensitivity of g is ignored.
        """
        if not self.noise_objective:
            return float("inf")
        d, fairness = problem.dim, self.noise_fairness
        objective_epsilon = paper_sensitivity("l1", d, fair=False) / self.noise_objective.scale
        return float(objective_epsilon + (2.0 * d / fairness.scale if fairness else 0.0))

    def scales(self, problem):
        none = np.zeros(problem.dim, bool)
        linear, quadratic = by_columns(0.0, self.noise_objective.scale, none)
        fairness, _ = by_columns(0.0, self.noise_fairness.scale, none)
        return Scales(linear, fairness, quadratic)


ALGORITHM = Pflr
