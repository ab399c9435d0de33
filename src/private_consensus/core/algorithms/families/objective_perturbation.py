"""Common base of ADMM with noise in the linear term of the local objective: DVP, M-ADMM, R-ADMM."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import Release, calibrate
from private_consensus.privacy.mechanisms import ObjectivePerturbation

from ...parameters import CALIBRATION, NonNegative
from ..base import column, per_iteration
from .admm import ADMMFamily


@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbed(ADMMFamily):
    r"""ADMM that releases exact minimisers of objectives with noise in their linear term.

    The methods differ in the position and the scale of the noise, and in the iterations that use
    private data. A minimiser determines the noise. On neighbouring data sets, the noises that lead
    to the same minimiser differ by the change of the gradient, and the Jacobians differ. The
    privacy loss of an iteration is

    .. math:: \frac{\Delta}{s} + J, \qquad J = 2.8\kappa \ \text{or}\ \ln(1+\kappa),
        \quad \kappa = \frac{w c_1}{\mu + D_i}

    where s is the scale of the noise in the gradient, w the weight of a record and :math:`c_1` the
    largest second derivative of its loss. The form :math:`2.8\kappa` requires
    :math:`\kappa \le 1/2` (Chaudhuri, Monteleoni, Sarwate 2011; Zhang, Khalili, Liu 2018). The form
    :math:`\ln(1+\kappa)` always holds, since the change of the Hessian has one positive eigenvalue.
    If the Hessian of a record has the rank r > 1, it has r of them, and J is r times as large.

    No noise meets a budget below the sum of the Jacobian terms. The authors of DVP then add
    :math:`\frac\Phi2\|x\|_2^2` to the objective, which reduces :math:`\kappa`. The authors of the
    other methods require a larger penalty or ridge.

    Parameters
    ----------
    jacobian : {"paper", "tight"}
        Form of the Jacobian term J: :math:`2.8\kappa` or :math:`\ln(1+\kappa)`.
    curvature : {"none", "half"}
        Rule for adding :math:`\Phi`. ``none``: never; a budget below the Jacobian terms is an
        error. ``half``: the smallest :math:`\Phi` for which J uses at most half of the budget of an
        iteration.
    Phi : float
        Added curvature :math:`\Phi`.
    """

    jacobian: Annotated[Literal["paper", "tight"], CALIBRATION] = "paper"
    curvature: Annotated[Literal["none", "half"], CALIBRATION] = "none"
    Phi: NonNegative = 0.0

    private_period = 1
    """Number of iterations from one use of private data to the next."""

    def noise_scale(self, network, t: int) -> Any:
        """Return the scale of the noise in its own unit, broadcastable against iterates."""
        return self.scale(t)

    def weight(self, network, t: int) -> Any:
        """Return the factor of the noise in the linear term."""
        return 1.0

    def mechanisms(self, problem, network, horizon):
        def jacobian(t):
            penalty, ridge = self.penalty(network, t), column(self.Phi)
            return jacobian_loss(problem, penalty, self.jacobian, ridge)

        minimiser = ObjectivePerturbation(
            problem.record_change(self.norm),
            per_iteration(lambda t: self.noise_scale(network, t), horizon),
            times=range(1, horizon + 1, self.private_period),
            distribution=self.law,
            # Without noise there is no guarantee to prove, so that kappa may exceed 1/2.
            jacobian=per_iteration(jacobian, horizon) if self.noisy else 0.0,
            weight=per_iteration(lambda t: self.weight(network, t), horizon),
        )
        return {"minimiser": minimiser}

    def perturbed(self, state, problem, penalty: np.ndarray, centre: np.ndarray):
        """Return the objective with the added curvature."""
        added = column(self.Phi) if np.any(self.Phi) else None
        return self.objective(state, problem, penalty, centre, added)

    def step(self, state, problem, network, release, t):
        penalty, centre = self.penalty(network, t), self.centre(state, network)
        x = release("minimiser", self.perturbed(state, problem, penalty, centre))
        return self.update_duals(state, problem, network, x, x, t)

    # Calibration and formulas.

    def with_noise_for(self, budget, problem, network, horizon):
        curved = self.with_curvature(budget, problem, network, horizon)
        return ADMMFamily.with_noise_for(curved, budget, problem, network, horizon)

    def with_curvature(self, budget, problem, network, horizon: int):
        r"""Return a copy with the :math:`\Phi` that ``curvature`` requires."""
        if self.curvature == "none":
            return self
        iterations = range(1, horizon + 1, self.private_period)
        min_penalty = float(min(self.penalty(network, t).min() for t in iterations))
        budget_share = self.epsilon_share(budget, len(iterations))
        # The remainder of the share is for the noise, so that it must not be 0.
        if jacobian_loss(problem, min_penalty, self.jacobian) < budget_share / 2:
            return self
        cost_per_term = budget_share / 2 / problem.record_hessian_rank
        kappa = np.expm1(cost_per_term) if self.jacobian == "tight" else cost_per_term / 2.8
        required = problem.record_curvature / kappa
        return replace(self, Phi=float(required - problem.least_convexity - min_penalty))

    def epsilon_share(self, budget, count: int) -> float:
        """Return the largest equal epsilon of ``count`` mechanisms that together meet a budget."""
        if self.calibration == "formula" and self.rho_conversion is not None:
            # A pure epsilon costs epsilon^2 / 2 in zCDP.
            return float(np.sqrt(2.0 * self.rho_of(budget) / count))
        scale = calibrate(lambda s: [Release("pure", epsilon=np.full(count, 1.0 / s))], budget)
        return 1.0 / scale

    def loss_by_formula(self, problem, network, t):
        r"""Return the loss :math:`\mathcal B_\infty/s + 2.8 w/D_i` per coordinate of Xiao et al."""
        linear_scale = np.abs(self.weight(network, t) * self.noise_scale(network, t))
        change, penalty = problem.published_change, self.penalty(network, t)
        return change / linear_scale + 2.8 * change / penalty

    def losses(self, problem, network, horizon):
        """Return sensitivities, scales and Jacobian terms, see :class:`.ObjectivePerturbation`."""
        return self.mechanisms(problem, network, horizon)["minimiser"].losses(horizon)

    def rho_by_formula(self, problem, network, horizon):
        r"""Return :math:`\sum_t \epsilon_t^2/2`: iterations are :math:`\epsilon_t`-private."""
        change, scales, jacobians = self.losses(problem, network, horizon)
        return float(((change / scales + jacobians) ** 2).sum() / 2)


def jacobian_loss(problem, penalty: Any, form: str, ridge: Any = 0.0) -> Any:
    r"""Return the Jacobian term J of an iteration, with the shape of the penalty :math:`D_i`.

    ``form`` is that of :class:`ObjectivePerturbed`, and ``ridge`` the curvature in addition to that
    of the problem. The form ``paper`` refuses :math:`\kappa > 1/2`.
    """
    kappa = problem.record_curvature / (problem.least_convexity + ridge + penalty)
    if form == "tight":
        return problem.record_hessian_rank * np.log1p(kappa)
    largest = float(np.max(kappa))
    expected = "at most 1/2 for the Jacobian term 2.8 kappa; a larger ridge decreases kappa"
    require(largest <= 0.5, "kappa", largest, expected)
    return problem.record_hessian_rank * 2.8 * kappa
