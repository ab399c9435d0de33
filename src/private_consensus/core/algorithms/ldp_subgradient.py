"""Algorithm 2 of Xiao et al. for convex functions with bounded subgradients (Theorem 3.4)."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le

from private_consensus.common.errors import require

from ..exchange import require_complete, shared_sum
from .base import column
from .families.random_weights import QUANTITIES
from .ldp_gradient_descent import Aggregate, LocallyPrivateGradientDescent


@dataclass(frozen=True, kw_only=True)
class LocallyPrivateSubgradient(LocallyPrivateGradientDescent):
    r"""Private subgradient descent: Algorithm 2 with steps :math:`1/(c\sqrt k)`, c = 1 / ``eta``.

    The result is the mean of the iterates,
    :math:`\tilde x^{K-1} = \frac1K\sum_{k=0}^{K-1}\bar x^k`. With fixed weights on a complete
    graph, :math:`m_i=\bar x^k` in (7), so that an agent needs only the sum of all values (Appendix
    J). Algorithm 3 computes it without revealing single values (Theorem 2.1).

    Parameters
    ----------
    aggregator : {"pair"}
        The aggregate is that of Algorithm 2.
    decay : float
        1, since step sizes are proportional to :math:`1/\sqrt k`.
    exchange : {"plain", "secret_sharing"}
        Whether agents receive the values of their neighbours, or only the sum of all values, with
        fixed weights on a complete graph.
    """

    aggregator: Literal["pair"] = "pair"
    decay: Annotated[float, Ge(1), Le(1)] = 1.0
    exchange: Literal["plain", "secret_sharing"] = "plain"

    quantities = ("released", "averaged", "worst_case", *QUANTITIES)
    source = "Xiao et al., Algorithm 2, Theorem 3.4; Appendix J, Algorithm 3"

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
            return super().aggregate(x, network)
        total = network.combine(x, shared_sum)[..., None, :]
        # With fixed weights, only the middle of the interval counts, which is the mean.
        mean = np.broadcast_to(total / x.shape[-2], x.shape)
        return Aggregate(mean, mean, mean)

    def start(self, problem, network, release):
        state = super().start(problem, network, release)
        total = np.zeros_like(state.x[..., :1, :])
        return state._replace(extra={**state.extra, "total": total})

    def step(self, state, problem, network, release, t):
        after = super().step(state, problem, network, release, t)
        # The mean of Theorem 3.4 is over x^0 to x^(K-1), without the last iterate.
        total = state.extra["total"] + state.x.mean(-2, keepdims=True)
        return after._replace(extra={**after.extra, "total": total})

    def observables(self, state, problem, t):
        averaged = np.broadcast_to(state.extra["total"] / t, state.x.shape)
        return super().observables(state, problem, t) | {"averaged": averaged}


ALGORITHM = LocallyPrivateSubgradient
