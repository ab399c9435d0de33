"""Selection of the neighbouring data sets that change the messages of an algorithm most."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from private_consensus.common.grouping import grouped
from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.networks import Network
from private_consensus.core.problems.linear_observation import LinearObservation

from .execution import execute
from .finders import Attack, Pair, Universe, universe_of
from .neighbours import attacks
from .result import Untested
from .streams import AuditStreams

CLIMBS = 6
"""Random changes of the data that :func:`find_attacks` tries per attacked agent."""
POSITIONS = 128
"""Largest number of positions of the replaced record that are tried, for each agent."""
STEPS = 16
"""Data sets between two others whose messages are compared, for each refinement."""
KINDS, THOROUGH = 4, 10
"""Kinds of pairs tried on each agent after the first :data:`THOROUGH` ones, which are attacked with
all kinds: code from outside may treat any agent differently."""
COUPLED_RUNS = 2
"""Runs with equal draws on both data sets."""
PAIRS = 4
"""Pairs of all finders that an audit adds to the extreme ones, per agent."""
REVIEWED = {
    "admm", "canary_audit", "coordinate_descent", "d_zoa", "decor", "dgd", "dp_admm", "dp_ci",
    "dp_ci_moments", "dsgd", "dvp", "exact_admm", "fair_classification", "gradient_descent",
    "ipp_admm", "ldp_admm", "ldp_gradient_descent", "ldp_subgradient", "local_training",
    "logistic", "m_admm", "mafalda_sgd", "muffliato", "muffliato_gd", "one_shot_averaging",
    "p_admm", "pdop", "pflr", "pp_admm", "pp_admm_renyi", "pr_admm", "q_dpsgd_1", "q_dpsgd_2",
    "r_admm", "random_aggregation", "release_audit", "sdm_dsgd", "secure_aggregation", "zip_dl",
}  # fmt: skip
"""Modules of this package whose algorithms were also audited as subclasses from outside, in
``tests/mutants``. All other code is audited with all finders and statistics."""
SCALES = (0.0, 10.0)
"""Factors of the observed parameter in backgrounds of linear observations."""
DIGITS = 6
"""Digits of a difference that count, so that rounding errors rank no pair above another."""


def strongest(algorithm: Algorithm, candidates: Iterable[Attack], horizon: int) -> Attack:
    """Return the attack whose two noiseless runs differ most, relative to the declared noise.

    Each data set is executed once with the same draws. Without noise the messages are the values
    to which noise is added, if they do not depend on noise sent before. For code from outside of
    this package, runs with equal noise count as well: it may branch on data.
    """
    candidates = list(candidates)
    if len(candidates) == 1:
        return candidates[0]
    score = coupled_difference if is_foreign(algorithm) else _effect
    return max(candidates, key=lambda attack: score(algorithm, attack, horizon))


def is_foreign(algorithm: Algorithm) -> bool:
    """Return True if the class is defined outside of this package, or is new in it."""
    parts = type(algorithm).__module__.split(".")
    return parts[0] != __name__.split(".")[0] or parts[-1] not in REVIEWED


def find_attacks(
    algorithm: Algorithm,
    problem: Any,
    network: Network,
    horizon: int,
    *,
    agents: Sequence[int] | None = None,
    seed: int = 0,
    max_pairs: int = 1,
) -> list[Attack]:
    """Find the pairs of data sets that change the messages of each agent most.

    Several finders propose pairs, and random changes of the strongest one follow. Pairs are ranked
    by how far messages of coupled runs differ, with and without noise. The result has at most
    ``max_pairs`` pairs of different kinds per attacked agent, the strongest first. By default, the
    agents are those of :func:`.neighbours.attacks`.
    """
    strong: list[Attack] = []
    kinds: set[str] = set()
    universe = universe_of(problem)
    locations: list[_Location] = []
    if universe is not None and universe.problem.records > 1:
        locations = _locations(algorithm, universe, network, horizon)
    for number, agent in enumerate([0] if agents is None else agents):
        rng = np.random.default_rng([seed, agent])
        pairs = list(_proposed(algorithm, problem, network, agent, rng))
        if number >= THOROUGH:
            pairs = [attack for attack in pairs if attack.name in kinds] or pairs
        scored = _ranked(algorithm, pairs, horizon)
        kinds |= {attack.name for attack in _distinct(scored, KINDS)}
        if universe is not None:
            scored.append(_searched(algorithm, universe, network, agent, horizon, rng))
            if locations:
                later = _located_pairs(universe, network, agent, locations[agent])
                scored += _ranked(algorithm, later, horizon)
        strong += _distinct(sorted(scored, key=lambda pair: -pair[0]), max_pairs)
    return strong


def pairs_of_agents(
    algorithm: Algorithm, problem: Any, network: Network, horizon: int, *, seed: int = 0
) -> dict[int, list[Attack]]:
    """Return the pairs of data sets with which an audit attacks each agent.

    They are the agent's extreme pairs. Code from outside of this package also gets the strongest
    pairs of all finders. Agents without pairs are missing.
    """
    agents = range(network.n_agents)
    options = {"nearby": False, "agents": agents, "compressed": not is_foreign(algorithm)}
    candidates = list(attacks(problem, network, algorithm, **options))
    if is_foreign(algorithm):
        strong = find_attacks(
            algorithm, problem, network, horizon, agents=agents, seed=seed, max_pairs=PAIRS
        )
        extreme = {(attack.agent, attack.name) for attack in candidates}
        candidates += [pair for pair in strong if (pair.agent, pair.name) not in extreme]
    pairs = grouped(candidates, lambda attack: attack.agent)
    return dict(sorted(pairs.items()))


def proposed_pairs(
    algorithm: Algorithm, problem: Any, network: Network, *, seed: int
) -> list[Attack]:
    """Return the pairs of all finders for the first agent, which are not ranked."""
    return list(_proposed(algorithm, problem, network, 0, np.random.default_rng([seed, 0])))


def _observed_data(
    problem: Any, network: Network, agent: int, algorithm: Algorithm
) -> Iterator[Attack]:
    """Yield pairs of linear observations that differ in measurements, for scaled parameters."""
    if not isinstance(problem, LinearObservation) or algorithm.largest_change is None:
        return
    for scale in SCALES:
        scaled = replace(problem, theta=scale * problem.theta)
        for attack in attacks(scaled, network, algorithm, nearby=False, agents=[agent]):
            yield attack._replace(name=f"{attack.name}, parameter times {scale:g}")


def _proposed(
    algorithm: Algorithm, problem: Any, network: Network, agent: int, rng: np.random.Generator
) -> Iterator[Attack]:
    """Yield the pairs of all finders; if the guarantee hides an agent, all its records differ."""
    universe = universe_of(problem)
    if universe is not None and algorithm.relation.unit == "agent":
        yield from universe.agent_data(network, agent, rng)
    options = {"nearby": False, "agents": [agent], "compressed": False}
    yield from attacks(problem, network, algorithm, **options)
    yield from _observed_data(problem, network, agent, algorithm)
    if universe is not None:
        yield from universe.special_data(network, agent, rng)
        yield from universe.random_data(network, agent, rng)


class _Location(NamedTuple):
    """Position of the replaced record, and number of other records that equal the first one.

    The number depends on the kind of replaced record."""

    index: int
    counts: dict[str, int]


def _locations(
    algorithm: Algorithm, universe: Universe, network: Network, horizon: int
) -> list[_Location]:
    """Return the most effective position and data set of each agent's replaced record.

    Messages, or the size of their noise, may jump at one of the data sets between two extreme ones,
    which does not show in pairs of extreme data. Rows of different norms also move their median and
    other quantiles. An execution moves the data of all agents.
    """
    indices = _weakest_positions(algorithm, universe, network, horizon)
    counts = {
        pair.name: _jumps_between(algorithm, universe, pair, network, horizon)
        for pair in universe.record_pairs()
    }
    return [
        _Location(index, {kind: of_agents[agent] for kind, of_agents in counts.items()})
        for agent, index in enumerate(indices)
    ]


def _weakest_positions(
    algorithm: Algorithm, universe: Universe, network: Network, horizon: int
) -> list[int]:
    """Return the position at which a replaced record changes noiseless messages most, per agent.

    A record may have a larger weight at one position than at others. The records of all agents are
    replaced together, so that two executions test a position of all agents.
    """
    agents = network.n_agents
    if not universe.has_positions:
        return [0] * agents
    pair = next(universe.record_pairs())
    changes = []
    tried = positions_tried(universe.problem.records)
    for index in tried:
        first, second = (
            _noiseless(algorithm, universe.problem_with_records(pair.background, record, index),
                       network, horizon)
            for record in (pair.first, pair.second)
        )  # fmt: skip
        changes.append([_change(first[..., i, :], second[..., i, :]) for i in range(agents)]
                       if first.shape == second.shape else [math.inf] * agents)  # fmt: skip
    return [tried[i] for i in np.argmax(changes, axis=0)]


def positions_tried(records: int) -> list[int]:
    """Return the positions of the replaced record that an audit tries, evenly distributed."""
    evenly = np.linspace(0, records - 1, min(records, POSITIONS))
    return np.unique(evenly.round().astype(int)).tolist()


def untried_positions(problem: Any) -> tuple[Untested, ...]:
    """List positions of the replaced record that no audit tries; they decide no verdict."""
    universe = universe_of(problem)
    if universe is None or not universe.has_positions:
        return ()
    records = universe.problem.records
    tried = len(positions_tried(records))
    if tried == records:
        return ()
    item = f"{records - tried} of {records} positions of the replaced record"
    return (Untested(item, "an agent has more records than positions are tried", decisive=False),)


def _jumps_between(
    algorithm: Algorithm, universe: Universe, pair: Pair, network: Network, horizon: int
) -> list[int]:
    """Return after how many equal records the messages of each agent jump most."""
    agents = network.n_agents
    low, high = np.zeros(agents, int), np.full(agents, universe.problem.records - 1)
    while (high - low > 1).any():
        counts = low + np.linspace(0.0, high - low, STEPS + 1).round().astype(int)
        sent = [
            _coupled(algorithm, universe.between_all(pair, of_agents.tolist()), network, horizon)
            for of_agents in counts
        ]
        sizes = np.maximum(np.diff(counts, axis=0), 1)
        steps = np.array([
            [_change(*(messages[..., i, :] for messages in ends)) for i in range(agents)]
            for ends in pairwise(sent)
        ]) / sizes  # fmt: skip
        steps[np.diff(counts, axis=0) == 0] = -1.0
        largest = steps.argmax(0), np.arange(agents)
        low, high = counts[largest], counts[largest[0] + 1, largest[1]]
    return low.tolist()


def _coupled(algorithm: Algorithm, problem: Any, network: Network, horizon: int) -> np.ndarray:
    """Return the messages of a run without noise, and those of runs with given noise."""
    noisy = AuditStreams.labelled("coupled", COUPLED_RUNS)
    sent = execute(algorithm, problem, network, noisy, horizon).sent
    noiseless = _noiseless(algorithm, problem, network, horizon)
    return np.concatenate([noiseless, sent]) if noiseless.shape[1:] == sent.shape[1:] else sent


def _noiseless(algorithm: Algorithm, problem: Any, network: Network, horizon: int) -> np.ndarray:
    """Return the messages of one run without noise."""
    streams = AuditStreams.labelled("probe", 1).without("noise")
    return execute(algorithm, problem, network, streams, horizon).sent


def _change(first: np.ndarray, second: np.ndarray) -> float:
    if first.shape != second.shape:
        return math.inf
    return float(f"{np.nan_to_num(np.linalg.norm(first - second), nan=math.inf):.{DIGITS}g}")


def _located_pairs(
    universe: Universe, network: Network, agent: int, location: _Location
) -> list[Attack]:
    """Return the pairs of one agent at the position and at the data set of ``location``."""
    index, counts = location
    pairs = []
    for pair in universe.record_pairs():
        count = counts[pair.name]
        name = f"{pair.name}, {count} of equal records"
        between = pair._replace(background=universe.between(pair, agent, count), name=name)
        pairs.append(universe.attack(between, network, agent))
    later = next(universe.record_pairs())._replace(name=f"record {index}")
    return pairs + [universe.attack(later, network, agent, index)] * (index > 0)


Scored = tuple[float, Attack]
"""Difference of messages, and the pair of data sets that causes it."""


def _ranked(algorithm: Algorithm, candidates: Iterable[Attack], horizon: int) -> list[Scored]:
    """Return candidates and scores, the highest first; equal scores keep their order."""
    scored = [(coupled_difference(algorithm, attack, horizon), attack) for attack in candidates]
    return sorted(scored, key=lambda pair: -pair[0])


def _distinct(ranked: Iterable[Scored], max_pairs: int) -> list[Attack]:
    """Return the first pairs of different scores."""
    return list({score: attack for score, attack in reversed(list(ranked))}.values())[::-1][
        :max_pairs
    ]


def _searched(
    algorithm: Algorithm,
    universe: Universe,
    network: Network,
    agent: int,
    horizon: int,
    rng: np.random.Generator,
) -> Scored:
    """Return the strongest pair of a random search."""
    best = universe.random_pair(rng)
    score = coupled_difference(algorithm, universe.attack(best, network, agent), horizon)
    for _ in range(CLIMBS):
        proposal = universe.random_pair(rng)
        blended = universe.blend(best.background, proposal.background, rng)
        changed = rng.integers(3)
        proposal = proposal._replace(
            background=best.background if changed == 0 else blended,
            first=best.first if changed else proposal.first,
            second=best.second if changed == 1 else proposal.second,
            name="searched data",
        )
        value = coupled_difference(algorithm, universe.attack(proposal, network, agent), horizon)
        if value > score:
            best, score = proposal, value
    return score, universe.attack(best, network, agent)


@np.errstate(divide="ignore", invalid="ignore")
def coupled_difference(algorithm: Algorithm, attack: Attack, horizon: int) -> float:
    """Return the difference of the messages of two runs with equal draws, over the noise scale.

    It is the sum of the differences without noise and with equal noise, and infinite if the numbers
    of messages differ.
    """
    difference, sends_nan = 0.0, None
    for streams in (
        AuditStreams.labelled("coupled", COUPLED_RUNS),
        AuditStreams.labelled("probe", 1).without("noise"),
    ):
        first, second = (
            execute(algorithm, problem, attack.network, streams, horizon).released
            for problem in attack.pair
        )
        if first.shape != second.shape:
            return math.inf
        scale = _least_scale(algorithm, attack, horizon, first.shape[1])
        changes, missing = first - second, np.isnan(first) & np.isnan(second)
        if sends_nan is None:  # with noise
            sends_nan = missing.any()
        if sends_nan:
            changes[missing] = 0.0
        lengths = np.linalg.norm(changes, axis=-1).max(-1) / scale
        difference += float(np.nan_to_num((lengths**2).sum(1).max(), nan=math.inf))
    return float(f"{difference:.{DIGITS}g}")


def _least_scale(algorithm: Algorithm, attack: Attack, horizon: int, count: int) -> np.ndarray:
    """Return the smallest declared noise scale of each message, 1 if none is declared."""
    sites = algorithm.noise_sites(attack.pair[0], attack.network, horizon)
    scale = np.ones((horizon, 1, 1)) if not sites else np.nan_to_num(sites[0].scale, nan=np.inf)
    min_scale = np.broadcast_to(scale, (horizon, *scale.shape[1:])).min(axis=(1, 2))
    return np.resize(min_scale, count)


def _effect(algorithm: Algorithm, attack: Attack, horizon: int) -> float:
    first, second = (
        _noiseless(algorithm, problem, attack.network, horizon)[0, :, attack.agent]
        for problem in attack.pair
    )
    # a broken copy may send more or fewer messages on one of the data sets
    count = min(horizon, len(first), len(second))
    scale = _least_scale(algorithm, attack, horizon, horizon)[:count]
    lengths = np.linalg.norm(first[:count] - second[:count], axis=-1) / scale
    return float(np.nan_to_num((lengths**2).sum()))


def agent_classes(network: Network, agents: Iterable[int]) -> list[list[int]]:
    """Group agents by degree, mixing weights and degrees of their neighbours."""
    degrees, mixing = np.asarray(network.degrees), np.asarray(network.mixing)
    classes: dict[tuple, list[int]] = {}
    for agent in agents:
        neighbour_degrees = np.sort(degrees[network.neighbours_of(agent)]).tobytes()
        weights = np.sort(np.round(mixing[agent], 9)).tobytes()
        self_weight = round(float(mixing[agent, agent]), 9)
        key = int(degrees[agent]), self_weight, weights, neighbour_degrees
        classes.setdefault(key, []).append(agent)
    return list(classes.values())
