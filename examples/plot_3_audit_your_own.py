r"""
Audit your own algorithm
========================

An audit executes an algorithm, and replays the outputs of its mechanisms on a data set that differs
in one record. All other values that an observer receives must then be equal.
"""

# %%
# An algorithm is a frozen dataclass. Its methods compute the noise for a budget, the mechanisms,
# the initial state, one step, and the values that observers receive.

from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

import numpy as np

import private_consensus as pc
from private_consensus.core.algorithms.base import column, origin
from private_consensus.privacy.mechanisms import Gaussian


class State(NamedTuple):
    """Messages, [settings, runs, agents, coordinates]."""

    y: np.ndarray


@dataclass(frozen=True, kw_only=True)
class NoisyGossip(pc.Algorithm):
    """Each agent releases its noisy mean once, then agents average."""

    sigma: float = 0.0

    def calibrate(self, budget, problem, network, horizon):
        if budget.epsilon == inf:
            return replace(self, sigma=0.0)
        mu = pc.privacy.gaussian_mu(budget.epsilon, budget.delta)
        return replace(self, sigma=self.sensitivity(problem) / mu)

    def sensitivity(self, problem):
        return problem.record_gradient_change / problem.records

    def mechanisms(self, problem, network, horizon):
        return {"mean": Gaussian(self.sensitivity(problem), column(self.sigma), times=(1,))}

    def claimed_epsilon(self, delta, problem, network, horizon):
        return pc.privacy.gaussian_epsilon(self.sensitivity(problem) / self.sigma, delta)

    def start(self, problem, network, release):
        return State(origin(problem, release))

    def step(self, state, problem, network, release, t):
        if t == 1:
            return State(release("mean", np.broadcast_to(problem.means, state.y.shape)))
        return State(network.mix(state.y))

    def observables(self, state, problem, t):
        return {"released": state.y}


# %%
# The following copy has a fault: from the second iteration on, a part of the exact means is sent.


class HastyGossip(NoisyGossip):
    """Moves the messages towards the means without a mechanism."""

    def step(self, state, problem, network, release, t):
        after = super().step(state, problem, network, release, t)
        return after if t == 1 else State(0.9 * after.y + 0.1 * problem.means)


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
