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

from private_consensus.core.algorithms.base import column, normal_start
from private_consensus.core.algorithms.noise import Noise
from private_consensus.core.algorithms.parameters import noise_field
from private_consensus.privacy import Release, gaussian_epsilon, gaussian_mu


class State(NamedTuple):
    """Messages x and velocities v, [settings, runs, agents, dim]."""

    x: np.ndarray
    v: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Algorithm(Algorithm):
    """Fault: momentum whose privacy accounting ignores the velocity."""

    sigma: Noise = noise_field()
    eta: float = 0.001
    beta: float = 0.9

    def calibrate(self, budget, problem, network, horizon):
        if budget.epsilon == inf:
            return replace(self, sigma=0.0)
        mu = gaussian_mu(budget.epsilon, budget.delta)
        return replace(self, sigma=self._sensitivity(problem) * sqrt(horizon) / mu)

    def _sensitivity(self, problem):
        return self.eta * problem.record_gradient_change

    def releases(self, problem, network, horizon):
        return [Release("gaussian", self._sensitivity(problem), self.sigma.scale, count=horizon)]

    def claimed_epsilon(self, delta, problem, network, horizon):
        if not self.sigma:
            return inf
        mu = self._sensitivity(problem) * sqrt(horizon) / self.sigma.scale
        return gaussian_epsilon(mu, delta)

    def start(self, problem, network, streams, settings):
        zero = normal_start(problem, streams, settings, 0.0)
        return State(zero, zero)

    def draws(self, problem, streams):
        return streams.sequence("noise", "normal", (problem.n_agents, problem.dim))

    def step(self, state, problem, network, draw, t):
        v = column(self.beta) * state.v + problem.gradient(state.x)
        noise = column(self.sigma.scale) * draw
        return State(network.mix(state.x) - column(self.eta) * v + noise, v)

    def observables(self, state, problem, t):
        return {"released": state.x}


ALGORITHM = Algorithm
EXAMPLE = "mean_estimation"
