"""Dual variable perturbation (Zhang, Zhu, IEEE TIFS 2017)."""

from dataclasses import dataclass
from typing import Literal

from .families.objective_perturbation import ObjectivePerturbed


@dataclass(frozen=True, kw_only=True)
class DualVariablePerturbation(ObjectivePerturbed):
    r"""ADMM with dual variable perturbation (DVP).

    An agent adds the noise :math:`b_i` to its dual and sends the exact minimiser
    :math:`\hat x_i = \arg\min f_i(x) + (a_i + b_i)^Tx + \frac{D_i}{2}\|x-c_i\|^2`.

    Parameters
    ----------
    unit : {"dual", "x"}
        Unit of ``noise``: the scale of :math:`b_i`, or that of the resulting change of x, so that
        the scale of :math:`b_i` is :math:`D_i` times ``noise``. Xiao et al. state one scale for all
        algorithms; only in the unit ``x`` are the noises comparable.
    """

    unit: Literal["dual", "x"] = "dual"

    source = "Zhang, Zhu, IEEE TIFS 12(1), 2017, Algorithm 2 (DVP)"

    def noise_scale(self, network, t):
        return self.penalty(network, t) * self.scale(t) if self.unit == "x" else self.scale(t)


ALGORITHM = DualVariablePerturbation
