"""M-ADMM: ADMM with perturbed and increasing penalties (Zhang, Khalili, Liu, ICML 2018)."""

from dataclasses import dataclass

from .base import column
from .families.objective_perturbation import ObjectivePerturbed


@dataclass(frozen=True, kw_only=True)
class PenaltyPerturbation(ObjectivePerturbed):
    r"""ADMM with perturbed and increasing penalties (M-ADMM).

    .. math:: \hat x_i = \arg\min f_i(x) + a_i^Tx + \tfrac{D_i^t}{2}\|x - c_i - b_i\|^2,
        \qquad D_i^t = 2\eta\,\theta^{t-t_0}\,|N_i|

    The step size :math:`\zeta` of the dual is constant. The parameter ``penalty_growth`` is
    :math:`\theta`, 1.02 in the paper of Xiao et al.

    Parameters
    ----------
    t_0 : int
        Iteration :math:`t_0` whose penalty is :math:`2\eta|N_i|`: 0 for Xiao et al., and 1, the
        first iteration, for Ding.
    """

    t_0: int = 0

    source = "Zhang, Khalili, Liu, ICML 2018, PMLR 80:5796-5805"

    def penalty(self, network, t):
        return super().penalty(network, t - column(self.t_0))

    def weight(self, network, t):
        # The penalty has the linear term -D_i b_i' x.
        return -self.penalty(network, t)

    def perturbed(self, state, problem, penalty, centre):
        with_centre = super().perturbed
        # As published, the noise moves the centre, which is a linear term up to a constant.
        exact = with_centre(state, problem, penalty, centre)
        return exact._replace(
            solve=lambda noise: with_centre(state, problem, penalty, centre + noise).solve(0.0)
        )


ALGORITHM = PenaltyPerturbation
