r"""Common base of methods that mix messages, take a gradient step and add noise.

This module is not an algorithm. An iteration is :math:`x_i \leftarrow A_i - \eta_t g_i + \Delta_i`,
with an average :math:`A_i` of messages, a gradient :math:`g_i`, noise :math:`\Delta_i` and
geometric step sizes :math:`\eta_t = c\,q^t`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from private_consensus.privacy.mechanisms import ADDITIVE

from ..base import NOTHING, Algorithm, column, normal_start, schedule
from ..noise import largest_sum
from ..parameters import Calibration, Law, NonNegative, Positive, StepSize, UnitInterval


class GradientStepsState(NamedTuple):
    """Messages x [settings, runs, agents, dim]; accumulated loss [settings, runs, agents]."""

    x: np.ndarray
    total_loss: np.ndarray


@dataclass(frozen=True, kw_only=True)
class GradientSteps(Algorithm):
    r"""Decentralized gradient descent: :math:`x_i \leftarrow A_i - \eta_t g_i + \Delta_i`.

    Parameters
    ----------
    law : {"laplace", "gaussian", "gamma_norm"}
        Distribution of the noise: independent Laplace or normal coordinates, or a density
        proportional to :math:`\exp(-\|b\|_2/s)` at the scale s.
    noise, growth : float
        Scale of the noise: ``noise / growth**t`` in iteration t = 1, 2, ...
    calibration : {"accountant", "formula", "given"}
        Rule by which a budget sets the noise: the smallest noise that the accountant accepts, the
        noise at which the paper's formula equals the epsilon of the budget, or unchanged noise.
    eta, decay : float
        Step sizes :math:`\eta_t = \text{eta}\cdot\text{decay}^t`.
    init_std : float
        Standard deviation of the coordinates of :math:`x_i^0`.
    """

    law: Law = "laplace"
    noise: NonNegative = 0.0
    growth: Positive = 1.0
    calibration: Calibration = "accountant"
    eta: StepSize = 1.0
    decay: UnitInterval = 0.9
    init_std: NonNegative = 1.0

    quantities: ClassVar = ("released", "worst_case")
    privacy_depends_on: ClassVar = NOTHING

    def step_size(self, t: int) -> Any:
        return column(self.eta) * column(self.decay) ** t

    def scale(self, t: int) -> Any:
        return column(self.noise) / column(self.growth) ** t

    @property
    def noisy(self) -> bool:
        """True if every setting of a batch has noise."""
        return bool(np.all(np.asarray(self.noise) > 0))

    def mechanisms(self, problem, network, horizon):
        noise = ADDITIVE[self.law]
        change = problem.record_change({1: "l1", 2: "l2"}[noise.norm_order])
        steps = schedule(lambda t: change * self.step_size(t), horizon)
        return {"message": noise(steps, schedule(self.scale, horizon))}

    def start(self, problem, network, release):
        x = normal_start(problem, release, self.init_std)
        return GradientStepsState(x, np.zeros(x.shape[:-1]))

    def observables(self, state, problem, t):
        if not self.noisy:
            return {"released": state.x}
        return {"released": state.x, "worst_case": state.total_loss.mean(-1)}

    def loss_by_formula(self, problem, network, t: int) -> np.ndarray:
        r"""Return the published loss of iteration t, :math:`\eta_t\beta_t\mathcal B_\infty`.

        The shape is [settings, 1, 1, 1], since it is the same for all agents.
        """
        return np.reshape(
            self.step_size(t) * problem.published_change / self.scale(t), (-1, 1, 1, 1)
        )

    def accumulated_loss(self, state, problem, network, t: int) -> np.ndarray:
        """Return the accumulated loss by the formula after iteration t; unchanged without noise."""
        if not self.noisy:
            return state.total_loss
        return state.total_loss + self.loss_by_formula(problem, network, t)[..., 0]

    def claimed_epsilon(self, delta, problem, network, horizon):
        if not self.noisy:
            return float("inf")
        times = range(1, horizon + 1)
        return largest_sum(self.loss_by_formula(problem, network, t) for t in times)


def uniform_mean(network, x: np.ndarray) -> np.ndarray:
    """Return the mean over each agent and its neighbours."""
    return (x + network.neighbour_sum(x)) / (network.degrees[..., None] + 1.0)
