"""Private distributed optimisation (Huang, Mitra, Vaidya, ICDCN 2015)."""

from dataclasses import dataclass

from .families.gradient_steps import GradientSteps


@dataclass(frozen=True, kw_only=True)
class PrivateDistributedOptimisation(GradientSteps):
    r"""Private distributed optimisation (PDOP), in which agents mix noisy messages only.

    .. math::
        z_i(t) &= \sum_j w_{ij} y_j(t) \\
        y_i(t+1) &= \mathrm{Proj}\bigl(z_i(t) - \eta_t\nabla f_i(z_i(t))\bigr) + \Delta_i(t)

    with geometric step sizes :math:`\eta_t = c\,q^t` and Laplace noise of scale :math:`b\,p^t`, p =
    1 / ``growth``. For :math:`q < p`, the privacy loss of infinitely many iterations is finite.
    """

    source = "Huang, Mitra, Vaidya, ICDCN 2015"

    def step(self, state, problem, network, release, t):
        z = network.mix(state.x)
        x = release("message", problem.project(z - self.step_size(t) * problem.gradient(z)))
        return self.after(state, problem, network, x, t)


ALGORITHM = PrivateDistributedOptimisation
