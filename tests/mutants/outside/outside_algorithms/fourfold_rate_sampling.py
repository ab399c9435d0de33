"""Gradient descent that samples four times as many records as it declares.

Declares what poisson_descent declares: T Gaussian releases with Poisson sampling of rate q. The
samples have rate 4q.
"""

from dataclasses import dataclass

from .poisson_descent import PoissonDescent


@dataclass(frozen=True, kw_only=True)
class FourfoldRateSampling(PoissonDescent):
    """Gradient descent that samples four times as many records as it declares."""

    def in_sample(self, coins, t):
        return super().in_sample(coins / 4.0, t)


ALGORITHM = FourfoldRateSampling
EXAMPLE = "logistic_regression"
