"""Guarantees from distance, for any algorithm whose agents send messages to neighbours only.

An action of an agent after round R affects a view only if it can still arrive. A message crosses
one edge per round. The view of T rounds of an observer at distance d therefore depends on the
target agent's messages in the first :math:`R = T - d + 1` rounds. It also depends on data and
randomness of other agents, which react to nothing else of the target agent. By post-processing, it
is as private as the eavesdropper's view of R rounds. The accountant bounds the latter from the
algorithm's releases in R rounds, for any losses, noise, and position of the noise. No linearity is
required.

The releases do not cover two cases. The final models are among them only if agents send all of
their state: in Zip-DL the mean of the models has no noise at all. If agents share noise, as in
DECOR, a member of an observer knows more than the eavesdropper, whom the accountant considers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.csgraph import shortest_path

from private_consensus.common.errors import require
from private_consensus.core.networks import Network
from private_consensus.privacy import Guarantee, Release, account
from private_consensus.privacy.observers import Coalition, Eavesdropper, FinalModels, Observer

from .linear import MAPPED, NOT_LINEAR, NotLinear, ObservedSystem, observed_system, registry_name

NO_VIEWS = {
    "admm", "canary_audit", "coordinate_descent", "dgd", "dp_ci_moments", "fair_classification",
    "logistic", "pflr", "random_aggregation", "release_audit",
}  # fmt: skip
"""Algorithms without views of agents to consider: they have no noise or no messages."""
WHOLE_RUN = {"dp_admm", "q_dpsgd_1", "q_dpsgd_2", "secure_aggregation"}
"""Algorithms for which distance gives no guarantee. Some have a server, which forwards every
message immediately. In others, every round depends on the number of rounds."""
SHARED_NOISE = {"decor", "secure_aggregation"}
"""Algorithms whose accounting relies on noise that other agents know."""


@dataclass(frozen=True)
class Observation:
    """Calibrated algorithm on a problem and one fixed graph, for partial views.

    Parameters
    ----------
    algorithm : Algorithm
        Calibrated algorithm.
    problem : Problem
        Problem of the agents.
    network : Network
        Fixed graph.
    horizon : int
        Number of rounds.
    system : ObservedSystem or None
        Linear system; None if the algorithm is not linear.
    reason : str
        Reason why there is no linear system; empty if there is one.
    """

    algorithm: Any
    problem: Any
    network: Any
    horizon: int
    system: ObservedSystem | None
    reason: str = ""

    @property
    def last_states(self) -> bool:
        """Return True if rounds without noise follow, so that every agent knows the last states."""
        return self.system is not None and self.system.last_states

    @cached_property
    def distances(self) -> np.ndarray:
        """Number of edges on the shortest path between any two agents, [N, N]."""
        return distances(self.network.adjacency)

    def last_round(self, observer: Observer, target: int) -> int:
        """Return the last round in which an action of the target agent can affect the view.

        Parameters
        ----------
        observer : Observer
            Observer of the view.
        target : int
            Target agent.

        Returns
        -------
        int
            From 0 to the horizon.
        """
        observer.check(self.network.n_agents)
        name = registry_name(self.algorithm)
        whole_run = name in WHOLE_RUN or name not in NOT_LINEAR | MAPPED
        if whole_run or isinstance(observer, Eavesdropper) or observer.receives_last_states:
            return self.horizon
        near = [*observer.members, *_whose_models(observer, self.network.n_agents)]
        distance = min(int(self.distances[target, v]) for v in near)
        return max(0, min(self.horizon, self.horizon - distance + 1))

    def causal_guarantee(self, observer: Observer, target: int, delta: float) -> Guarantee:
        """Return the accountant's guarantee for the rounds that can arrive.

        Parameters
        ----------
        observer : Observer
            Observer of the view.
        target : int
            Target agent.
        delta : float
            Delta of the guarantee.

        Returns
        -------
        Guarantee
            Infinite if the view is not a function of releases, or if the observer knows noise on
            which the releases rely.
        """
        shared = bool(observer.members) and registry_name(self.algorithm) in SHARED_NOISE
        if shared or (_sees_models(observer) and not self._sends_its_state):
            return Guarantee(np.inf, delta, "none")
        return self._of_rounds(self.last_round(observer, target), delta)

    @property
    def _sends_its_state(self) -> bool:
        channels = () if self.system is None else self.system.channels
        return bool(channels) and all(channel.noised_state for channel in channels)

    def _of_rounds(self, rounds: int, delta: float) -> Guarantee:
        cached = self._known
        if (rounds, delta) not in cached:
            releases = [] if rounds == 0 else self._releases(rounds)
            cached[rounds, delta] = account(releases, delta)
        return cached[rounds, delta]

    def _releases(self, rounds: int) -> list[Release]:
        return self.algorithm.releases(self.problem, self.network, rounds)

    @cached_property
    def _known(self) -> dict:
        return {}


def observation(algorithm: Any, problem: Any, network: Network, horizon: int) -> Observation:
    """Prepare an algorithm, linear or not, for partial views.

    Parameters
    ----------
    algorithm : Algorithm
        Calibrated algorithm.
    problem : Problem
        Problem of the agents.
    network : Network
        Fixed graph.
    horizon : int
        Number of rounds.

    Returns
    -------
    Observation

    Raises
    ------
    InvalidInput
        For a graph that changes between runs, noise 0, and an algorithm without views of agents.
    """
    name = registry_name(algorithm)
    expected = f"an algorithm with noisy messages between agents; here: {NOT_LINEAR.get(name)}"
    require(name not in NO_VIEWS, "algorithm", name, expected)
    try:
        system = observed_system(algorithm, problem, network, horizon)
    except NotLinear as error:
        return Observation(algorithm, problem, network, horizon, None, error.reason)
    return Observation(algorithm, problem, network, horizon, system)


def distances(adjacency: np.ndarray) -> np.ndarray:
    """Return the number of edges on the shortest path between any two agents.

    The result has shape (N, N), with N for agents that no path connects.
    """
    lengths = shortest_path(adjacency, unweighted=True)
    return np.minimum(lengths, len(adjacency)).astype(int)


def _sees_models(observer: Observer) -> bool:
    return isinstance(observer, FinalModels) or observer.receives_last_states


def _whose_models(observer: Observer, n: int) -> list[int]:
    if isinstance(observer, FinalModels):
        return list(range(n)) if observer.of is None else list(observer.of)
    return list(observer.members) if isinstance(observer, Coalition) else []
