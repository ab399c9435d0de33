"""Recycled ADMM (Zhang, Khalili, Liu, Allerton 2018): even iterations use no private data."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..parameters import NonNegative
from .base import INTERNAL, column
from .families.admm import Conversion
from .families.objective_perturbation import ObjectivePerturbed


@dataclass(frozen=True, kw_only=True)
class RecycledADMM(ObjectivePerturbed):
    r"""Recycled ADMM (R-ADMM); ``noise`` is :math:`1/\alpha_i(k)`, the scale of :math:`b_i`.

    Odd iterations are
    :math:`\hat x_i = \arg\min f_i(x) + (a_i + b_i)^Tx + \frac{D_i}2\|x - c_i\|^2`. By the
    optimality condition, the noisy gradient

    .. math:: g_i = \nabla f_i(\hat x_i) + b_i = D_i(c_i - \hat x_i) - a_i

    is a function of broadcast values only. The next, even iteration replaces :math:`f_i` by
    :math:`g_i^T x + \frac\gamma2\|x - \hat x_i\|^2`.

    Parameters
    ----------
    gamma : float
        Curvature :math:`\gamma` of the quadratic model of :math:`f_i` in even iterations.
    """

    law: Literal["gamma_norm", "laplace"] = "gamma_norm"
    rho_conversion: Conversion = "safe"
    gamma: NonNegative = 0.5

    private_period = 2
    quantities = (INTERNAL, "released")
    source = "Zhang, Khalili, Liu, arXiv 1810.03197"

    def start(self, problem, network, release):
        state = super().start(problem, network, release)
        return state._replace(extra={"recycled": np.zeros_like(state.x), "solved": state.x})

    def step(self, state, problem, network, release, t):
        penalty, centre = self.penalty(network, t), self.centre(state, network)
        if t % 2:
            # The minimisation starts at the last exact minimiser, not at that of the model.
            start = state._replace(minimiser=state.extra["solved"])
            x = release("minimiser", self.perturbed(start, problem, penalty, centre))
            noisy_gradient = penalty * (centre - x) - state.dual
            changed = {"recycled": noisy_gradient, "solved": x}
            return self.update_duals(state, problem, network, x, x, t, **changed)
        gamma = column(self.gamma)
        target = penalty * centre + gamma * state.x - state.extra["recycled"] - state.dual
        x = target / (penalty + gamma)
        return self.update_duals(state, problem, network, x, x, t)

    def loss_by_formula(self, problem, network, t):
        r"""Return :math:`\frac{2C}{|D_i|}(\frac{1.4c_1}{m} + \alpha_i(k))` for odd t, else 0."""
        penalty = self.penalty(network, t)
        if t % 2 == 0:
            return 0.0 * penalty
        curvature = problem.least_convexity + column(self.Phi) + penalty
        kappa = problem.record_curvature / curvature
        jacobian = problem.record_hessian_rank * 2.8 * kappa
        return jacobian + problem.record_change(self.norm) / self.scale(t)

    def claimed_epsilon(self, delta, problem, network, horizon):
        """Return the epsilon of the paper's formula; it refuses a curvature that is too small."""
        self.losses(problem, network, horizon)
        return super().claimed_epsilon(delta, problem, network, horizon)


ALGORITHM = RecycledADMM
