r"""Gradient descent with noise of a binary tree that is drawn once per level, not per node.

Declares what tree_noise_descent declares: each record is in at most :math:`1+\lfloor\log_2
T\rfloor` nodes. All nodes of a level have the same noise. With :math:`P_t` the noised sum of
round t, :math:`P_3 - P_2 - P_1 = g_3 - g_1` is exact.
"""

from dataclasses import dataclass
from itertools import repeat

from .tree_noise_descent import TreeNoiseDescent


@dataclass(frozen=True, kw_only=True)
class LevelNoiseTree(TreeNoiseDescent):
    """Gradient descent with noise of a binary tree that is drawn once per level, not per node."""

    def draws(self, problem, streams):
        return repeat(next(super().draws(problem, streams)))


ALGORITHM = LevelNoiseTree
EXAMPLE = "logistic_regression"
