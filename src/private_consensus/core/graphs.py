"""Graph families, as arrays of edges [edges, 2] between agents 0, ..., n-1, and mixing weights.

A family maps the random generators of the runs, the number of agents and its own parameters to the
edges of one graph for all runs, or to a list with the edges of each run. Random graphs are sampled
until one is connected.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from annotated_types import Gt

from private_consensus.common.errors import InvalidInput, arguments, require

from .parameters import require_allowed

SMALL = 256
"""Largest number of agents of a small network."""
MAX_ATTEMPTS, MAX_LARGE_ATTEMPTS = 2**20, 1000
"""Number of sampled graphs, small and large, after which a family is refused."""
MAX_FAILED_PAIRINGS = 50
"""Number of consecutive pairings without a new edge after which sampling starts from scratch."""

MAX_RESTARTS = 500
"""Largest number of restarts of the Lanczos method."""

Edges = np.ndarray | list[np.ndarray]
Generators = Sequence[np.random.Generator]


def erdos_renyi(generators: Generators, agents: int, *, probability: float) -> Edges:
    """Sample one connected G(n, p) graph per run.

    An edge exists if its uniform variable is less than p. The variables do not depend on p.
    """
    is_probability, expected = 0 < probability <= 1, "a number in (0, 1]"
    require(is_probability, "network.probability", probability, expected)
    pairs = _pairs(agents)

    def sample(generator):
        return pairs[generator.random(len(pairs)) < probability]

    return _connected(generators, agents, sample, "network.probability", probability)


def random_edges(generators: Generators, agents: int, *, edges: int) -> Edges:
    """Sample one connected graph per run, uniformly among those with a given number of edges."""
    pairs = _pairs(agents)
    # A connected graph has at least the edges of a tree.
    arguments.whole("network.edges", edges, agents - 1, len(pairs))

    def sample(generator):
        return pairs[np.sort(generator.random(len(pairs)).argsort()[:edges])]

    return _connected(generators, agents, sample, "network.edges", edges)


def _pairs(agents: int) -> np.ndarray:
    return np.transpose(np.triu_indices(agents, 1))


def random_regular(generators: Generators, agents: int, *, degree: int) -> Edges:
    """Sample one connected regular graph per run, asymptotically uniform.

    Stubs are paired at random. Pairs that form a loop or an existing edge are split, and their
    stubs are paired again. If no pairing is left, the graph is sampled from scratch. Reference:
    Steger and Wormald, Combinatorics, Probability and Computing 8, 1999.
    """
    # Only two agents are connected by a single edge each.
    arguments.whole("network.degree", degree, min(2, agents - 1), agents - 1)
    expected = f"a number whose product with {agents} agents is even"
    require(agents * degree % 2 == 0, "network.degree", degree, expected)

    def sample(generator):
        return paired_stubs(generator, agents, degree)

    return _connected(generators, agents, sample, "network.degree", degree)


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
    generators: Generators,
    agents: int,
    sample: Callable[[np.random.Generator], np.ndarray],
    key: str,
    value: Any,
) -> list[np.ndarray]:
    """Return the first connected sample of each run."""
    attempts, graphs = MAX_ATTEMPTS if agents <= SMALL else MAX_LARGE_ATTEMPTS, []
    for generator in generators:
        samples = (sample(generator) for _ in range(attempts))
        edges = next((edges for edges in samples if is_connected(agents, edges)), None)
        if edges is None:
            expected = (
                f"a graph of {agents} agents that can be connected (none in {attempts} draws)"
            )
            raise InvalidInput(key, value, expected)
        graphs.append(edges)
    return graphs


def is_connected(agents: int, edges: np.ndarray) -> bool:
    """Return True if every agent can reach every other agent."""
    from scipy.sparse.csgraph import connected_components

    # Fast: most disconnected graphs have an agent without an edge.
    if agents > 1 and not np.bincount(np.ravel(edges), minlength=agents).all():
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


def grid(generators: Generators, agents: int, *, rows: int) -> Edges:
    """Return a rectangular grid with a number of rows that divides the number of agents."""
    arguments.whole("network.rows", rows, 1)
    require(agents % rows == 0, "network.rows", rows, f"a divisor of {agents}, the agents")
    number = np.arange(agents).reshape(rows, -1)
    horizontal = np.stack([number[:, :-1], number[:, 1:]], -1).reshape(-1, 2)
    vertical = np.stack([number[:-1], number[1:]], -1).reshape(-1, 2)
    return np.concatenate([horizontal, vertical])


def listed(generators: Generators, agents: int, *, edges: Any) -> Edges:
    """Return the graph of listed edges, whose agents are numbered from 1."""
    numbers, expected = range(1, agents + 1), f"pairs of different agents numbered 1 to {agents}"
    pairs = arguments.array("network.edges", edges, expected, lambda v: np.isin(v, numbers))
    require(pairs.shape == (len(pairs), 2), "network.edges", edges, expected)
    require(bool((pairs[:, 0] != pairs[:, 1]).all()), "network.edges", edges, expected)
    return pairs.astype(int) - 1


def always(maker: Callable[[int], Any]) -> Callable[[Generators, int], np.ndarray]:
    """Return a graph family without parameters whose graph is equal in all runs.

    The maker returns pairs of agents 0, 1, ..., or an undirected graph of networkx.
    """

    def family(generators: Generators, agents: int) -> np.ndarray:
        graph = maker(agents)
        edges: Iterable = getattr(graph, "edges", graph)
        return np.array(list(edges), dtype=int).reshape(-1, 2)

    return family


GRAPHS: dict[str, Callable[..., Edges]] = {
    "erdos_renyi": erdos_renyi,
    "random_edges": random_edges,
    "random_regular": random_regular,
    "grid": grid,
    "edges": listed,
    "single": always(lambda agents: ()),
    "ring": always(lambda agents: ((i, (i + 1) % agents) for i in range(agents))),
    "path": always(lambda agents: pairwise(range(agents))),
    "star": always(lambda agents: ((0, i) for i in range(1, agents))),
    "complete": always(_pairs),
}
"""Graph families by name."""


# --- Mixing weights and spectra of one graph, dense or sparse -------------------------------------


def diagonal(values: np.ndarray, like: Any) -> Any:
    """Return diagonal matrices of the type of another matrix."""
    if isinstance(like, np.ndarray):
        return values[..., None] * np.eye(values.shape[-1])
    from scipy.sparse import diags_array

    return diags_array(values, dtype=float).tocsr()


def laplacian(adjacency: Any) -> Any:
    """Compute the Laplacian, degree matrix minus adjacency matrix; shape (..., n, n)."""
    return diagonal(adjacency.sum(-1), adjacency) - adjacency


def laplacian_mixing(adjacency: Any, *, scale: Annotated[float, Gt(0.5)] = 1.5) -> Any:
    r"""Compute the Laplacian mixing matrix :math:`W = I - L / (c\,\lambda_{\max}(L))`.

    Showkatbakhsh et al., section V, use :math:`c = 3/2`. For :math:`c > 1/2` the eigenvalues
    are in (-1, 1]. The adjacency has shape (..., n, n); ``scale`` is c.
    """
    graph_laplacian = laplacian(adjacency)
    if isinstance(adjacency, np.ndarray):
        largest = np.linalg.eigvalsh(graph_laplacian)[..., -1:, None]
    else:
        largest = _eigenvalues(graph_laplacian, 1, "LA")[0]
    # The Laplacian of a single agent is 0.
    largest = np.maximum(largest, np.finfo(float).tiny)
    identity = diagonal(np.ones(adjacency.shape[-1]), adjacency)
    return identity - graph_laplacian / (scale * largest)


def metropolis_mixing(adjacency: Any) -> Any:
    r"""Compute Metropolis weights: :math:`w_{ij} = 1/(1+\max(d_i, d_j))` on edges.

    The diagonal makes the rows sum to 1. The adjacency has shape (..., n, n).
    """
    degrees, (*graph, i, j) = adjacency.sum(-1), adjacency.nonzero()
    weights = adjacency.astype(float)
    largest = np.maximum(degrees[*graph, i], degrees[*graph, j])
    weights[*graph, i, j] = 1.0 / (1.0 + largest)
    return weights + diagonal(1.0 - weights.sum(-1), weights)


MIXINGS: dict[str, Callable[..., Any]] = {
    "laplacian": laplacian_mixing,
    "metropolis": metropolis_mixing,
}


def second_eigenvalue(mixing: Any) -> Any:
    """Compute the largest absolute eigenvalue of mixing matrices except the eigenvalue 1.

    It is the factor by which a mixing step reduces disagreement, and 0 for a single agent.
    """
    if mixing.shape[-1] == 1:
        return np.zeros(mixing.shape[:-2])
    if isinstance(mixing, np.ndarray):
        eigenvalues = np.linalg.eigvalsh(mixing)
        return np.maximum(np.abs(eigenvalues[..., 0]), np.abs(eigenvalues[..., -2]))
    return np.abs(_eigenvalues(mixing, 2, "LM")).min()


def _eigenvalues(matrix: Any, count: int, end: str) -> np.ndarray:
    """Return eigenvalues of a sparse matrix, by the Lanczos method of scipy's ``eigsh``."""
    from scipy.sparse.linalg import eigsh

    n = matrix.shape[-1]
    start = np.random.default_rng(0).standard_normal(n)
    options = {"v0": start, "ncv": min(n, 64), "maxiter": MAX_RESTARTS}
    return eigsh(matrix, count, which=end, return_eigenvectors=False, **options)


# --- Checks ---------------------------------------------------------------------------------------


def require_connected(agents: int, edges: np.ndarray) -> None:
    connected = is_connected(agents, edges)
    require(connected, "network", "disconnected graph", "a connected graph")


def require_buildable(
    name: str, agents: int, *, weights: str = "laplacian", **parameters: Any
) -> None:
    """Raise :class:`InvalidInput` if :func:`.networks.build` cannot accept the arguments.

    The parameters are those of :func:`.networks.build`. No random graph is sampled.
    """
    arguments.choice("network.name", name, GRAPHS)
    low, high = (1, 1) if name == "single" else (2, None)
    arguments.whole("network.agents", agents, low, high)
    arguments.choice("network.weights", weights, MIXINGS)
    options = {"scale": parameters.pop("scale")} if "scale" in parameters else {}
    require_allowed(MIXINGS[weights], options, "network")
    require_allowed(GRAPHS[name], parameters, "network")
    # Families of random graphs return one graph per generator, here none.
    edges = GRAPHS[name]((), agents, **parameters)
    if isinstance(edges, np.ndarray):
        require_connected(agents, edges)
