"""Gradient descent with noise of a binary tree that counts one node per record.

Declares one Gaussian release of sensitivity :math:`2C/N`. The record of round 1 is in the nodes
that end in rounds 1, 2, 4, ...
"""

from dataclasses import dataclass

from .tree_noise_descent import TreeNoiseDescent


@dataclass(frozen=True, kw_only=True)
class LeafCountTree(TreeNoiseDescent):
    """Gradient descent with noise of a binary tree that counts one node per record."""

    def count(self, horizon):
        return 1


ALGORITHM = LeafCountTree
EXAMPLE = "logistic_regression"
