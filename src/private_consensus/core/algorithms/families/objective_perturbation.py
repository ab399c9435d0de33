"""Common base of ADMM with noise in the linear term of the local objective: DVP, M-ADMM, R-ADMM.

The privacy loss of an iteration is the change of the gradient by one record over the scale of
the noise, plus a term for the Jacobian of the map from the noise to the minimiser. The methods
differ in the position and the scale of the noise, and in the iterations that use private data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import Release, calibrate

from ..base import column
from ..noise import published_change
from ..parameters import nonnegative, one_of
from .admm import ADMMFamily, of_agents

JACOBIANS = ("paper", "tight")
CURVATURES = ("none", "half", "deficit")


@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbed(ADMMFamily):
    r"""ADMM that releases exact minimisers of objectives with noise in their linear term.

    A minimiser determines the noise. On neighbouring data sets, the noises that lead to the same
    minimiser differ by the change of the gradient, and the Jacobians differ. The privacy loss of
    an iteration is

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
    curvature : {"none", "half", "deficit"}
        Rule for adding :math:`\Phi`. ``none``: never; a budget below the Jacobian terms is an
        error. ``half``: the smallest :math:`\Phi` for which J uses at most half of the budget of an
        iteration. ``deficit``: only if J exceeds the budget of an iteration; J then uses half of
        it (DVP as published).
    Phi : float
        Added curvature :math:`\Phi`.
    """

    jacobian: str = one_of("paper", JACOBIANS, calibration=True)
    curvature: str = one_of("none", CURVATURES, calibration=True)
    Phi: float = nonnegative(0.0)

    jacobian_terms = 1
    """Number of terms J per iteration."""

    def added_curvature(self, problem):
        return column(self.Phi) if np.any(self.Phi) else None

    def with_noise_for(self, budget, problem, network, horizon):
        curved = self.with_curvature(budget, problem, network, horizon)
        return ADMMFamily.with_noise_for(curved, budget, problem, network, horizon)

    def with_curvature(self, budget, problem, network, horizon: int):
        r"""Return a copy with the :math:`\Phi` that ``curvature`` requires, or itself."""
        if self.curvature == "none":
            return self
        iterations = self.private_iterations(horizon)
        min_penalty = float(self.least_penalties(network, horizon)[iterations - 1].min())
        budget_share = self.epsilon_share(budget, len(iterations))
        jacobian_cost = self.jacobian_terms * jacobian_loss(problem, min_penalty, self.jacobian)
        if jacobian_cost < (budget_share if self.curvature == "deficit" else budget_share / 2):
            return self
        cost_per_term = budget_share / 2 / (self.jacobian_terms * problem.record_hessian_rank)
        kappa = np.expm1(cost_per_term) if self.jacobian == "tight" else cost_per_term / 2.8
        required = problem.record_curvature / kappa
        return replace(self, Phi=float(required - problem.least_convexity - min_penalty))

    def epsilon_share(self, budget, count: int) -> float:
        """Return the largest equal loss of ``count`` pure mechanisms within a budget."""
        if self.calibration == "formula" and self.rho_conversion is not None:
            return float(np.sqrt(2.0 * self.rho_of(budget) / count))
        scale = calibrate(lambda s: [Release("pure", epsilon=np.full(count, 1.0 / s))], budget)
        return 1.0 / scale

    def linear_scale(self, penalty: Any, scale: Any) -> Any:
        """Return the scale of the noise in the gradient, for noise on the centre of the penalty.

        It is the product of the penalty :math:`D_i` and the scale of the noise on the centre.
        """
        return penalty * scale

    def noise_sites(self, problem, network, horizon):
        """Return the noise site: the gradient of the minimised objective.

        The scale is NaN in iterations without noise.
        """
        times = np.arange(1, horizon + 1)
        penalties = np.stack([of_agents(self.penalty(network, t)) for t in times])
        scale = self.linear_scale(penalties, self.scales(horizon)[:, None, None])
        is_public = ~np.isin(times, self.private_iterations(horizon))
        scale = np.where(is_public[:, None, None], np.nan, scale)
        change = problem.record_change(self.noise.norm)
        moved = np.where(is_public, 0.0, change / np.nanmin(scale, axis=(1, 2), initial=np.inf))
        return [self.noise.site(scale, moved, "minimisation")]

    def loss_by_formula(self, problem, network, t):
        r"""Return the privacy loss of iteration t per coordinate, by the formula of Xiao et al.

        It is :math:`\mathcal B_\infty/s + 2.8 w/D_i`.
        """
        penalty = self.penalty(network, t)
        moved = published_change(problem) / self.linear_scale(penalty, self.scale(t))
        return moved + 2.8 * published_change(problem) / penalty

    def private_iterations(self, horizon: int) -> np.ndarray:
        """Return the iterations that use private data, counted from 1."""
        return np.arange(1, horizon + 1)

    def losses(self, problem, network, horizon):
        r"""Return sensitivity, noise scales and Jacobian terms of iterations that use private data.

        The sensitivity :math:`\Delta` of the gradient is in the norm of the noise. The arrays have,
        per iteration, the smallest scale s of any agent, and the sum of the Jacobian terms.
        """
        iterations = self.private_iterations(horizon) - 1
        penalties = self.least_penalties(network, horizon)[iterations]
        jacobians = self.jacobian_terms * jacobian_loss(problem, penalties, self.jacobian, self.Phi)
        scales = self.linear_scale(penalties, self.scales(horizon)[iterations])
        return problem.record_change(self.noise.norm), scales, jacobians

    def rho_by_formula(self, problem, network, horizon):
        r"""Return the total privacy loss :math:`\sum_t \epsilon_t^2/2` in zCDP.

        Each iteration is :math:`\epsilon_t`-differentially private.
        """
        change, scales, jacobians = self.losses(problem, network, horizon)
        return float(((change / scales + jacobians) ** 2).sum() / 2)

    def releases(self, problem, network, horizon):
        """Return one purely differentially private mechanism per iteration.

        Its loss is that of the noise plus the Jacobian term. For Gaussian noise, whose Jacobian
        term depends on the sampled noise (E4.3), the two terms are separate releases, and the
        latter is not proven.
        """
        change, scales, jacobians = self.losses(problem, network, horizon)
        attack_fields = self.attack_fields(problem, len(scales))
        if self.noisy and self.law != "gaussian":
            attack = Release(self.law, change, scales, dim=problem.dim, **attack_fields)
            return [Release("pure", epsilon=change / scales + jacobians, attack=attack)]
        note = "the Jacobian term of Gaussian objective perturbation depends on the noise"
        jacobian = Release("pure", epsilon=jacobians, proven=False, note=note)
        return [*self.noise.releases(change, scales, **attack_fields), jacobian]

    def attack_fields(self, problem, count: int) -> dict[str, Any]:
        r"""Return the fields ``attained`` and ``reached`` of :class:`.Release`; empty if unknown.

        If only the label of a row z differs, the Hessians are equal at every point. Then
        :math:`v(x) = -(a + D(x-c) + \mu x) + w\sigma(-x^Tz)z` is a one-to-one function of the
        minimiser. It equals the noise b on one data set and :math:`b + wz` on the other one, so
        that the attack has the full loss of the noise and no Jacobian term.

        At delta 0, two nearly opposite rows attain the whole sensitivity at points far from the
        origin, where the Jacobians are equal as well. Laplace noise leads to such points with
        positive density. Noise of ``gamma_norm`` has to point along the change; in iteration 1 it
        leads to points at which half of the sensitivity is attained. ``count`` iterations use
        private data.
        """
        if problem.offers("box") and np.isfinite(problem.box):
            return {}  # the map from noise to projected minimisers is not one-to-one
        norm = self.noise.norm
        attained = problem.attained_gradient_share(norm)
        first = 1.0 if self.law == "laplace" else problem.attained_gradient_share("l2")
        if attained is None:
            return {}
        return {"attained": attained, "reached": self.noise.reached(problem, count, first)}


def jacobian_loss(problem, penalty: Any, form: str, ridge: float = 0.0) -> Any:
    r"""Return the Jacobian term J of the privacy loss of an iteration, in the shape of the penalty.

    It is the rank of a record's Hessian times :math:`2.8\kappa` for the form ``paper``, which
    raises ``InvalidInput`` if :math:`\kappa > 1/2`, or :math:`\ln(1+\kappa)` for ``tight``.
    ``ridge`` is curvature in addition to that of the problem.
    """
    kappa = problem.record_curvature / (problem.least_convexity + ridge + penalty)
    if form == "tight":
        return problem.record_hessian_rank * np.log1p(kappa)
    largest = float(np.max(kappa))
    expected = "at most 1/2 for the Jacobian term 2.8 kappa; a larger ridge decreases kappa"
    require(largest <= 0.5, "kappa", largest, expected)
    return problem.record_hessian_rank * 2.8 * kappa
