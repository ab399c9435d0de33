r"""Decentralized gradient descent, and what its private versions have in common.

.. math:: x_i^{k+1} = \sum_j w_{ij} x_j^k - \eta_k \nabla f_i(x_i^k), \qquad \eta_k = c\,q^k

(paper 001, eq. (3) without noise; Nedic, Ozdaglar 2009). With geometric steps it stops where the
steps have summed up to, and with weights that are not doubly stochastic, as uniform ones are not on
a general graph, not at the optimum either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..errors import require
from ..privacy import Relation, Release
from .base import STEP, Range, column
from .families.perturbed import LAWS, PaidByIteration, initial, printed_change, shown_losses
from .parameters import one_of, positive, up_to_one

MIXTURES = ("network", "uniform")


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

    relation: ClassVar[Relation] = Relation("record", "replace")
    private: ClassVar[bool] = True
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

    def seen(self, state, problem, t) -> Mapping[str, np.ndarray]:
        seen = {"released": state.x}
        return seen | shown_losses(None, state.spent) if self.noisy else seen

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
        moved = problem.record_change(LAWS[self.law].norm)
        steps = self.eta * self.decay ** np.arange(1, horizon + 1)
        known = self.known(problem, horizon)
        return self.noise_releases(moved * steps, self.scales(horizon), **known)

    def known(self, problem, horizon: int) -> dict[str, Any]:
        """What of the sensitivities is known to be attained and reached.

        A projection may take changes away, and then nothing is known.
        """
        if np.isfinite(getattr(problem, "box", np.inf)):
            return {}
        attained = problem.attained_gradient_share(LAWS[self.law].norm)
        first = problem.attained_gradient_share("l2")
        return {"attained": attained, "reached": self.reached(problem, horizon, first)}


@dataclass(frozen=True, kw_only=True)
class DecentralizedGradientDescent(GradientSteps):
    r"""DGD without noise.

    Parameters
    ----------
    mixture : {"network", "uniform"}
        The network's doubly stochastic weights, or the plain mean over agent and neighbours.
    """

    mixture: str = one_of("network", MIXTURES)

    source: ClassVar[str] = "Nedic, Ozdaglar, IEEE TAC 54(1), 2009; paper 001, eq. (3)"

    def calibrate(self, budget, problem, network, horizon):
        expected = "inf: this algorithm is not private"
        require(not budget.private, "budget.epsilon", budget.epsilon, expected)
        return self

    def step(self, state, problem, network, draw, t):
        mix = network.mix if self.mixture == "network" else partial(uniform_mean, network)
        return state._replace(x=self.descend(problem, state.x, mix(state.x), draw, t))

    def releases(self, problem, network, horizon):
        return [Release("exact", sensitivity=problem.record_change("l2"), scale=0.0)]


ALGORITHM = DecentralizedGradientDescent


def uniform_mean(network, x: np.ndarray) -> np.ndarray:
    """Mean over each agent and its neighbours."""
    return (x + network.neighbour_sum(x)) / (network.degrees[..., None] + 1.0)
