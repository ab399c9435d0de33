"""Privacy loss between agents of a random walk that visits each agent once, as an experiment."""

from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np
from scipy.sparse.csgraph import shortest_path

from private_consensus.core.algorithms.base import Analysis, Attack
from private_consensus.core.algorithms.random_walk_sgd import RandomWalkSGD
from private_consensus.core.parameters import NonNegative, PositiveInt
from private_consensus.privacy.random_walks import walk_epsilon, walk_renyi_epsilon


@dataclass(frozen=True, kw_only=True)
class WalkLosses(RandomWalkSGD, Analysis, Attack):
    """Largest epsilon between two agents, by f-DP (``f_dp``) and by Rényi DP (``renyi``).

    Parameters
    ----------
    distance : int
        Number of edges between target and observer.
    delta : float
        Delta of all guarantees, set by :meth:`calibrate`.
    """

    visits: PositiveInt = 1
    distance: PositiveInt = 1
    delta: NonNegative = 0.0

    quantities: ClassVar = ("f_dp", "renyi")

    def calibrate(self, budget, problem, network, horizon):
        calibrated = super().calibrate(budget, problem, network, horizon)
        return replace(calibrated, delta=budget.delta)

    def run(self, problem, network, streams, horizon, observe):
        graph = network.of_run(0)
        lengths = shortest_path(graph.adjacency, unweighted=True)
        losses = self.mechanisms(problem, graph, int(horizon.max()))["step"].loss(1).ravel()
        settings = np.broadcast_arrays(horizon, losses, self.distance, self.delta)

        @cache
        def f_dp(mu: float, delta: float) -> np.ndarray:
            agents = range(graph.n_agents)
            return np.array([walk_epsilon(graph.mixing, v, mu, delta) for v in agents])

        for index, (t, mu, distance, delta) in enumerate(zip(*settings, strict=True)):
            tables = {
                "f_dp": f_dp(float(mu), float(delta)),
                "renyi": walk_renyi_epsilon(graph.mixing, int(t), mu, delta),
            }
            values = {k: v[lengths == distance].max(initial=0.0) for k, v in tables.items()}
            observe(int(t), np.array([index]), {k: np.full((1, 1), v) for k, v in values.items()})


ALGORITHM = WalkLosses
