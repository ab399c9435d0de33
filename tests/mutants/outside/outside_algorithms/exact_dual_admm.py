"""ADMM that updates its dual variable with exact minimisers and releases the dual.

Declares what output_noise_admm declares: a minimiser with noise per round. The dual moves by the
difference between the exact minimiser and the messages of neighbours, and the quantity ``dual``
shows it. The exact minimiser follows from two duals in a row.
"""

from dataclasses import dataclass
from typing import ClassVar

from .output_noise_admm import OutputNoiseADMM


@dataclass(frozen=True, kw_only=True)
class ExactDualADMM(OutputNoiseADMM):
    """ADMM that updates its dual variable with exact minimisers and releases the dual."""

    quantities: ClassVar[tuple[str, ...]] = ("internal", "released", "dual")

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        apart = self.disagreement(network, after.minimiser, after.received_sum)
        return after._replace(dual=state.dual + self.dual_step * apart)

    def observables(self, state, problem, t):
        return {**super().observables(state, problem, t), "dual": state.dual}


ALGORITHM = ExactDualADMM
EXAMPLE = "mean_estimation"
