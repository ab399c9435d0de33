"""Gradient descent that claims amplification by sampling but takes records in turn.

Declares what poisson_descent declares: T Gaussian releases with Poisson sampling of rate q.
Record j is in the sample of round t if :math:`j + t` is divisible by :math:`1/q`. Nothing is
random, so each record takes part in one of 1/q rounds with certainty.
"""

from dataclasses import dataclass

import numpy as np

from private_consensus.core.algorithms.base import column

from .poisson_descent import PoissonDescent


@dataclass(frozen=True, kw_only=True)
class RoundRobinSampling(PoissonDescent):
    """Gradient descent that claims amplification by sampling but takes records in turn."""

    def in_sample(self, coins, t):
        period = np.round(1.0 / np.asarray(column(self.rate)))
        turn = (np.arange(coins.shape[-1]) + t) % period == 0
        return turn & (coins >= 0)


ALGORITHM = RoundRobinSampling
EXAMPLE = "logistic_regression"
