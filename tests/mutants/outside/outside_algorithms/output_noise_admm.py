r"""ADMM that sends each minimiser with Gaussian noise.

.. math:: x_i \leftarrow \hat x_i + N(0, s^2 I)

Centre and dual are functions of messages. Given the messages, a replaced record moves the
minimiser by at most :math:`\Delta_2/(\mu + D_i)` (l2), which is largest for the smallest penalty.
T rounds are T Gaussian mechanisms.
"""

from dataclasses import dataclass
from typing import ClassVar

from private_consensus.core.algorithms.families.admm import ADMMFamily
from private_consensus.core.algorithms.parameters import one_of


@dataclass(frozen=True, kw_only=True)
class OutputNoiseADMM(ADMMFamily):
    """ADMM that sends each minimiser with Gaussian noise."""

    law: str = one_of("gaussian", ("gaussian",))

    where: ClassVar[str] = "output"

    def releases(self, problem, network, horizon):
        moved = problem.minimiser_change("l2", self.least_penalties(network, horizon))
        return self.noise.releases(moved, self.scales(horizon))

    def observables(self, state, problem, t):
        return {"internal": state.minimiser, "released": state.x}


ALGORITHM = OutputNoiseADMM
EXAMPLE = "mean_estimation"
