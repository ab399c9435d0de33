"""Private and fair classification by the functional mechanism (Ding, Algorithms 6 to 8)."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import (
    Budget,
    analytic_gaussian_scale,
    extended_gaussian_scale,
)
from private_consensus.privacy.mechanism_coefficients import NoisyCoefficients
from private_consensus.privacy.releases import NORMS

from ..parameters import CALIBRATION, NonNegative, Positive
from .families.functional_mechanism import (
    FunctionalMechanism,
    column_of_settings,
    paper_sensitivity,
)

GAUSSIANS = {"extended": extended_gaussian_scale, "analytic": analytic_gaussian_scale}


@dataclass(frozen=True, kw_only=True)
class FairClassification(FunctionalMechanism):
    r"""Functional mechanism for fair classification: FM, relaxed FM, PDFC, ADFC and No-Privacy.

    .. math:: \hat w = \arg\min_w \sum_{\phi} \hat\lambda_\phi\, \phi(w), \quad
        \hat\lambda_\phi = \sum_i \bar\lambda_{\phi t_i} + \text{noise}

    with the coefficients of eq. (102). The noise of coefficients of monomials with a selected
    attribute :math:`x_s` is for a budget :math:`\epsilon_s`, that of the others for
    :math:`\epsilon_n`, where :math:`\epsilon = \frac{k}{d}\epsilon_s + \frac{d-k}{d}\epsilon_n`.
    Theorems 18 and 20 have one selected column, k = 1. The methods of the paper are

    - No-Privacy: ``fair: off`` without a budget;
    - FM: ``fair: off``;
    - relaxed FM: ``fair: off``, ``mechanism: gaussian``;
    - PDFC (Algorithm 6): ``fair: penal``, ``mechanism: laplace``, with ``selected``;
    - ADFC (Algorithm 8): ``fair: penal``, ``mechanism: gaussian``, with ``selected``.

    Parameters
    ----------
    selected : str
        Names of the selected attributes :math:`x_s`, joined by ``+``; empty for one budget for all
        coefficients.
    split : float
        Ratio :math:`\epsilon_s/\epsilon_n`. Below 1, the noise on :math:`x_s` is larger.
    charge : {"average", "max"}
        Total epsilon of the two budgets: the average of Theorems 18 and 20, or the larger one. The
        proofs of these theorems are wrong, but their statements hold for the published
        sensitivities, which are not tight. Tight sensitivities require ``max``.
    gaussian : {"extended", "analytic"}
        Calibration of Gaussian noise: Theorem 19, or exact for one Gaussian release.
    noise_selected, noise_rest : float
        Laplace scales or standard deviations of the noise on the coefficients with and without a
        selected attribute; set by the calibration.
    """

    selected: str = ""
    split: Annotated[Positive, CALIBRATION] = 1.0
    charge: Annotated[Literal["average", "max"], CALIBRATION] = "average"
    gaussian: Annotated[Literal["extended", "analytic"], CALIBRATION] = "extended"
    noise_selected: NonNegative = 0.0
    noise_rest: NonNegative = 0.0

    source = "Ding, sections 5-6: Algorithms 6-8, Lemmas 21-24, Theorems 18-20"

    def __post_init__(self):
        super().__post_init__()
        holds = self.charge == "max" or self.sens == "paper" or not self.selected
        expected = "max, since Theorems 18 and 20 hold for the published sensitivities only"
        require(holds, "algorithm.charge", self.charge, expected)

    def calibrate(self, budget, problem, network, horizon):
        require(horizon == 1, "horizon", horizon, "1, since the method has a single iteration")
        columns = self._columns(problem)
        if not budget.private:
            return replace(self, noise_selected=0.0, noise_rest=0.0)
        selected_scale, remaining_scale = (
            self._scale(partial_budget, problem) * self.emulation(problem)
            for partial_budget in self.budgets(budget, columns, problem.dim)
        )
        return replace(self, noise_selected=selected_scale, noise_rest=remaining_scale)

    def _columns(self, problem) -> int:
        """Return the number of selected columns, k."""
        count = len(problem.columns_of(self.selected))
        expected = "some of the attributes, but not all"
        require(count < problem.dim, "algorithm.selected", self.selected, expected)
        return count

    def budgets(self, budget: Budget, columns: int, dim: int) -> tuple[Budget, Budget]:
        r"""Return the budgets (:math:`\epsilon_s, \delta_s`) and (:math:`\epsilon_n, \delta_n`).

        With ``average``, :math:`\delta_s = \delta_n = 1 - \sqrt{1-\delta}`. With ``max``, all
        coefficients together are one Gaussian release, with :math:`\delta_s = \delta_n = \delta`.
        ``columns`` is the number k of selected columns, and ``dim`` the number d of columns.
        """
        # Without a selected attribute, all coefficients have one budget.
        if columns == 0:
            return budget, budget
        if self.charge == "max":
            unit, delta = budget.epsilon / max(self.split, 1.0), budget.delta
        else:
            fraction = columns / dim
            unit = budget.epsilon / (fraction * self.split + 1 - fraction)
            delta = -np.expm1(0.5 * np.log1p(-budget.delta))
        return Budget(self.split * unit, delta), Budget(unit, delta)

    def _assumed(self, problem) -> float:
        """Return the sensitivity that the calibration uses."""
        norm = NORMS[self.mechanism]
        if self.sens == "tight":
            return getattr(self.sensitivity(problem, self.fair), norm)
        return paper_sensitivity(norm, problem.dim, fair=self.fair != "off")

    def _scale(self, budget: Budget, problem) -> float:
        if self.mechanism == "laplace":
            return self._assumed(problem) / budget.epsilon
        return GAUSSIANS[self.gaussian](budget, self._assumed(problem))

    def largest_loss(self, problem) -> np.ndarray:
        """Return the largest change of all coefficients, each divided by its scale; [settings]."""
        columns, tight = self._columns(problem), self.sensitivity(problem, self.fair)
        loss = tight.laplace_loss if self.mechanism == "laplace" else tight.gaussian_loss
        pairs = zip(np.atleast_1d(self.noise_selected), np.atleast_1d(self.noise_rest), strict=True)
        with np.errstate(divide="ignore"):
            losses = [loss(float(s), float(r), columns) if r > 0 else np.inf for s, r in pairs]
        return np.array(losses)

    def mechanisms(self, problem, network, horizon):
        loss = np.reshape(self.largest_loss(problem), (-1, 1, 1))
        loss = loss if loss.size > 1 else loss.item()
        scales, distribution = self.scales(problem), self.mechanism
        coefficients = NoisyCoefficients(loss, 1.0, scales=scales, distribution=distribution)
        return {"coefficients": coefficients}

    def perturbed(self, problem, release):
        exact = problem.coefficients
        blocks = {"linear": exact.linear, "quadratic": exact.quadratic}
        if self.fair == "off":
            noisy = release("coefficients", blocks)
            return noisy["quadratic"], noisy["linear"], np.zeros_like(noisy["linear"])
        noisy = release("coefficients", blocks | {"fairness": exact.covariance})
        # The weight multiplies noisy coefficients: post-processing, for any alpha.
        covariance = column_of_settings(self.alpha) * noisy["fairness"]
        return noisy["quadratic"], noisy["linear"], covariance

    def claimed_epsilon(self, delta, problem, network, horizon):
        """Return the epsilon of Lemmas 21 and 22 or Theorems 18 to 20 at the current noise."""
        if not self.noise_rest:
            return float("inf")
        columns, fair = self._columns(problem), self.fair != "off"
        norm = NORMS[self.mechanism]
        assumed = paper_sensitivity(norm, problem.dim, fair=fair)
        epsilons = [assumed / noise for noise in (self.noise_selected, self.noise_rest)]
        if self.mechanism == "gaussian":
            partial_delta = -np.expm1(0.5 * np.log1p(-delta)) if columns else delta
            epsilons = [extended_gaussian_epsilon(ratio, partial_delta) for ratio in epsilons]
        fraction = columns / problem.dim
        return float(fraction * epsilons[0] + (1 - fraction) * epsilons[1])

    def scales(self, problem):
        of_selected, of_rest = map(column_of_settings, (self.noise_selected, self.noise_rest))
        selected = np.isin(np.arange(problem.dim), problem.columns_of(self.selected))
        linear = np.where(selected, of_selected, of_rest)
        either = selected[:, None] | selected[None, :]
        scales = {
            "linear": linear,
            "quadratic": np.where(either, of_selected[..., None], of_rest[..., None]),
        }
        return scales | {"fairness": linear} if self.fair == "penal" else scales


ALGORITHM = FairClassification


def extended_gaussian_epsilon(ratio: float, delta: float) -> float:
    r"""Return the epsilon of Theorem 19 for the ratio :math:`\Delta_2/\sigma`.

    With :math:`q = \sqrt2\,\sigma/\Delta_2` and :math:`L = \ln(\sqrt{2/\pi}/\delta)`, the condition
    :math:`q\epsilon - \sqrt L = \sqrt{L+\epsilon}` has the root
    :math:`\epsilon = (1 + 2q\sqrt L)/q^2`.
    """
    q = np.sqrt(2.0) / ratio
    tail = np.log(np.sqrt(2.0 / np.pi) / delta)
    return float((1.0 + 2.0 * q * np.sqrt(tail)) / q**2)
