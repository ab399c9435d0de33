"""PP-ADMM: private ADMM with approximate local minimisations (Ding, section 3.4)."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

import numpy as np
from annotated_types import Ge, Le

from private_consensus.common.errors import arguments, require
from private_consensus.privacy import CONVERSIONS, calibrate, zcdp_epsilon, zcdp_rho
from private_consensus.privacy.mechanism_minimisers import ApproximateMinimiser, MinimiserNoise

from ..parameters import Calibration, Fraction, NonNegative, Positive
from .base import INTERNAL, column, per_agent
from .families.admm import ADMMFamily, Conversion
from .families.objective_perturbation import jacobian_loss

UNPROVEN = "the shift of the noise depends on the output (E4.3), but is treated as constant"


@dataclass(frozen=True, kw_only=True)
class PlausiblyPrivateADMM(ADMMFamily):
    r"""Plausibly private ADMM (PP-ADMM), with one message per iteration at equal privacy cost.

    .. math::
        \hat x_i &\approx \arg\min_x f_i(x) + (a_i + b_{i1})^Tx + \tfrac{D_i}2\|x - c_i\|_2^2,
            \qquad \|\nabla\|_2 \le \beta \\
        x_i &= \hat x_i + b_{i2}, \qquad b_{i1} \sim N(0, \sigma_1^2 I), \quad
            b_{i2} \sim N(0, \sigma_2^2 I)

        \sigma_1 = \frac{2C\sqrt{2\ln(1.25/\delta_1)}}{|D_i|\epsilon_3}, \qquad
        \sigma_2 = \frac{\beta}{\sqrt{2\rho_2}\,(\hat\lambda/N + 2\eta|V_i|)}, \qquad
        \hat\lambda \ge \frac{2.8\,N C c_1}{(\epsilon_1-\epsilon_3)|D_i|}

    The published privacy cost of an iteration is :math:`\rho_1 + \rho_2` in zCDP, with
    :math:`\rho_1` from :math:`\epsilon_1` (Theorem 6). Two steps of its proof do not hold: an
    (epsilon, delta) bound implies no zCDP bound (errata E4.3), and the distance of two approximate
    minimisers is :math:`2\beta/m`, not :math:`\beta/m` (E4.4). The noise is as published. The
    mechanisms have :math:`2\beta/m`, and the loss of the perturbed objective is not proven.

    The corrected variant, ``perturbed: output``, has the noise :math:`b_{i2}` only. Let m be the
    curvature, and let a record change gradients by at most :math:`\Delta_2`. On neighbouring data
    sets, two points with gradient norms of at most :math:`\beta` then have a distance of at most
    :math:`(\Delta_2 + 2\beta)/m`. An iteration is a Gaussian mechanism with this sensitivity.

    Parameters
    ----------
    noise : float
        Standard deviation :math:`\sigma_1` of the noise in the objective.
    beta : float
        Gradient norm :math:`\beta` at which a minimisation ends, in the units of :math:`f_i`. A
        minimisation starts at the previous :math:`\hat x_i`, which a large :math:`\beta` leaves
        unchanged.
    splits : float
        Fraction :math:`\rho_2/(\rho_1 + \rho_2)` of an iteration's budget for the approximation.
    e3 : float
        Ratio :math:`\epsilon_3/\epsilon_1`, below 1.
    lam_rule : {"literal", "sharp"}
        Condition on :math:`\hat\lambda`: as published, or the weaker condition that the proof
        needs, on :math:`\hat\lambda/N + 2\eta|V_i|`. The ridge is at least that of the problem.
    delta_1 : float
        Delta of the noise in the objective in one iteration, :math:`\delta_{i1}`.
    perturbed : {"objective", "output"}
        Noise that hides the data: both noises as published, or the output noise only.
    ridge : float
        Ridge :math:`\hat\lambda/N`, which includes the ridge of the problem.
    output_noise : float
        Standard deviation of the output noise times the curvature, :math:`\beta/\sqrt{2\rho_2}`.
    """

    law: Literal["gaussian"] = "gaussian"
    growth: Annotated[float, Ge(1), Le(1)] = 1.0
    penalty_growth: Annotated[float, Ge(1), Le(1)] = 1.0
    calibration: Calibration = "formula"
    rho_conversion: Conversion = "shortcut"
    beta: Positive = 10.0**-3.5
    splits: Fraction = 0.001
    e3: Fraction = 0.99
    lam_rule: Literal["literal", "sharp"] = "sharp"
    delta_1: Fraction = 1e-4
    perturbed: Literal["objective", "output"] = "objective"
    ridge: NonNegative = 0.0
    output_noise: NonNegative = 0.0

    quantities = (INTERNAL, "released")
    source = "Ding, section 3.4, Algorithm 2, Theorem 6"
    calibrated = ("noise", "output_noise", "ridge")

    def __post_init__(self):
        super().__post_init__()
        arguments.choice("algorithm.rho_conversion", self.rho_conversion, CONVERSIONS)
        inner, output = self.noise, self.output_noise
        if self.perturbed == "output":
            expected = "0, since only the output is perturbed"
            require(not np.any(inner), "algorithm.noise", inner, expected)
        else:
            both = np.all((np.asarray(inner) > 0) == (np.asarray(output) > 0))
            expected = "above 0 if algorithm.noise is above 0, and 0 otherwise"
            require(bool(both), "algorithm.output_noise", output, expected)

    @property
    def noisy(self):
        return bool(np.all(np.asarray(self.output_noise) > 0))

    # Algorithm 2.

    def added_curvature(self, problem) -> Any:
        r"""Return the part of the ridge :math:`\hat\lambda/N` that the problem does not have."""
        return np.maximum(column(self.ridge) - problem.least_convexity, 0.0)

    def mechanisms(self, problem, network, horizon):
        penalty, change = self.penalty(network, 1), problem.record_change("l2")
        # Each of two approximate minimisers is within beta/m of the exact one (E4.4).
        error = 2.0 * column(self.beta)
        # With noise in the objective, the exact minimiser is hidden by that noise already.
        hidden = error if self.perturbed == "objective" else change + error
        curvature, noise = column(self.ridge) + penalty, column(self.output_noise)
        message = MinimiserNoise(hidden, noise, stream="output", curvature=curvature)
        if self.perturbed == "output":
            return {"message": message}
        return {"minimiser": self.hidden_minimiser(problem, penalty), "message": message}

    def hidden_minimiser(self, problem, penalty: np.ndarray) -> ApproximateMinimiser:
        """Return the mechanism of a minimisation with the penalties of all agents."""
        added, jacobian = self.added_curvature(problem), 0.0
        # Without noise there is no guarantee to prove, so that kappa may exceed 1/2.
        if self.noisy:
            jacobian = jacobian_loss(problem, penalty, "paper", added)
        return ApproximateMinimiser(
            problem.record_change("l2"),
            column(self.noise),
            tolerance=per_agent(self.beta),
            jacobian=jacobian,
            proven=False,
            note=UNPROVEN,
        )

    def minimiser(self, state, problem, network, release, t: int) -> np.ndarray:
        """Return the approximate minimisers of an iteration, which are hidden."""
        penalty, centre = self.penalty(network, t), self.centre(state, network)
        # The required ridge may exceed that of the problem; the difference is added.
        query = self.objective(state, problem, penalty, centre, self.added_curvature(problem))
        if self.perturbed == "objective":
            return release("minimiser", query)
        return query.solve(0.0, tolerance=per_agent(self.beta))

    def step(self, state, problem, network, release, t):
        minimiser = self.minimiser(state, problem, network, release, t)
        x = release("message", minimiser)
        return self.update_duals(state, problem, network, x, minimiser, t)

    # Calibration and formulas.

    def with_noise_for(self, budget, problem, network, horizon):
        """Return a copy whose noises meet a finite budget, by the formula or by the accountant.

        With the accountant, both noises of the formula are scaled by the same factor.
        """
        published = self.for_run(self.rho_of(budget), problem, network, horizon)
        if self.calibration == "formula":
            return published

        def scaled(factor: float) -> Self:
            both = {"noise": published.noise, "output_noise": published.output_noise}
            return replace(published, **{name: factor * noise for name, noise in both.items()})

        return scaled(calibrate(lambda k: scaled(k).releases(problem, network, horizon), budget))

    def for_run(self, rho: float, problem, network, horizon: int) -> Self:
        """Return a copy whose noises and ridge meet a zCDP budget of the whole run."""
        return self.for_message(rho / horizon, problem, network)

    def for_message(self, rho: float, problem, network) -> Self:
        """Return a copy whose noises and ridge meet a zCDP budget of one message."""
        change = problem.record_change("l2")
        if self.perturbed == "output":
            output_noise = float((change + 2.0 * self.beta) / np.sqrt(2.0 * rho))
            return replace(self, output_noise=output_noise, ridge=problem.least_convexity)
        # Theorem 6: epsilon_1 = epsilon_3 (noise) + the Jacobian term (curvature).
        rho_1, rho_2 = (1.0 - self.splits) * rho, self.splits * rho
        epsilon_1 = zcdp_epsilon(rho_1, self.delta_1, conversion="safe")
        epsilon_3 = self.e3 * epsilon_1
        penalty = float(np.min(self.penalty(network, 1)))
        rank = problem.record_hessian_rank
        ridge = rank * 2.8 * problem.record_curvature / (epsilon_1 - epsilon_3)
        # The proof needs curvature of the whole objective, which includes the penalty.
        if self.lam_rule == "sharp":
            ridge -= penalty
        ridge = float(max(ridge, problem.least_convexity))
        # Raises an error if kappa exceeds 1/2.
        jacobian_loss(problem, penalty, "paper", ridge - problem.least_convexity)
        return replace(
            self,
            noise=float(change * self._tail / epsilon_3),
            output_noise=float(self.beta / np.sqrt(2.0 * rho_2)),
            ridge=ridge,
        )

    @property
    def _tail(self) -> Any:
        return np.sqrt(2.0 * np.log(1.25 / column(self.delta_1)))

    def rhos(self, problem) -> tuple[Any, Any]:
        r"""Return the published losses :math:`\rho_1, \rho_2` of a message: data, approximation."""
        output_noise, error = column(self.output_noise), column(self.beta)
        if self.perturbed == "output":
            # The output noise then hides the data and the approximation together.
            return 0.0, ((problem.record_change("l2") + 2.0 * error) / output_noise) ** 2 / 2
        epsilon_3 = problem.record_change("l2") * self._tail / column(self.noise)
        epsilon_1 = epsilon_3 / column(self.e3)
        rho_1 = zcdp_rho(epsilon_1, column(self.delta_1), conversion="safe")
        return rho_1, (error / output_noise) ** 2 / 2

    def rho_by_formula(self, problem, network, horizon):
        r"""Return the total privacy loss of Theorem 6 in zCDP: :math:`T(\rho_1 + \rho_2)`."""
        return float(horizon * sum(self.rhos(problem)))


ALGORITHM = PlausiblyPrivateADMM
