r"""Decentralized gradient descent with fresh noise in every round.

.. math:: x_i \leftarrow z_i - s\,(\nabla f_i(z_i) + N(0, \sigma^2 I)), \qquad z = W x

with :math:`s = \eta/L` for a public smoothness L. The point :math:`z_i` is a function of messages.
Given the messages, a replaced record moves the gradient by at most :math:`\Delta_2`. T rounds are T
Gaussian mechanisms, :math:`\mu^2 = T\Delta_2^2/\sigma^2`.
"""

from dataclasses import dataclass

from private_consensus.core.algorithms.base import column
from private_consensus.core.algorithms.parameters import positive

from ._common import GaussianSeries, State, public_smoothness


@dataclass(frozen=True, kw_only=True)
class RoundNoiseDescent(GaussianSeries):
    r"""Decentralized gradient descent with fresh noise in every round.

    Parameters
    ----------
    eta : float
        Step length in units of 1/L.
    """

    eta: float = positive(0.5)

    def change(self, problem):
        return problem.record_change("l2")

    def length(self, problem):
        """Return the step length, which broadcasts against messages."""
        return column(self.eta) / public_smoothness(problem)

    def noise(self, draw, t):
        """Return the noise of a round, in the unit of the gradient."""
        return column(self.sigma.scale) * draw

    def step(self, state, problem, network, draw, t):
        z = network.mix(state.x)
        gradient = problem.gradient(z) + self.noise(draw, t)
        return State(z - self.length(problem) * gradient)


ALGORITHM = RoundNoiseDescent
EXAMPLE = "mean_estimation"
