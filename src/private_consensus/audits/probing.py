"""Which of several pairs of neighbouring data sets moves the messages most, without any noise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np

from ..algorithms.base import Algorithm
from ..networks import Network
from .execution import execute
from .neighbours import Attack, attacks
from .streams import AuditStreams


def strongest(algorithm: Algorithm, candidates: Iterable[Attack], horizon: int) -> Attack:
    """The attack whose two noiseless runs differ most, relative to the declared noise.

    One run a data set, with the same draws: without noise the messages are what is noised, as long
    as it does not depend on noise sent before.
    """
    candidates = list(candidates)
    if len(candidates) == 1:
        return candidates[0]
    return max(candidates, key=lambda attack: _effect(algorithm, attack, horizon))


def _effect(algorithm: Algorithm, attack: Attack, horizon: int) -> float:
    quiet = AuditStreams.labelled("probe", 1).without("noise")
    sent = [
        execute(algorithm, problem, attack.network, quiet, horizon).sent[0, :, attack.agent]
        for problem in attack.pair
    ]
    sites = algorithm.noise_sites(attack.pair[0], attack.network, horizon)
    scale = np.ones((horizon, 1, 1)) if not sites else np.nan_to_num(sites[0].scale, nan=np.inf)
    least = np.broadcast_to(scale, (horizon, *scale.shape[1:])).min(axis=(1, 2))
    both = min(len(least), *map(len, sent))  # a broken copy may send more or fewer on one of them
    apart = np.linalg.norm(sent[0][:both] - sent[1][:both], axis=-1) / least[:both]
    return float(np.nan_to_num((apart**2).sum()))


def pairs_of_agents(
    algorithm: Algorithm, problem: Any, network: Network
) -> dict[int, list[Attack]]:
    """Return the pairs of data sets of each agent.

    Parameters
    ----------
    algorithm : Algorithm
        Code from outside of this package may read the rows of a problem: it gets all of them.
    problem : Problem
    network : Network
        One graph for all runs.

    Returns
    -------
    dict
        Agents without pairs are missing.
    """
    change = algorithm.largest_change
    options: dict[str, Any] = {}
    if "agents" not in signature(attacks).parameters:
        first = list(attacks(problem, network, change, nearby=False))
        pairs = {first[0].agent: first}
        for agent in range(network.n_agents):
            moved = [_moved(attack, agent) for attack in first]
            pairs.setdefault(agent, [attack for attack in moved if attack is not None])
        return {agent: of_agent for agent, of_agent in sorted(pairs.items()) if of_agent}
    if not type(algorithm).__module__.startswith("private_consensus."):
        options["compressed"] = False
    found = attacks(
        problem, network, change, nearby=False, agents=range(network.n_agents), **options
    )
    pairs = {}
    for attack in found:
        pairs.setdefault(attack.agent, []).append(attack)
    return dict(sorted(pairs.items()))


AXES = {"means": -2, "features": -3, "labels": -2, "responses": -2}
"""Axis of agents in the arrays of a problem."""


def _moved(attack: Attack, agent: int) -> Attack | None:
    """The pair with the data of two agents exchanged; None if the problem is of another kind."""
    agents = attack.network.n_agents
    order = np.arange(agents)
    order[[attack.agent, agent]] = agent, attack.agent
    pair = []
    for problem in attack.pair:
        names = [name for name in AXES if isinstance(getattr(problem, name, None), np.ndarray)]
        arrays = {name: getattr(problem, name) for name in names}
        fits = all(
            values.ndim >= -AXES[name] and values.shape[AXES[name]] == agents
            for name, values in arrays.items()
        )
        if not arrays or not fits:
            return None
        parts = {name: np.take(values, order, AXES[name]) for name, values in arrays.items()}
        pair.append(replace(problem, **parts))
    return attack._replace(pair=(pair[0], pair[1]), agent=agent)


def agent_classes(network: Network, agents: Iterable[int]) -> list[list[int]]:
    """Group agents by degree, mixing weights and degrees of their neighbours.

    Parameters
    ----------
    network : Network
        One graph for all runs.
    agents : iterable of int

    Returns
    -------
    list of list of int
        The classes, in the order of their first agents.
    """
    degrees, mixing = np.asarray(network.degrees), np.asarray(network.mixing)
    classes: dict[tuple, list[int]] = {}
    for agent in agents:
        around = sorted(int(degrees[other]) for other in network.neighbours_of(agent))
        weights = np.sort(np.round(mixing[agent], 9)).tobytes()
        key = int(degrees[agent]), round(float(mixing[agent, agent]), 9), weights, tuple(around)
        classes.setdefault(key, []).append(agent)
    return list(classes.values())
