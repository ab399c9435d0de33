r"""Gradient descent with record gradients clipped in l1 and Laplace noise.

.. math:: x_i \leftarrow z_i - \eta\Bigl(\frac1N\sum_j \mathrm{clip}_{1,C}(\nabla\ell_{ij}(z_i))
    + \mathrm{Lap}(b)\Bigr)

Each gradient has l1 norm at most C, so a replaced record moves the mean by at most :math:`2C/N`
in l1. A round is :math:`2C/(Nb)`-DP, and T rounds add up.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

from private_consensus.core.algorithms.base import Iterative, column, origin
from private_consensus.core.algorithms.noise import Noise
from private_consensus.core.algorithms.parameters import noise_field, positive
from private_consensus.privacy import Release

from ._common import State, clipped, record_gradients


@dataclass(frozen=True, kw_only=True)
class LaplaceClipDescent(Algorithm):
    """Gradient descent with record gradients clipped in l1 and Laplace noise.

    Parameters
    ----------
    eta : float
        Step length.
    clip : float
        Largest l1 norm of one record's gradient.
    scale : float
        b of the Laplace distribution, in the unit of the mean gradient.
    """

    eta: float = positive(0.2)
    clip: float = positive(0.1)
    scale: Noise = noise_field(law="laplace")

    needs: ClassVar[tuple[str, ...]] = ("features",)
    order: ClassVar[float] = 1

    def change(self, problem):
        """Return the l1 sensitivity of the mean of clipped gradients (replace one record)."""
        return 2.0 * self.clip / problem.records

    def calibrate(self, budget, problem, network, horizon):
        return replace(self, scale=self.change(problem) * horizon / budget.epsilon)

    def releases(self, problem, network, horizon):
        return [Release("laplace", self.change(problem), self.scale.scale, count=horizon)]

    def claimed_epsilon(self, delta, problem, network, horizon):
        return horizon * self.change(problem) / self.scale.scale if self.scale else inf

    def start(self, problem, network, streams, settings):
        return State(origin(problem, streams, settings))

    def draws(self, problem, streams):
        return streams.sequence("noise", "laplace", (problem.n_agents, problem.dim))

    def step(self, state, problem, network, draw, t):
        z = network.mix(state.x)
        gradients = clipped(record_gradients(problem, z), self.clip, self.order)
        mean = gradients.sum(-2) / problem.records
        return State(z - column(self.eta) * (mean + column(self.scale.scale) * draw))

    def observables(self, state, problem, t):
        return {"released": state.x}


ALGORITHM = LaplaceClipDescent
EXAMPLE = "logistic_regression"
