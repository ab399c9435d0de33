r"""
Audit your own algorithm
========================

An audit executes an algorithm on two data sets that differ in one record, records all messages, and
tests the privacy claim without relying on what the algorithm declares.
"""

# %%
# An algorithm is a frozen dataclass. Its methods compute the noise for a budget, the releases, the
# initial state, one step, and the values that observers receive.

from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

import numpy as np

import private_consensus as pc
from private_consensus.core.algorithms.base import column


class State(NamedTuple):
    """Messages, [settings, runs, agents, coordinates]."""

    y: np.ndarray


@dataclass(frozen=True, kw_only=True)
class NoisyGossip(pc.Iterative):
    """Each agent releases its noisy mean once, then agents average."""

    sigma: float = 0.0

    def calibrate(self, budget, problem, network, horizon):
        if budget.epsilon == inf:
            return replace(self, sigma=0.0)
        mu = pc.privacy.gaussian_mu(budget.epsilon, budget.delta)
        return replace(self, sigma=self.sensitivity(problem) / mu)

    def sensitivity(self, problem):
        return problem.record_gradient_change / problem.records

    def releases(self, problem, network, horizon):
        return [pc.Release("gaussian", sensitivity=self.sensitivity(problem), scale=self.sigma)]

    def claimed_epsilon(self, delta, problem, network, horizon):
        return pc.privacy.gaussian_epsilon(self.sensitivity(problem) / self.sigma, delta)

    def start(self, problem, network, streams, settings):
        unit = streams.draw("noise", "normal", (problem.n_agents, problem.dim))
        noise = column(self.sigma) * np.broadcast_to(unit, (settings, *unit.shape))
        return State(problem.means + noise)

    def step(self, state, problem, network, draw, t):
        return State(network.mix(state.y))

    def observables(self, state, problem, t):
        return {"released": state.y}


# %%
# The following copy has a fault: it declares its noise, and adds half of it.


class HastyGossip(NoisyGossip):
    """Declares sigma and adds half of it."""

    def start(self, problem, network, streams, settings):
        half = replace(self, sigma=self.sigma / 2)
        return NoisyGossip.start(half, problem, network, streams, settings)


# %%
# The same audit tests both algorithms.

streams = pc.Streams(0, (0,))
network = pc.networks.build(streams, "ring", 4)
means = np.random.default_rng(1).uniform(-0.2, 0.2, (1, 4, 3))
problem = pc.problems.class_of("mean_estimation")(means, records=50, box=1.0)
budget = pc.Budget(epsilon=3.0, delta=1e-5)

audits = {
    kind.__name__: pc.audit(kind(), problem, network, budget, 5)
    for kind in (NoisyGossip, HastyGossip)
}
for name, result in audits.items():
    print(f"{name}: {result}")
