"""Epsilon of a setting by observer: of the worst and of the median pair, by distance.

The median is over ordered pairs of victim and observer, and no guarantee for any of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..privacy.observers import Coalition, Eavesdropper, FinalModels, Observer, SecureSums
from .causal import Observation
from .epsilon import ObservedEpsilon, epsilons

SIZE = 3
"""Agents of a coalition: one and those nearest to it."""
PAIRS = ("worst", "median")


def epsilon_by_observer(seen: Observation, delta: float) -> list[dict[str, object]]:
    """Compute the privacy loss of the worst and the median pair for each kind of observer, and
    for the eavesdropper.

    Returns
    -------
    list of dict
        ``observer``, ``distance`` (links between victim and agent, None of other observers),
        ``pair``, ``lower``, ``formula``, ``guarantee``, ``rule``, ``label``.
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
    """Names of observers and those that there are of each in the graph."""
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
    """An agent and those nearest to it, ``size`` together."""
    return sorted(range(seen.network.n_agents), key=lambda u: (seen.distances[u, v], u))[:size]
