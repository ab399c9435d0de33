r"""Sparse matrices of networks with many agents, and their spectra."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from private_consensus.common.errors import require

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_TOLERANCE = 1e-10
"""Residual of an eigenvector, relative to its eigenvalue, at which the iteration stops."""

_MAX_RESTARTS = 2000
_KRYLOV_DIMENSION = 40

_MAX_FACTORISED = 2e8
"""Number of agents times squared bandwidth up to which a matrix is factorised."""


ROUNDING = 1e-9
"""Largest rounding error of a weight and of the sum of a row."""


def require_graph(graph: csr_array, agents: int) -> None:
    """Raise :class:`.InvalidInput` unless a matrix is the adjacency of an undirected graph.

    Parameters
    ----------
    graph : csr_array, shape (n, n)
        1 for an edge; without self-loops.
    agents : int
        Required n.
    """
    _require_matrix("network.graphs", graph, agents)
    is_canonical = bool(graph.has_canonical_format)
    require(
        is_canonical, "network.graphs", "unsorted or repeated entries", "each edge once, sorted"
    )
    require(bool((graph.data == 1).all()), "network.graphs", "an entry other than 1", "1 per edge")
    require(not graph.diagonal().any(), "network.graphs", "a self-loop", "no self-loops")
    is_undirected = _equal(graph, graph.T.tocsr())
    require(is_undirected, "network.graphs", "a directed graph", "an undirected graph")


def require_weights(matrix: csr_array, graph: csr_array) -> None:
    """Raise :class:`.InvalidInput` unless a matrix is a mixing matrix of a graph.

    Parameters
    ----------
    matrix : csr_array, shape (n, n)
        Symmetric, with rows that sum to 1, and weights >= 0 on edges only.
    graph : csr_array, shape (n, n)
        Adjacency matrix.
    """
    agents = graph.shape[0]
    _require_matrix("network.weights", matrix, agents)
    is_symmetric = _equal(matrix, matrix.T.tocsr())
    require(is_symmetric, "network.weights", "an asymmetric matrix", "a symmetric matrix")
    sums = matrix.sum(1)
    worst_row = int(np.abs(sums - 1.0).argmax())
    sums_to_one = abs(sums[worst_row] - 1.0) <= ROUNDING * agents
    require(
        sums_to_one,
        f"sum of row of network.weights[agent {worst_row}]",
        float(sums[worst_row]),
        "1",
    )
    diagonal_count = np.count_nonzero(matrix.diagonal())
    edge_weights = matrix.multiply(graph)
    only_on_edges = matrix.count_nonzero() == diagonal_count + edge_weights.count_nonzero()
    require(
        only_on_edges,
        "network.weights",
        "a weight without an edge",
        "0 for each pair of agents without an edge",
    )
    is_nonnegative = bool((edge_weights.data >= 0).all())
    require(
        is_nonnegative, "network.weights", "a negative weight of an edge", "weights >= 0 on edges"
    )


def _require_matrix(key: str, matrix: csr_array, agents: int) -> None:
    from scipy.sparse import issparse

    is_csr = issparse(matrix) and matrix.format == "csr"
    expected = f"a sparse matrix (csr) of {agents} x {agents} agents, at least 1"
    require(is_csr, key, type(matrix).__name__, expected)
    require(matrix.shape == (agents, agents) and agents >= 1, key, matrix.shape, expected)
    is_real = matrix.dtype.kind in "iuf" and bool(np.isfinite(matrix.data).all())
    require(is_real, key, "entries that are not finite real numbers", "finite real numbers")


def _equal(matrix: csr_array, transpose: csr_array) -> bool:
    """Return True if two matrices are equal within rounding errors."""
    difference = abs(matrix - transpose)
    return difference.nnz == 0 or float(difference.data.max()) <= ROUNDING


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


def padded_rows(matrices, filler: np.ndarray | None) -> list[np.ndarray]:
    """List the members of each row, padded to equal lengths.

    Parameters
    ----------
    matrices : sequence of csr_array, shape (n, n)
        Matrices whose nonzero entries are the members.
    filler : ndarray of int, shape (n,), optional
        Padding of each row; None: the first member of the row.

    Returns
    -------
    list of ndarray of int, shape (n, largest number of members)
        Members in ascending order, then the padding.
    """
    width = max(int(np.diff(matrix.indptr).max()) for matrix in matrices)
    padded = []
    for matrix in matrices:
        counts, begin = np.diff(matrix.indptr), matrix.indptr[:-1]
        positions = np.minimum(np.arange(width), counts[:, None] - 1)
        members = matrix.indices[begin[:, None] + positions].astype(np.int64)
        padding = members[:, 0] if filler is None else filler
        padded.append(np.where(np.arange(width) < counts[:, None], members, padding[:, None]))
    return padded


# --- Weights --------------------------------------------------------------------------------------


def sparse_laplacian(graph: csr_array) -> csr_array:
    """Compute the Laplacian, degree matrix minus adjacency matrix."""
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
    graph_laplacian = sparse_laplacian(graph)
    return _one_minus(graph_laplacian / (scale * largest_eigenvalue(graph_laplacian)))


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
# Eigenvalues are computed by the Lanczos method. Matrices with a narrow band, as of a ring or a
# grid, have close eigenvalues, for which that method is slow. They are factorised instead.


def largest_eigenvalue(graph_laplacian: csr_array) -> float:
    """Return the largest eigenvalue of the Laplacian of a connected graph."""
    n, degrees = graph_laplacian.shape[0], graph_laplacian.diagonal()
    if (degrees == 2).all():  # a connected 2-regular graph is a ring
        return 2.0 + 2.0 * float(np.cos(np.pi / n)) if n % 2 else 4.0
    if narrow(graph_laplacian):
        return float(
            _nearest(
                graph_laplacian, 2.0 * float(graph_laplacian.diagonal().max()) * (1 + 1e-6), 1
            )[0]
        )
    return _lanczos(graph_laplacian.dot, graph_laplacian.shape[0], "LA")


def algebraic_connectivity(graph: csr_array) -> float:
    """Compute the second smallest eigenvalue of the Laplacian of a connected graph."""
    graph_laplacian = sparse_laplacian(graph)
    bound = 2.0 * float(graph_laplacian.diagonal().max())
    if narrow(graph_laplacian):
        return float(max(_nearest(graph_laplacian, -1e-9 * bound, 2)))
    return bound - _lanczos(
        lambda x: bound * _centred(x) - graph_laplacian.dot(_centred(x)), graph_laplacian.shape[0]
    )


def second_eigenvalue(mixing: csr_array) -> float:
    """Compute the largest absolute eigenvalue of a mixing matrix except the eigenvalue 1."""
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
    return n * width**2 <= _MAX_FACTORISED


def _centred(x: np.ndarray) -> np.ndarray:
    return x - x.mean()


def _lanczos(product_with, n: int, selection: str = "LM") -> float:
    from scipy.sparse.linalg import LinearOperator, eigsh

    # The constructor of LinearOperator returns a subclass with these parameters.
    operator = LinearOperator((n, n), matvec=product_with, dtype=float)  # ty: ignore[missing-argument, unknown-argument, parameter-already-assigned]
    options = {"ncv": min(n - 1, _KRYLOV_DIMENSION), "maxiter": _MAX_RESTARTS, "tol": _TOLERANCE}
    eigenvalues = eigsh(
        operator, 1, which=selection, v0=_start(n), return_eigenvectors=False, **options
    )
    return float(eigenvalues[0])


def _start(n: int) -> np.ndarray:
    """Return a fixed starting vector for the eigenvalue iteration, unlike any eigenvector."""
    return np.cos(np.arange(n) * (1.0 + np.sqrt(5.0)))


def _nearest(matrix: csr_array, shift: float, count: int) -> np.ndarray:
    """Return the eigenvalues nearest to a number that is not an eigenvalue."""
    from scipy.sparse.linalg import eigsh

    options = {"v0": _start(matrix.shape[0]), "tol": 1e-10, "return_eigenvectors": False}
    return eigsh(matrix.tocsc(), count, sigma=shift, **options)
