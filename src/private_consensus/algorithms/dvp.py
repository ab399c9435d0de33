r"""Dual variable perturbation (Zhang, Zhu, IEEE TIFS 2017), reference [42] of paper 001.

Noise is added to the dual before the minimisation, and the exact minimiser is sent:
:math:`\hat x_i = \arg\min f_i(x) + (a_i + b_i)^Tx + \frac{D_i}{2}\|x-c_i\|^2`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from .families.admm import Noises
from .families.objective_perturbation import ObjectivePerturbed, jacobian_loss
from .parameters import one_of, whole

UNITS = ("dual", "x")


@dataclass(frozen=True, kw_only=True)
class DualVariablePerturbation(ObjectivePerturbed):
    r"""DVP.

    Parameters
    ----------
    unit : {"dual", "x"}
        Whether ``noise`` is the scale of :math:`b_i`, or of the shift of x that it causes, so that
        :math:`b_i` is :math:`D_i` times as large. Paper 001 gives one scale for the noises of all
        its algorithms; they are comparable in the second unit only.
    jacobian_terms : {1, 2}
        How often the Jacobian term J is charged an iteration. The authors charge
        :math:`2\ln(1+\kappa)`, two with ``jacobian`` tight: they bound the record that comes and
        the one that goes apart, of which one only counts against us.
    """

    unit: str = one_of("dual", UNITS)
    jacobian_terms: int = whole(1, most=2, calibration=True)

    source: ClassVar[str] = "Zhang, Zhu, IEEE TIFS 12(1), 2017, Algorithm 2 (DVP)"
    where: ClassVar[str] = "dual"

    def linear_scale(self, penalty, scale):
        return penalty * scale if self.unit == "x" else scale + 0 * penalty

    def losses(self, problem, network, horizon):
        moved, scales, paid = super().losses(problem, network, horizon)
        return moved, scales, self.jacobian_terms * paid

    def with_curvature(self, budget, problem, network, horizon):
        r"""A copy with the :math:`\Phi` that ``curvature`` asks for.

        With ``deficit``, :math:`2\ln(1+\kappa)` and a share a of the budget it is the authors'
        :math:`\Phi = w c_1/(e^{a/4} - 1) - \mu - D_i`.
        """
        if self.jacobian_terms == 1 or self.curvature == "none" or self.calibration == "given":
            return super().with_curvature(budget, problem, network, horizon)
        share = self.share_of(budget, horizon)
        least = float(self.least_penalties(network, horizon).min())
        taken = self.jacobian_terms * jacobian_loss(problem, least, self.jacobian)
        if taken < (share if self.curvature == "deficit" else share / 2):
            return self
        each = share / 2 / self.jacobian_terms
        kappa = np.expm1(each) if self.jacobian == "tight" else each / 2.8
        needed = problem.record_curvature / kappa
        return replace(self, Phi=float(needed - problem.least_convexity - least))

    def noises(self, unit, network, t):
        return Noises(dual=self.linear_scale(self.penalty(network, t), self.scale(t)) * unit)


ALGORITHM = DualVariablePerturbation
