r"""Gossip of noised averages that the algorithm computes from rows itself.

.. math:: y_i(1) = \frac1N\sum_j y_{ij} z_{ij} + N(0, \sigma^2 I), \qquad y(t+1) = W y(t)

with labels :math:`y_{ij}\in\{-1, 1\}` and rows of l2 norm at most 1, as the problem guarantees. A
replaced record moves the average by at most 2/N. The loss is that of one Gaussian mechanism.
"""

from dataclasses import dataclass
from typing import ClassVar

from private_consensus.core.algorithms.base import column

from ._common import GaussianSeries, State


@dataclass(frozen=True, kw_only=True)
class RowAverageGossip(GaussianSeries):
    """Gossip of noised averages that the algorithm computes from rows itself."""

    needs: ClassVar[tuple[str, ...]] = ("labels",)

    def change(self, problem):
        return 2.0 / problem.records

    def count(self, horizon):
        return 1

    def average(self, problem):
        """Return the average of the signed rows of each agent."""
        return (problem.labels[..., None] * problem.features).sum(-2) / problem.records

    def noise(self, draw, problem):
        """Return the noise of round 1."""
        return column(self.sigma.scale) * draw

    def step(self, state, problem, network, draw, t):
        if t == 1:
            return State(self.average(problem) + self.noise(draw, problem))
        return State(network.mix(state.x))


ALGORITHM = RowAverageGossip
EXAMPLE = "logistic_regression"
