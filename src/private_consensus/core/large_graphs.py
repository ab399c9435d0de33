r"""Graphs of many agents as arrays of edges, ``[edges, 2]``, between agents 0, ..., n-1.

Time and memory are linear in the numbers of agents and edges. Distributions are those of
:mod:`private_consensus.core.networks`, which samples small graphs from other random numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from private_consensus.common.errors import InvalidInput

ATTEMPTS = 100
"""Number of sampled graphs after which a random family is refused as not connectable."""

_MAX_RESTARTS = 1000
_MAX_FAILED_PAIRINGS = 50
"""Number of consecutive pairings without a new edge after which sampling starts from scratch."""


def grid(agents: int, *, rows: int) -> np.ndarray:
    """Return the edges of a rectangular grid.

    Parameters
    ----------
    agents : int
        Number of agents, a multiple of ``rows``.

    Returns
    -------
    ndarray of int [edges, 2]
        Edges between horizontal and vertical neighbours.
    """
    number = np.arange(agents).reshape(rows, -1)
    horizontal = np.stack([number[:, :-1], number[:, 1:]], -1).reshape(-1, 2)
    vertical = np.stack([number[:-1], number[1:]], -1).reshape(-1, 2)
    return np.concatenate([horizontal, vertical])


def erdos_renyi(generator: np.random.Generator, agents: int, probability: float) -> np.ndarray:
    """Sample G(n, p): a binomial number of edges, then a uniform set of that many edges.

    Parameters
    ----------
    agents : int
        Number of agents n.
    probability : float
        Probability p of each edge.

    Returns
    -------
    ndarray of int [edges, 2]
    """
    pairs = agents * (agents - 1) // 2
    return random_edges(generator, agents, int(generator.binomial(pairs, probability)))


def random_edges(generator: np.random.Generator, agents: int, edges: int) -> np.ndarray:
    """Sample a graph uniformly among those with a given number of edges.

    Returns
    -------
    ndarray of int [edges, 2]
    """
    pairs = agents * (agents - 1) // 2
    return _pairs(generator.choice(pairs, edges, replace=False, shuffle=False))


def _pairs(numbers: np.ndarray) -> np.ndarray:
    """Return the pairs (i, j), i < j, with the numbers j (j - 1) / 2 + i."""
    j = ((1.0 + np.sqrt(1.0 + 8.0 * numbers)) / 2.0).astype(np.int64)
    j += numbers >= j * (j + 1) // 2  # a root that was rounded
    j -= numbers < j * (j - 1) // 2
    return np.stack([numbers - j * (j - 1) // 2, j], axis=-1)


def random_regular(generator: np.random.Generator, agents: int, degree: int) -> np.ndarray:
    """Sample a regular graph, asymptotically uniform (Steger and Wormald 1999).

    Stubs are paired at random. Pairs that form a loop or an existing edge are split, and their
    stubs are paired again. If no pairing is left, the graph is sampled from scratch. Reference:
    Combinatorics, Probability and Computing 8, 1999.

    Parameters
    ----------
    degree : int
        Number of neighbours of every agent.

    Returns
    -------
    ndarray of int [edges, 2]

    Raises
    ------
    InvalidInput
        If no graph was completed.
    """
    for _ in range(_MAX_RESTARTS):
        links = _paired(generator, agents, degree)
        if links is not None:
            return links
    raise InvalidInput("network.degree", degree, f"a degree of some graph of {agents} agents")


def _paired(generator, agents: int, degree: int) -> np.ndarray | None:
    """Return the edges of a regular graph; None if some stubs cannot be paired."""
    ends = np.repeat(np.arange(agents), degree)
    links, used_numbers, failed_pairings = np.empty(0, np.int64), np.empty(0, np.int64), 0
    while len(ends) and failed_pairings < _MAX_FAILED_PAIRINGS:
        pairs = np.sort(generator.permutation(ends).reshape(-1, 2), axis=1)
        numbers = pairs[:, 0] * agents + pairs[:, 1]
        first = np.zeros(len(numbers), dtype=bool)
        first[np.unique(numbers, return_index=True)[1]] = True
        new = first & (pairs[:, 0] != pairs[:, 1]) & ~_among(numbers, used_numbers)
        links = np.concatenate([links, numbers[new]])
        added = np.sort(numbers[new])
        used_numbers = np.insert(used_numbers, np.searchsorted(used_numbers, added), added)
        ends = pairs[~new].ravel()
        failed_pairings = 0 if new.any() else failed_pairings + 1
    return None if len(ends) else np.stack(np.divmod(links, agents), axis=-1)


def _among(numbers: np.ndarray, ascending: np.ndarray) -> np.ndarray:
    """Return True for each number that an ascending array contains, by binary search."""
    if not len(ascending):
        return np.zeros(len(numbers), dtype=bool)
    positions = np.searchsorted(ascending, numbers)
    return ascending[np.minimum(positions, len(ascending) - 1)] == numbers


def first_connected(
    draw: Callable[[], np.ndarray], agents: int, key: str, value: object
) -> np.ndarray:
    """Return the first sampled graph that is connected.

    Parameters
    ----------
    draw : callable
        Samples the edges of one graph, ``[edges, 2]``.

    Returns
    -------
    ndarray of int [edges, 2]

    Raises
    ------
    InvalidInput
        If none of ``ATTEMPTS`` graphs is connected.
    """
    for _ in range(ATTEMPTS):
        links = draw()
        if len(links) >= agents - 1 and links_connect(agents, links):
            return links
    raise InvalidInput(
        key,
        value,
        f"a graph of {agents} agents that can be connected (none in {ATTEMPTS} draws)",
    )


def links_connect(agents: int, links: np.ndarray) -> bool:
    """Return True if every agent can reach every other agent.

    Parameters
    ----------
    links : ndarray of int [edges, 2]
        Undirected edges.
    """
    from scipy.sparse.csgraph import connected_components

    return connected_components(matrix_of(agents, links), directed=False)[0] == 1


def matrix_of(agents: int, links: np.ndarray):
    """Return the sparse adjacency matrix of 0 and 1, with sorted columns in each row.

    Parameters
    ----------
    links : array_like of int [edges, 2]
        Undirected edges; repeated edges count once.

    Returns
    -------
    scipy.sparse.csr_array [agents, agents]
    """
    from scipy.sparse import coo_array

    i, j = np.asarray(links, dtype=np.int64).reshape(-1, 2).T
    ends = np.concatenate([i, j]), np.concatenate([j, i])
    matrix = coo_array((np.ones(2 * len(i)), ends), shape=(agents, agents)).tocsr()
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix
