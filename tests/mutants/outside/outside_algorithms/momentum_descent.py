r"""Noised gradient descent with momentum.

.. math:: v_i \leftarrow \beta v_i + \nabla f_i(z_i) + N(0, \sigma^2 I), \qquad
    x_i \leftarrow z_i - s v_i

The noise is added to the gradient before the momentum. All momenta and messages are functions of
noised gradients, each of which is one Gaussian mechanism of sensitivity :math:`\Delta_2`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from private_consensus.core.algorithms.base import column, origin
from private_consensus.core.algorithms.parameters import positive

from .round_noise_descent import RoundNoiseDescent


class MomentumState(NamedTuple):
    """Messages and momenta, [settings, runs, agents, dim]."""

    x: np.ndarray
    momentum: np.ndarray


@dataclass(frozen=True, kw_only=True)
class MomentumDescent(RoundNoiseDescent):
    """Noised gradient descent with momentum.

    Parameters
    ----------
    eta : float
        Step length in units of 1/L.
    beta : float
        Weight of the previous momentum, below 1.
    """

    eta: float = positive(0.1)
    beta: float = positive(0.8)

    def start(self, problem, network, streams, settings):
        zero = origin(problem, streams, settings)
        return MomentumState(zero, zero)

    def step(self, state, problem, network, draw, t):
        z = network.mix(state.x)
        noised = problem.gradient(z) + self.noise(draw, t)
        momentum = column(self.beta) * state.momentum + noised
        return MomentumState(z - self.length(problem) * momentum, momentum)


ALGORITHM = MomentumDescent
EXAMPLE = "mean_estimation"
