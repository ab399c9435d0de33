"""Reconstruction of PFLR*: private and fair logistic regression by a shifted mean."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy.functional import covariance_l1
from private_consensus.privacy.mechanism_coefficients import NoisyCoefficients
from private_consensus.privacy.mechanisms import Exact, Laplace

from ..parameters import CALIBRATION, Fraction, NonNegative
from .families.functional_mechanism import (
    FunctionalMechanism,
    column_of_settings,
    paper_sensitivity,
)


@dataclass(frozen=True, kw_only=True)
class Pflr(FunctionalMechanism):
    r"""Reconstruction of PFLR*, private and fair logistic regression by a shifted mean.

    Ding compares methods with PFLR* of Xu, Yuan and Wu (WWW 2019 companion), and describes PFLR* in
    one sentence: Laplace noise with a shifted mean is added to the objective with the fairness
    constraint. The reconstruction is

    .. math::
        \tilde g &= \sum_i (z_i - \bar z) x_i + \mathrm{Lap}(\Delta_g/\epsilon_g) \\
        \tilde b &= \sum_i (\tfrac12 - y_i) x_i
            + \mathrm{Lap}(\text{mean } s\,\tilde g,\ \text{scale } \Delta_f/\epsilon_f) \\
        \tilde M &= \tfrac18 \sum_i x_i x_i^T + \mathrm{Lap}(\Delta_f/\epsilon_f)

    where s is the sign of :math:`\tilde g^T w` and :math:`\epsilon = \epsilon_f + \epsilon_g`. The
    mean of the noise depends on the data. If it is the exact covariance g (``shift: raw``), the
    release is not private.

    Parameters
    ----------
    share : float
        Fraction of the budget for the covariance, :math:`\epsilon_g/\epsilon`.
    shift : {"noised", "raw"}
        Whether the mean of the noise is the noisy or the exact covariance.
    noise_objective, noise_fairness : float
        Laplace scales of the noise on the objective and on the covariance; set by the calibration.
    """

    mechanism: Literal["laplace"] = "laplace"
    fair: Literal["penal"] = "penal"
    share: Annotated[Fraction, CALIBRATION] = 0.1
    shift: Literal["noised", "raw"] = "noised"
    noise_objective: NonNegative = 0.0
    noise_fairness: NonNegative = 0.0

    source = "Reconstruction of Xu, Yuan and Wu (2019) from Ding, section 6.3.1"

    def calibrate(self, budget, problem, network, horizon):
        require(horizon == 1, "horizon", horizon, "1, since the method has a single iteration")
        if not budget.private:
            return replace(self, noise_objective=0.0, noise_fairness=0.0)
        objective, fairness = self._assumed(problem)
        factor = self.emulation(problem) / budget.epsilon
        # The exact covariance uses no part of the budget, which is why it is not private.
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
        fairness = covariance_l1(problem.dim, problem.mean, public_mean=self.zbar == "public")
        return self.sensitivity(problem, "off").l1, fairness

    def mechanisms(self, problem, network, horizon):
        objective, fairness = self._tight(problem)
        with np.errstate(divide="ignore"):
            loss = objective / column_of_settings(self.noise_objective)
        loss = loss if loss.size > 1 else loss.item()
        coefficients = NoisyCoefficients(loss, 1.0, scales=self.scales(problem))
        scale = column_of_settings(self.noise_fairness)
        covariance = Laplace(fairness, scale, stream="fairness", shape=("dim",))
        if self.shift == "raw":
            covariance = Exact(reason="the mean of the noise is the covariance", shape=("dim",))
        return {"fairness": covariance, "objective": coefficients}

    def perturbed(self, problem, release):
        exact = problem.coefficients
        shape = (release.settings, release.runs, problem.dim)
        covariance = release("fairness", np.broadcast_to(exact.covariance, shape))
        weighted = column_of_settings(self.alpha) * covariance
        # The solver chooses the sign s of |g'w|, so that the noise needs no shifted mean.
        noisy = release("objective", {"linear": exact.linear, "quadratic": exact.quadratic})
        return noisy["quadratic"], noisy["linear"], weighted

    def claimed_epsilon(self, delta, problem, network, horizon):
        """Return the sum of the published sensitivities over the noise scales.

        Without noise on g, the sensitivity of g is ignored.
        """
        if not self.noise_objective:
            return float("inf")
        d, fairness = problem.dim, self.noise_fairness
        objective_epsilon = paper_sensitivity("l1", d, fair=False) / self.noise_objective
        return float(objective_epsilon + (2.0 * d / fairness if fairness else 0.0))

    def scales(self, problem):
        linear = column_of_settings(self.noise_objective) * np.ones(problem.dim)
        return {"linear": linear, "quadratic": linear[..., None] * np.ones(problem.dim)}


ALGORITHM = Pflr
