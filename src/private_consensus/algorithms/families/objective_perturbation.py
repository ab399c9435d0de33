r"""ADMM with noise in the linear term of its local problem: DVP, M-ADMM and R-ADMM.

What a version says is where its noise enters, at which scale, and which iterations are charged;
what an iteration costs is the same for all: the change of the gradient over the noise, and a term
for the Jacobian of the map from the noise to the minimiser.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import require
from ...privacy import Release, calibrate
from ..base import column
from ..parameters import nonnegative, one_of
from .admm import ADMMFamily, of_agents
from .spending import printed_change

JACOBIANS = ("paper", "tight")
CURVATURES = ("none", "half", "deficit")


@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbed(ADMMFamily):
    r"""ADMM whose minimiser is released exactly, with noise in the linear term of its objective.

    Replacing a record moves the noise that leads to a given minimiser by the change of the
    gradient, and changes the Jacobian; the loss of an iteration is

    .. math:: \frac{\Delta}{s} + J, \qquad J = 2.8\kappa \ \text{or}\ \ln(1+\kappa),
        \quad \kappa = \frac{w c_1}{\mu + D_i}

    with s the scale of the noise as it enters the gradient, w the weight of a record and
    :math:`c_1` the largest second derivative of its loss. :math:`2.8\kappa` needs
    :math:`\kappa \le 1/2` (Chaudhuri, Monteleoni, Sarwate 2011; Zhang, Khalili, Liu 2018);
    :math:`\ln(1+\kappa)` holds always, since the Hessian's change has one positive eigenvalue.

    A budget below the Jacobian terms is met by no noise. DVP's authors then add
    :math:`\frac\Phi2\|x\|_2^2` to the objective, which makes :math:`\kappa` smaller; the other
    methods' authors ask for a larger penalty or ridge.

    Parameters
    ----------
    jacobian : {"paper", "tight"}
    curvature : {"none", "half", "deficit"}
        When :math:`\Phi` is added: never, so that such a budget is an error; the least with which J
        takes at most half of an iteration's budget; or only where nothing is left for the noise,
        and then so that J takes half (DVP as printed).
    Phi : float
    """

    jacobian: str = one_of("paper", JACOBIANS, calibration=True)
    curvature: str = one_of("none", CURVATURES, calibration=True)
    Phi: float = nonnegative(0.0)

    jacobian_terms = 1
    """How often J is charged an iteration."""

    def added_curvature(self, problem):
        return column(self.Phi) if np.any(self.Phi) else None

    def spending(self, budget, problem, network, horizon):
        curved = self.with_curvature(budget, problem, network, horizon)
        return ADMMFamily.spending(curved, budget, problem, network, horizon)

    def with_curvature(self, budget, problem, network, horizon: int):
        r"""A copy with the :math:`\Phi` that ``curvature`` asks for."""
        if self.curvature == "none":
            return self
        charged = self.charged(horizon)
        least = float(self.least_penalties(network, horizon)[charged - 1].min())
        share = self.share_of(budget, len(charged))
        taken = self.jacobian_terms * jacobian_loss(problem, least, self.jacobian)
        if taken < (share if self.curvature == "deficit" else share / 2):
            return self
        each = share / 2 / self.jacobian_terms
        kappa = np.expm1(each) if self.jacobian == "tight" else each / 2.8
        needed = problem.record_curvature / kappa
        return replace(self, Phi=float(needed - problem.least_convexity - least))

    def share_of(self, budget, count: int) -> float:
        """Return the loss that each of ``count`` pure mechanisms may have so that together they
        meet a budget.
        """
        if self.calibration == "formula" and self.rho_conversion is not None:
            return float(np.sqrt(2.0 * self.rho_of(budget) / count))
        scale = calibrate(lambda s: [Release("pure", epsilon=np.full(count, 1.0 / s))], budget)
        return 1.0 / scale

    def linear_scale(self, penalty: Any, scale: Any) -> Any:
        """Scale of the noise in the gradient."""
        return penalty * scale

    def noise_sites(self, problem, network, horizon):
        """The noise in the gradient of what is minimised, in the iterations that have one."""
        times = np.arange(1, horizon + 1)
        penalties = np.stack([of_agents(self.penalty(network, t)) for t in times])
        scale = self.linear_scale(penalties, self.scales(horizon)[:, None, None])
        quiet = ~np.isin(times, self.charged(horizon))
        scale = np.where(quiet[:, None, None], np.nan, scale)
        change = problem.record_change(self.noise.norm)
        moved = np.where(quiet, 0.0, change / np.nanmin(scale, axis=(1, 2), initial=np.inf))
        return [self.noise.site(scale, moved, "minimisation")]

    def residual(self, scale, state, problem, network, draw, shown, t):
        """Minimisers are sent exactly."""
        noise = self.noise_in_minimisation(shown.sent, state, problem, network, t)
        sign = 1.0 if self.where == "dual" else -1.0  # the centre enters the slope with a minus
        return {"minimisation": sign * noise / scale["minimisation"]}

    def loss_by_formula(self, problem, network, t):
        r"""Paper 001's reading a coordinate: :math:`\mathcal B_\infty/s + 2.8 w/D_i`."""
        penalty = self.penalty(network, t)
        moved = printed_change(problem) / self.linear_scale(penalty, self.scale(t))
        return moved + 2.8 * printed_change(problem) / penalty

    def charged(self, horizon: int) -> np.ndarray:
        """Iterations that use private data."""
        return np.arange(1, horizon + 1)

    def losses(self, problem, network, horizon):
        r""":math:`\Delta`, the scales s and the terms J of the iterations that are charged."""
        charged = self.charged(horizon) - 1
        penalties = self.least_penalties(network, horizon)[charged]
        paid = self.jacobian_terms * jacobian_loss(problem, penalties, self.jacobian, self.Phi)
        scales = self.linear_scale(penalties, self.scales(horizon)[charged])
        return problem.record_change(self.noise.norm), scales, paid

    def rho_by_formula(self, problem, network, horizon):
        r""":math:`\sum_t \epsilon_t^2/2`, every iteration taken as a pure mechanism."""
        moved, scales, paid = self.losses(problem, network, horizon)
        return float(((moved / scales + paid) ** 2).sum() / 2)

    def releases(self, problem, network, horizon):
        """An iteration is one pure mechanism: its noise and its Jacobian term are one loss.

        Gaussian noise has no such bound, and its Jacobian term depends on what it drew (E4.3): the
        two are priced apart there, and nothing is proven.
        """
        moved, scales, paid = self.losses(problem, network, horizon)
        known = self.known_of_gradient(problem, len(scales))
        if self.noisy and self.law != "gaussian":
            attack = Release(self.law, moved, scales, dim=problem.dim, **known)
            return [Release("pure", epsilon=moved / scales + paid, attack=attack)]
        note = "the Jacobian term of Gaussian objective perturbation depends on the noise"
        jacobian = Release("pure", epsilon=paid, proven=False, note=note)
        return [*self.noise.releases(moved, scales, **known), jacobian]

    def known_of_gradient(self, problem, count: int) -> dict[str, Any]:
        r"""What is known of :math:`\hat x_i` beside its bound: the law of the noise, moved.

        With the other label on the same row z the Hessians are the same at every point, so that
        :math:`v(x) = -(a + D(x-c) + \mu x) + w\sigma(-x^Tz)z`, one to one, is the noise b or
        :math:`b + wz`: nothing is lost and no Jacobian is left. At delta 0 two nearly opposite rows
        reach all of the change, at points far out, where the Jacobians are equal again. There
        Laplace noise can be large in all coordinates with the signs that it takes; noise of
        ``gamma_norm`` has to point along the change, and in iteration 1 leads back to where half
        of it is seen.
        """
        if np.isfinite(getattr(problem, "box", np.inf)):
            return {}  # projected minimisers are no longer one to one
        norm = self.noise.norm
        attained = problem.attained_gradient_share(norm)
        first = 1.0 if self.law == "laplace" else problem.attained_gradient_share("l2")
        if attained is None:
            return {}
        return {"attained": attained, "reached": self.noise.reached(problem, count, first)}


def jacobian_loss(problem, penalty: Any, form: str, ridge: float = 0.0) -> Any:
    """J of an iteration, with ``ridge`` more curvature than the problem has."""
    kappa = problem.record_curvature / (problem.least_convexity + ridge + penalty)
    if form == "tight":
        return np.log1p(kappa)
    largest = float(np.max(kappa))
    require(largest <= 0.5, "kappa", largest, "at most 1/2 for the Jacobian term 2.8 kappa")
    return 2.8 * kappa
