r"""Guarantees by distance, for any algorithm whose agents send messages to neighbours only.

What an agent does after round R shows in a view only if it can still arrive: with a link a round,
the view of T rounds of somebody at distance d is made of what the victim sent in the first
:math:`R = T - d + 1`, and of others' data and randomness, which react to nothing else of the
victim. By post-processing it is as private as the eavesdropper's view of R rounds, and that is what
the accountant says of the algorithm's releases in R rounds: whatever the losses, the noise and its
place. No linearity is asked for.

Two things the releases do not cover. Last models are among them only where agents send all of their
state: of Zip-DL the mean of models has no noise at all. And where agents share noise, as in DECOR,
a member of an observer knows more than the eavesdropper, whom the account is for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import require
from ..networks import Network
from ..privacy import Guarantee, Release, account
from ..privacy.observers import Coalition, Eavesdropper, FinalModels, Observer
from .linear import MAPPED, NOT_LINEAR, NotLinear, ObservedSystem, observed_system, registry_name

NO_VIEWS = {
    "admm", "canary_audit", "coordinate_descent", "dgd", "dp_ci_moments", "fair_classification",
    "logistic", "pflr", "random_aggregation", "release_audit",
}  # fmt: skip
"""Algorithms of which no agent's view is worth a statement: without noise, or without messages."""
WHOLE_RUN = {"dp_admm", "q_dpsgd_1", "q_dpsgd_2", "secure_aggregation"}
"""Algorithms with a server, through which everybody hears of everybody at once, and those whose
every round depends on how many there are: distance says nothing of them."""
SHARED_NOISE = {"decor", "secure_aggregation"}
"""Algorithms whose account counts on noise that other agents know."""


@dataclass(frozen=True)
class Observation:
    """A calibrated algorithm on a problem and one fixed graph, as partial views see it.

    Parameters
    ----------
    system : ObservedSystem or None
        None where it is not linear; then ``reason`` says why.
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
        """Links on the shortest way between any two agents, [N, N]."""
        return distances(self.network.adjacency)

    def last_round(self, observer: Observer, victim: int) -> int:
        """The last round of which anything that the victim does can show in the view."""
        observer.check(self.network.n_agents)
        name = registry_name(self.algorithm)
        whole = name in WHOLE_RUN or name not in NOT_LINEAR | MAPPED
        if whole or isinstance(observer, Eavesdropper) or getattr(observer, "last_states", False):
            return self.horizon
        near = [*observer.members, *_whose_models(observer, self.network.n_agents)]
        distance = min(int(self.distances[victim, v]) for v in near)
        return max(0, min(self.horizon, self.horizon - distance + 1))

    def causal_guarantee(self, observer: Observer, victim: int, delta: float) -> Guarantee:
        """The accountant's guarantee for the rounds that can arrive; infinite where the view is not
        made of releases, or the observer knows noise that they count on."""
        shared = bool(observer.members) and registry_name(self.algorithm) in SHARED_NOISE
        if shared or (_sees_models(observer) and not self._sends_its_state):
            return Guarantee(np.inf, delta, "none")
        return self._of_rounds(self.last_round(observer, victim), delta)

    @property
    def _sends_its_state(self) -> bool:
        channels = () if self.system is None else self.system.channels
        return bool(channels) and all(one.noised_state for one in channels)

    def _of_rounds(self, rounds: int, delta: float) -> Guarantee:
        known = self._known
        if (rounds, delta) not in known:
            found = [] if rounds == 0 else self._releases(rounds)
            known[rounds, delta] = account(found, delta)
        return known[rounds, delta]

    def _releases(self, rounds: int) -> list[Release]:
        return self.algorithm.releases(self.problem, self.network, rounds)

    @cached_property
    def _known(self) -> dict:
        return {}


def observation(algorithm: Any, problem: Any, network: Network, horizon: int) -> Observation:
    """An algorithm as partial views see it, linear or not.

    Raises
    ------
    InvalidInput
        For a graph that changes from run to run, noise 0, and an algorithm without views of
        agents.
    """
    name = registry_name(algorithm)
    expected = f"an algorithm with views to speak of; here: {NOT_LINEAR.get(name)}"
    require(name not in NO_VIEWS, "algorithm", name, expected)
    try:
        system = observed_system(algorithm, problem, network, horizon)
    except NotLinear as error:
        return Observation(algorithm, problem, network, horizon, None, error.reason)
    return Observation(algorithm, problem, network, horizon, system)


def distances(adjacency: np.ndarray) -> np.ndarray:
    """Links on the shortest way between any two agents, [N, N]; N where there is none."""
    n = len(adjacency)
    found = np.full((n, n), n)
    reached = np.eye(n, dtype=bool)
    for step in range(n):
        found = np.where(reached & (found == n), step, found)
        reached = reached | (reached.astype(float) @ adjacency > 0)
    return found


def _sees_models(observer: Observer) -> bool:
    return isinstance(observer, FinalModels) or getattr(observer, "last_states", False)


def _whose_models(observer: Observer, n: int) -> list[int]:
    if isinstance(observer, FinalModels):
        return list(range(n)) if observer.of is None else list(observer.of)
    return list(observer.members) if isinstance(observer, Coalition) else []
