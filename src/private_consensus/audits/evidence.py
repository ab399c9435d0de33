"""Statistics of executions: likelihood ratios, projected messages, values that repeat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from private_consensus.core.algorithms.base import DENSITIES, Algorithm
from private_consensus.core.networks import Network

from .execution import Execution, execute
from .known_minimisers import KnownMinimisers
from .neighbours import Attack
from .noise_recovery import recovery_of
from .streams import AuditStreams

NUMBERS = 8_000_000
"""Numbers in the messages of the runs that are executed at once."""
NOISE_NUMBERS = 400_000
"""Numbers of recovered noise that are tested; 5 % off is seen in far fewer."""
OTHERS = 12
"""Other agents whose single messages are features; of more agents their mean and their sums are."""
WHOLE = 400
"""Coordinates of an agent's messages up to which they are looked at beside their projections."""


@dataclass(frozen=True)
class Evidence:
    """Statistics of the runs on one data set.

    Parameters
    ----------
    ratio : ndarray or None, shape (runs,)
        Log-likelihood ratio of D to D'; None where the declared mechanism has no known one.
    projected : ndarray, shape (runs, features)
        Messages along the direction in which the records differ.
    whole : ndarray, shape (runs, features)
        All coordinates of the agent's messages, where there are few.
    scalars : dict of ndarray, each (runs,)
        Counts of exact zeros and of values that come back; single messages along the direction.
    noise : dict of ndarray, each (runs, iterations, agents, dim)
        Recovered at the declared sites, of the first runs.
    moved : ndarray, shape (iterations,), or None
        By how much the data move what is noised, over its scale, at most.
    together : ndarray, shape (iterations,), or None
        The same in the one run in which the sum of squares is largest.
    messages : int
        How many an agent sent.
    iterations : int
        In how many something was released.
    """

    ratio: np.ndarray | None
    projected: np.ndarray
    whole: np.ndarray
    scalars: dict[str, np.ndarray]
    noise: dict[str, np.ndarray]
    moved: np.ndarray | None
    together: np.ndarray | None
    messages: int
    iterations: int

    def joined(self, later: Evidence) -> Evidence:
        """Statistics of these runs and of later ones; recovered noise of the earlier ones alone."""
        both = {
            key: np.concatenate([self.scalars[key], later.scalars[key]]) for key in self.scalars
        }
        return Evidence(
            _if_both(lambda *parts: np.concatenate(parts), self.ratio, later.ratio),
            np.concatenate([self.projected, later.projected]),
            np.concatenate([self.whole, later.whole]),
            both,
            self.noise,
            _if_both(np.maximum, self.moved, later.moved),
            _if_both(longer, self.together, later.together),
            self.messages,
            max(self.iterations, later.iterations),
        )


def _if_both(
    join: Callable[..., np.ndarray], one: np.ndarray | None, other: np.ndarray | None
) -> np.ndarray | None:
    """Join two arrays; None if either is unknown."""
    return None if one is None or other is None else join(one, other)


def observed(
    algorithm: Algorithm, attack: Attack, horizon: int, first: int, runs: int, world: int, seed: int
) -> Evidence:
    """Runs ``first``, ``first + 1``, ... of a calibrated algorithm on D (world 0) or D' (world 1).

    Each world and each part of its runs has randomness of its own; nothing is carried over.
    """
    problem, network = attack.pair[world], attack.network
    most = max(8, NUMBERS // (horizon * problem.n_agents * problem.dim))
    parts: list[Evidence] = []
    for begin in range(first, first + runs, most):
        count = min(most, first + runs - begin)
        streams = AuditStreams.labelled(f"world {world}, from run {begin}", count, seed)
        needed = 0 if begin else _explained(count, horizon * problem.n_agents * problem.dim)
        one = execute(algorithm, problem, network, streams, horizon, internal_of=needed)
        noise = {} if begin else recovered(algorithm, problem, network, streams, one)
        parts.append(_looked_at(algorithm, attack, streams, one, noise))
    return reduce(Evidence.joined, parts)


def _looked_at(algorithm, attack: Attack, streams, one: Execution, noise) -> Evidence:
    ratio, changes = likelihood_ratio(algorithm, attack, streams, one)
    moved, together = (None, None) if changes is None else (changes.max(0), _longest(changes))
    lengths = projected(one, attack)
    scalars = repeats(one, attack) | single_messages(one, attack)
    count = one.messages.shape[1]
    own, iterations = whole(one, attack), one.sent.shape[1]
    return Evidence(ratio, lengths, own, scalars, noise, moved, together, count, iterations)


def _longest(changes: np.ndarray) -> np.ndarray:
    """The run, of [runs, iterations], with the largest sum of squares."""
    return changes[(changes**2).sum(1).argmax()]


def longer(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The one of two vectors with the larger sum of squares."""
    return max(one, other, key=lambda changes: float((changes**2).sum()))


def recovered(
    algorithm: Algorithm, problem: Any, network: Network, streams: AuditStreams, one: Execution
) -> dict[str, np.ndarray]:
    """Noise in units of its scale, recovered from messages and data, by declared site."""
    kept = len(one.sent if one.internal is None else one.internal)
    count = min(kept, _explained(len(one.sent), int(np.prod(one.sent.shape[1:]))))
    one = one.first(count)
    known: Any = KnownMinimisers(problem.repeated(count), one.sent)
    found: dict[str, list[np.ndarray]] = {}
    for units in recovery_of(algorithm).residuals(known, network, streams.first(count), one):
        for site, unit in units.items():
            found.setdefault(site, []).append(unit)
    return {site: np.stack(units, axis=1) for site, units in found.items()}


def _explained(runs: int, each: int) -> int:
    """Return the number of runs in which noise is recovered, for a number of values per run."""
    return min(runs, max(50, NOISE_NUMBERS // each))


def likelihood_ratio(
    algorithm: Algorithm, attack: Attack, streams: AuditStreams, one: Execution
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Log-likelihood ratio of D to D', [runs], and how far they move what is noised, [runs,
    iterations].

    As an observer computes it: neither noise is known nor what else is hidden.
    """
    known, public = streams.without("noise"), one.public()
    releases = algorithm.releases(attack.pair[0], attack.network, one.sent.shape[1])
    hidden = algorithm.hidden_sampling or any(release.sampling for release in releases)
    if hidden:
        known = known.without("sampling")
    data: list[Any] = [
        KnownMinimisers(problem.repeated(len(one.sent)), one.sent) for problem in attack.pair
    ]
    worlds = [(problem, attack.network, known, public) for problem in data]
    recovery = recovery_of(algorithm)
    both = [recovery.log_likelihood(*world) for world in worlds]
    if both[0] is not None:
        return both[0] - both[1], None
    sites = algorithm.noise_sites(attack.pair[0], attack.network, one.sent.shape[1])
    if len(sites) != 1 or hidden:
        return None, None
    (site,) = sites
    density, length = DENSITIES[site.law], LENGTHS[site.norm]
    ratio, moved = np.zeros(len(one.sent)), []
    for units in zip(*(recovery.residuals(*world) for world in worlds), strict=True):
        if any(site.name not in unit for unit in units):
            return None, None
        here, there = (unit[site.name] for unit in units)
        ratio += density(here) - density(there)
        own = (unit[:, attack.agent] for unit in (here, there))
        moved.append(length(np.nan_to_num(np.subtract(*own))))
    return (ratio, np.stack(moved, axis=1)) if moved else (None, None)


LENGTHS = {
    "l1": lambda v: np.abs(v).sum(-1),
    "l2": lambda v: np.linalg.norm(v, axis=-1),
    "linf": lambda v: np.abs(v).max(-1),
}


def projected(one: Execution, attack: Attack) -> np.ndarray:
    """Messages along the direction of the attack: of the agent, and of the others."""
    along = one.messages @ attack.direction
    agent = attack.agent
    others = np.delete(along, agent, axis=2)
    if others.shape[2] > OTHERS:
        others = others.mean(2, keepdims=True)
    return np.concatenate([along[:, :, [agent]], others], axis=2).reshape(len(along), -1)


def single_messages(one: Execution, attack: Attack) -> dict[str, np.ndarray]:
    """Single messages and sums of messages along the direction, each [runs].

    For many agents the sum of each agent's messages is one of them, because :func:`projected` has
    only their mean.
    """
    along = one.messages @ attack.direction
    announced = along[:, : one.sent.shape[1]]
    own = announced[..., attack.agent]
    found = {
        "first message": own[:, 0],
        "last message": own[:, -1],
        "sum of messages": own.sum(1),
    }
    if announced.shape[2] - 1 > OTHERS:
        others = (agent for agent in range(announced.shape[2]) if agent != attack.agent)
        found |= {f"messages of agent {j}": announced[:, :, j].sum(1) for j in others}
    if one.unannounced.size:
        found["first exchange"] = along[:, announced.shape[1], attack.agent]
    return found


def whole(one: Execution, attack: Attack) -> np.ndarray:
    """All coordinates of the agent's messages, or none where there are too many."""
    own = one.messages[:, :, attack.agent].reshape(len(one.sent), -1)
    return own if own.shape[1] <= WHOLE else own[:, :0]


def repeats(one: Execution, attack: Attack) -> dict[str, np.ndarray]:
    """Counts a run: exact zeros, values equal to the message before, to another agent's."""
    sent = one.messages
    own = sent[:, :, attack.agent]
    shared = sent == own[:, :, None]
    shared[:, :, attack.agent] = False  # with itself
    found = {
        "zeros": (own == 0).sum((1, 2)),
        "repeated": (own[:, 1:] == own[:, :-1]).sum((1, 2)),
        "shared": np.array([np.count_nonzero(run) for run in shared]),
    }
    return {name: values.astype(float) for name, values in found.items()}
