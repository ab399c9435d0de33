r"""One output of a random aggregator: what Figure 1 of paper 001 is about.

Every agent outputs, in each coordinate, :math:`w\omega + \Delta` with w uniform on (0, 1) and
Laplace :math:`\Delta`; nothing is iterated. Shown are the bound (11), the conditional expectation
that it bounds, by quadrature, and the mean loss of the outputs drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..errors import require
from ..privacy import Release, aggregation
from .base import Algorithm, column
from .parameters import positive


@dataclass(frozen=True, kw_only=True)
class RandomAggregation(Algorithm):
    r"""A single random aggregate, a coordinate.

    Parameters
    ----------
    omega : float
        :math:`\omega`, the interval's length.
    beta : float
        Inverse scale of the Laplace noise.
    change : float
        :math:`\alpha\mathcal B_\infty`, below :math:`\omega`.
    """

    omega: float = 0.5
    beta: float = positive(5.0)
    change: float = positive(0.001)

    source: ClassVar[str] = "Paper 001, Theorems 2.2 and 2.3, eqs. (10) and (11), Figure 1"
    lower_bound_because: ClassVar[str] = (
        "outside of its interval a mixture over weights has the tails of its noise"
    )

    def __post_init__(self):
        super().__post_init__()
        wide = bool(np.all(np.asarray(self.omega) > self.change))
        require(wide, "algorithm.omega", self.omega, "more than change (Theorem 2.3)")

    def calibrate(self, budget, problem, network, horizon):
        return self

    def statements(self, budget, problem, network, horizon):
        return [(self, self.epsilon_by_formula(0.0, problem, network, horizon))]

    def releases(self, problem, network, horizon):
        # Outside the interval a mixture over its points has the noise's own tails.
        return [Release("laplace", sensitivity=self.change, scale=1.0 / self.beta, reached=1.0)]

    def epsilon_by_formula(self, delta, problem, network, horizon):
        return self.beta * self.change

    def run(self, problem, network, streams, horizon, observe):
        shape = (problem.n_agents, problem.dim)
        weights = streams.draw("sampling", "uniform", shape, "weights")
        noise = streams.draw("noise", "laplace", shape)
        omega, beta, change = map(column, (self.omega, self.beta, self.change))
        outputs = omega * weights + noise / beta
        sampled = aggregation.realised_loss(outputs, omega, beta, change) / (beta * change)
        of_settings = [np.ravel(v) for v in (self.omega, self.beta, self.change)]
        exact = aggregation.exact_average(*of_settings)
        bound = aggregation.printed_bound(*of_settings)
        everywhere = np.ones((1, len(streams.runs)))
        shown = {
            "exact": exact[:, None] * everywhere,
            "bound": bound[:, None] * everywhere,
            "excess": (bound - exact)[:, None] * everywhere,
            "limit": aggregation.limiting_average(*of_settings[:2])[:, None] * everywhere,
            "sampled": sampled.mean((-1, -2)),
            "worst": sampled.max((-1, -2)),
            "released": outputs,
        }
        observe(1, np.arange(len(exact)), shown)


ALGORITHM = RandomAggregation
