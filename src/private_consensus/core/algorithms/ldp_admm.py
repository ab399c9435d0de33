"""Private ADMM with random penalties (Xiao et al., Algorithm 1)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..exchange import require_complete, shared_sum
from ..parameters import NonNegative, Positive
from .base import INTERNAL, per_iteration
from .families.admm import ADMMFamily
from .families.random_weights import QUANTITIES, RandomWeights, add_losses


@dataclass(frozen=True, kw_only=True)
class LocallyPrivateADMM(RandomWeights, ADMMFamily):
    r"""Private ADMM with random or fixed penalty weights: Algorithm 1, and its exact version (12).

    .. math::
        x_i^{k+1} &= w_i^{k+1} x_i^k + (1-w_i^{k+1})\,\bar x_i^k
            - D^{-1}\nabla f_i(x_i^k) + D^{-1}\lambda_i^k + \Delta_i^{k+1} \quad (6) \\
        \lambda_i^{k+1} &= \lambda_i^k + \zeta\sum_{j\in N_i}(x_j^{k+1} - x_i^{k+1})

    The weight :math:`w_i = \Gamma_i/D` is sampled uniformly on (0, 1) for every agent, coordinate
    and iteration, and :math:`|N_i|\rho_i + \Gamma_i = D`. The text of the paper assumes a complete
    graph, with N-1 for :math:`|N_i|`; its experiments do not. The published sign before
    :math:`\zeta` is a minus. With :math:`+\lambda` in (6), it increases the disagreement; (12) and
    (13) have the plus.

    Weights do not depend on the data. A message is a mixture of Laplace mechanisms, whose loss over
    all coordinates is at most :math:`\alpha\beta_k\mathcal B_1` with :math:`\alpha = 1/D`.

    Parameters
    ----------
    minimisation : {"first_order", "exact"}
        Update of :math:`x_i`: the step (6), (13), or the minimisation (12).
    dual : {"resolved", "literal"}
        Sign of the dual update: plus, or minus as published, which diverges.
    exchange : {"plain", "secret_sharing"}
        Whether agents receive the values of their neighbours, or only the sum of all values, by
        secret sharing on a complete graph (Algorithm 3).
    """

    D: Positive | None = 10.0
    zeta: Positive | None = 0.5
    init_std: NonNegative = 1.0
    minimisation: Literal["first_order", "exact"] = "first_order"
    dual: Literal["resolved", "literal"] = "resolved"
    exchange: Literal["plain", "secret_sharing"] = "plain"

    quantities = (INTERNAL, "released", "worst_case", *QUANTITIES)
    source = "Xiao et al., Algorithm 1, eqs. (6), (12), (13)"

    @property
    def dual_step(self):
        return super().dual_step if self.dual == "resolved" else -super().dual_step

    @property
    def has_losses(self):
        return super().has_losses and self.minimisation == "first_order"

    def mechanisms(self, problem, network, horizon):
        if self.minimisation == "exact":
            return super().mechanisms(problem, network, horizon)
        # A first-order step (6) moves by the change of the gradient over the penalty.
        change = problem.record_change(self.norm)
        changes = per_iteration(lambda t: change / self.penalty(network, t), horizon)
        return {"message": self.additive(changes, horizon)}

    def receive(self, network, x):
        if self.exchange == "plain":
            return super().receive(network, x)
        # On a complete graph, the neighbours are all others: the sum without the own value.
        return network.combine(x, shared_sum)[..., None, :] - x

    def step(self, state, problem, network, release, t):
        penalty, centre = self.penalty(network, t), self.centre(state, network)
        mean = state.received / network.degrees[..., None]
        # Weights are coins: they do not depend on the data, and no other agent receives them.
        if self.weights == "random":
            weights = release.random("weights", "uniform", state.x.shape[-2:])
            centre = mean + weights * (state.x - mean)
        if self.minimisation == "exact":
            minimiser = self.objective(state, problem, penalty, centre).solve(0.0)
        else:
            # (6) with the dual a = -lambda.
            minimiser = centre - (problem.gradient(state.x) + state.dual) / penalty
        x = release("message", minimiser)
        losses = {}
        if self.has_losses:
            scale, length = self.scale(t), np.abs(state.x - mean)
            # Theorem 2.2 compares the message without its gradient with the ends of the interval.
            position = centre + scale * release.noise("message") - np.minimum(state.x, mean)
            losses = add_losses(state.extra, problem, position, length, scale, 1.0 / penalty)
        return self.update_duals(state, problem, network, x, minimiser, t, **losses)

    def loss_by_formula(self, problem, network, t):
        r"""Return :math:`\alpha\beta_k\mathcal B_\infty` per coordinate (after Theorem 2.2)."""
        return problem.published_change / (self.penalty(network, t) * self.scale(t))

    def convergent(self, problem, network):
        r"""Return the condition :math:`\zeta|N_i| < D - h` for first-order steps.

        It is for equal quadratic objectives of curvature h on a regular graph.
        """
        if self.minimisation == "exact":
            return super().convergent(problem, network)
        dual_gain = np.abs(self.dual_step) * network.degrees[..., None]
        is_stable = np.all(dual_gain < self.penalty(network, 1) - problem.smoothness)
        return bool(is_stable), "zeta * degree < D - L for every agent"

    def check(self, problem, network):
        if self.exchange == "secret_sharing":
            require_complete(network)
        super().check(problem, network)


ALGORITHM = LocallyPrivateADMM
