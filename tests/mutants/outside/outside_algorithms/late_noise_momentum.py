r"""Gradient descent that adds the noise after the momentum.

Declares what momentum_descent declares: one Gaussian release of sensitivity :math:`\Delta_2` per
round. The exact gradients add up in the momentum, so a replaced record moves the momentum of
round t by :math:`\Delta_2(1-\beta^t)/(1-\beta)`.
"""

from dataclasses import dataclass

from private_consensus.core.algorithms.base import column

from .momentum_descent import MomentumDescent


@dataclass(frozen=True, kw_only=True)
class LateNoiseMomentum(MomentumDescent):
    """Gradient descent that adds the noise after the momentum."""

    def step(self, state, problem, network, draw, t):
        z = network.mix(state.x)
        momentum = column(self.beta) * state.momentum + problem.gradient(z)
        noised = momentum + self.noise(draw, t)
        return state._replace(x=z - self.length(problem) * noised, momentum=momentum)


ALGORITHM = LateNoiseMomentum
EXAMPLE = "mean_estimation"
