r"""Communication graphs and mixing matrices.

A :class:`Network` has one graph for all runs, or one graph per run, and a symmetric, doubly
stochastic mixing matrix for each graph. Agents are numbered 0 to n-1. The matrices are dense
arrays or sparse matrices; the methods of a network have the same results for both.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from private_consensus.common import arrays
from private_consensus.common.errors import arguments, require

from . import graphs
from .parameters import require_allowed
from .randomness import Streams

SPARSE_BELOW = 0.125
"""Largest fraction of edges among all pairs of agents for which :func:`build` uses sparse matrices,
in networks of more than :data:`.graphs.SMALL` agents."""
_AXES = ("run", "from agent", "to agent")
MAX_DENSE = 4096
"""Largest number of agents for which sparse matrices are converted to dense arrays."""

Matrices = Any
"""Matrix of all runs, dense or in CSR format; or a dense array [runs, n, n], or a tuple of matrices
in CSR format, with the matrix of each run."""


class Network:
    """Communication graph of the agents, with the weights of one mixing step.

    Values of agents have the shape (..., runs, n, d), or (..., n, d) if all runs share one graph.

    Parameters
    ----------
    adjacency : ndarray of bool, shape ([runs,] n, n)
        Symmetric, no self-loops, connected.
    mixing : ndarray, shape ([runs,] n, n)
        Symmetric, with rows that sum to 1, at least 0 on edges, and 0 for other pairs of
        different agents.

    Raises
    ------
    InvalidInput
        If a matrix does not have these properties.
    """

    def __init__(self, adjacency: np.ndarray, mixing: np.ndarray):
        _require_matrices(adjacency, mixing)
        self._adjacency: Matrices = adjacency
        self._mixing: Matrices = mixing

    @classmethod
    def unchecked(cls, adjacency: Matrices, mixing: Matrices) -> Self:
        """Return a network of matrices, dense or sparse, that are known to be valid."""
        network = object.__new__(cls)
        network._adjacency, network._mixing = adjacency, mixing
        return network

    @staticmethod
    def from_networkx(graph: Any, *, mixing: str = "laplacian", **parameters: Any) -> Network:
        """Build a network from an undirected, connected graph of networkx.

        Parameters
        ----------
        graph : networkx.Graph
            Agent i is the i-th node of ``graph.nodes``.
        mixing : str, default "laplacian"
            Mixing matrix that is computed from the edges; a key of :data:`MIXINGS`.
        **parameters
            Parameters of the mixing matrix, such as ``scale``.

        Raises
        ------
        InvalidInput
            For a directed or disconnected graph, a multigraph, a self-loop, and a graph with edge
            weights, which ``mixing`` does not use.
        """
        import networkx as nx

        arguments.choice("mixing", mixing, graphs.MIXINGS)
        require_allowed(graphs.MIXINGS[mixing], parameters, "network")
        expected = "an undirected networkx.Graph; networkx.Graph(graph) converts other graphs"
        is_graph = isinstance(graph, nx.Graph)
        is_simple = is_graph and not (graph.is_multigraph() or graph.is_directed())
        require(is_simple, "graph", type(graph).__name__, expected)
        drop = "networkx.Graph(graph.edges) to drop them, or Network with a mixing matrix"
        require(not nx.is_weighted(graph), "graph", "edges with weights", drop)
        loops = nx.number_of_selfloops(graph)
        require(loops == 0, "graph", f"self-loops of {loops} agents", "no self-loop")
        edges = np.array(nx.convert_node_labels_to_integers(graph).edges, dtype=int)
        graphs.require_connected(len(graph), edges)
        return _network(len(graph), edges, mixing, parameters)

    @cached_property
    def n_agents(self) -> int:
        return _listed(self._adjacency)[0].shape[-1]

    @cached_property
    def shared(self) -> bool:
        """True if all runs share one graph."""
        return _is_shared(self._adjacency)

    def of_run(self, run: int | slice) -> Network:
        """Return the network of one run, with a graph that is shared, or of a slice of runs."""
        if self.shared:
            return self
        return Network.unchecked(self._adjacency[run], self._mixing[run])

    @property
    def identity(self) -> Hashable:
        """Key that is equal for networks with equal graphs and weights."""
        matrices = *_listed(self._adjacency), *_listed(self._mixing)
        return tuple(
            np.asarray(entries).tobytes()
            for matrix in matrices
            for entries in (*matrix.nonzero(), matrix[matrix.nonzero()])
        )

    @cached_property
    def adjacency(self) -> np.ndarray:
        """Dense adjacency matrix, ([runs,] n, n), for at most ``MAX_DENSE`` agents."""
        return _dense(self._adjacency).astype(bool, copy=False)

    @cached_property
    def mixing(self) -> np.ndarray:
        """Dense mixing matrix, ([runs,] n, n), for at most ``MAX_DENSE`` agents."""
        return _dense(self._mixing)

    # Facts of the graphs, with an axis of runs unless all runs share one graph.

    def _of_graphs(self, function: Callable[[Any], Any], matrices: Matrices) -> np.ndarray:
        results = np.stack([function(matrix) for matrix in _listed(matrices)])
        return results[0] if self.shared else results

    @cached_property
    def degrees(self) -> np.ndarray:
        """Number of neighbours, without the agent itself; shape ([runs,] n)."""
        return self._of_graphs(lambda graph: graph.sum(-1).astype(np.int64), self._adjacency)

    @cached_property
    def own_weights(self) -> np.ndarray:
        """Diagonal of the mixing matrix: weight of each agent's own value; shape ([runs,] n)."""
        return self._of_graphs(lambda matrix: matrix.diagonal(), self._mixing)

    @cached_property
    def consensus_rate(self) -> np.ndarray:
        """Largest absolute eigenvalue of the mixing matrix except the first; shape ([runs])."""
        return self._of_graphs(graphs.second_eigenvalue, self._mixing)

    @cached_property
    def algebraic_connectivity(self) -> np.ndarray:
        """Smallest non-zero eigenvalue of the Laplacian; shape ([runs])."""
        self.require_neighbours()
        return np.linalg.eigvalsh(graphs.laplacian(self.adjacency))[..., 1]

    @cached_property
    def closed_neighbourhoods(self) -> np.ndarray:
        """Neighbours of each agent and the agent itself, ([runs,] n, 1 + largest degree), padded
        with the agent.
        """
        return self._members(closed=True)

    @cached_property
    def open_neighbourhoods(self) -> np.ndarray:
        """Neighbours of each agent, ([runs,] n, largest degree), padded with one of them."""
        self.require_neighbours()
        return self._members(closed=False)

    def require_neighbours(self) -> None:
        """Raise an error for a network of one agent, which has no neighbours."""
        expected = "at least 2, so that agents have neighbours"
        require(self.n_agents > 1, "network.agents", self.n_agents, expected)

    def _members(self, closed: bool) -> np.ndarray:
        width = int(self.degrees.max()) + closed

        def padded(graph):
            """Return the members of each neighbourhood, ascending, then the padding."""
            if closed:
                graph = graph + graphs.diagonal(np.ones(self.n_agents), graph)
            agents, others = graph.nonzero()
            first = np.searchsorted(agents, np.arange(self.n_agents))
            filler = np.arange(self.n_agents) if closed else others[first]
            members = np.repeat(filler[:, None].astype(np.int64), width, axis=1)
            members[agents, np.arange(len(agents)) - first[agents]] = others
            return members

        return self._of_graphs(padded, self._adjacency)

    # Ways of values through the network. Products never add values of different runs, and add the
    # terms of a row in a fixed order: the result of a run does not depend on other runs.

    def mix(self, x: np.ndarray) -> np.ndarray:
        r"""Mix values of agents, :math:`\sum_j w_{ij} x_j`, for ``x`` of shape (..., n, d)."""
        return _product(self._mixing, x)

    def mix_others(self, x: np.ndarray, factor: Any = 1.0) -> np.ndarray:
        r"""Mix values of other agents, :math:`\sum_{j\ne i} c\,w_{ij} x_j`.

        The factor c is a number, or [settings, 1, 1, 1].
        """
        if isinstance(self._others, np.ndarray):
            return _product(factor * self._others, x)
        return factor * _product(self._others, x)

    def sum_links(self, sent: np.ndarray) -> np.ndarray:
        """Sum each agent's own messages, of shape (..., senders, receivers, d), by their weights.

        This needs no communication.
        """
        return (self.mixing[..., None] * sent).sum(-2)

    def mix_links(self, sent: np.ndarray) -> np.ndarray:
        r"""Mix messages :math:`\sum_j w_{ij} m_{j\to i}`, of shape (..., senders, receivers, d)."""
        agents = range(self.n_agents)
        received = [self.mixing[..., v : v + 1, :] @ sent[..., v, :] for v in agents]
        return np.concatenate(received, axis=-2)

    def neighbour_sum(self, x: np.ndarray, accepted: np.ndarray | None = None) -> np.ndarray:
        """Sum the values, [..., n, d], of each agent's neighbours.

        With ``accepted``, [..., n, n], an agent includes only the neighbours (last axis) for which
        it is True.
        """
        if accepted is None:
            return _product(self._adjacency, x)
        return (self.adjacency & accepted).astype(float) @ x

    def gather(self, x: np.ndarray, neighbourhoods: np.ndarray) -> np.ndarray:
        """Return the values, [S, R, n, members, d], of the members of each neighbourhood.

        Values are [S, R, n, d] for S settings and R runs. Indices of members are [n, members] if
        all runs share a graph, else [R, n, members].
        """
        if neighbourhoods.ndim == 2:
            return x[..., neighbourhoods, :]
        runs = np.arange(len(neighbourhoods))[:, None, None]
        return x[:, runs, neighbourhoods]

    def combine(self, x: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return a function of the values of all agents, which a server sends to every agent.

        The server may be replaced by a protocol that computes the function, such as a secure sum.
        """
        return function(x)

    @cached_property
    def _others(self) -> Matrices:
        """Mixing matrices without their diagonals."""
        return _each(_without_diagonal, self._mixing)


# --- Dense and sparse matrices --------------------------------------------------------------------


def _is_shared(matrices: Matrices) -> bool:
    return not isinstance(matrices, tuple) and matrices.ndim == 2


def _listed(matrices: Matrices) -> Sequence[Any]:
    """Return the matrix of each graph."""
    return [matrices] if _is_shared(matrices) else matrices


def _each(function: Callable[[Any], Any], matrices: Matrices) -> Matrices:
    """Apply a function of dense arrays or of a sparse matrix to all matrices."""
    return tuple(map(function, matrices)) if isinstance(matrices, tuple) else function(matrices)


def _dense(matrices: Matrices) -> np.ndarray:
    if isinstance(matrices, np.ndarray):
        return matrices
    agents = _listed(matrices)[0].shape[-1]
    expected = f"at most {MAX_DENSE}: the computation stores an agents x agents matrix"
    require(agents <= MAX_DENSE, "network.agents", agents, expected)
    stacked = np.stack([matrix.toarray() for matrix in _listed(matrices)])
    return stacked[0] if _is_shared(matrices) else stacked


def _product(matrices: Matrices, x: np.ndarray) -> np.ndarray:
    """Multiply matrices by values [..., n, d], in the precision of the values."""
    if isinstance(matrices, tuple):
        products = [_product(matrix, x[..., run, :, :]) for run, matrix in enumerate(matrices)]
        return np.stack(products, axis=-3)
    kind = np.result_type(x, np.float32)
    matrix = matrices if matrices.dtype == kind else matrices.astype(kind)
    if isinstance(matrix, np.ndarray):
        return matrix @ x
    n, d = x.shape[-2:]
    result = (matrix @ np.moveaxis(x, -2, 0).reshape(n, -1)).reshape(n, *x.shape[:-2], d)
    return np.ascontiguousarray(np.moveaxis(result, 0, -2))


def _diagonal_of(matrix: Any) -> np.ndarray:
    if isinstance(matrix, np.ndarray):
        return np.diagonal(matrix, axis1=-2, axis2=-1)
    return matrix.diagonal()


def _without_diagonal(matrix: Any) -> Any:
    return matrix - graphs.diagonal(_diagonal_of(matrix), matrix)


def _require_matrices(adjacency: np.ndarray, mixing: np.ndarray) -> None:
    """Raise :class:`InvalidInput` unless the dense matrices are those of a network."""
    agents = ("run", "agent")
    arrays.require_array("network.adjacency", adjacency, _AXES, optional=1, kinds="b")
    square = (*adjacency.shape[:-1], adjacency.shape[-2])
    arrays.require_shape("network.adjacency", adjacency, square, "a square matrix")
    arrays.require_array("network.mixing", mixing, _AXES, optional=1)
    arrays.require_shape("network.mixing", mixing, adjacency.shape, "the adjacency")
    key, loops, reverse = "network.adjacency", _diagonal_of(adjacency), adjacency.swapaxes(-1, -2)
    arrays.require_each(~loops, key, loops, agents, "no self-loop")
    expected = "an undirected graph; this graph is directed, without the reverse edge"
    arrays.require_each(~adjacency | reverse, key, adjacency, _AXES, expected)
    key, rounding, sums = "network.mixing", arrays.tolerance_of(mixing), mixing.sum(-1)
    arrays.require_finite(key, mixing, _AXES)
    is_symmetric = np.abs(mixing - mixing.swapaxes(-1, -2)) <= rounding
    arrays.require_each(is_symmetric, key, mixing, _AXES, "a symmetric matrix")
    is_one = np.abs(sums - 1.0) <= rounding * sums.shape[-1]
    arrays.require_each(is_one, f"sum of row of {key}", sums, agents, "1")
    weights, expected = _without_diagonal(mixing), "0, as these agents have no edge"
    arrays.require_each((weights == 0) | adjacency, key, mixing, _AXES, expected)
    arrays.require_each(weights >= 0, key, mixing, _AXES, "a weight >= 0 on an edge")
    for graph in _listed(adjacency):
        graphs.require_connected(len(graph), np.argwhere(graph))


def require_same_agents(problem: Any, network: Any) -> None:
    """Raise :class:`InvalidInput` if problem and network have different numbers of agents."""
    agents, nodes = problem.n_agents, network.n_agents
    require(agents == nodes, "problem", f"{agents} agents", f"{nodes} agents, as the network has")


# --- Construction ---------------------------------------------------------------------------------


def build(
    streams: Streams, name: str, agents: int, *, weights: str = "laplacian", **parameters
) -> Network:
    """Build a network of a graph family with mixing weights.

    Its matrices are sparse for many agents and few edges.

    Parameters
    ----------
    streams : Streams
        Random streams of the runs; random graphs come from the stream ``graph``.
    name : str
        Graph family: ``complete``, ``ring``, ``path``, ``star``, ``grid``, ``edges`` (given),
        ``erdos_renyi``, ``random_edges``, ``random_regular``; ``single`` for one agent.
    agents : int
        Number of agents.
    weights : {"laplacian", "metropolis"}
        Mixing matrix.
    **parameters
        Parameters of the graph family: ``probability`` (``erdos_renyi``), ``edges``
        (``random_edges``, ``edges``), ``degree`` (``random_regular``), ``rows`` (``grid``); and
        ``scale`` of Laplacian weights.

    Raises
    ------
    InvalidInput
        For fewer than two agents (``single``: other than one), an unknown name, a missing or
        unknown parameter, or a graph that cannot be connected.
    """
    graphs.require_buildable(name, agents, weights=weights, **parameters)
    options = {"scale": parameters.pop("scale")} if "scale" in parameters else {}
    edges = graphs.GRAPHS[name](streams.generators("graph"), agents, **parameters)
    return _network(agents, edges, weights, options)


def _network(agents: int, edges: graphs.Edges, weights: str, options: Mapping[str, Any]) -> Network:
    """Return the network of the edges of one graph, or of the graph of each run."""
    adjacency = _adjacency(agents, edges)
    mixing = _each(lambda graph: graphs.MIXINGS[weights](graph, **options), adjacency)
    return Network.unchecked(adjacency, mixing)


def _adjacency(agents: int, edges: graphs.Edges) -> Matrices:
    """Return adjacency matrices, which are sparse for many agents and few edges."""
    is_shared = isinstance(edges, np.ndarray)
    edges_of_runs = [edges] if is_shared else edges
    matrices = tuple(graphs.matrix_of(agents, edges_of_run) for edges_of_run in edges_of_runs)
    most_entries = max(matrix.nnz for matrix in matrices)
    if agents <= graphs.SMALL or most_entries >= SPARSE_BELOW * agents**2:
        matrices = np.stack([matrix.toarray().astype(bool) for matrix in matrices])
    return matrices[0] if is_shared else matrices
