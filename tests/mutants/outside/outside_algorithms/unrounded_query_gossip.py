"""Gossip that adds discrete Gaussian noise to means that are not rounded.

Declares what discrete_gaussian_gossip declares: discrete Gaussian noise on a grid. The means are
not on the grid, so the remainder of a message modulo the grid is exact.
"""

from dataclasses import dataclass

from private_consensus.core.algorithms.base import column

from .discrete_gaussian_gossip import DiscreteGaussianGossip


@dataclass(frozen=True, kw_only=True)
class UnroundedQueryGossip(DiscreteGaussianGossip):
    """Gossip that adds discrete Gaussian noise to means that are not rounded."""

    def query(self, problem):
        return problem.means / column(self.grid)


ALGORITHM = UnroundedQueryGossip
EXAMPLE = "mean_estimation"
