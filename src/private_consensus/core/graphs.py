"""Graph families, as arrays of edges [edges, 2] between agents 0, ..., n-1.

A family maps the random streams of the runs, the number of agents and its own parameters to the
edges of one graph for all runs, or to a list with the edges of each run. Random graphs are sampled
until one is connected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from private_consensus.common.errors import InvalidInput, require

from .randomness import Streams

SMALL = 256
"""Largest number of agents of a small network."""
MAX_ATTEMPTS, MAX_LARGE_ATTEMPTS = 2**20, 1000
"""Number of sampled graphs, small and large, after which a family is refused."""
MAX_FAILED_PAIRINGS = 50
"""Number of consecutive pairings without a new edge after which sampling starts from scratch."""

Edges = np.ndarray | list[np.ndarray]


def erdos_renyi(streams: Streams, agents: int, *, probability: float) -> Edges:
    """Sample one connected G(n, p) graph per run.

    An edge exists if its uniform variable is less than p. The variables do not depend on p.
    """
    pairs = _pairs(agents)

    def sample(generator):
        return pairs[generator.random(len(pairs)) < probability]

    return _connected(streams, agents, sample, "network.probability", probability)


def random_edges(streams: Streams, agents: int, *, edges: int) -> Edges:
    """Sample one connected graph per run, uniformly among those with a given number of edges."""
    pairs = _pairs(agents)

    def sample(generator):
        return pairs[np.sort(generator.random(len(pairs)).argsort()[:edges])]

    return _connected(streams, agents, sample, "network.edges", edges)


def _pairs(agents: int) -> np.ndarray:
    return np.transpose(np.triu_indices(agents, 1))


def random_regular(streams: Streams, agents: int, *, degree: int) -> Edges:
    """Sample one connected regular graph per run, asymptotically uniform.

    Stubs are paired at random. Pairs that form a loop or an existing edge are split, and their
    stubs are paired again. If no pairing is left, the graph is sampled from scratch. Reference:
    Steger and Wormald, Combinatorics, Probability and Computing 8, 1999.
    """

    def sample(generator):
        return paired_stubs(generator, agents, degree)

    return _connected(streams, agents, sample, "network.degree", degree)


def paired_stubs(generator: np.random.Generator, agents: int, degree: int) -> np.ndarray:
    """Return the edges of a regular graph; no edge if some stubs cannot be paired."""
    stubs = np.repeat(np.arange(agents), degree)
    edges: dict[tuple[int, int], None] = {}  # ordered, with a fast test of membership
    failed_pairings = 0
    while len(stubs) and failed_pairings < MAX_FAILED_PAIRINGS:
        pairs = np.sort(generator.permutation(stubs).reshape(-1, 2), axis=1)
        count, split = len(edges), []
        for i, j in pairs.tolist():
            if i == j or (i, j) in edges:
                split += [i, j]
            else:
                edges[i, j] = None
        stubs = np.array(split, dtype=int)
        failed_pairings = 0 if len(edges) > count else failed_pairings + 1
    return np.empty((0, 2), int) if len(stubs) else np.array(list(edges))


def _connected(
    streams: Streams,
    agents: int,
    sample: Callable[[np.random.Generator], np.ndarray],
    key: str,
    value: Any,
) -> list[np.ndarray]:
    """Return the first connected sample of each run."""
    attempts, graphs = MAX_ATTEMPTS if agents <= SMALL else MAX_LARGE_ATTEMPTS, []
    for generator in streams.generators("graph"):
        samples = (sample(generator) for _ in range(attempts))
        edges = next((edges for edges in samples if is_connected(agents, edges)), None)
        expected = f"a graph of {agents} agents that can be connected (none in {attempts} draws)"
        if edges is None:
            raise InvalidInput(key, value, expected)
        graphs.append(edges)
    return graphs


def is_connected(agents: int, edges: np.ndarray) -> bool:
    """Return True if every agent can reach every other agent."""
    from scipy.sparse.csgraph import connected_components

    if not np.bincount(np.ravel(edges), minlength=agents).all():  # fast: most graphs end here
        return False
    return connected_components(matrix_of(agents, edges), directed=False)[0] == 1


def matrix_of(agents: int, edges: np.ndarray) -> Any:
    """Return the adjacency matrix of 0 and 1 in CSR format; repeated edges count once."""
    from scipy.sparse import coo_array

    i, j = np.asarray(edges, dtype=np.int64).reshape(-1, 2).T
    ends = np.concatenate([i, j]), np.concatenate([j, i])
    matrix = coo_array((np.ones(2 * len(i)), ends), shape=(agents, agents)).tocsr()
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix


def grid(streams: Streams, agents: int, *, rows: int) -> Edges:
    """Return a rectangular grid with a number of rows that divides the number of agents."""
    number = np.arange(agents).reshape(rows, -1)
    horizontal = np.stack([number[:, :-1], number[:, 1:]], -1).reshape(-1, 2)
    vertical = np.stack([number[:-1], number[1:]], -1).reshape(-1, 2)
    return np.concatenate([horizontal, vertical])


def always(maker: Callable[[int], Any]) -> Callable[[Streams, int], np.ndarray]:
    """Return a graph family without parameters whose graph is equal in all runs.

    Parameters
    ----------
    maker : callable
        Maps the number of agents to pairs of agents 0, 1, ..., or to an undirected graph of
        networkx.
    """

    def family(streams: Streams, agents: int) -> np.ndarray:
        graph = maker(agents)
        is_directed = hasattr(graph, "is_directed") and graph.is_directed()
        require(not is_directed, "network", "directed graph", "an undirected graph")
        edges: Iterable = getattr(graph, "edges", graph)
        return np.array(list(edges), dtype=int).reshape(-1, 2)

    return family


GRAPHS: dict[str, Callable[..., Edges]] = {
    "erdos_renyi": erdos_renyi,
    "random_edges": random_edges,
    "random_regular": random_regular,
    "grid": grid,
    "edges": lambda streams, agents, *, edges: np.array(edges) - 1,
    "ring": always(lambda agents: ((i, (i + 1) % agents) for i in range(agents))),
    "path": always(lambda agents: pairwise(range(agents))),
    "star": always(lambda agents: ((0, i) for i in range(1, agents))),
    "complete": always(_pairs),
}
"""Graph families by name."""
