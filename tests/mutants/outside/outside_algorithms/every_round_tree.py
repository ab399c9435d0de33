r"""Gradient descent with noise of a binary tree, for records that take part in every round.

Declares what tree_noise_descent declares: each record is in at most :math:`1+\lfloor\log_2
T\rfloor` nodes. Each record is used in all rounds, so it moves a node of k leaves by k times the
declared sensitivity.
"""

from dataclasses import dataclass

from private_consensus.core.algorithms.base import column

from ._common import clipped, record_gradients
from .tree_noise_descent import TreeNoiseDescent


@dataclass(frozen=True, kw_only=True)
class EveryRoundTree(TreeNoiseDescent):
    """Gradient descent with noise of a binary tree, for records that take part in every round."""

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        gradients = clipped(record_gradients(problem, network.mix(state.x)), self.clip)
        total = state.total + gradients.sum(-2) / problem.records
        moved = column(self.eta) * (total - after.total)
        return after._replace(x=after.x - moved, total=total)


ALGORITHM = EveryRoundTree
EXAMPLE = "logistic_regression"
