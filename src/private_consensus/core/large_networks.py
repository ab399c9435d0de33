r"""Networks of many agents: time and memory linear in the numbers of agents and edges.

A :class:`SparseNetwork` has the methods of a :class:`.networks.Network`. In addition, it gives the
values at both ends of every edge, for quantities that are no product with a matrix.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from private_consensus.common.errors import require

if TYPE_CHECKING:
    from scipy.sparse import csr_array

LARGEST_DENSE = 4096
"""Agents up to which matrices of all pairs are made on request."""

PROBES = 64
"""Vectors of an estimated trace; of powers of one matrix all with the same error."""

_TOLERANCE = 1e-10
"""Residual of an eigenvector over its eigenvalue; the eigenvalue is right to its square over a
gap."""

_RESTARTS = 2000
_BASIS = 40

_FACTORED = 2e8
"""Agents times the squared width of a band up to which a matrix is factorised."""


@dataclass(frozen=True, eq=False)
class SparseNetwork:
    """Network with sparse matrices: one graph for all runs, or one graph per run.

    Parameters
    ----------
    graphs : tuple of csr_array, (n, n)
        Adjacency: 1 for a link, symmetric, without self-loops, connected.
    weights : tuple of csr_array, (n, n)
        Mixing matrices: symmetric, with rows that sum to 1, at least 0 on links, and zero where
        there is neither a link nor the diagonal.
    shared : bool
        Whether the only graph serves all runs.
    """

    graphs: tuple[csr_array, ...]
    weights: tuple[csr_array, ...]
    shared: bool

    lossless: ClassVar[bool] = True
    """Whether every message arrives."""

    def __post_init__(self):
        from scipy.sparse.csgraph import connected_components

        graphs, weights = len(self.graphs), len(self.weights)
        valid_counts = graphs == weights >= 1 and (graphs == 1 or not self.shared)
        expected = "as many mixing matrices as graphs, a single graph if it is shared"
        require(valid_counts, "network", f"{graphs} graphs and {weights} mixing matrices", expected)
        for graph, matrix in zip(self.graphs, self.weights, strict=True):
            _require_graph(graph, self.n_agents)
            _require_weights(matrix, graph)
            is_connected = connected_components(graph, directed=False)[0] == 1
            require(is_connected, "network", "disconnected graph", "a connected graph")

    def to_networkx(self, run: int = 0) -> Any:
        """Return the graph of a run as a networkx.Graph; ``weight`` is the mixing weight."""
        network = self.of_run(run)
        return networkx_graph(network.graphs[0], network.weights[0])

    @property
    def n_agents(self) -> int:
        return self.graphs[0].shape[0]

    def of_runs(self, first: int, last: int) -> SparseNetwork:
        """Return the graphs of runs ``first`` to ``last - 1``.

        Parameters
        ----------
        first : int
            Index of the first run.
        last : int
            Index after the last run.

        Returns
        -------
        SparseNetwork
            The network itself if all runs share one graph.
        """
        if self.shared:
            return self
        return self._with_graphs(slice(first, last), False)

    def of_run(self, run: int) -> SparseNetwork:
        """The graph of one run, as one for all runs."""
        if self.shared:
            return self
        return self._with_graphs(slice(run, run + 1), True)

    def _with_graphs(self, runs: slice, shared: bool) -> SparseNetwork:
        """Return the network of some runs, whose graphs are valid already."""
        network = object.__new__(SparseNetwork)
        matrices = {"graphs": self.graphs[runs], "weights": self.weights[runs]}
        vars(network).update(matrices, shared=shared)
        return network

    @property
    def adjacency(self) -> np.ndarray:
        """The matrix of all pairs, ([R,] n, n), where there are few enough."""
        return self._dense(self.graphs).astype(bool)

    @property
    def mixing(self) -> np.ndarray:
        """The mixing matrix of all pairs, ([R,] n, n), where there are few enough."""
        return self._dense(self.weights)

    def _dense(self, matrices) -> np.ndarray:
        expected = f"at most {LARGEST_DENSE} for what needs a matrix of all pairs of agents"
        require(self.n_agents <= LARGEST_DENSE, "network.agents", self.n_agents, expected)
        dense = np.stack([matrix.toarray() for matrix in matrices])
        return dense[0] if self.shared else dense

    def mixing_of(self, run: int) -> csr_array:
        """The mixing matrix of one run, sparse."""
        return self.weights[0 if self.shared else run]

    def exchange(self) -> Callable[[int, int], Any]:
        """Return the function that maps setting and run to the mixing matrix of a round."""
        return lambda setting, run: self.mixing_of(run)

    @cached_property
    def identity(self) -> bytes:
        """Equal for equal graphs with equal weights."""
        digest = hashlib.sha256()
        for matrix in (*self.graphs, *self.weights):
            for array in (matrix.indptr, matrix.indices, matrix.data):
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.digest()

    @cached_property
    def degrees(self) -> np.ndarray:
        """Number of neighbours, without the agent itself; shape ([R,] n)."""
        return self._by_run(np.diff(graph.indptr).astype(np.int64) for graph in self.graphs)

    @cached_property
    def own_weights(self) -> np.ndarray:
        """Diagonal of the mixing matrix: weight of an agent's own value; shape ([R,] n)."""
        return self._by_run(matrix.diagonal() for matrix in self.weights)

    @cached_property
    def consensus_rate(self) -> np.ndarray:
        """Largest absolute eigenvalue of the mixing matrix apart from the first; shape ([R])."""
        return self._by_run(np.asarray(second_eigenvalue(matrix)) for matrix in self.weights)

    @cached_property
    def algebraic_connectivity(self) -> np.ndarray:
        """Smallest non-zero eigenvalue of the Laplacian; shape ([R])."""
        return self._by_run(np.asarray(algebraic_connectivity(graph)) for graph in self.graphs)

    def traces_of_powers(self, highest: int) -> np.ndarray:
        """Estimate the traces of the powers 0, ..., ``highest`` of the first mixing matrix by
        Hutchinson's estimator with ``PROBES`` fixed vectors of signs.
        """
        matrix, n = self.weights[0], self.n_agents
        now = np.random.default_rng(0).integers(0, 2, (n, PROBES)) * 2.0 - 1.0
        traces = []
        while len(traces) <= highest:
            after = matrix @ now
            traces += [(now * now).sum() / PROBES, (now * after).sum() / PROBES]
            now = after
        return np.array(traces[: highest + 1])

    def _by_run(self, values) -> np.ndarray:
        stacked = np.stack(list(values))
        return stacked[0] if self.shared else stacked

    @cached_property
    def closed_neighbourhoods(self) -> np.ndarray:
        """Neighbours of each agent and the agent itself, ([R,] n, 1 + largest degree), padded
        with the agent.
        """
        from scipy.sparse import eye_array

        eye = eye_array(self.n_agents, format="csr")
        indices = np.arange(self.n_agents)
        return self._by_run(_padded([(graph + eye).tocsr() for graph in self.graphs], indices))

    @cached_property
    def open_neighbourhoods(self) -> np.ndarray:
        """Neighbours of each agent, ([R,] n, largest degree), padded with one of them."""
        return self._by_run(_padded(self.graphs, None))

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
        if self.shared:
            return x[..., neighbourhoods, :]
        runs = np.arange(len(neighbourhoods))[:, None, None]
        return x[:, runs, neighbourhoods]

    def neighbours_of(self, agent: int) -> np.ndarray:
        """Neighbours of an agent of the first graph, ascending."""
        return _row(self.graphs[0], agent)

    def links_among(self, agents) -> np.ndarray:
        """Links between some agents of the first graph, [agents, agents] of bool."""
        return self.graphs[0][agents][:, agents].toarray().astype(bool)

    # Products. A run's values are never added to another's, and a row's terms always in the same
    # order, so that a run's result does not depend on those beside it.

    def mix(self, x: np.ndarray) -> np.ndarray:
        r""":math:`\sum_j w_{ij} x_j` for ``x`` of shape (..., n, d)."""
        return self._times(self.weights, x)

    def neighbour_sum(self, x: np.ndarray) -> np.ndarray:
        r""":math:`\sum_{j \in N_i} x_j` without the agent itself; ``x`` is (..., n, d)."""
        return self._times(self.graphs, x)

    def _times(self, matrices, x: np.ndarray) -> np.ndarray:
        if self.shared:
            return product(matrices[0], x)
        return np.stack([product(m, x[..., run, :, :]) for run, m in enumerate(matrices)], axis=-3)

    # Links, each in both directions: those of agent 0, of agent 1, ..., run after run.

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
        """Values (..., [R,] n, d) of the agent that a link belongs to, (..., links, d)."""
        return self._flat(x)[..., self._ends[0], :]

    def other_ends(self, x: np.ndarray) -> np.ndarray:
        """Values (..., [R,] n, d) of the neighbour that a link leads to, (..., links, d)."""
        return self._flat(x)[..., self._ends[1], :]

    def _flat(self, x: np.ndarray) -> np.ndarray:
        return x if self.shared else x.reshape(*x.shape[:-3], -1, x.shape[-1])

    def sum_at_links(self, values: np.ndarray) -> np.ndarray:
        """Sum over the links of each agent, from (..., links, d) to (..., [R,] n, d)."""
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
        """Number of the pair of agents of each edge, over pairs i < j of all runs, and 1 for the
        end with the lower number, -1 for the other.
        """
        tails, heads = self._ends
        low, high = np.minimum(tails, heads), np.maximum(tails, heads)
        _, number = np.unique(low * (high.max() + 1) + high, return_inverse=True)
        return number, np.where(tails < heads, 1.0, -1.0)


ROUNDING = 1e-9
"""Largest rounding error of a weight and of the sum of a row."""


def _require_graph(graph: csr_array, agents: int) -> None:
    _require_matrix("network.graphs", graph, agents)
    sorted_once = bool(graph.has_canonical_format)
    require(sorted_once, "network.graphs", "unsorted or repeated entries", "each link once, sorted")
    require(bool((graph.data == 1).all()), "network.graphs", "an entry other than 1", "1 per link")
    require(not graph.diagonal().any(), "network.graphs", "a self-loop", "no self-loops")
    undirected = _equal(graph, graph.T.tocsr())
    require(undirected, "network.graphs", "a directed graph", "an undirected graph")


def _require_weights(matrix: csr_array, graph: csr_array) -> None:
    agents = graph.shape[0]
    _require_matrix("network.weights", matrix, agents)
    even = _equal(matrix, matrix.T.tocsr())
    require(even, "network.weights", "an asymmetric matrix", "a symmetric matrix")
    sums = matrix.sum(1)
    worst = int(np.abs(sums - 1.0).argmax())
    sums_to_one = abs(sums[worst] - 1.0) <= ROUNDING * agents
    require(sums_to_one, f"sum of row of network.weights[agent {worst}]", float(sums[worst]), "1")
    itself = np.count_nonzero(matrix.diagonal())
    on_links = matrix.multiply(graph)
    linked = matrix.count_nonzero() == itself + on_links.count_nonzero()
    require(linked, "network.weights", "a weight without a link", "0 where there is no link")
    weighted = bool((on_links.data >= 0).all())
    require(weighted, "network.weights", "a negative weight of a link", "weights >= 0 on links")


def _require_matrix(key: str, matrix: csr_array, agents: int) -> None:
    shape = getattr(matrix, "shape", None)
    valid_type = (
        getattr(matrix, "format", None) == "csr" and shape == (agents, agents) and agents >= 1
    )
    expected = f"a sparse matrix (csr) of {agents} x {agents} agents, at least 1"
    require(valid_type, key, shape or type(matrix).__name__, expected)
    real = matrix.dtype.kind in "iuf" and bool(np.isfinite(matrix.data).all())
    require(real, key, "entries that are no finite real numbers", "finite real numbers")


def _equal(matrix: csr_array, transpose: csr_array) -> bool:
    """Return True if two matrices are equal within rounding errors."""
    difference = abs(matrix - transpose)
    return difference.nnz == 0 or float(difference.data.max()) <= ROUNDING


def build(
    graphs: list[csr_array], shared: bool, weights: str, parameters: dict[str, Any]
) -> SparseNetwork:
    """Build the network of sampled graphs with the weights that a configuration names.

    Parameters
    ----------
    graphs : list of csr_array [n, n]
        Adjacency matrices: one for all runs, or one per run.
    shared : bool
        True if one graph serves all runs.
    weights : str
        Name of the mixing weights, a key of ``WEIGHTS``.
    parameters : dict
        Keyword arguments of the weights.

    Returns
    -------
    SparseNetwork
    """
    require(weights in WEIGHTS, "network.weights", weights, f"one of {', '.join(WEIGHTS)}")
    mixing = tuple(WEIGHTS[weights](graph, **parameters) for graph in graphs)
    return SparseNetwork(tuple(graphs), mixing, shared)


def product(matrix: csr_array, x: np.ndarray) -> np.ndarray:
    """Multiply a sparse matrix by the rows of ``x``.

    Parameters
    ----------
    matrix : csr_array [n, n]
        Left factor.
    x : ndarray [..., n, d]
        Values of the agents.

    Returns
    -------
    ndarray [..., n, d]
        Contiguous array.
    """
    n, d = x.shape[-2:]
    columns = np.moveaxis(x, -2, 0).reshape(n, -1)
    result = (matrix @ columns).reshape(n, *x.shape[:-2], d)
    return np.ascontiguousarray(np.moveaxis(result, 0, -2))


def _padded(matrices, filler: np.ndarray | None) -> list[np.ndarray]:
    """Members of each row, ascending, then ``filler`` or the first of them."""
    width = max(int(np.diff(matrix.indptr).max()) for matrix in matrices)
    padded = []
    for matrix in matrices:
        counts, begin = np.diff(matrix.indptr), matrix.indptr[:-1]
        positions = np.minimum(np.arange(width), counts[:, None] - 1)
        members = matrix.indices[begin[:, None] + positions].astype(np.int64)
        padding = members[:, 0] if filler is None else filler
        padded.append(np.where(np.arange(width) < counts[:, None], members, padding[:, None]))
    return padded


def _row(matrix: csr_array, i: int) -> np.ndarray:
    return matrix.indices[matrix.indptr[i] : matrix.indptr[i + 1]].astype(np.int64)


# --- Weights --------------------------------------------------------------------------------------


def sparse_laplacian(graph: csr_array) -> csr_array:
    """Degree matrix minus adjacency."""
    from scipy.sparse import diags_array

    return (diags_array(graph.sum(1)) - graph).tocsr()


def laplacian_weights(graph: csr_array, *, scale: float = 1.5) -> csr_array:
    r"""Compute the sparse version of :func:`private_consensus.core.networks.laplacian_mixing`.

    Parameters
    ----------
    graph : csr_array [n, n]
        Adjacency matrix.
    scale : float, default 1.5
        Factor c > 1/2 in :math:`W = I - L / (c\,\lambda_{\max}(L))`.

    Returns
    -------
    csr_array [n, n]
        Symmetric, doubly stochastic matrix W.
    """
    require(scale > 0.5, "network.scale", scale, "a number > 0.5")
    lap = sparse_laplacian(graph)
    return _one_minus(lap / (scale * largest_eigenvalue(lap)))


def metropolis_weights(graph: csr_array) -> csr_array:
    """Compute Metropolis weights, the sparse version of
    :func:`private_consensus.core.networks.metropolis_mixing`.
    """
    from scipy.sparse import diags_array

    degrees, weights = graph.sum(1), graph.copy()
    tail_degrees = np.repeat(degrees, np.diff(graph.indptr))
    weights.data = 1.0 / (1.0 + np.maximum(tail_degrees, degrees[graph.indices]))
    return (weights + diags_array(1.0 - weights.sum(1))).tocsr()


def max_degree_weights(graph: csr_array) -> csr_array:
    """Compute maximum-degree weights, the sparse version of
    :func:`private_consensus.core.networks.max_degree_mixing`.
    """
    return _one_minus(sparse_laplacian(graph) / (1.0 + graph.sum(1).max()))


def _one_minus(matrix) -> csr_array:
    from scipy.sparse import eye_array

    return (eye_array(matrix.shape[0]) - matrix).tocsr()


WEIGHTS: dict[str, Callable[..., Any]] = {
    "laplacian": laplacian_weights,
    "metropolis": metropolis_weights,
    "max_degree": max_degree_weights,
}


# --- Spectra --------------------------------------------------------------------------------------
# By Lanczos, but where links run along a narrow band, as on a ring or a grid: there the ends of a
# spectrum crowd, and a factorisation is cheap.


def largest_eigenvalue(lap: csr_array) -> float:
    """Return the largest eigenvalue of the Laplacian of a connected graph."""
    n, degrees = lap.shape[0], lap.diagonal()
    if (degrees == 2).all():  # a connected 2-regular graph is a ring
        return 2.0 + 2.0 * float(np.cos(np.pi / n)) if n % 2 else 4.0
    if narrow(lap):
        return float(_nearest(lap, 2.0 * float(lap.diagonal().max()) * (1 + 1e-6), 1)[0])
    return _lanczos(lap.dot, lap.shape[0], "LA")


def algebraic_connectivity(graph: csr_array) -> float:
    """Compute the second smallest eigenvalue of the Laplacian of a connected graph."""
    lap = sparse_laplacian(graph)
    bound = 2.0 * float(lap.diagonal().max())
    if narrow(lap):
        return float(max(_nearest(lap, -1e-9 * bound, 2)))
    return bound - _lanczos(lambda x: bound * _centred(x) - lap.dot(_centred(x)), lap.shape[0])


def second_eigenvalue(mixing: csr_array) -> float:
    """Largest absolute eigenvalue of a mixing matrix apart from the first."""
    if narrow(mixing):
        second = float(_nearest(mixing, 1 + 1e-9, 2).min())
        if _gershgorin_minimum(mixing) >= -second:
            return second
        return max(second, abs(float(_nearest(mixing, -1 - 1e-6, 1)[0])))
    return abs(_lanczos(lambda x: mixing.dot(_centred(x)), mixing.shape[0]))


def _gershgorin_minimum(matrix: csr_array) -> float:
    """Return a lower bound on the eigenvalues of a symmetric matrix, by Gershgorin's discs."""
    diagonal = matrix.diagonal()
    radii = np.asarray(abs(matrix).sum(1)).ravel() - np.abs(diagonal)
    return float((diagonal - radii).min())


def narrow(matrix: csr_array) -> bool:
    """Return True if a permutation of the rows brings all entries close to the diagonal."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    n = matrix.shape[0]
    position = np.empty(n, np.int64)
    position[reverse_cuthill_mckee(matrix, symmetric_mode=True)] = np.arange(n)
    tails = np.repeat(np.arange(n), np.diff(matrix.indptr))
    width = int(np.abs(position[tails] - position[matrix.indices]).max())
    return n * width**2 <= _FACTORED


def _centred(x: np.ndarray) -> np.ndarray:
    return x - x.mean()


def _lanczos(product_with, n: int, selection: str = "LM") -> float:
    from scipy.sparse.linalg import LinearOperator, eigsh

    operator = LinearOperator((n, n), matvec=product_with, dtype=float)
    options = {"ncv": min(n - 1, _BASIS), "maxiter": _RESTARTS, "tol": _TOLERANCE}
    eigenvalues = eigsh(
        operator, 1, which=selection, v0=_start(n), return_eigenvectors=False, **options
    )
    return float(eigenvalues[0])


def _start(n: int) -> np.ndarray:
    """The same vector each time, and like no eigenvector."""
    return np.cos(np.arange(n) * (1.0 + np.sqrt(5.0)))


def _nearest(matrix: csr_array, shift: float, count: int) -> np.ndarray:
    """Return the eigenvalues nearest to a number that is not an eigenvalue.

    The tolerance is relative to the distance from ``shift``, which is small.
    """
    from scipy.sparse.linalg import eigsh

    options = {"v0": _start(matrix.shape[0]), "tol": 1e-10, "return_eigenvectors": False}
    return eigsh(matrix.tocsc(), count, sigma=shift, **options)


def networkx_graph(adjacency: Any, mixing: Any) -> Any:
    """Return a graph of networkx.

    Parameters
    ----------
    adjacency, mixing : ndarray or csr_array, shape (n, n)
        Edges and weights of one graph.

    Returns
    -------
    networkx.Graph
        Nodes 0 to n-1, in this order. The attribute ``weight`` of edges is the mixing weight.
    """
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(adjacency.shape[0]))
    rows, columns = adjacency.nonzero()
    for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
        if i < j:
            graph.add_edge(i, j, weight=float(mixing[i, j]))
    return graph
