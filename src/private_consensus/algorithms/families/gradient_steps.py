r"""What versions of decentralized gradient descent have in common. Not an algorithm.

Mix, take a gradient step, add noise: :math:`x_i \leftarrow A_i - \eta_t g_i + \Delta_i`, with
geometric steps :math:`\eta_t = c\,q^t`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..base import STEP, Range, column
from ..parameters import positive, up_to_one
from .perturbed import PaidByIteration, initial, printed_change


class State(NamedTuple):
    """Messages x [settings, runs, agents, dim]; loss so far [settings, runs, agents]."""

    x: np.ndarray
    spent: np.ndarray


@dataclass(frozen=True, kw_only=True)
class GradientSteps(PaidByIteration):
    r"""Mix, take a gradient step, add noise: :math:`x_i \leftarrow A_i - \eta_t g_i + \Delta_i`.

    Parameters
    ----------
    eta, decay : float
        :math:`\eta_t = \text{eta}\cdot\text{decay}^t`.
    init_std : float
        Standard deviation of the coordinates of :math:`x_i^0`.
    """

    eta: float = positive(1.0)
    decay: float = up_to_one(0.9)
    init_std: float = 1.0

    ranges: ClassVar = {
        "eta": Range(0.05, 4.0, 1.0, STEP),
        "decay": Range(0.85, 1.0, 0.95),
        "horizon": Range(3, 40, 20),
    }

    def step_size(self, t: int) -> Any:
        r""":math:`\eta_t`, as it broadcasts."""
        return column(self.eta) * column(self.decay) ** t

    def start(self, problem, network, streams, settings):
        x = initial(problem, streams, settings, self.init_std)
        return State(x, np.zeros(x.shape[:-1]))

    def draws(self, problem, streams):
        return self.units(problem, streams)

    def descend(self, problem, at, mixed, noise, t: int) -> np.ndarray:
        """One step from ``mixed`` along the gradient at ``at``."""
        return mixed - self.step_size(t) * problem.gradient(at) + self.scale(t) * noise

    def loss_by_formula(self, problem, network, t):
        r""":math:`\eta_k\beta_k\mathcal B_\infty` (paper 001, after Theorem 2.2)."""
        return np.reshape(
            self.step_size(t) * printed_change(problem) / self.scale(t), (-1, 1, 1, 1)
        )

    def graph_statistics(self, network):
        """Nothing."""

    def releases(self, problem, network, horizon):
        r"""Gradients are taken at points that were sent or mixed from such:
        :math:`\eta_t\Delta`."""
        moved = problem.record_change(self.noise.norm)
        steps = self.eta * self.decay ** np.arange(1, horizon + 1)
        known = self.known(problem, horizon)
        return self.noise_releases(moved * steps, self.scales(horizon), **known)

    def known(self, problem, horizon: int) -> dict[str, Any]:
        """What of the sensitivities is known to be attained and reached.

        A projection may take changes away, and then nothing is known.
        """
        if np.isfinite(getattr(problem, "box", np.inf)):
            return {}
        attained = problem.attained_gradient_share(self.noise.norm)
        first = problem.attained_gradient_share("l2")
        return {"attained": attained, "reached": self.reached(problem, horizon, first)}


def uniform_mean(network, x: np.ndarray) -> np.ndarray:
    """Mean over each agent and its neighbours."""
    return (x + network.neighbour_sum(x)) / (network.degrees[..., None] + 1.0)
