"""Random aggregate with a single output (Xiao et al. 2019, Figure 1)."""

from dataclasses import dataclass

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import aggregation
from private_consensus.privacy.mechanisms import Laplace

from ..parameters import Positive
from .base import GIVEN, Algorithm, Iterates, column


@dataclass(frozen=True, kw_only=True)
class RandomAggregation(Algorithm):
    r"""Single random aggregate of each coordinate, with Laplace noise.

    Each agent outputs :math:`w\omega + \Delta` in each coordinate, with w uniform on (0, 1) and
    Laplace noise :math:`\Delta`. There is a single iteration. The observables are the bound (11),
    and the conditional expectation that it bounds, by quadrature.

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
    beta: Positive = 5.0
    change: Positive = 0.001

    calibration = GIVEN
    source = "Xiao et al., Theorems 2.2 and 2.3, eqs. (10) and (11), Figure 1"
    quantities = ("exact", "bound", "excess", "released")

    def __post_init__(self):
        super().__post_init__()
        is_wide = bool(np.all(np.asarray(self.omega) > self.change))
        expected = f"above algorithm.change = {np.max(self.change):g} (Theorem 2.3)"
        require(is_wide, "algorithm.omega", self.omega, expected)

    def mechanisms(self, problem, network, horizon):
        return {"aggregate": Laplace(column(self.change), 1.0 / column(self.beta))}

    def claimed_epsilon(self, delta, problem, network, horizon):
        r"""Return the loss without random weights, :math:`\beta\,\alpha\mathcal B_\infty`."""
        return self.beta * self.change

    def step(self, state, problem, network, release, t):
        weights = release.random("weights", "uniform", (problem.n_agents, problem.dim))
        lengths = column(self.omega) * np.ones_like(state.x)
        return Iterates(release("aggregate", lengths * weights))

    def observables(self, state, problem, t):
        fields = [np.ravel(field) for field in (self.omega, self.beta, self.change)]
        exact = aggregation.exact_average(*fields)[:, None] * np.ones(state.x.shape[:2])
        bound = aggregation.printed_bound(*fields)[:, None] * np.ones(state.x.shape[:2])
        return {"exact": exact, "bound": bound, "excess": bound - exact, "released": state.x}


ALGORITHM = RandomAggregation
