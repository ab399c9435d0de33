"""Epsilon of a setting by observer: worst and median pair, by distance.

The median is over ordered pairs of target agent and observer. It is no guarantee for any pair.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..privacy.observers import Coalition, Eavesdropper, FinalModels, Observer, SecureSums
from .causal import Observation
from .epsilon import ObservedEpsilon, epsilons

SIZE = 3
"""Size of a coalition: an agent and those nearest to it."""
PAIRS = ("worst", "median")


def epsilon_by_observer(seen: Observation, delta: float) -> list[dict[str, object]]:
    """Compute the privacy loss of the worst and the median pair for each kind of observer.

    Parameters
    ----------
    seen : Observation
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
    for name, observers in kinds(seen):
        groups: dict[int | None, list[ObservedEpsilon]] = {}
        for observer in observers:
            for victim, found in epsilons(seen, observer, delta).items():
                apart = (
                    int(seen.distances[victim, observer.members[0]]) if name == "agent" else None
                )
                groups.setdefault(apart, []).append(found)
        for distance in sorted(groups, key=lambda d: d or 0):
            rows += _of_group(name, distance, groups[distance])
    return rows


def _of_group(name: str, distance: int | None, found: list[ObservedEpsilon]) -> list[dict]:
    ordered = sorted(found, key=lambda one: one.guarantee)
    chosen = {"worst": ordered[-1], "median": ordered[len(ordered) // 2]}
    return [
        {"observer": name, "distance": distance, "pair": pair, **vars(one), "label": one.label}
        for pair, one in chosen.items()
    ]


def kinds(seen: Observation) -> Iterator[tuple[str, list[Observer]]]:
    """Yield the name of each kind of observer and all its observers in the graph."""
    n, more = seen.network.n_agents, {"last_states": seen.last_states}
    yield "eavesdropper", [Eavesdropper()]
    yield "agent", [Coalition((v,), **more) for v in range(n)]
    if n > SIZE:
        together = {tuple(sorted(nearest(seen, v, SIZE))) for v in range(n)}
        yield f"coalition of {SIZE}", [Coalition(members, **more) for members in sorted(together)]
    yield "secure sums", [SecureSums((v,), **more) for v in range(n)]
    if seen.system is not None and all(one.output is not None for one in seen.system.channels):
        yield "last models", [FinalModels()]
        yield "mean of last models", [FinalModels(mean=True)]


def nearest(seen: Observation, v: int, size: int) -> list[int]:
    """Return an agent and the agents nearest to it.

    Parameters
    ----------
    seen : Observation
        Calibrated algorithm on a problem and graph.
    v : int
        Agent.
    size : int
        Number of returned agents, including ``v``.

    Returns
    -------
    list of int
    """
    return sorted(range(seen.network.n_agents), key=lambda u: (seen.distances[u, v], u))[:size]
