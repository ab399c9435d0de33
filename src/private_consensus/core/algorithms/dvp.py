r"""Dual variable perturbation (Zhang, Zhu, IEEE TIFS 2017), reference [42] of paper 001.

Noise is added to the dual before the minimisation, and the exact minimiser is sent:
:math:`\hat x_i = \arg\min f_i(x) + (a_i + b_i)^Tx + \frac{D_i}{2}\|x-c_i\|^2`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .families.admm import Noises
from .families.objective_perturbation import ObjectivePerturbed
from .parameters import one_of, whole

UNITS = ("dual", "x")


@dataclass(frozen=True, kw_only=True)
class DualVariablePerturbation(ObjectivePerturbed):
    r"""ADMM with dual variable perturbation (DVP).

    Parameters
    ----------
    unit : {"dual", "x"}
        Whether ``noise`` is the scale of :math:`b_i`, or of the shift of x that it causes, so that
        :math:`b_i` is :math:`D_i` times as large. Paper 001 gives one scale for the noises of all
        its algorithms; they are comparable in the second unit only.
    jacobian_terms : {1, 2}
        How often the Jacobian term J is charged an iteration. The authors charge
        :math:`2\ln(1+\kappa)`, two with ``jacobian`` tight: they bound the record that comes and
        the one that goes apart, of which one only counts against us. With :math:`2\ln(1+\kappa)`
        and a share a of the budget an iteration, ``curvature`` deficit adds the authors'
        :math:`\Phi = w c_1/(e^{a/4} - 1) - \mu - D_i`.
    """

    unit: str = one_of("dual", UNITS)
    jacobian_terms: int = whole(1, max_value=2, calibration=True)

    source: ClassVar[str] = "Zhang, Zhu, IEEE TIFS 12(1), 2017, Algorithm 2 (DVP)"
    where: ClassVar[str] = "dual"
    lower_bound_because: ClassVar[str] = (
        "a label flip moves the noise that leads to the same minimiser by the attained part"
    )

    def linear_scale(self, penalty, scale):
        """Return the scale of :math:`b_i`, from a noise scale in the unit that ``unit`` names.

        Parameters
        ----------
        penalty : ndarray
            :math:`D_i`, broadcastable to [settings, runs, agents, 1].
        scale : float or ndarray
            Noise scale of the iteration.

        Returns
        -------
        ndarray
            In the broadcast shape of both.
        """
        return penalty * scale if self.unit == "x" else scale + 0 * penalty

    def noises(self, unit, network, t):
        """Return the noise of iteration t, which is added to the dual.

        Parameters
        ----------
        unit : ndarray, shape (runs, agents, dim)
            Unit noise.
        network : Network
            Communication graph with its mixing matrix.
        t : int
            Iteration, counted from 1.

        Returns
        -------
        Noises
            Noise on the dual only.
        """
        return Noises(dual=self.linear_scale(self.penalty(network, t), self.scale(t)) * unit)


ALGORITHM = DualVariablePerturbation
