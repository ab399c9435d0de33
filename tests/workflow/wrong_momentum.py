r"""Gradient descent with momentum whose privacy accounting ignores the velocity.

.. math::
    v(t) = \beta v(t-1) + \nabla f(x(t-1)), \qquad x(t) = W x(t-1) - \eta v(t) + N(0, \sigma^2 I)

A record enters v(t) with :math:`1 + \beta + \dots + \beta^{t-1}` times the change of one gradient.
The account declares one gradient per message.
"""

from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from private_consensus.core.algorithms import base
from private_consensus.core.algorithms.base import column, origin
from private_consensus.core.parameters import NonNegative
from private_consensus.privacy import gaussian_epsilon, gaussian_mu
from private_consensus.privacy.mechanisms import Gaussian


class State(NamedTuple):
    """Messages x and velocities v, [settings, runs, agents, dim]."""

    x: np.ndarray
    v: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Algorithm(base.Algorithm):
    """Fault: momentum whose privacy accounting ignores the velocity."""

    sigma: NonNegative = 0.0
    eta: float = 0.001
    beta: float = 0.9

    def calibrate(self, budget, problem, network, horizon):
        if budget.epsilon == inf:
            return replace(self, sigma=0.0)
        mu = gaussian_mu(budget.epsilon, budget.delta)
        return replace(self, sigma=self._sensitivity(problem) * sqrt(horizon) / mu)

    def _sensitivity(self, problem):
        return self.eta * problem.record_gradient_change

    def mechanisms(self, problem, network, horizon):
        change = column(self.eta) * problem.record_change("l2")
        return {"message": Gaussian(change, column(self.sigma))}

    def claimed_epsilon(self, delta, problem, network, horizon):
        if not self.sigma:
            return inf
        mu = self._sensitivity(problem) * sqrt(horizon) / self.sigma
        return gaussian_epsilon(mu, delta)

    def start(self, problem, network, release):
        return State(*2 * (origin(problem, release),))

    def step(self, state, problem, network, release, t):
        v = column(self.beta) * state.v + problem.gradient(state.x)
        return State(release("message", network.mix(state.x) - column(self.eta) * v), v)

    def observables(self, state, problem, t):
        return {"released": state.x}


ALGORITHM = Algorithm
EXAMPLE = "mean_estimation"
