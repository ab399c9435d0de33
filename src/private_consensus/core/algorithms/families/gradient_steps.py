r"""Common base of methods that mix messages, take a gradient step and add noise.

This module is not an algorithm. An iteration is :math:`x_i \leftarrow A_i - \eta_t g_i + \Delta_i`,
with an average :math:`A_i` of messages, a gradient :math:`g_i`, noise :math:`\Delta_i` and
geometric step sizes :math:`\eta_t = c\,q^t`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..base import NOTHING, STEP, Iterative, Range, column, normal_start
from ..noise import CALIBRATIONS, SCALED, Noise, calibrated, largest_sum, published_change
from ..parameters import noise_field, nonnegative, one_of, positive, unit_interval


class GradientStepsState(NamedTuple):
    """Messages x [settings, runs, agents, dim]; accumulated loss [settings, runs, agents]."""

    x: np.ndarray
    total_loss: np.ndarray


@dataclass(frozen=True, kw_only=True)
class GradientSteps(Iterative):
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

    law: str = one_of("laplace", SCALED)
    noise: Noise = noise_field(law=None, scheduled=True)
    growth: float = positive(1.0)
    calibration: str = one_of("accountant", CALIBRATIONS, calibration=True)
    eta: float = positive(1.0)
    decay: float = unit_interval(0.9)
    init_std: float = nonnegative(1.0)

    quantities: ClassVar = ("released", "worst_case")
    privacy_depends_on: ClassVar[str] = NOTHING
    ranges: ClassVar = {
        "eta": Range(0.05, 4.0, 1.0, STEP),
        "decay": Range(0.85, 1.0, 0.95),
        "horizon": Range(3, 40, 20),
    }

    def step_size(self, t: int) -> Any:
        r"""Return the step size :math:`\eta_t`, broadcastable against iterates."""
        return column(self.eta) * column(self.decay) ** t

    def start(self, problem, network, streams, settings):
        x = normal_start(problem, streams, settings, self.init_std)
        return GradientStepsState(x, np.zeros(x.shape[:-1]))

    def descend(self, problem, at, mixed, noise, t: int) -> np.ndarray:
        """Return the result of a gradient step from ``mixed``, plus noise.

        Parameters
        ----------
        at, mixed : ndarray, shape (settings, runs, agents, dim)
            Points of the gradients, and averages :math:`A_i` from which the step starts.
        noise : ndarray, shape (runs, agents, dim)
            Unit noise.
        """
        return mixed - self.step_size(t) * problem.gradient(at) + self.noise.at(t) * noise

    def observables(self, state, problem, t) -> Mapping[str, np.ndarray]:
        quantities = {"released": state.x}
        return quantities | {"worst_case": state.total_loss.mean(-1)} if self.noise else quantities

    # Privacy.

    def calibrate(self, budget, problem, network, horizon):
        """Return a copy with the noise for a budget; fixed noise remains unchanged."""
        return calibrated(self, budget, problem, network, horizon)

    def loss_by_formula(self, problem, network, t: int) -> np.ndarray:
        r"""Return the privacy loss of iteration t per coordinate, by the formula of Xiao et al.

        It is :math:`\eta_k\beta_k\mathcal B_\infty` (after Theorem 2.2), of shape
        (settings or 1, 1, 1, 1).
        """
        return np.reshape(
            self.step_size(t) * published_change(problem) / self.noise.at(t), (-1, 1, 1, 1)
        )

    def accumulated_loss(self, state, problem, network, t: int) -> np.ndarray:
        """Return the loss, [settings, runs, agents], after iteration t; unchanged without noise."""
        if not self.noise:
            return state.total_loss
        return state.total_loss + self.loss_by_formula(problem, network, t)[..., 0]

    def epsilon_by_formula(self, delta, problem, network, horizon):
        if not self.noise:
            return float("inf")
        times = range(1, horizon + 1)
        return largest_sum(self.loss_by_formula(problem, network, t) for t in times)

    def releases(self, problem, network, horizon):
        r"""Return the releases of all messages, with sensitivities :math:`\eta_t\Delta`.

        Gradients are evaluated at messages or at averages of messages.
        """
        change = problem.record_change(self.noise.norm)
        steps = self.eta * self.decay ** np.arange(1, horizon + 1)
        attack_fields = self.attack_fields(problem, horizon)
        return self.noise.releases(change * steps, self.noise.scales(horizon), **attack_fields)

    def noise_sites(self, problem, network, horizon):
        (release,) = self.releases(problem, network, horizon)
        return [self.noise.site_of(release, self.noise.scales(horizon))]

    def attack_fields(self, problem, horizon: int) -> dict[str, Any]:
        """Return the fields ``attained`` and ``reached`` of :class:`.Release`; empty if unknown.

        They are unknown with a projection, which may remove changes.
        """
        if problem.offers("box") and np.isfinite(problem.box):
            return {}
        attained = problem.attained_gradient_share(self.noise.norm)
        first = problem.attained_gradient_share("l2")
        return {"attained": attained, "reached": self.noise.reached(problem, horizon, first)}


def uniform_mean(network, x: np.ndarray) -> np.ndarray:
    """Return the mean over each agent and its neighbours, with equal weights."""
    return (x + network.neighbour_sum(x)) / (network.degrees[..., None] + 1.0)
