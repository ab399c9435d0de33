r"""Lower bounds on epsilon by replay, for algorithms whose queries change by a constant.

A pair of neighbouring data sets changes every query of an *affine* algorithm, such as gradient
descent on a quadratic loss, by the same vector for all earlier outputs. The outputs on both data
sets then differ by known shifts of independent noise, whose privacy loss is exact. No proof for
the class of the algorithm is needed: the replay shows the changes.

The changes are computed in several executions with independent noise, of which one is much larger
than the declared noise. If the changes differ, the pair is omitted. The bound holds for an observer
of the outputs of all mechanisms, which is the observer of the accountant. Algorithms with further
randomness in an iteration are omitted: its values may be hidden, and amplify the privacy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.handlers import Leak, Recording, Replaying
from private_consensus.core.lower_bounds import attack_on, lower_bound_of
from private_consensus.core.networks import Network
from private_consensus.core.problems import Problem
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Release
from private_consensus.privacy.brackets import LowerBound, lower_bound
from private_consensus.privacy.mechanisms import (
    Correlated,
    GammaNorm,
    Gaussian,
    Laplace,
    SecureSum,
)

from .search import Search

AFFINE = Gaussian, Laplace, GammaNorm, Correlated, SecureSum
"""Mechanisms that add independent noise in every iteration."""
PAIRS, SCREENED, NOISE = 12, 3, (1.0, 1.0, 100.0)
"""Numbers of pairs and of iterations that select one of them; factors of the executed noise."""
TOLERANCE = 1e-7
"""Largest difference of two changes, relative to the largest change, that counts as rounding."""


def lower_bound_by_replay(
    algorithm: Algorithm, problem: Problem, network: Network, horizon: int, delta: float
) -> LowerBound:
    """Return a lower bound on epsilon, by replay unless the class has a proof.

    Parameters
    ----------
    algorithm : Algorithm
        Algorithm with its noise.
    problem : Problem
        Objectives and data of the agents, with their sensitivities.
    network : Network
        Communication graph with its mixing matrix.
    horizon : int
        Number of iterations.
    delta : float
        Delta at which epsilon is stated.

    Returns
    -------
    LowerBound
        0 with a reason if there is no proof, and no pair changes every query by a constant.
    """
    arguments = algorithm, problem, network, horizon
    if attack_on(algorithm) is None:
        declared = algorithm.mechanisms(problem, network, horizon).values()
        noisy = all(type(m) in AFFINE and np.all(np.asarray(m.scale) > 0) for m in declared)
        if noisy and (shifts := _largest_shifts(*arguments)):
            return lower_bound(shifts, delta)
    return lower_bound_of(*arguments, delta)


def _largest_shifts(algorithm, problem, network, horizon: int) -> list[Release]:
    """Return the shifts of the pair with the largest shifts in the first iterations, or none."""
    try:
        pairs = list(Search(algorithm, problem, network, horizon, PAIRS, 0).pairs())
    except InvalidInput:
        return []
    screened = min(horizon, SCREENED)
    candidates = [(_size(shifts_of(algorithm, p, network, screened)), p) for p in pairs]
    size, pair = max(candidates, key=lambda candidate: candidate[0], default=(0.0, None))
    return shifts_of(algorithm, pair, network, horizon) if size > 0 else []


def _size(shifts: list[Release]) -> float:
    return float(sum(np.square(release.losses()).sum() for release in shifts))


def shifts_of(algorithm: Any, pair: Any, network: Network, horizon: int) -> list[Release]:
    """Return the shifts of the noise that explain the outputs on the second data set of a pair.

    Parameters
    ----------
    algorithm : Algorithm
        Algorithm with its noise.
    pair : Pair
        Two neighbouring data sets.
    network : Network
        Communication graph.
    horizon : int
        Number of iterations.

    Returns
    -------
    list of Release
        One release per mechanism and iteration; empty if a shift depends on earlier outputs.
    """
    declared = algorithm.mechanisms(pair.first, network, horizon)
    try:
        with np.errstate(all="ignore"):
            changes, *others = [
                _changes(algorithm, pair, network, horizon, Streams(root, (0,)), factor)
                for root, factor in enumerate(NOISE)
            ]
    except (ArithmeticError, InvalidInput, Leak):
        return []
    largest = max((float(np.abs(change).max(initial=0.0)) for _, change, _ in changes), default=0)
    for other in others:
        for (_, change, _), (_, repeated, _) in zip(changes, other, strict=True):
            # Written so that NaN is a difference.
            if not np.all(np.abs(change - repeated) <= TOLERANCE * largest):
                return []
    return [r for name, *evidence in changes for r in _releases(declared[name].law, *evidence)]


def _changes(algorithm, pair, network, horizon: int, streams: Streams, factor: float):
    """Return name, change of the unit noise and cost per release, for multiplied noise."""
    changes: list[tuple[str, Any, Any]] = []

    class Amplified(Recording):
        def prepare(self, name):
            mechanism, unit = super().prepare(name)
            return mechanism, factor * unit

    class Explaining(Replaying):
        def release(self, name, query, where):
            mechanism, recorded = self.mechanisms[name], releases[len(changes)]
            change = mechanism.change(query, recorded, self.t)
            change = change if where is None else np.where(where, change, 0.0)
            output = super().release(name, query, where)
            changes.append((name, change, self.costs[-1][2]))
            return output

    releases: list[Any] = []
    for data in (pair.first, pair.second):
        declared = algorithm.mechanisms(data, network, horizon)
        arguments = declared, data, streams, np.array([horizon])
        handler = Explaining(*arguments, releases=releases) if releases else Amplified(*arguments)
        release = handler.function()
        release.random = _refuse_random
        state = algorithm.start(data, network, release)
        for t in range(1, horizon + 1):
            handler.begin(t)
            state = algorithm.step(state, data, network, release, t)
        releases = getattr(handler, "releases", releases)
    return changes


def _refuse_random(*arguments: Any) -> Any:
    raise Leak("random numbers of an iteration may be hidden from the observer")


def _releases(law: str, change: np.ndarray, cost: np.ndarray) -> list[Release]:
    """Return the shift of one release, for independent noise of each agent."""
    dim = change.shape[-1]
    shifts = np.abs(change) if law == "laplace" else cost
    if law == "gaussian":
        shifts = np.sqrt(np.square(cost).sum(keepdims=True))
    options = {"dim": dim} if law == "gamma_norm" else {}
    return [Release(law, s, 1.0, attained=1.0, **options) for s in shifts.ravel().tolist() if s]
