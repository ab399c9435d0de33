r"""Private ADMM with random penalties (Xiao et al., Algorithm 1).

.. math::
    x_i^{k+1} &= w_i^{k+1} x_i^k + (1-w_i^{k+1})\,\bar x_i^k
        - D^{-1}\nabla f_i(x_i^k) + D^{-1}\lambda_i^k + \Delta_i^{k+1} \quad (6) \\
    \lambda_i^{k+1} &= \lambda_i^k + \zeta\sum_{j\in N_i}(x_j^{k+1} - x_i^{k+1})

The weight :math:`w_i = \Gamma_i/D` is sampled uniformly on (0, 1) for every agent, coordinate and
iteration, and :math:`|N_i|\rho_i + \Gamma_i = D`. The text of the paper assumes a complete graph,
with N-1 for :math:`|N_i|`; its experiments do not. The published sign before :math:`\zeta` is a
minus. With :math:`+\lambda` in (6), it increases the disagreement; (12) and (13) have the plus.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..exchange import SecretSharing, require_complete
from .base import CURVATURE, Range
from .families import admm, random_weights
from .families.admm import ADMMFamily
from .families.random_weights import WEIGHTS, Losses, add_losses, no_losses
from .noise import published_change
from .parameters import nonnegative, one_of

STEPS = ("first_order", "exact")
SIGNS = ("resolved", "literal")
EXCHANGES = ("plain", "secret_sharing")

LDPADMMState = namedtuple("LDPADMMState", (*admm.ADMMState._fields, *Losses._fields))
"""State of ADMM, with the privacy losses of the sampled messages."""


@dataclass(frozen=True, kw_only=True)
class LocallyPrivateADMM(ADMMFamily):
    r"""Private ADMM with random or fixed penalty weights: Algorithm 1, and its exact version (12).

    Parameters
    ----------
    weights : {"random", "fixed"}
        Weights :math:`w_i`: sampled (:mod:`.families.random_weights`), or their mean 1/2.
    minimisation : {"first_order", "exact"}
        Update of :math:`x_i`: the step (6), (13), or the minimisation (12).
    dual : {"resolved", "literal"}
        Sign of the dual update: plus, or minus as published, which diverges.
    exchange : {"plain", "secret_sharing"}
        Whether agents receive the values of their neighbours, or only the sum of all values, by
        secret sharing on a complete graph (Algorithm 3).
    """

    D: float | None = 10.0
    zeta: float | None = 0.5
    init_std: float = nonnegative(1.0)
    weights: str = one_of("random", WEIGHTS)
    minimisation: str = one_of("first_order", STEPS)
    dual: str = one_of("resolved", SIGNS)
    exchange: str = one_of("plain", EXCHANGES)

    quantities: ClassVar = ("internal", "released", "worst_case", *random_weights.QUANTITIES)
    source: ClassVar[str] = "Xiao et al., Algorithm 1, eqs. (6), (12), (13)"
    where: ClassVar[str] = "output"
    internal_outputs: ClassVar = ("internal", *random_weights.ANALYSES)
    ranges: ClassVar = {
        "D": Range(0.3, 30.0, 3.0, CURVATURE),
        "zeta": Range(0.01, 1.0, 0.1, CURVATURE),
        "horizon": Range(2, 15, 8),
    }
    lower_bound_because: ClassVar[str] = (
        "at distant points, a changed record changes the minimiser by the attained fraction"
    )

    # Algorithm 1.

    def draws(self, problem, streams):
        return random_weights.draws(self, problem, streams)

    @property
    def dual_step(self):
        return super().dual_step if self.dual == "resolved" else -super().dual_step

    def centre(self, state, network, draw):
        r"""Return the weighted mean :math:`w_i x_i + (1-w_i)\bar x_i`."""
        if draw.weights is None:
            return super().centre(state, network, draw)
        mean = state.received_sum / network.degrees[..., None]
        return mean + draw.weights * (state.x - mean)

    def receive(self, state, network):
        """Add the sums of neighbours; with secret sharing, agents receive only the sum."""
        if self.exchange == "plain":
            return super().receive(state, network)
        neighbour_sum = SecretSharing().outcome(state.x)[..., None, :] - state.x
        return state._replace(received_sum=neighbour_sum)

    def minimise(self, problem, state, linear, penalty, centre, t):
        """Return the exact minimisers (12), or the results of the first-order step (6), (13)."""
        if self.minimisation == "exact":
            return super().minimise(problem, state, linear, penalty, centre, t)
        return centre - (problem.gradient(state.x) + linear) / penalty

    def start(self, problem, network, streams, settings):
        plain = super().start(problem, network, streams, settings)
        return LDPADMMState(*plain, *no_losses(settings, problem, streams))

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        if not self.has_losses:
            return after
        mean = state.received_sum / network.degrees[..., None]
        scale, length = self.scale(t), np.abs(state.x - mean)
        output = self.centre(state, network, draw) + scale * draw.noise
        position = output - np.minimum(state.x, mean)
        return add_losses(after, problem, position, length, scale, 1.0 / self.penalty(network, t))

    @property
    def has_losses(self) -> bool:
        """Return True if privacy losses of messages are computed: with first-order steps only."""
        return random_weights.is_amplified(self) and self.minimisation == "first_order"

    def observables(self, state, problem, t):
        quantities = dict(super().observables(state, problem, t))
        if self.has_losses:
            quantities |= random_weights.loss_observables(state)
        return quantities

    # Interface of audits.

    @property
    def hidden_sampling(self):
        """True if weights are random, since other agents do not observe them."""
        return self.weights == "random"

    # Privacy.

    def loss_by_formula(self, problem, network, t):
        r"""Return the published privacy loss of iteration t per coordinate.

        It is :math:`\alpha\beta_k\mathcal B_\infty` with :math:`\alpha = 1/D` (after Theorem 2.2).
        """
        return published_change(problem) / (self.penalty(network, t) * self.scale(t))

    def releases(self, problem, network, horizon):
        r"""Return the releases of all iterations.

        Random weights do not depend on the data. A message is a mixture of Laplace mechanisms,
        whose loss over all coordinates is at most :math:`\alpha\beta_k\mathcal B_1`.
        """
        # An attack on a mixture over random weights is known at delta 0 only.
        mixture = {"attained": None} if self.weights == "random" else {}
        if self.minimisation == "exact":
            return self.releases_of_minimisers(problem, network, horizon, **mixture)
        norm = self.noise.norm
        change = problem.record_change(norm) / self.least_penalties(network, horizon)
        attained, first = map(problem.attained_gradient_share, (norm, "l2"))
        reached = self.noise.reached(problem, horizon, first)
        attack_fields = {"attained": attained, "reached": reached} | mixture
        return self.noise.releases(change, self.scales(horizon), **attack_fields)

    def convergent(self, problem, network):
        r"""Test :math:`\zeta|N_i| < D - h` for first-order steps.

        The condition is that of equal quadratic objectives of curvature h on a regular graph.
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
