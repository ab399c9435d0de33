r"""Lower bounds on epsilon by replay, for algorithms whose queries change by a constant.

A pair of neighbouring data sets changes every query of an *affine* algorithm, such as gradient
descent on a quadratic loss, by the same vector for all earlier outputs. The outputs on both data
sets then differ by known shifts of independent noise, whose privacy loss is exact. No proof for
the class of the algorithm is needed: the replay shows the changes.

The changes are computed in two runs with independent noise, of which one is much larger than the
declared noise. If the changes differ, the pair is omitted.

The bound holds for an observer of all messages and outputs. It counts the outputs of mechanisms up
to the first one that this observer does not receive unchanged: a hidden output may hide later ones.
For the same reason, algorithms with random numbers other than noise are omitted.
"""

from collections import defaultdict
from collections.abc import Iterable
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
    Exact,
    GammaNorm,
    Gaussian,
    Laplace,
    Mechanism,
    SecureSum,
)

from .execution import Event, run_recorded
from .search import Search

AFFINE = Gaussian, Laplace, GammaNorm, Correlated, SecureSum
"""Mechanisms that add independent noise in every iteration."""
PAIRS, SCREENED = 12, 3
"""Numbers of pairs, and of iterations that select one of them."""
NOISE = np.array([1.0, 100.0]).reshape(-1, 1, 1)
"""Factor of the executed noise in each run."""
RUNS = Streams(0, (0, 1))
TOLERANCE = 1e-7
"""Largest difference of two changes, relative to the largest change, that counts as rounding."""


def lower_bound_by_replay(
    algorithm: Algorithm, problem: Problem, network: Network, horizon: int, delta: float
) -> LowerBound:
    """Return a lower bound on epsilon at ``delta``, by replay unless the class has a proof.

    It is 0 if there is no proof, and no pair changes every query by a constant. The noise of the
    algorithm is set.
    """
    arguments = algorithm, problem, network, horizon
    if attack_on(algorithm) is None:
        declared = algorithm.mechanisms(problem, network, horizon).values()
        noisy = [m for m in declared if type(m) is not Exact]
        affine = all(type(m) in AFFINE and np.all(np.asarray(m.scale) > 0) for m in noisy)
        if noisy and affine and (shifts := _largest_shifts(*arguments)):
            return lower_bound(shifts, delta)
    return lower_bound_of(*arguments, delta)


def _largest_shifts(algorithm, problem, network, horizon: int) -> list[Release]:
    """Return the shifts of the pair with the largest shifts in the first iterations, or none."""
    try:
        pairs = list(Search(algorithm, problem, network, horizon, PAIRS, 0).neighbours())
    except InvalidInput:
        return []
    screened = min(horizon, SCREENED)
    first_shifts = (shifts_of(algorithm, pair, network, screened) for pair in pairs)
    sizes = [sum(np.square(r.losses()).sum() for r in shifts) for shifts in first_shifts]
    candidates = zip(sizes, pairs, strict=True)
    size, pair = max(candidates, key=lambda candidate: candidate[0], default=(0.0, None))
    return shifts_of(algorithm, pair, network, horizon) if size > 0 else []


def shifts_of(algorithm: Any, pair: Any, network: Network, horizon: int) -> list[Release]:
    """Return the shifts of the noise that explain the received outputs on the second data set.

    There is one series of releases per distribution of the noise, and none if a shift depends on
    earlier outputs.
    """
    try:
        with np.errstate(all="ignore"):
            changes = _changes(algorithm, pair, network, horizon)
    except (ArithmeticError, InvalidInput, Leak):
        return []
    both_runs = [change for _, change, _ in changes]
    rounding = TOLERANCE * max((np.abs(c).max(initial=0.0) for c in both_runs), default=0.0)
    # Written so that NaN is a difference.
    if not all(np.all(np.abs(np.diff(change, axis=1)) <= rounding) for change in both_runs):
        return []
    shifts_by_law: dict[tuple[str, int | None], list[float]] = defaultdict(list)
    for mechanism, change, cost in changes:
        dim = change.shape[-1] if mechanism.law == "gamma_norm" else None
        shifts_by_law[mechanism.law, dim] += _shifts(mechanism, change[:, :1], cost[:, :1])
    return [
        Release(law, shifts, 1.0, dim=dim, attained=1.0) if law else Release("exact", attained=1.0)
        for (law, dim), shifts in shifts_by_law.items()
        if shifts
    ]


def _refuse(*arguments: Any) -> Any:
    raise Leak("random numbers other than noise may be hidden from the observer")


def _changes(algorithm, pair, network, horizon: int) -> list[tuple[Mechanism, Any, Any]]:
    """Return mechanism, change of the noise and cost of each received output, for both runs."""
    changes: list[tuple[Mechanism, Any, Any]] = []

    class Amplified(Recording):
        random = once = key = staticmethod(_refuse)  # ty: ignore[incompatible-attribute-override]

        def prepare(self, name):
            mechanism, unit = super().prepare(name)
            return mechanism, unit if unit is None else NOISE * unit

    class Explaining(Replaying):
        def release(self, name, query, where):
            mechanism, recorded = self.mechanisms[name], recording.releases[len(changes)]
            change = recorded.evidence - query
            if type(mechanism) is not Exact:
                change = mechanism.change(query, recorded, self.t)
            change = change if where is None else np.where(where, change, 0.0)
            output = super().release(name, query, where)
            changes.append((mechanism, change, self.costs[-1][2]))
            return output

    first, second = (
        (algorithm.mechanisms(data, network, horizon), data, RUNS, np.array([horizon]))
        for data in (pair.first, pair.second)
    )
    events: list[Event] = []
    recording = Amplified(*first)
    run_recorded(algorithm, pair.first, network, horizon, recording, events)
    replay = Explaining(*second, releases=recording.releases)
    run_recorded(algorithm, pair.second, network, horizon, replay, [])
    sent = {row for event in events if event.kind != "state" for row in _rows(event.value)}
    is_received = [sent.issuperset(_rows(r.output, r.where)) for r in recording.releases]
    return changes[: [*is_received, False].index(False)]


def _rows(array: np.ndarray, where: np.ndarray | None = None) -> Iterable[bytes]:
    """Return the vectors of an array, at the agents of a mask."""
    dim = np.shape(array)[-1]
    if where is not None:
        array = array[np.broadcast_to(where, array.shape)]
    return (row.tobytes() for row in np.reshape(np.asarray(array, float), (-1, dim)))


def _shifts(mechanism: Mechanism, change: np.ndarray, cost: np.ndarray) -> list[float]:
    """Return the shifts of independent noise of one release, of coordinates or of agents."""
    if mechanism.law == "gaussian":
        cost = np.sqrt(np.square(cost).sum(keepdims=True))
    shifts = np.abs(change) if mechanism.law == "laplace" else cost
    return [shift for shift in shifts.ravel().tolist() if shift]
