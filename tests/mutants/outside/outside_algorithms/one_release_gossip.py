r"""Gossip with one noised release per agent.

.. math:: y_i(1) = \bar d_i + N(0, \sigma^2 I), \qquad y(t+1) = W y(t)

A replaced record moves the mean of N records by at most :math:`\Delta_2/N`. Messages after round 1
are functions of the messages of round 1. The loss is that of one Gaussian mechanism.
"""

from dataclasses import dataclass
from typing import ClassVar

from private_consensus.core.algorithms.base import column

from ._common import GaussianSeries, State


@dataclass(frozen=True, kw_only=True)
class OneReleaseGossip(GaussianSeries):
    """Gossip with one noised release per agent."""

    needs: ClassVar[tuple[str, ...]] = ("means",)

    def change(self, problem):
        return problem.record_change("l2") / problem.records

    def count(self, horizon):
        return 1

    def noise(self, draw, problem, network):
        """Return the noise of round 1."""
        return column(self.sigma.scale) * draw

    def step(self, state, problem, network, draw, t):
        if t == 1:
            return State(problem.means + self.noise(draw, problem, network))
        return State(network.mix(state.x))


ALGORITHM = OneReleaseGossip
EXAMPLE = "mean_estimation"
