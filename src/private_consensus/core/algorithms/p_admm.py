"""ADMM with output perturbation (Ding, Gong, Zhang, Pan, Han, arXiv 1901.02094)."""

from dataclasses import dataclass

from ..parameters import Law
from .families.admm import ADMMFamily


@dataclass(frozen=True, kw_only=True)
class OutputPerturbation(ADMMFamily):
    r"""ADMM with output perturbation (P-ADMM).

    An agent sends its exact minimiser with noise. Later iterations use the noisy value only.
    The variance :math:`R^t\sigma_1^2` of the paper corresponds to ``growth`` :math:`= R^{-1/2}`. A
    replaced record changes the minimiser by at most :math:`\Delta_2/(\mu + D_i)`.
    """

    law: Law = "gaussian"

    source = "Ding, Gong, Zhang, Pan, Han, arXiv 1901.02094"

    def loss_by_formula(self, problem, network, t):
        r"""Return the loss :math:`\mathcal B_\infty/(D_i s)` per coordinate, as Xiao et al. do."""
        return problem.published_change / (self.penalty(network, t) * self.scale(t))


ALGORITHM = OutputPerturbation
