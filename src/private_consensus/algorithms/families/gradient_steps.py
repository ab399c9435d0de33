r"""What versions of decentralized gradient descent have in common. Not an algorithm.

Mix, take a gradient step, add noise: :math:`x_i \leftarrow A_i - \eta_t g_i + \Delta_i`, with
geometric steps :math:`\eta_t = c\,q^t`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..base import STEP, Iterative, Range, column, normal_start
from ..noise import SCALED, Noise
from ..parameters import noise_field, nonnegative, one_of, positive, up_to_one
from .spending import (
    CALIBRATIONS,
    GIVEN,
    calibrated,
    largest_sum,
    printed_change,
    spent_after,
)


class State(NamedTuple):
    """Messages x [settings, runs, agents, dim]; loss so far [settings, runs, agents]."""

    x: np.ndarray
    spent: np.ndarray


@dataclass(frozen=True, kw_only=True)
class GradientSteps(Iterative):
    r"""Mix, take a gradient step, add noise: :math:`x_i \leftarrow A_i - \eta_t g_i + \Delta_i`.

    Parameters
    ----------
    law : {"laplace", "gaussian", "gamma_norm"}
        Independent Laplace or normal coordinates, or density proportional to exp(-zeta ||b||_2).
    noise, growth : float
        Scale ``noise / growth**t`` of the message of iteration t = 1, 2, ...
    calibration : {"accountant", "formula", "given"}
        What a budget does: the least noise that the accountant lets pass; the noise for which the
        paper's own formula gives the budget's epsilon; or nothing, the noise is as it is stated.
    eta, decay : float
        :math:`\eta_t = \text{eta}\cdot\text{decay}^t`.
    init_std : float
        Standard deviation of the coordinates of :math:`x_i^0`.
    """

    law: str = one_of("laplace", SCALED)
    noise: Noise = noise_field(law=None, scheduled=True)
    growth: float = positive(1.0)
    calibration: str = one_of("accountant", CALIBRATIONS, calibration=True)
    eta: float = positive(1.0)
    decay: float = up_to_one(0.9)
    init_std: float = nonnegative(1.0)

    ranges: ClassVar = {
        "eta": Range(0.05, 4.0, 1.0, STEP),
        "decay": Range(0.85, 1.0, 0.95),
        "horizon": Range(3, 40, 20),
    }

    def step_size(self, t: int) -> Any:
        r""":math:`\eta_t`, as it broadcasts."""
        return column(self.eta) * column(self.decay) ** t

    def start(self, problem, network, streams, settings):
        x = normal_start(problem, streams, settings, self.init_std)
        return State(x, np.zeros(x.shape[:-1]))

    def draws(self, problem, streams):
        return self.noise.units(problem, streams)

    def descend(self, problem, at, mixed, noise, t: int) -> np.ndarray:
        """Take one step from ``mixed`` along the gradient at ``at``."""
        return mixed - self.step_size(t) * problem.gradient(at) + self.noise.at(t) * noise

    def observables(self, state, problem, t) -> Mapping[str, np.ndarray]:
        shown = {"released": state.x}
        return shown | {"worst_case": state.spent.mean(-1)} if self.noise else shown

    # Privacy.

    @property
    def noise_is_given(self) -> bool:
        return self.calibration == GIVEN

    def calibrate(self, budget, problem, network, horizon):
        return calibrated(self, budget, problem, network, horizon)

    def loss_by_formula(self, problem, network, t: int) -> np.ndarray:
        r""":math:`\eta_k\beta_k\mathcal B_\infty` (paper 001, after Theorem 2.2), a coordinate;
        broadcasts against [settings, runs, agents, 1]."""
        return np.reshape(
            self.step_size(t) * printed_change(problem) / self.noise.at(t), (-1, 1, 1, 1)
        )

    def spend(self, state, problem, network, t: int) -> np.ndarray:
        """``state.spent`` after iteration t; without noise there is nothing to add up."""
        if not self.noise:
            return state.spent
        return spent_after(state.spent, self.loss_by_formula(problem, network, t))

    def epsilon_by_formula(self, delta, problem, network, horizon):
        """Sum of the losses a coordinate."""
        if not self.noise:
            return float("inf")
        times = range(1, horizon + 1)
        return largest_sum(self.loss_by_formula(problem, network, t) for t in times)

    def graph_statistics(self, network):
        """Return no statistics, since privacy does not depend on the graph."""

    def releases(self, problem, network, horizon):
        r"""Gradients are taken at points that were sent or mixed from such:
        :math:`\eta_t\Delta`."""
        moved = problem.record_change(self.noise.norm)
        steps = self.eta * self.decay ** np.arange(1, horizon + 1)
        known = self.known(problem, horizon)
        return self.noise.releases(moved * steps, self.noise.scales(horizon), **known)

    def noise_sites(self, problem, network, horizon):
        """Return the site of the noise: messages, with the scale of each iteration."""
        (release,) = self.releases(problem, network, horizon)
        return [self.noise.site_of(release, self.noise.scales(horizon))]

    def known(self, problem, horizon: int) -> dict[str, Any]:
        """Return the sensitivities that are known to be attained and reached.

        A projection may take changes away, and then nothing is known.
        """
        if np.isfinite(getattr(problem, "box", np.inf)):
            return {}
        attained = problem.attained_gradient_share(self.noise.norm)
        first = problem.attained_gradient_share("l2")
        return {"attained": attained, "reached": self.noise.reached(problem, horizon, first)}


def uniform_mean(network, x: np.ndarray) -> np.ndarray:
    """Mean over each agent and its neighbours."""
    return (x + network.neighbour_sum(x)) / (network.degrees[..., None] + 1.0)
