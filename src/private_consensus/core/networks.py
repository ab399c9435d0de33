r"""Communication graphs and mixing matrices.

A :class:`Network` has the adjacency matrix of one graph ``[n, n]``, or of one graph per run
``[R, n, n]``, and a symmetric, doubly stochastic mixing matrix of the same shape. Agents are
numbered 0 to n-1. For many agents and few edges, :func:`build` returns a :class:`.SparseNetwork`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from inspect import signature
from itertools import pairwise
from math import isqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from private_consensus.common.arrays import (
    require_array,
    require_each,
    require_finite,
    require_shape,
    tolerance_of,
)
from private_consensus.common.errors import InvalidInput, arguments, require

from . import large_graphs, large_networks, networkx_graphs
from .randomness import Streams

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DENSE_UP_TO = 256
"""Largest number of agents for which :func:`build` always returns a dense network."""

SPARSE_BELOW = 0.125
"""Largest fraction of nonzero entries of the adjacency matrix of a sparse network."""

MAX_ATTEMPTS = 2**20
"""Number of sampled graphs after which a random family is refused as not connectable."""

LARGEST_DENSE = 4096
"""Largest number of agents for which a sparse network computes dense matrices."""

PROBES = 64
"""Number of random vectors of Hutchinson's trace estimator."""

ATTEMPTS_TOGETHER = 32
"""Number of graphs that are sampled together; the result does not depend on it."""


@dataclass(frozen=True)
class Network:
    """Communication graph of the agents, with the weights of one mixing step.

    Parameters
    ----------
    adjacency : ndarray of bool, shape ([R,] n, n)
        Symmetric, no self-loops, connected.
    mixing : ndarray, shape ([R,] n, n)
        Symmetric, with rows that sum to 1, at least 0 on edges, and 0 for other pairs of
        different agents.

    Raises
    ------
    InvalidInput
        If a matrix does not have these properties. Every method needs an undirected, connected
        graph.
    """

    adjacency: np.ndarray
    mixing: np.ndarray

    lossless: ClassVar[bool] = True
    """True if no message is lost."""

    def __post_init__(self):
        _require_adjacency(self.adjacency)
        _require_mixing(self.mixing, self.adjacency)
        require(
            bool(connected(self.adjacency).all()),
            "network",
            "disconnected graph",
            "a connected graph",
        )

    @staticmethod
    def from_networkx(
        graph: Any, *, mixing: str = "laplacian", edge_weight: str | None = None, **parameters: Any
    ) -> Network:
        """Build a network from an undirected, connected graph of networkx.

        Parameters
        ----------
        graph : networkx.Graph
            Agent i is the i-th node of ``graph.nodes``.
        mixing : str, default "laplacian"
            Mixing matrix that is computed from the edges; a key of :data:`MIXINGS`.
        edge_weight : str, optional
            Edge attribute that holds the mixing weights, in place of ``mixing``. The weight of an
            agent's own value is 1 minus the sum of the weights of its edges.
        **parameters
            Parameters of the mixing matrix, such as ``scale``.

        Returns
        -------
        Network
            A :class:`SparseNetwork` for many agents and few edges, like :func:`build`.

        Raises
        ------
        InvalidInput
            For a directed or disconnected graph, a multigraph, a self-loop, and a graph with
            weights that ``edge_weight`` does not name.
        """
        arguments.choice("mixing", mixing, MIXINGS)
        agents, edges, weights = networkx_graphs.edges_of(graph, edge_weight)
        if weights is not None:
            return Network(weights.astype(bool) & ~np.eye(agents, dtype=bool), weights)
        if agents == 1:
            return build(Streams(0, (0,)), "single", 1)
        return build(Streams(0, (0,)), "edges", agents, weights=mixing, edges=edges, **parameters)

    def to_networkx(self, run: int = 0) -> Any:
        """Return the graph of a run as a networkx.Graph; ``weight`` is the mixing weight."""
        import networkx as nx

        graph, mixing = nx.Graph(), self.mixing_of(run)
        graph.add_nodes_from(range(self.n_agents))
        rows, columns = self.adjacency_of(run).nonzero()
        for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
            if i < j:
                graph.add_edge(i, j, weight=float(mixing[i, j]))
        return graph

    @property
    def n_agents(self) -> int:
        return self.adjacency.shape[-1]

    @property
    def shared(self) -> bool:
        """True if all runs share one graph."""
        return self.adjacency.ndim == 2

    def of_runs(self, first: int, last: int) -> Network:
        """Return the graphs of runs ``first`` to ``last - 1``.

        Parameters
        ----------
        first : int
            Index of the first run.
        last : int
            Index after the last run.

        Returns
        -------
        Network
            The network itself if all runs share one graph.
        """
        if self.shared:
            return self
        return self._with_graphs(slice(first, last))

    def of_run(self, run: int) -> Network:
        """Return the network of one run, with a graph that all runs share."""
        return self if self.shared else self._with_graphs(run)

    def _with_graphs(self, runs: int | slice) -> Network:
        """Return the network of some runs, or of one run, without validating it again."""
        network = object.__new__(Network)
        vars(network).update(adjacency=self.adjacency[runs], mixing=self.mixing[runs])
        return network

    @property
    def graph(self) -> Network:
        """Network without faults, which the agents know before a run."""
        return self

    def adjacency_of(self, run: int) -> np.ndarray | csr_array:
        """Return the adjacency matrix of one run."""
        return self.adjacency if self.shared else self.adjacency[run]

    def mixing_of(self, run: int) -> np.ndarray | csr_array:
        """Return the mixing matrix of one run."""
        return self.mixing if self.shared else self.mixing[run]

    def exchange(self) -> Callable[[int, int], Any]:
        """Return the function that maps setting and run to the mixing matrix of a round."""
        return lambda setting, run: self.mixing_of(run)

    @property
    def identity(self) -> Hashable:
        """Key that is equal for networks with equal graphs and weights."""
        return self.adjacency.tobytes(), self.mixing.tobytes()

    @property
    def own_weights(self) -> np.ndarray:
        """Diagonal of the mixing matrix: weight of each agent's own value; shape ([R,] n)."""
        return np.diagonal(self.mixing, axis1=-2, axis2=-1)

    @cached_property
    def consensus_rate(self) -> np.ndarray:
        """Largest absolute eigenvalue of the mixing matrix except the first; shape ([R])."""
        return second_eigenvalue(self.mixing)

    @cached_property
    def algebraic_connectivity(self) -> np.ndarray:
        """Smallest non-zero eigenvalue of the Laplacian; shape ([R])."""
        return np.linalg.eigvalsh(laplacian(self.adjacency))[..., 1]

    @cached_property
    def degrees(self) -> np.ndarray:
        """Number of neighbours, without the agent itself; shape ([R,] n)."""
        return self.adjacency.sum(-1)

    @property
    def _graphs(self) -> tuple[csr_array, ...]:
        """Sparse adjacency matrix of each graph."""
        from scipy.sparse import csr_array

        return tuple(
            csr_array(m, dtype=float)
            for m in self.adjacency.reshape(-1, self.n_agents, self.n_agents)
        )

    def _by_run(self, values: Iterable[np.ndarray]) -> np.ndarray:
        stack = np.stack(list(values))
        return stack[0] if self.shared else stack

    @cached_property
    def closed_neighbourhoods(self) -> np.ndarray:
        """Neighbours of each agent and the agent itself, ([R,] n, 1 + largest degree), padded
        with the agent.
        """
        from scipy.sparse import eye_array

        identity = eye_array(self.n_agents, format="csr")
        agents = np.arange(self.n_agents)
        closed_graphs = [(graph + identity).tocsr() for graph in self._graphs]
        return self._by_run(large_networks.padded_rows(closed_graphs, agents))

    @cached_property
    def open_neighbourhoods(self) -> np.ndarray:
        """Neighbours of each agent, ([R,] n, largest degree), padded with one of them."""
        return self._by_run(large_networks.padded_rows(self._graphs, None))

    def gather(self, x: np.ndarray, neighbourhoods: np.ndarray) -> np.ndarray:
        """Return the values of the members of each neighbourhood.

        Parameters
        ----------
        x : ndarray [S, R, n, d]
            Values of the agents, for S settings and R runs.
        neighbourhoods : ndarray of int
            Indices of the members: [n, members] if all runs share a graph, else [R, n, members].

        Returns
        -------
        ndarray [S, R, n, members, d]
        """
        if neighbourhoods.ndim == 2:
            return x[..., neighbourhoods, :]
        runs = np.arange(len(neighbourhoods))[:, None, None]
        return x[:, runs, neighbourhoods]

    def neighbours_of(self, agent: int) -> np.ndarray:
        """Return the neighbours of an agent of the first graph, ascending."""
        return self.adjacency_of(0)[[agent]].nonzero()[1].astype(np.int64)

    def links_among(self, agents: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the edges between some agents of the first graph, [agents, agents] of bool."""
        edges = self.adjacency_of(0)[agents][:, agents]
        return edges if isinstance(edges, np.ndarray) else edges.toarray().astype(bool)

    @cached_property
    def _links(self) -> np.ndarray:
        return self.adjacency.astype(float)

    def mix(self, x: np.ndarray) -> np.ndarray:
        r"""Mix values of agents, :math:`\sum_j w_{ij} x_j`, for ``x`` of shape (..., n, d)."""
        return self.mixing @ x

    def neighbour_sum(self, x: np.ndarray) -> np.ndarray:
        r"""Sum the values of each agent's neighbours, for ``x`` of shape (..., n, d)."""
        return self._links @ x

    def mix_links(self, sent: np.ndarray) -> np.ndarray:
        r"""Mix messages :math:`\sum_j w_{ij} m_{j\to i}`, of shape (..., senders, receivers, d)."""
        agents = range(self.n_agents)
        received = [self.mixing[..., v : v + 1, :] @ sent[..., v, :] for v in agents]
        return np.concatenate(received, axis=-2)

    def mix_others(self, factor: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of the agents' own values, and the mixed values of other agents.

        Parameters
        ----------
        factor : float or ndarray, broadcastable to [settings, runs, agents, agents]
            Factor of the weights of other agents.
        x : ndarray, shape (settings, runs, agents, dim)
            Messages.

        Returns
        -------
        own_weights : ndarray, shape ([runs,] agents)
            Not multiplied by the factor.
        mixed : ndarray
            With the shape of ``x``.
        """
        own = self.own_weights
        others = factor * (self.mixing * (1.0 - np.eye(self.n_agents)))
        return own, others.astype(x.dtype, copy=False) @ x

    def diffuse(self, x: np.ndarray, gram: np.ndarray) -> np.ndarray:
        r"""Return the product :math:`(L \otimes I_n + G)x` with the Laplacian L of the graph.

        Parameters
        ----------
        x : ndarray, shape (settings, runs, agents, dim)
            Messages.
        gram : ndarray, shape (agents * dim, agents * dim)
            Matrix G, whose blocks between different agents are 0.

        Returns
        -------
        ndarray, shape (settings, runs, agents, dim)
        """
        flat, dim = x.reshape(*x.shape[:2], -1), x.shape[-1]
        adjacency = self.adjacency
        matrix = _spread_laplacian(adjacency.tobytes(), adjacency.shape, dim) + gram
        if matrix.ndim == 2:
            return (flat @ matrix).reshape(x.shape)
        return (flat[..., None, :] @ matrix)[..., 0, :].reshape(x.shape)

    def sum_links(self, sent: np.ndarray) -> np.ndarray:
        """Return the sums of the messages of each agent to all agents, with the mixing weights.

        An agent computes this sum of its own messages without communication.

        Parameters
        ----------
        sent : ndarray, shape (..., agents, receivers, dim)
            Messages of all agents.

        Returns
        -------
        ndarray, shape (..., agents, dim)
        """
        return (self.mixing[..., None] * sent).sum(-2)


class SparseNetwork(Network):
    """Network with sparse matrices: one graph for all runs, or one graph per run.

    Time and memory are linear in the numbers of agents and edges. In addition to the methods of
    a :class:`Network`, methods such as :meth:`own_ends` return one value per directed edge, for
    quantities that are not products with a matrix.

    Parameters
    ----------
    graphs : tuple of csr_array, (n, n)
        Adjacency: 1 for an edge, symmetric, without self-loops, connected.
    weights : tuple of csr_array, (n, n)
        Mixing matrices: symmetric, with rows that sum to 1, at least 0 on edges, and 0 for
        other pairs of different agents.
    shared : bool
        True if all runs share the only graph.
    """

    graphs: tuple[csr_array, ...]
    weights: tuple[csr_array, ...]
    _shared: bool

    __eq__, __hash__ = object.__eq__, object.__hash__

    def __init__(self, graphs: tuple[csr_array, ...], weights: tuple[csr_array, ...], shared: bool):
        from scipy.sparse.csgraph import connected_components

        vars(self).update(graphs=graphs, weights=weights, _shared=shared)
        valid_counts = len(graphs) == len(weights) >= 1 and (len(graphs) == 1 or not shared)
        actual = f"{len(graphs)} graphs and {len(weights)} mixing matrices"
        expected = "one mixing matrix per graph, and a single graph if all runs share it"
        require(valid_counts, "network", actual, expected)
        for graph, matrix in zip(graphs, weights, strict=True):
            large_networks.require_graph(graph, self.n_agents)
            large_networks.require_weights(matrix, graph)
            is_connected = connected_components(graph, directed=False)[0] == 1
            require(is_connected, "network", "disconnected graph", "a connected graph")

    @property
    def n_agents(self) -> int:
        return self.graphs[0].shape[0]

    @property
    def shared(self) -> bool:
        return self._shared

    def _with_graphs(self, runs: int | slice) -> SparseNetwork:
        selection = runs if isinstance(runs, slice) else slice(runs, runs + 1)
        matrices = {"graphs": self.graphs[selection], "weights": self.weights[selection]}
        network = object.__new__(SparseNetwork)
        vars(network).update(matrices, _shared=not isinstance(runs, slice))
        return network

    @property
    def _graphs(self) -> tuple[csr_array, ...]:
        return self.graphs

    @property
    def adjacency(self) -> np.ndarray:
        """Dense adjacency matrix, ([R,] n, n), for at most ``LARGEST_DENSE`` agents."""
        return self._dense(self.graphs).astype(bool)

    @property
    def mixing(self) -> np.ndarray:
        """Dense mixing matrix, ([R,] n, n), for at most ``LARGEST_DENSE`` agents."""
        return self._dense(self.weights)

    def _dense(self, matrices) -> np.ndarray:
        expected = f"at most {LARGEST_DENSE}: the computation stores an agents x agents matrix"
        require(self.n_agents <= LARGEST_DENSE, "network.agents", self.n_agents, expected)
        dense = np.stack([matrix.toarray() for matrix in matrices])
        return dense[0] if self.shared else dense

    def adjacency_of(self, run: int) -> csr_array:
        return self.graphs[0 if self.shared else run]

    def mixing_of(self, run: int) -> csr_array:
        return self.weights[0 if self.shared else run]

    @cached_property
    def identity(self) -> bytes:
        digest = hashlib.sha256()
        for matrix in (*self.graphs, *self.weights):
            for array in (matrix.indptr, matrix.indices, matrix.data):
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.digest()

    @cached_property
    def degrees(self) -> np.ndarray:
        return self._by_run(np.diff(graph.indptr).astype(np.int64) for graph in self.graphs)

    @cached_property
    def own_weights(self) -> np.ndarray:
        return self._by_run(matrix.diagonal() for matrix in self.weights)

    @cached_property
    def consensus_rate(self) -> np.ndarray:
        return self._by_run(
            np.asarray(large_networks.second_eigenvalue(matrix)) for matrix in self.weights
        )

    @cached_property
    def algebraic_connectivity(self) -> np.ndarray:
        return self._by_run(
            np.asarray(large_networks.algebraic_connectivity(graph)) for graph in self.graphs
        )

    def traces_of_powers(self, highest: int) -> np.ndarray:
        """Estimate the traces of the powers 0, ..., ``highest`` of the first mixing matrix by
        Hutchinson's estimator with ``PROBES`` fixed vectors of signs.
        """
        matrix, n = self.weights[0], self.n_agents
        vectors = np.random.default_rng(0).integers(0, 2, (n, PROBES)) * 2.0 - 1.0
        traces = []
        while len(traces) <= highest:
            products = matrix @ vectors
            traces += [(vectors * vectors).sum() / PROBES, (vectors * products).sum() / PROBES]
            vectors = products
        return np.array(traces[: highest + 1])

    # Products never add values of different runs, and add the terms of a row in a fixed order: the
    # result of a run does not depend on other runs.

    def mix(self, x: np.ndarray) -> np.ndarray:
        r"""Mix values of agents, :math:`\sum_j w_{ij} x_j`, for ``x`` of shape (..., n, d)."""
        return self._times(self.weights, x)

    def neighbour_sum(self, x: np.ndarray) -> np.ndarray:
        return self._times(self.graphs, x)

    def _times(self, matrices, x: np.ndarray) -> np.ndarray:
        if self.shared:
            return large_networks.product(matrices[0], x)
        return np.stack(
            [large_networks.product(m, x[..., run, :, :]) for run, m in enumerate(matrices)],
            axis=-3,
        )

    # Directed edges, ordered by run, then by agent, then by neighbour.

    @cached_property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        agents = np.arange(len(self.graphs) * self.n_agents)
        tails = np.repeat(agents, np.reshape(self.degrees, -1))
        heads = [g.indices + np.int64(run * self.n_agents) for run, g in enumerate(self.graphs)]
        return tails, np.concatenate(heads)

    @cached_property
    def _first_links(self) -> np.ndarray:
        """Index of the first edge of each agent."""
        counts = np.reshape(self.degrees, -1)
        return np.concatenate([[0], counts.cumsum()[:-1]])

    def own_ends(self, x: np.ndarray) -> np.ndarray:
        """Return, for each directed edge, the value of the agent at its tail.

        Parameters
        ----------
        x : ndarray, shape (..., [R,] n, d)
            Values of the agents.

        Returns
        -------
        ndarray, shape (..., edges, d)
        """
        return self._flat(x)[..., self._ends[0], :]

    def other_ends(self, x: np.ndarray) -> np.ndarray:
        """Return, for each directed edge, the value of the neighbour at its head.

        Parameters
        ----------
        x : ndarray, shape (..., [R,] n, d)
            Values of the agents.

        Returns
        -------
        ndarray, shape (..., edges, d)
        """
        return self._flat(x)[..., self._ends[1], :]

    def _flat(self, x: np.ndarray) -> np.ndarray:
        return x if self.shared else x.reshape(*x.shape[:-3], -1, x.shape[-1])

    def sum_at_links(self, values: np.ndarray) -> np.ndarray:
        """Sum values of directed edges, (..., edges, d), over the edges of each agent.

        The result has shape (..., [R,] n, d).
        """
        summed = np.add.reduceat(values, self._first_links, axis=-2)
        if self.shared:
            return summed
        return summed.reshape(*values.shape[:-2], -1, self.n_agents, values.shape[-1])

    @cached_property
    def reversed_links(self) -> np.ndarray:
        """Index of the edge in the opposite direction, for each edge."""
        tails, heads = self._ends
        return np.lexsort((tails, heads))

    @cached_property
    def link_weights(self) -> np.ndarray:
        """Mixing weight of the neighbour, one number per edge."""
        weights = []
        for graph, matrix in zip(self.graphs, self.weights, strict=True):
            tails = np.repeat(np.arange(self.n_agents), np.diff(graph.indptr))
            weights.append(np.asarray(matrix[tails, graph.indices]).ravel())
        return np.concatenate(weights)

    @cached_property
    def pairs_of_links(self) -> tuple[np.ndarray, np.ndarray]:
        """Index of the undirected edge of each directed edge, and a sign.

        The sign is 1 if the tail of the directed edge is the agent with the lower index, else -1.
        """
        tails, heads = self._ends
        low, high = np.minimum(tails, heads), np.maximum(tails, heads)
        _, number = np.unique(low * (high.max() + 1) + high, return_inverse=True)
        return number, np.where(tails < heads, 1.0, -1.0)


_AXES = ("run", "from agent", "to agent")


def _require_adjacency(adjacency: np.ndarray) -> None:
    require_array("network.adjacency", adjacency, _AXES, optional=1, kinds="b")
    square = (*adjacency.shape[:-1], adjacency.shape[-2])
    require_shape("network.adjacency", adjacency, square, "a square matrix")
    self_loops = np.diagonal(adjacency, axis1=-2, axis2=-1)
    require_each(~self_loops, "network.adjacency", self_loops, ("run", "agent"), "no self-loop")
    reverse = adjacency.swapaxes(-1, -2)
    expected = "an undirected graph; this graph is directed, without the reverse edge"
    require_each(~adjacency | reverse, "network.adjacency", adjacency, _AXES, expected)


def _require_mixing(mixing: np.ndarray, adjacency: np.ndarray) -> None:
    require_array("network.mixing", mixing, _AXES, optional=1)
    require_shape("network.mixing", mixing, adjacency.shape, "the adjacency")
    require_finite("network.mixing", mixing, _AXES)
    rounding = tolerance_of(mixing)
    is_symmetric = np.abs(mixing - mixing.swapaxes(-1, -2)) <= rounding
    require_each(is_symmetric, "network.mixing", mixing, _AXES, "a symmetric matrix")
    sums = mixing.sum(-1)
    sums_to_one = np.abs(sums - 1.0) <= rounding * max(1, mixing.shape[-1])
    require_each(sums_to_one, "sum of row of network.mixing", sums, ("run", "agent"), "1")
    is_diagonal = np.eye(mixing.shape[-1], dtype=bool)
    only_on_edges = adjacency | is_diagonal | (mixing == 0)
    require_each(only_on_edges, "network.mixing", mixing, _AXES, "0, as these agents have no edge")
    is_nonnegative = is_diagonal | (mixing >= 0)
    require_each(is_nonnegative, "network.mixing", mixing, _AXES, "a weight >= 0 on an edge")


def require_same_agents(problem: Any, network: Any) -> None:
    """Raise :class:`.InvalidInput` if a problem and a network have different numbers of agents."""
    agents, nodes = problem.n_agents, network.n_agents
    require(agents == nodes, "problem", f"{agents} agents", f"{nodes} agents, as the network has")


@lru_cache(maxsize=4)
def _spread_laplacian(adjacency: bytes, shape: tuple[int, ...], dim: int) -> np.ndarray:
    r"""Return the Laplacian of all coordinates, :math:`L \otimes I_n`, of one or several graphs."""
    graph_laplacian = laplacian(np.frombuffer(adjacency, dtype=bool).reshape(shape))
    size = shape[-1] * dim
    blocks = graph_laplacian[..., :, None, :, None] * np.eye(dim)[:, None, :]
    return blocks.reshape(*shape[:-2], size, size)


def laplacian(adjacency: np.ndarray) -> np.ndarray:
    """Compute the Laplacian, degree matrix minus adjacency matrix; shape (..., n, n)."""
    degrees = adjacency.sum(-1)
    return degrees[..., None] * np.eye(adjacency.shape[-1]) - adjacency


def laplacian_mixing(adjacency: np.ndarray, *, scale: float = 1.5) -> np.ndarray:
    r"""Compute the Laplacian mixing matrix :math:`W = I - L / (c\,\lambda_{\max}(L))`.

    Showkatbakhsh et al., section V, use :math:`c = 3/2`. For :math:`c > 1/2` the eigenvalues
    are in (-1, 1].

    Parameters
    ----------
    adjacency : ndarray [..., n, n]
        Adjacency matrices.
    scale : float, default 1.5
        Factor c.

    Returns
    -------
    ndarray [..., n, n]
        Symmetric, doubly stochastic matrices W.
    """
    require(scale > 0.5, "network.scale", scale, "a number > 0.5")
    graph_laplacian = laplacian(adjacency)
    largest = np.linalg.eigvalsh(graph_laplacian)[..., -1]
    return np.eye(adjacency.shape[-1]) - graph_laplacian / (scale * largest[..., None, None])


def metropolis_mixing(adjacency: np.ndarray) -> np.ndarray:
    r"""Compute Metropolis weights: :math:`w_{ij} = 1/(1+\max(d_i, d_j))` on edges.

    The diagonal makes the rows sum to 1. The adjacency has shape (..., n, n).
    """
    degrees = adjacency.sum(-1)
    weights = adjacency / (1.0 + np.maximum(degrees[..., :, None], degrees[..., None, :]))
    return weights + np.eye(adjacency.shape[-1]) * (1.0 - weights.sum(-1))[..., None]


def max_degree_mixing(adjacency: np.ndarray) -> np.ndarray:
    r"""Compute maximum-degree weights :math:`W = I - L/(d_{\max}+1)`; shape (..., n, n)."""
    largest = adjacency.sum(-1).max(-1)
    return np.eye(adjacency.shape[-1]) - laplacian(adjacency) / (1.0 + largest[..., None, None])


MIXINGS: dict[str, Callable[..., np.ndarray]] = {
    "laplacian": laplacian_mixing,
    "metropolis": metropolis_mixing,
    "max_degree": max_degree_mixing,
}


def second_eigenvalue(mixing: np.ndarray) -> np.ndarray:
    """Compute the largest absolute eigenvalue of mixing matrices except the eigenvalue 1.

    It is the factor by which a mixing step reduces disagreement, and 0 for a single agent.
    """
    if mixing.shape[-1] == 1:
        return np.zeros(mixing.shape[:-2])
    eigenvalues = np.linalg.eigvalsh(mixing)
    return np.maximum(np.abs(eigenvalues[..., 0]), np.abs(eigenvalues[..., -2]))


def connected(adjacency: np.ndarray) -> np.ndarray | np.bool:
    """Return True for each connected graph; the adjacency has shape (..., n, n)."""
    n = adjacency.shape[-1]
    if n > DENSE_UP_TO:
        graphs = adjacency.reshape(-1, n, n)
        results = [large_graphs.links_connect(n, np.argwhere(graph)) for graph in graphs]
        return np.reshape(results, adjacency.shape[:-2])
    links = adjacency.astype(np.float32)
    reached = np.broadcast_to(np.arange(n) == 0, adjacency.shape[:-1])
    while True:  # breadth-first search from the first agent
        extended = reached | (np.vecmat(reached.astype(np.float32), links) > 0)
        if np.array_equal(extended, reached):
            return reached.all(-1)
        reached = extended


def erdos_renyi(streams: Streams, agents: int, *, probability: float) -> np.ndarray:
    """Sample one connected G(n, p) graph per run, by rejection.

    An edge exists if its uniform variable is less than ``probability``. The uniform variables do
    not depend on ``probability``.

    Parameters
    ----------
    agents : int
        Number of agents n.
    probability : float
        Probability p of each edge, in (0, 1].

    Returns
    -------
    ndarray [runs, agents, agents]
        Adjacency matrices.

    Raises
    ------
    InvalidInput
        If no graph was connected after ``MAX_ATTEMPTS`` graphs.
    """
    require(0 < probability <= 1, "network.probability", probability, "a number in (0, 1]")
    upper = np.triu_indices(agents, 1)

    def attempt(generator, count):
        return generator.random((count, len(upper[0]))) < probability

    return _connected_draws(streams, agents, attempt, "network.probability", probability)


def random_regular(streams: Streams, agents: int, *, degree: int) -> np.ndarray:
    """Sample one connected regular graph per run (see :func:`.large_graphs.random_regular`).

    Parameters
    ----------
    degree : int
        Number of neighbours of every agent.

    Returns
    -------
    ndarray [runs, agents, agents]
        Adjacency matrices.
    """
    links = _regular_links(streams, agents, degree=degree)
    return np.stack([_linked(agents, of_run) for of_run in links])


def grid(streams: Streams, agents: int, *, rows: int) -> np.ndarray:
    """Return a rectangular grid, identical in every run.

    Parameters
    ----------
    streams : Streams
        Ignored; all graph families have this parameter.
    agents : int
        Number of agents, a multiple of ``rows``.

    Returns
    -------
    ndarray [agents, agents]
        Adjacency matrix.
    """
    return _linked(agents, large_graphs.grid(agents, rows=rows))


def random_edges(streams: Streams, agents: int, *, edges: int) -> np.ndarray:
    """Sample one connected graph per run, uniformly among those with a given number of edges.

    Returns
    -------
    ndarray [runs, agents, agents]
        Adjacency matrices.
    """
    pairs = agents * (agents - 1) // 2
    _require_edges(agents, edges)

    def attempt(generator, count):
        ranks = generator.random((count, pairs)).argsort(axis=1).argsort(axis=1)
        return ranks < edges

    return _connected_draws(streams, agents, attempt, "network.edges", edges)


def _connected_draws(streams, agents, attempt, key, value) -> np.ndarray:
    return np.stack(
        [
            _first_connected(generator, agents, attempt, key, value)
            for generator in streams.generators("graph")
        ]
    )


def _first_connected(generator, agents, attempt, key, value) -> np.ndarray:
    upper = np.triu_indices(agents, 1)
    for _ in range(-(-MAX_ATTEMPTS // ATTEMPTS_TOGETHER)):
        links = attempt(generator, ATTEMPTS_TOGETHER)
        links = links[links.sum(1) >= agents - 1]
        adjacency = np.zeros((len(links), agents, agents), dtype=bool)
        adjacency[:, upper[0], upper[1]] = links
        adjacency |= adjacency.transpose(0, 2, 1)
        candidates = np.flatnonzero(connected(adjacency))
        if candidates.size:
            return adjacency[candidates[0]]
    raise InvalidInput(
        key,
        value,
        f"a graph of {agents} agents that can be connected (none in {MAX_ATTEMPTS} draws)",
    )


def from_edges(agents: int, edges: list[tuple[int, int]]) -> np.ndarray:
    """Build the adjacency matrix of a list of edges, numbered from 1 as in the papers.

    Parameters
    ----------
    edges : list of tuple of int
        Pairs of agents 1, ..., n.

    Returns
    -------
    ndarray [agents, agents]
    """
    _require_links(agents, edges)
    return _linked(agents, ((i - 1, j - 1) for i, j in edges))


def always(maker: Callable[[int], Any]) -> Callable[[Streams, int], np.ndarray]:
    """Return an entry for :data:`GRAPHS` whose graph is equal in all runs.

    Parameters
    ----------
    maker : callable
        Maps the number of agents to pairs of agents 0, 1, ..., or to an undirected graph of
        networkx.

    Returns
    -------
    callable
        Maps streams and the number of agents to the adjacency matrix.
    """

    def adjacency(streams: Streams, agents: int) -> np.ndarray:
        graph = maker(agents)
        directed = hasattr(graph, "is_directed") and graph.is_directed()
        require(not directed, "network", "directed graph", "an undirected graph")
        return _linked(agents, getattr(graph, "edges", graph))

    return adjacency


def _linked(agents: int, links: Iterable[tuple[int, int]]) -> np.ndarray:
    adjacency = np.zeros((agents, agents), dtype=bool)
    i, j = np.array(list(links), dtype=int).reshape(-1, 2).T
    adjacency[i, j] = adjacency[j, i] = True
    return adjacency


def _complete(agents: int) -> np.ndarray:
    return np.transpose(np.triu_indices(agents, 1))


_FIXED_GRAPHS: dict[str, Callable[[int], Iterable[tuple[int, int]]]] = {
    "ring": lambda agents: ((i, (i + 1) % agents) for i in range(agents)),
    "path": lambda agents: pairwise(range(agents)),
    "star": lambda agents: ((0, i) for i in range(1, agents)),
    "complete": _complete,
}

GRAPHS: dict[str, Callable[..., np.ndarray]] = {
    "erdos_renyi": erdos_renyi,
    "random_edges": random_edges,
    "random_regular": random_regular,
    "grid": grid,
    "edges": lambda streams, agents, *, edges: from_edges(agents, edges),
    **{name: always(maker) for name, maker in _FIXED_GRAPHS.items()},
}
"""Graph families: functions of streams, the number of agents and parameters of the family, which
return the adjacency matrix ([R,] n, n)."""


def _drawn_links(streams, agents, draw, key, value) -> list[np.ndarray]:
    return [
        large_graphs.first_connected(partial(draw, generator, agents, value), agents, key, value)
        for generator in streams.generators("graph")
    ]


def _regular_links(streams: Streams, agents: int, *, degree: int) -> list[np.ndarray]:
    return _drawn_links(streams, agents, large_graphs.random_regular, "network.degree", degree)


LINKS: dict[str, Callable[..., list[np.ndarray] | np.ndarray]] = {
    "erdos_renyi": lambda streams, agents, *, probability: _drawn_links(
        streams, agents, large_graphs.erdos_renyi, "network.probability", probability
    ),
    "random_edges": lambda streams, agents, *, edges: _drawn_links(
        streams, agents, large_graphs.random_edges, "network.edges", edges
    ),
    "random_regular": _regular_links,
    "grid": lambda streams, agents, *, rows: large_graphs.grid(agents, rows=rows),
    "edges": lambda streams, agents, *, edges: np.array(edges) - 1,
    **{
        name: lambda streams, agents, maker=maker: np.array(list(maker(agents)))
        for name, maker in _FIXED_GRAPHS.items()
    },
}
"""Graph families for many agents. The functions return the edges [edges, 2] of one graph, or a list
with the edges of each run. Distributions are those of :data:`GRAPHS`, with other random numbers.
A family that is missing here is built by :data:`GRAPHS`."""


def require_buildable(
    name: str, agents: int, *, weights: str = "laplacian", scale: float = 1.5, **parameters: Any
) -> None:
    """Raise :class:`InvalidInput` if :func:`build` cannot accept the arguments.

    Parameters
    ----------
    name : str
        Graph family, or ``single`` for one agent.
    weights : str, default "laplacian"
        Name of the mixing weights.
    scale : float, default 1.5
        Factor c of Laplacian weights; only its type is checked here.
    **parameters
        Parameters of the graph family, such as ``probability``, ``edges``, ``degree`` or ``rows``.
    """
    require(arguments.is_whole(agents), "network.agents", agents, "a whole number")
    if name == "single":
        require(agents == 1, "network.agents", agents, "1 agent for single")
        return
    require(agents >= 2, "network.agents", agents, "at least 2 agents")
    arguments.choice("network.weights", weights, MIXINGS)
    require(arguments.is_real(scale), "network.scale", scale, "a number > 0.5")
    arguments.choice("network.name", name, GRAPHS)
    _require_parameters(name, parameters)
    if "probability" in parameters:
        probability = parameters["probability"]
        valid_probability = arguments.is_real(probability) and 0 < probability <= 1
        require(valid_probability, "network.probability", probability, "a number in (0, 1]")
    if name == "random_edges":
        _require_edges(agents, parameters["edges"])
    if name == "random_regular":
        _require_degree(agents, parameters["degree"])
    if name == "grid":
        rows = parameters["rows"]
        fits = arguments.is_whole(rows) and 1 <= rows <= agents and agents % rows == 0
        require(fits, "network.rows", rows, f"a divisor of {agents}, the agents")
    if name == "edges":
        _require_links(agents, parameters["edges"])


def default_parameters(name: str, agents: int) -> dict[str, int]:
    """Return parameters for a graph family if a user names the family alone.

    Parameters
    ----------
    name : str
        Graph family, a key of :data:`GRAPHS`.

    Returns
    -------
    dict of str to int
        ``rows`` of the grid nearest to a square, or ``degree`` of a random regular graph: 4, or
        the number of other agents if that is smaller. Empty for other families.
    """
    if name == "grid" and agents > 0:
        return {"rows": max(r for r in range(1, isqrt(agents) + 1) if agents % r == 0)}
    if name == "random_regular":
        return {"degree": min(4, agents - 1)}
    return {}


def _require_edges(agents: int, edges: Any) -> None:
    pairs = agents * (agents - 1) // 2
    require(
        arguments.is_whole(edges) and agents - 1 <= edges <= pairs,
        "network.edges",
        edges,
        f"between {agents - 1} (a tree) and {pairs} (all pairs) for {agents} agents",
    )


def _require_degree(agents: int, degree: Any) -> None:
    valid_degree = arguments.is_whole(degree) and 1 <= degree < agents and agents * degree % 2 == 0
    connectable = valid_degree and (degree > 1 or agents == 2)
    expected = f"2 to {agents - 1}, with an even product of degree and {agents} agents"
    require(connectable, "network.degree", degree, expected)


def _require_links(agents: int, edges: Any) -> None:
    links = edges if isinstance(edges, list | tuple) else [edges]
    valid_links = all(
        isinstance(link, list | tuple)
        and len(link) == 2
        and all(arguments.is_whole(number) and 1 <= number <= agents for number in link)
        and link[0] != link[1]
        for link in links
    )
    require(
        valid_links, "network.edges", edges, f"pairs of different agents numbered 1 to {agents}"
    )


def _require_parameters(name: str, values: Mapping[str, Any]) -> None:
    allowed = dict(list(signature(GRAPHS[name]).parameters.items())[2:])
    needed = {key for key, parameter in allowed.items() if parameter.default is parameter.empty}
    expected = f"{', '.join(allowed) or 'no parameters'} for {name}"
    for key in sorted({*values} - {*allowed} | needed - {*values}):
        require(False, f"network.{key}", values.get(key), expected)


def build(
    streams: Streams, name: str, agents: int, *, weights: str = "laplacian", **parameters
) -> Network:
    """Build a network of a graph family with mixing weights.

    Parameters
    ----------
    streams : Streams
        Random streams of the runs; random graphs come from the stream ``graph``.
    name : str
        Graph family, a key of :data:`GRAPHS`, or ``single`` for one agent without edges.
    agents : int
        Number of agents.
    weights : {"laplacian", "metropolis", "max_degree"}
        Mixing matrix.
    **parameters
        Parameters of the graph family: ``probability`` (``erdos_renyi``), ``edges``
        (``random_edges``, ``edges``), ``degree`` (``random_regular``), ``rows`` (``grid``); and
        ``scale`` of Laplacian weights.

    Returns
    -------
    Network
        A :class:`SparseNetwork` for many agents and few edges.

    Raises
    ------
    InvalidInput
        For fewer than two agents (``single``: other than one), an unknown name, a missing or
        unknown parameter, or a graph that cannot be connected.
    """
    require_buildable(name, agents, weights=weights, **parameters)
    if name == "single":
        return Network(np.zeros((1, 1), dtype=bool), np.ones((1, 1)))
    mixing_parameters = {"scale": parameters.pop("scale")} if "scale" in parameters else {}
    if agents <= DENSE_UP_TO:
        adjacency = GRAPHS[name](streams, agents, **parameters)
        return Network(adjacency, MIXINGS[weights](adjacency, **mixing_parameters))
    graphs, shared = _large(streams, name, agents, parameters)
    if max(graph.nnz for graph in graphs) < SPARSE_BELOW * agents**2:
        mixing = [large_networks.WEIGHTS[weights](graph, **mixing_parameters) for graph in graphs]
        return SparseNetwork(tuple(graphs), tuple(mixing), shared)
    adjacency = np.stack([graph.toarray().astype(bool) for graph in graphs])
    adjacency = adjacency[0] if shared else adjacency
    return Network(adjacency, MIXINGS[weights](adjacency, **mixing_parameters))


def _large(streams: Streams, name: str, agents: int, parameters) -> tuple[list, bool]:
    """Return the sparse adjacency matrix of each run and False, or one matrix for all and True."""
    if name in LINKS:
        edges = LINKS[name](streams, agents, **parameters)
        shared = isinstance(edges, np.ndarray)
        links = [edges] if shared else edges
    else:
        adjacency = GRAPHS[name](streams, agents, **parameters)
        shared = adjacency.ndim == 2
        links = [np.argwhere(np.triu(graph)) for graph in adjacency.reshape(-1, agents, agents)]
    return [large_graphs.matrix_of(agents, graph_links) for graph_links in links], shared
