r"""Recycled ADMM (Zhang, Khalili, Liu, Allerton 2018): every second update uses no private data.

Odd iterations are :math:`\hat x_i = \arg\min f_i(x) + (a_i + b_i)^Tx + \frac{D_i}2\|x - c_i\|^2`.
What others know of the gradient there, by the optimality condition, is

.. math:: g_i = \nabla f_i(\hat x_i) + b_i = D_i(c_i - \hat x_i) - a_i

a function of broadcast values only. The even iteration after it puts
:math:`g_i^T x + \frac\gamma2\|x - \hat x_i\|^2` in the place of :math:`f_i`.
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

State = namedtuple("State", (*admm.State._fields, "recycled", "solved"))
"""As of the skeleton, with the recycled gradients and the minimisers of the last odd iteration
[settings, runs, agents, dim]: the next one's are looked for from there, where the gradients of the
records are known."""


@dataclass(frozen=True, kw_only=True)
class RecycledADMM(ObjectivePerturbed):
    r"""R-ADMM; ``noise`` is :math:`1/\alpha_i(k)`, the scale of :math:`b_i`.

    Parameters
    ----------
    gamma : float
        :math:`\gamma`: how far an even iteration trusts the recycled gradient.
    """

    law: str = one_of("gamma_norm", ("gamma_norm", "laplace"))
    rho_conversion: str | None = "safe"
    gamma: float = nonnegative(0.5)

    source: ClassVar[str] = "Zhang, Khalili, Liu, arXiv 1810.03197"
    where: ClassVar[str] = "dual"
    lower_bound_because: ClassVar[str] = (
        "a label flip moves the noise that leads to the same minimiser by the attained part"
    )

    def linear_scale(self, penalty, scale):
        return scale + 0 * penalty

    def start(self, problem, network, streams, settings):
        state = super().start(problem, network, streams, settings)
        return State(*state, np.zeros_like(state.x), state.minimiser)

    def noises(self, unit, network, t):
        return super().noises(unit, network, t) if t % 2 else Noises()

    def minimise(self, problem, state, linear, penalty, centre, t):
        if t % 2:
            begun = state._replace(minimiser=state.solved)
            return super().minimise(problem, begun, linear, penalty, centre, t)
        gamma = column(self.gamma)
        pull = penalty * centre + gamma * state.x - state.recycled - linear
        return pull / (penalty + gamma)

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        if t % 2 == 0:
            return after
        centre = self.centre(state, network, draw)
        known = self.penalty(network, t) * (centre - after.x) - state.dual
        return after._replace(recycled=known, solved=after.minimiser)

    def charged(self, horizon):
        return np.arange(1, horizon + 1, 2)

    def loss_by_formula(self, problem, network, t):
        r""":math:`\frac{2C}{|D_i|}\bigl(\frac{1.4c_1}{m} + \alpha_i(k)\bigr)` where t is odd."""
        penalty = self.penalty(network, t)
        if t % 2 == 0:
            return 0.0 * penalty
        curvature = problem.least_convexity + column(self.Phi) + penalty
        kappa = problem.record_curvature / curvature
        return 2.8 * kappa + problem.record_change(self.noise.norm) / self.scale(t)

    def epsilon_by_formula(self, delta, problem, network, horizon):
        self.losses(problem, network, horizon)  # refuses a curvature that the formula is not for
        return super().epsilon_by_formula(delta, problem, network, horizon)


ALGORITHM = RecycledADMM
