"""Gradient descent that samples its records once and keeps the sample.

Declares what poisson_descent declares: T Gaussian releases with Poisson sampling of rate q. The
sample of round 1 is used in all rounds. A record is in all T samples with probability q.
"""

from dataclasses import dataclass
from itertools import repeat

from .poisson_descent import PoissonDescent


@dataclass(frozen=True, kw_only=True)
class KeptSampleDescent(PoissonDescent):
    """Gradient descent that samples its records once and keeps the sample."""

    def coins(self, problem, streams):
        return repeat(next(super().coins(problem, streams)))


ALGORITHM = KeptSampleDescent
EXAMPLE = "logistic_regression"
