"""Decentralized gradient descent (Nedic, Ozdaglar 2009)."""

from dataclasses import dataclass

from private_consensus.privacy.mechanisms import Exact

from .families.gradient_steps import GradientSteps


@dataclass(frozen=True, kw_only=True)
class DecentralizedGradientDescent(GradientSteps):
    r"""Decentralized gradient descent without noise.

    .. math:: x_i^{k+1} = \sum_j w_{ij} x_j^k - \eta_k \nabla f_i(x_i^k), \qquad \eta_k = c\,q^k

    This is eq. (3) of Xiao et al. without noise. The sum of the geometric step sizes is finite, so
    that the limit is not exactly the optimum.
    """

    quantities = ("released",)
    source = "Nedic, Ozdaglar, IEEE TAC 54(1), 2009; Xiao et al., eq. (3)"

    def mechanisms(self, problem, network, horizon):
        return {"message": Exact(problem.record_change("l2"))}

    def step(self, state, problem, network, release, t):
        x = network.mix(state.x) - self.step_size(t) * problem.gradient(state.x)
        return state._replace(x=release("message", x))


ALGORITHM = DecentralizedGradientDescent
