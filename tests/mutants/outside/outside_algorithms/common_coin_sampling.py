"""Gradient descent that samples all records of an agent with one coin.

Declares what poisson_descent declares: T Gaussian releases with Poisson sampling of rate q. All
records of an agent are in the sample, or none. The many other records show which it is, so the
sampling hides nothing.
"""

from dataclasses import dataclass

import numpy as np

from .poisson_descent import PoissonDescent


@dataclass(frozen=True, kw_only=True)
class CommonCoinSampling(PoissonDescent):
    """Gradient descent that samples all records of an agent with one coin."""

    def in_sample(self, coins, t):
        return super().in_sample(coins[..., :1] + np.zeros_like(coins), t)


ALGORITHM = CommonCoinSampling
EXAMPLE = "logistic_regression"
