"""Small correct and broken algorithms outside of the package, with neighbouring data."""

from dataclasses import dataclass, replace
from math import sqrt
from typing import NamedTuple

import numpy as np

from private_consensus.audits.examples import complete, examples, mean_estimation
from private_consensus.audits.neighbours import Attack, attacks
from private_consensus.core.algorithms.base import Iterative, column
from private_consensus.core.algorithms.noise import Noise
from private_consensus.core.algorithms.parameters import noise_field
from private_consensus.privacy import Budget, Release, gaussian_mu

BUDGET = Budget(2.0, 1e-4)
HORIZON = 4


class State(NamedTuple):
    """Messages; [settings, runs, agents, dim]."""

    x: np.ndarray


@dataclass(frozen=True, kw_only=True)
class NoisyRounds(Algorithm):
    """Algorithm whose agents release half of a mixture, half of their mean, and noise per round."""

    sigma: Noise = noise_field()

    def change(self, problem):
        return 0.5 * problem.record_change("l2") / problem.records

    def calibrate(self, budget, problem, network, horizon):
        scale = self.change(problem) * sqrt(horizon) / gaussian_mu(budget.epsilon, budget.delta)
        return replace(self, sigma=scale)

    def releases(self, problem, network, horizon):
        return [Release("gaussian", self.change(problem), self.sigma.scale, count=horizon)]

    def start(self, problem, network, streams, settings):
        shape = (settings, len(streams.runs), problem.n_agents, problem.dim)
        return State(np.zeros(shape))

    def draws(self, problem, streams):
        return streams.sequence("noise", "normal", (problem.n_agents, problem.dim))

    def noise(self, draw):
        return column(self.sigma.scale) * draw

    def exact(self, state, problem, network, t):
        return 0.5 * network.mix(state.x) + 0.5 * problem.means

    def step(self, state, problem, network, draw, t):
        return State(self.exact(state, problem, network, t) + self.noise(draw))

    def observables(self, state, problem, t):
        return {"released": state.x}


def mean_attack(agent=0, agents=3, network=None) -> Attack:
    """Return two problems of means that differ in one record of ``agent``."""
    problem = mean_estimation(agents)
    means = [problem.means.copy(), problem.means.copy()]
    for side, changed in zip((1.0, -1.0), means, strict=True):
        changed[0, agent] = side * problem.box / problem.records
    pair = tuple(replace(problem, means=changed) for changed in means)
    direction = np.full(problem.dim, problem.dim**-0.5)
    return Attack(pair, network or complete(agents), direction, agent)


def calibrated(kind, attack, horizon=HORIZON, **options):
    """Return an algorithm whose noise is calibrated to :data:`BUDGET`."""
    return kind(**options).calibrate(BUDGET, attack.pair[0], attack.network, horizon)


def registry_attacks(name):
    """Yield the calibrated example of an algorithm of the registry, an attack and the horizon."""
    (example,) = examples(name)
    algorithm, problem, network, budget, horizon = example.world
    noisy = algorithm.calibrate(budget, problem, network, horizon)
    for attack in attacks(problem, network, noisy, nearby=False):
        yield noisy, attack, horizon
