"""Epsilon of a setting by observer: worst and median pair, by distance.

The median is over ordered pairs of target agent and observer. It is no guarantee for any pair.
"""

from __future__ import annotations

from collections.abc import Iterator

from private_consensus.privacy.observers import (
    Coalition,
    Eavesdropper,
    FinalModels,
    Observer,
    SecureSums,
)

from .causal import Observation
from .epsilon import ObservedEpsilon, epsilons

SIZE = 3
"""Size of a coalition: an agent and those nearest to it."""
PAIRS = ("worst", "median")


def epsilon_by_observer(observation: Observation, delta: float) -> list[dict[str, object]]:
    """Compute the privacy loss of the worst and the median pair for each kind of observer.

    Parameters
    ----------
    observation : Observation
        Calibrated algorithm on a problem and graph.
    delta : float
        Delta of the guarantees.

    Returns
    -------
    list of dict
        ``observer``, ``distance`` (edges between target agent and observing agent, None for other
        observers), ``pair``, ``lower``, ``formula``, ``guarantee``, ``rule``, ``label``.
    """
    rows = []
    for name, observers in kinds(observation):
        groups: dict[int | None, list[ObservedEpsilon]] = {}
        for observer in observers:
            for victim, loss in epsilons(observation, observer, delta).items():
                distance_key = (
                    int(observation.distances[victim, observer.members[0]])
                    if name == "agent"
                    else None
                )
                groups.setdefault(distance_key, []).append(loss)
        for distance in sorted(groups, key=lambda d: d or 0):
            rows += _of_group(name, distance, groups[distance])
    return rows


def _of_group(name: str, distance: int | None, losses: list[ObservedEpsilon]) -> list[dict]:
    ordered = sorted(losses, key=lambda loss: loss.guarantee)
    by_pair = {"worst": ordered[-1], "median": ordered[len(ordered) // 2]}
    return [
        {"observer": name, "distance": distance, "pair": pair, **vars(loss), "label": loss.label}
        for pair, loss in by_pair.items()
    ]


def kinds(observation: Observation) -> Iterator[tuple[str, list[Observer]]]:
    """Yield the name of each kind of observer and all its observers in the graph."""
    n, options = observation.network.n_agents, {"last_states": observation.last_states}
    yield "eavesdropper", [Eavesdropper()]
    yield "agent", [Coalition((v,), **options) for v in range(n)]
    if n > SIZE:
        groups = {tuple(sorted(nearest(observation, v, SIZE))) for v in range(n)}
        yield f"coalition of {SIZE}", [Coalition(members, **options) for members in sorted(groups)]
    yield "secure sums", [SecureSums((v,), **options) for v in range(n)]
    if observation.system is not None and all(
        channel.output is not None for channel in observation.system.channels
    ):
        yield "last models", [FinalModels()]
        yield "mean of last models", [FinalModels(mean=True)]


def nearest(observation: Observation, v: int, size: int) -> list[int]:
    """Return an agent and the agents nearest to it.

    Parameters
    ----------
    observation : Observation
        Calibrated algorithm on a problem and graph.
    v : int
        Agent.
    size : int
        Number of returned agents, including ``v``.

    Returns
    -------
    list of int
    """
    return sorted(
        range(observation.network.n_agents), key=lambda u: (observation.distances[u, v], u)
    )[:size]
