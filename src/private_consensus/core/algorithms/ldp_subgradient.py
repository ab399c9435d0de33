r"""Algorithm 2 of Xiao et al. for convex functions with bounded subgradients (Theorem 3.4).

.. math:: x_i^{k+1} = m_i + (2w-1)\frac{x_a-x_b}{|S_i|} - \frac{1}{c\sqrt{k+1}}\nabla f_i(m_i)
    + \Delta_i, \qquad \tilde x^{K-1} = \frac1K\sum_{k=0}^{K-1}\bar x^k

with the aggregate of (7). The result is the mean of the iterates. With fixed weights on a complete
graph, :math:`m_i=\bar x^k`, so that an agent needs only the sum of all values (Appendix J).
Algorithm 3 computes it without revealing single values (Theorem 2.1).
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from private_consensus.common.errors import require

from ..exchange import SecretSharing, require_complete
from .base import STEP, Range, column
from .families import random_aggregates, random_weights
from .families.random_aggregates import Aggregate, RandomAggregates, mean_interval
from .parameters import one_of, only

EXCHANGES = ("plain", "secret_sharing")

SubgradientState = namedtuple(
    "SubgradientState", (*random_aggregates.RandomAggregatesState._fields, "total")
)
"""State of Algorithm 2, with the sum of the means over agents so far, [settings, runs, 1, dim]."""


@dataclass(frozen=True, kw_only=True)
class LocallyPrivateSubgradient(RandomAggregates):
    r"""Private subgradient descent: Algorithm 2 with steps :math:`1/(c\sqrt k)`, c = 1 / ``eta``.

    Parameters
    ----------
    exchange : {"plain", "secret_sharing"}
        Whether agents receive the values of their neighbours, or only the sum of all values, with
        fixed weights on a complete graph.
    """

    decay: float = only(1.0, "step sizes are proportional to 1/sqrt(k)")
    exchange: str = one_of("plain", EXCHANGES)

    quantities: ClassVar = ("released", "averaged", "worst_case", *random_weights.QUANTITIES)
    source: ClassVar[str] = "Xiao et al., Algorithm 2, Theorem 3.4; Appendix J, Algorithm 3"
    ranges: ClassVar = {"eta": Range(0.05, 4.0, 1.0, STEP), "horizon": Range(3, 40, 20)}
    lower_bound_because: ClassVar[str] = (
        "at distant points, a changed record changes the gradient by the attained fraction"
    )

    def __post_init__(self):
        super().__post_init__()
        if self.exchange == "secret_sharing":
            expected = "fixed, since random weights need the values of single agents"
            require(self.weights == "fixed", "algorithm.weights", self.weights, expected)

    def calibrate(self, budget, problem, network, horizon):
        if self.exchange == "secret_sharing":
            require_complete(network)
        return super().calibrate(budget, problem, network, horizon)

    def step_size(self, t: int) -> Any:
        r"""Return the step size :math:`1/(c\sqrt t)`, broadcastable against iterates."""
        return column(self.eta) / np.sqrt(t)

    def aggregate(self, x: np.ndarray, network) -> Aggregate:
        """Return the interval of the aggregate, which is a single point with secret sharing."""
        if self.exchange == "plain":
            return mean_interval(x, network)
        mean = np.broadcast_to(SecretSharing().outcome(x)[..., None, :] / x.shape[-2], x.shape)
        return Aggregate(mean, mean, mean)

    def start(self, problem, network, streams, settings):
        plain = super().start(problem, network, streams, settings)
        return SubgradientState(*plain, np.zeros_like(plain.x[..., :1, :]))

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        return after._replace(total=state.total + state.x.mean(-2, keepdims=True))

    def observables(self, state, problem, t):
        averaged = np.broadcast_to(state.total / t, state.x.shape)
        return super().observables(state, problem, t) | {"averaged": averaged}

    def releases(self, problem, network, horizon):
        r"""Return the releases of all messages, with sensitivities :math:`\eta_k\Delta`.

        Gradients are evaluated at functions of messages.
        """
        steps = self.eta / np.sqrt(np.arange(1, horizon + 1))
        change = problem.record_change(self.noise.norm)
        attack_fields = self.attack_fields(problem, horizon)
        return self.noise.releases(change * steps, self.noise.scales(horizon), **attack_fields)


ALGORITHM = LocallyPrivateSubgradient
