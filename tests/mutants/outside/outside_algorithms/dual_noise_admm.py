r"""ADMM with Gaussian noise in the dual variable, for objectives whose Hessian is public.

.. math:: \hat x_i = \arg\min_x f_i(x) + (a_i + b_i)^T x + \tfrac{D_i}2\|x - c_i\|^2,
    \qquad b_i \sim N(0, s^2 I)

If no record moves the Hessian, the minimiser is a function of :math:`b_i` plus the linear term of
:math:`f_i`, and a replaced record moves that term by at most :math:`\Delta_2` (l2). The projection
to the box is computed afterwards. T rounds are T Gaussian mechanisms of sensitivity
:math:`\Delta_2`.
"""

from dataclasses import dataclass
from typing import ClassVar

from private_consensus.common.errors import require
from private_consensus.core.algorithms.families.admm import ADMMFamily
from private_consensus.core.algorithms.parameters import one_of


@dataclass(frozen=True, kw_only=True)
class DualNoiseADMM(ADMMFamily):
    """ADMM with Gaussian noise in the dual variable, for objectives whose Hessian is public."""

    law: str = one_of("gaussian", ("gaussian",))

    where: ClassVar[str] = "dual"
    quantities: ClassVar[tuple[str, ...]] = ("internal", "released", "dual")

    def check(self, problem, network):
        fits = problem.record_curvature == 0
        require(fits, "problem.name", type(problem).__name__, "a problem with a public Hessian")
        super().check(problem, network)

    def releases(self, problem, network, horizon):
        return self.noise.releases(problem.record_change("l2"), self.scales(horizon))

    def noise_sites(self, problem, network, horizon):
        return []

    def observables(self, state, problem, t):
        return {"internal": state.minimiser, "released": state.x, "dual": state.dual}


ALGORITHM = DualNoiseADMM
EXAMPLE = "mean_estimation"
