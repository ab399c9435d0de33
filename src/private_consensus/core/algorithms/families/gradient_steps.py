"""Common base of methods that mix messages, take a gradient step and add noise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...parameters import StepSize, UnitInterval
from ..base import NOTHING, DecayingNoise, column, normal_start, per_iteration


class GradientStepsState(NamedTuple):
    """Messages x [settings, runs, agents, dim]; accumulated loss [settings, runs, agents].

    ``extra`` has further arrays of a version.
    """

    x: np.ndarray
    total_loss: np.ndarray
    extra: Mapping[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class GradientSteps(DecayingNoise):
    r"""Decentralized gradient descent: :math:`x_i \leftarrow A_i - \eta_t g_i + \Delta_i`.

    :math:`A_i` is an average of messages, :math:`g_i` a gradient, and :math:`\Delta_i` noise.

    Parameters
    ----------
    eta, decay : float
        Step sizes :math:`\eta_t = \text{eta}\cdot\text{decay}^t`.
    """

    eta: StepSize = 1.0
    decay: UnitInterval = 0.9

    quantities = ("released", "worst_case")
    privacy_depends_on = NOTHING

    def step_size(self, t: int) -> Any:
        return column(self.eta) * column(self.decay) ** t

    def mechanisms(self, problem, network, horizon):
        change = problem.record_change(self.norm)
        # A record changes the gradient, and the message by the step size times as much.
        changes = per_iteration(lambda t: change * self.step_size(t), horizon)
        return {"message": self.additive(changes, horizon)}

    def start(self, problem, network, release):
        x = normal_start(problem, release, self.init_std)
        return GradientStepsState(x, np.zeros(x.shape[:-1]), {})

    def after(self, state, problem, network, x, t: int, **extra: np.ndarray) -> GradientStepsState:
        """Return the state with new messages x, new ``extra`` and the loss of iteration t added."""
        total = state.total_loss
        if self.noisy:
            total = total + self.loss_by_formula(problem, network, t)[..., 0]
        return GradientStepsState(x, total, {**state.extra, **extra})

    def observables(self, state, problem, t):
        if not self.noisy:
            return {"released": state.x}
        return {"released": state.x, "worst_case": state.total_loss.mean(-1)}

    def loss_by_formula(self, problem, network, t: int) -> np.ndarray:
        r"""Return the published loss :math:`\eta_t\beta_t\mathcal B_\infty`, equal for all agents.

        The shape is [settings, 1, 1, 1].
        """
        return np.reshape(
            self.step_size(t) * problem.published_change / self.scale(t), (-1, 1, 1, 1)
        )
