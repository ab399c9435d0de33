r"""Algorithm 2 of Xiao et al. for convex functions with bounded subgradients (Theorem 3.4).

.. math:: x_i^{k+1} = m_i + (2w-1)\frac{x_a-x_b}{|S_i|} - \frac{1}{c\sqrt{k+1}}\nabla f_i(m_i)
    + \Delta_i, \qquad \tilde x^{K-1} = \frac1K\sum_{k=0}^{K-1}\bar x^k

with the aggregate of (7). The result is the mean of the iterates. With fixed weights on a complete
graph, :math:`m_i=\bar x^k`, so that an agent needs only the sum of all values (Appendix J).
Algorithm 3 computes it without revealing single values (Theorem 2.1).
"""

from collections import namedtuple
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Le

from private_consensus.common.errors import require

from ..exchange import require_complete, shared_sum
from .base import column
from .families import random_aggregates, random_weights
from .families.random_aggregates import Aggregate, RandomAggregates, mean_interval

SubgradientState = namedtuple(
    "SubgradientState", (*random_aggregates.RandomAggregatesState._fields, "total")
)
"""State of Algorithm 2, with the sum of the means over agents so far, [settings, runs, 1, dim]."""


@dataclass(frozen=True, kw_only=True)
class LocallyPrivateSubgradient(RandomAggregates):
    r"""Private subgradient descent: Algorithm 2 with steps :math:`1/(c\sqrt k)`, c = 1 / ``eta``.

    Parameters
    ----------
    decay : float
        1, since step sizes are proportional to :math:`1/\sqrt k`.
    exchange : {"plain", "secret_sharing"}
        Whether agents receive the values of their neighbours, or only the sum of all values, with
        fixed weights on a complete graph.
    """

    decay: Annotated[float, Ge(1), Le(1)] = 1.0
    exchange: Literal["plain", "secret_sharing"] = "plain"

    quantities: ClassVar = ("released", "averaged", "worst_case", *random_weights.QUANTITIES)
    source: ClassVar = "Xiao et al., Algorithm 2, Theorem 3.4; Appendix J, Algorithm 3"

    def __post_init__(self):
        super().__post_init__()
        if self.exchange == "secret_sharing":
            expected = "fixed, since random weights need the values of single agents"
            require(self.weights == "fixed", "algorithm.weights", self.weights, expected)

    def calibrate(self, budget, problem, network, horizon):
        if self.exchange == "secret_sharing":
            require_complete(network)
        return super().calibrate(budget, problem, network, horizon)

    def step_size(self, t):
        return column(self.eta) / np.sqrt(t)

    def aggregate(self, x, network):
        if self.exchange == "plain":
            return mean_interval(x, network)
        total = network.combine(x, shared_sum)[..., None, :]
        # With fixed weights, only the middle of the interval counts, which is the mean.
        mean = np.broadcast_to(total / x.shape[-2], x.shape)
        return Aggregate(mean, mean, mean)

    def start(self, problem, network, release):
        state = super().start(problem, network, release)
        return SubgradientState(*state, np.zeros_like(state.x[..., :1, :]))

    def step(self, state, problem, network, release, t):
        after = super().step(state, problem, network, release, t)
        # The mean of Theorem 3.4 is over x^0 to x^(K-1), without the last iterate.
        return after._replace(total=state.total + state.x.mean(-2, keepdims=True))

    def observables(self, state, problem, t):
        averaged = np.broadcast_to(state.total / t, state.x.shape)
        return super().observables(state, problem, t) | {"averaged": averaged}


ALGORITHM = LocallyPrivateSubgradient
