r"""Recycled ADMM (Zhang, Khalili, Liu, Allerton 2018): even iterations use no private data.

Odd iterations are :math:`\hat x_i = \arg\min f_i(x) + (a_i + b_i)^Tx + \frac{D_i}2\|x - c_i\|^2`.
By the optimality condition, the noisy gradient

.. math:: g_i = \nabla f_i(\hat x_i) + b_i = D_i(c_i - \hat x_i) - a_i

is a function of broadcast values only. The next, even iteration replaces :math:`f_i` by
:math:`g_i^T x + \frac\gamma2\|x - \hat x_i\|^2`.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import column
from .families import admm
from .families.admm import Noises
from .families.objective_perturbation import ObjectivePerturbed
from .parameters import nonnegative, one_of

RADMMState = namedtuple("RADMMState", (*admm.ADMMState._fields, "recycled", "solved"))
"""State of ADMM, with the noisy gradients and the minimisers of the last odd iteration.

Both are [settings, runs, agents, dim]. The next odd iteration starts its minimisation from these
minimisers.
"""


@dataclass(frozen=True, kw_only=True)
class RecycledADMM(ObjectivePerturbed):
    r"""Recycled ADMM (R-ADMM); ``noise`` is :math:`1/\alpha_i(k)`, the scale of :math:`b_i`.

    Parameters
    ----------
    gamma : float
        Curvature :math:`\gamma` of the quadratic model of :math:`f_i` in even iterations.
    """

    law: str = one_of("gamma_norm", ("gamma_norm", "laplace"))
    rho_conversion: str | None = "safe"
    gamma: float = nonnegative(0.5)

    source: ClassVar[str] = "Zhang, Khalili, Liu, arXiv 1810.03197"
    where: ClassVar[str] = "dual"
    lower_bound_because: ClassVar[str] = (
        "a changed label changes the noise that leads to a minimiser by the attained fraction"
    )

    def linear_scale(self, penalty, scale):
        """Return the scale of :math:`b_i`, which is the noise scale of the iteration."""
        return scale + 0 * penalty

    def start(self, problem, network, streams, settings):
        state = super().start(problem, network, streams, settings)
        return RADMMState(*state, np.zeros_like(state.x), state.minimiser)

    def noises(self, unit, network, t):
        """Return the noise of the dual in odd iterations, and none in even iterations."""
        return super().noises(unit, network, t) if t % 2 else Noises()

    def minimise(self, problem, state, linear, penalty, centre, t):
        if t % 2:
            start = state._replace(minimiser=state.solved)
            return super().minimise(problem, start, linear, penalty, centre, t)
        gamma = column(self.gamma)
        target = penalty * centre + gamma * state.x - state.recycled - linear
        return target / (penalty + gamma)

    def step(self, state, problem, network, draw, t):
        """Return the state after one iteration; odd iterations store the noisy gradients."""
        after = super().step(state, problem, network, draw, t)
        if t % 2 == 0:
            return after
        centre = self.centre(state, network, draw)
        noisy_gradient = self.penalty(network, t) * (centre - after.x) - state.dual
        return after._replace(recycled=noisy_gradient, solved=after.minimiser)

    def private_iterations(self, horizon):
        """Return the odd iterations, which use private data, counted from 1."""
        return np.arange(1, horizon + 1, 2)

    def loss_by_formula(self, problem, network, t):
        r"""Return the privacy loss of iteration t by the paper's formula; 0 for even t.

        For odd t it is :math:`\frac{2C}{|D_i|}\bigl(\frac{1.4c_1}{m} + \alpha_i(k)\bigr)`.
        """
        penalty = self.penalty(network, t)
        if t % 2 == 0:
            return 0.0 * penalty
        curvature = problem.least_convexity + column(self.Phi) + penalty
        kappa = problem.record_curvature / curvature
        jacobian = problem.record_hessian_rank * 2.8 * kappa
        return jacobian + problem.record_change(self.noise.norm) / self.scale(t)

    def epsilon_by_formula(self, delta, problem, network, horizon):
        self.losses(problem, network, horizon)  # raises an error if the curvature is too small
        return super().epsilon_by_formula(delta, problem, network, horizon)


ALGORITHM = RecycledADMM
