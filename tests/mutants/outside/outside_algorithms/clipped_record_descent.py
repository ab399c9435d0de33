r"""Gradient descent on means of clipped record gradients, with noise in every round.

.. math:: x_i \leftarrow z_i - \eta\Bigl(\frac1N\sum_j \mathrm{clip}_C(\nabla\ell_{ij}(z_i))
    + N(0, \sigma^2 I)\Bigr), \qquad z = W x

A replaced record moves the mean by at most :math:`2C/N` (l2), because both gradients have norm at
most C. T rounds are T Gaussian mechanisms, :math:`\mu^2 = T(2C/N)^2/\sigma^2`.
"""

from dataclasses import dataclass
from typing import ClassVar

from private_consensus.core.algorithms.base import column
from private_consensus.core.algorithms.parameters import positive

from ._common import GaussianSeries, State, clipped, record_gradients


@dataclass(frozen=True, kw_only=True)
class ClippedRecordDescent(GaussianSeries):
    """Gradient descent on means of clipped record gradients, with noise in every round.

    Parameters
    ----------
    eta : float
        Step length.
    clip : float
        Largest l2 norm of one record's gradient.
    """

    eta: float = positive(0.2)
    clip: float = positive(0.1)

    needs: ClassVar[tuple[str, ...]] = ("features",)

    def change(self, problem):
        return 2.0 * self.clip / problem.records

    def mean_gradient(self, problem, z, t):
        """Return the mean of the clipped gradients of each agent's records."""
        return clipped(record_gradients(problem, z), self.clip).sum(-2) / problem.records

    def step(self, state, problem, network, draw, t):
        z = network.mix(state.x)
        noise = column(self.sigma.scale) * draw
        return State(z - column(self.eta) * (self.mean_gradient(problem, z, t) + noise))


ALGORITHM = ClippedRecordDescent
EXAMPLE = "logistic_regression"
