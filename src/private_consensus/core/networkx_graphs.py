"""Conversion of networkx graphs to edges and mixing weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from private_consensus.common.arrays import require_number
from private_consensus.common.errors import InvalidInput, arguments, require

WEIGHT = "weight"
"""Edge attribute that networkx treats as the weight."""
MAX_DENSE = 4096
"""Largest number of agents of a graph with edge weights."""


class Edges(NamedTuple):
    """Edges and mixing weights of an undirected, connected graph.

    Parameters
    ----------
    edges : list of [int, int]
        Pairs of agents, numbered from 1.
    mixing : ndarray, shape (agents, agents), or None
        Weights of the edges with rows that sum to 1; None if the edges have no weights.
    """

    agents: int
    edges: list[list[int]]
    mixing: np.ndarray | None


def edges_of(graph: Any, edge_weight: str | None) -> Edges:
    """Return the edges of a networkx graph, and mixing weights in the attribute ``edge_weight``.

    Agent i is the i-th node of ``graph.nodes``. A directed or disconnected graph, a multigraph, a
    self-loop, and a graph with weights that ``edge_weight`` does not name raise ``InvalidInput``.
    """
    import networkx as nx

    if edge_weight is not None:
        arguments.text("edge_weight", edge_weight)
    require(isinstance(graph, nx.Graph), "graph", type(graph).__name__, "a networkx.Graph")
    undirected = "an undirected graph, such as graph.to_undirected()"
    require(not graph.is_directed(), "graph", "a directed graph", undirected)
    require(
        not graph.is_multigraph(), "graph", "a multigraph", "a simple graph: networkx.Graph(graph)"
    )
    require(len(graph) > 0, "graph", "a graph without nodes", "at least one node")
    for node in nx.nodes_with_selfloops(graph):
        raise InvalidInput("graph", f"a self-loop at {node!r}", "a graph without self-loops")
    if not nx.is_connected(graph):
        sizes = sorted(map(len, nx.connected_components(graph)), reverse=True)
        connected = "a connected graph, such as one of its components"
        raise InvalidInput("graph", f"a disconnected graph, components of {sizes} nodes", connected)
    has_weights = any(data.get(WEIGHT, 1) != 1 for *_, data in graph.edges(data=True))
    expected = f"edge_weight={WEIGHT!r} to use them, or networkx.Graph(graph.edges) to drop them"
    require(edge_weight is not None or not has_weights, "graph", "edges with weights", expected)
    numbers = {node: number for number, node in enumerate(graph.nodes, 1)}
    edges = [[numbers[a], numbers[b]] for a, b in graph.edges]
    mixing = None if edge_weight is None else _mixing(graph, edges, edge_weight)
    return Edges(len(graph), edges, mixing)


def _mixing(graph: Any, edges: list[list[int]], attribute: str) -> np.ndarray:
    """Return the mixing matrix whose weights are an attribute of the edges."""
    count = len(graph)
    expected = f"at most {MAX_DENSE} nodes for a graph with edge weights"
    require(count <= MAX_DENSE, "graph", f"{count} nodes", expected)
    mixing = np.zeros((count, count))
    for (i, j), (a, b, data) in zip(edges, graph.edges(data=True), strict=True):
        key = f"attribute {attribute} of edge {a!r}, {b!r}"
        require(attribute in data, key, None, "a number >= 0")
        require_number(key, data[attribute], least=0)
        mixing[i - 1, j - 1] = mixing[j - 1, i - 1] = float(data[attribute])
    sums = mixing.sum(1)
    mixing[np.arange(count), np.arange(count)] = 1.0 - sums
    if count > 1 and np.linalg.eigvalsh(mixing)[0] <= -1.0:
        largest = list(graph.nodes)[int(sums.argmax())]
        raise InvalidInput(
            f"attribute {attribute}",
            f"weights with the sum {sums.max():.4g} at node {largest!r}",
            "smaller weights: mixing with these does not converge (an eigenvalue is -1 or less)",
        )
    return mixing
