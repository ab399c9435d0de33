r"""Random aggregate with a single output (Xiao et al. 2019, Figure 1).

Each agent outputs :math:`w\omega + \Delta` in each coordinate, with w uniform on (0, 1) and Laplace
noise :math:`\Delta`. There is a single iteration. The observables are the bound (11), the
conditional expectation that it bounds, by quadrature, and the mean privacy loss of sampled outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import Release, aggregation

from .base import Algorithm, column
from .noise import GIVEN
from .parameters import positive


@dataclass(frozen=True, kw_only=True)
class RandomAggregation(Algorithm):
    r"""Single random aggregate of each coordinate, with Laplace noise.

    Parameters
    ----------
    omega : float
        Length :math:`\omega` of the interval.
    beta : float
        Inverse scale :math:`\beta` of the Laplace noise.
    change : float
        Sensitivity :math:`\alpha\mathcal B_\infty` of a coordinate, below :math:`\omega`.
    """

    omega: float = 0.5
    beta: float = positive(5.0)
    change: float = positive(0.001)

    calibration = GIVEN
    source: ClassVar[str] = "Xiao et al., Theorems 2.2 and 2.3, eqs. (10) and (11), Figure 1"
    quantities: ClassVar = ("exact", "bound", "excess", "limit", "sampled", "worst", "released")
    lower_bound_because: ClassVar[str] = (
        "outside of its interval, a random aggregate has the tails of the Laplace noise"
    )

    def __post_init__(self):
        super().__post_init__()
        for name in ("omega", "change"):
            value = getattr(self, name)
            require(np.size(value) > 0, f"algorithm.{name}", value, "at least one number")
        is_wide = bool(np.all(np.asarray(self.omega) > self.change))
        expected = f"above algorithm.change = {np.max(self.change):g} (Theorem 2.3)"
        require(is_wide, "algorithm.omega", self.omega, expected)

    def calibrate(self, budget, problem, network, horizon):
        return self

    def releases(self, problem, network, horizon):
        """Return the Laplace mechanism of one coordinate.

        Outside the interval, a random aggregate has the tails of the noise.
        """
        return [Release("laplace", sensitivity=self.change, scale=1.0 / self.beta, reached=1.0)]

    def epsilon_by_formula(self, delta, problem, network, horizon):
        r"""Return the loss without random weights, :math:`\beta\,\alpha\mathcal B_\infty`."""
        return self.beta * self.change

    def run(self, problem, network, streams, horizon, observe):
        shape = (problem.n_agents, problem.dim)
        weights = streams.draw("sampling", "uniform", shape, "weights")
        noise = streams.draw("noise", "laplace", shape)
        omega, beta, change = map(column, (self.omega, self.beta, self.change))
        outputs = omega * weights + noise / beta
        sampled = aggregation.realised_loss(outputs, omega, beta, change) / (beta * change)
        fields = [np.ravel(field) for field in (self.omega, self.beta, self.change)]
        exact = aggregation.exact_average(*fields)
        bound = aggregation.printed_bound(*fields)
        ones = np.ones((1, len(streams.runs)))
        quantities = {
            "exact": exact[:, None] * ones,
            "bound": bound[:, None] * ones,
            "excess": (bound - exact)[:, None] * ones,
            "limit": aggregation.limiting_average(*fields[:2])[:, None] * ones,
            "sampled": sampled.mean((-1, -2)),
            "worst": sampled.max((-1, -2)),
            "released": outputs,
        }
        observe(1, np.arange(len(exact)), quantities)


ALGORITHM = RandomAggregation
