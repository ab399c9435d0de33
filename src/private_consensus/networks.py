r"""Communication graphs and mixing matrices.

A :class:`Network` holds the adjacency of one graph ``[n, n]`` or of one graph a run ``[R, n, n]``,
and a symmetric, doubly stochastic mixing matrix of the same shape. Agents are numbered 0 to n-1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import InvalidInput, require
from .randomness import Streams

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SPARSE_FROM = 400
"""Number of agents from which a shared mixing matrix is multiplied as a sparse one."""

MAX_ATTEMPTS = 2**20
"""Graphs drawn before a random topology is said to be impossible to connect."""

_BATCHES = (8, 512)
"""Graphs drawn at once, at first and at most; how many changes none of them."""


@dataclass(frozen=True)
class Network:
    """Agents, their links and the weights with which they mix.

    Parameters
    ----------
    adjacency : ndarray of bool, shape ([R,] n, n)
        Symmetric, no self-loops, connected.
    mixing : ndarray, shape ([R,] n, n)
        Symmetric and doubly stochastic, zero where there is neither a link nor the diagonal.
    """

    adjacency: np.ndarray
    mixing: np.ndarray

    def __post_init__(self):
        require(
            self.adjacency.shape == self.mixing.shape,
            "network.mixing",
            self.mixing.shape,
            f"the shape of the adjacency, {self.adjacency.shape}",
        )
        require(
            bool(connected(self.adjacency).all()),
            "network",
            "disconnected graph",
            "a connected graph",
        )

    @property
    def n_agents(self) -> int:
        return self.adjacency.shape[-1]

    def of_runs(self, first: int, last: int) -> Network:
        """The graphs of runs first to last - 1; the same network where one serves all runs."""
        if self.adjacency.ndim == 2:
            return self
        return Network(self.adjacency[first:last], self.mixing[first:last])

    @cached_property
    def degrees(self) -> np.ndarray:
        """Number of neighbours, without the agent itself; shape ([R,] n)."""
        return self.adjacency.sum(-1)

    @cached_property
    def closed_neighbourhoods(self) -> np.ndarray:
        """Each agent and its neighbours, ([R,] n, 1 + largest degree), padded with the agent."""
        return _padded(self.adjacency | np.eye(self.n_agents, dtype=bool))

    @cached_property
    def open_neighbourhoods(self) -> np.ndarray:
        """Each agent's neighbours, ([R,] n, largest degree), padded with one of them."""
        return _padded(self.adjacency)

    def gather(self, x: np.ndarray, neighbourhoods: np.ndarray) -> np.ndarray:
        """Values of the members: (S, R, n, d) to (S, R, n, members, d)."""
        if neighbourhoods.ndim == 2:
            return x[..., neighbourhoods, :]
        runs = np.arange(len(neighbourhoods))[:, None, None]
        return x[:, runs, neighbourhoods]

    @cached_property
    def _links(self) -> np.ndarray:
        return self.adjacency.astype(float)

    @cached_property
    def _sparse_mixing(self) -> csr_array | None:
        if self.mixing.ndim != 2 or self.n_agents < SPARSE_FROM:
            return None
        from scipy.sparse import csr_array  # slow to import, and few networks are that large

        return csr_array(self.mixing)

    def mix(self, x: np.ndarray) -> np.ndarray:
        r""":math:`\sum_j w_{ij} x_j` for ``x`` of shape (..., n, d)."""
        if self._sparse_mixing is None:
            return self.mixing @ x
        columns = np.moveaxis(x, -2, 0).reshape(self.n_agents, -1)
        shape = (self.n_agents, *x.shape[:-2], x.shape[-1])
        return np.moveaxis((self._sparse_mixing @ columns).reshape(shape), 0, -2)

    def neighbour_sum(self, x: np.ndarray) -> np.ndarray:
        r""":math:`\sum_{j \in N_i} x_j` without the agent itself; ``x`` is (..., n, d)."""
        return self._links @ x


def _padded(membership: np.ndarray) -> np.ndarray:
    """Members of each row, first those there are, then repetitions of one of them."""
    most = int(membership.sum(-1).max())
    # A stable sort of "not a member" puts members first, in the order of their numbers.
    order = np.argsort(~membership, axis=-1, kind="stable")[..., :most]
    present = np.take_along_axis(membership, order, -1)
    itself = np.arange(membership.shape[-1])[:, None]
    own = np.take_along_axis(membership, np.broadcast_to(itself, order[..., :1].shape), -1)
    filler = np.where(own, itself, order[..., :1])
    return np.where(present, order, filler)


def laplacian(adjacency: np.ndarray) -> np.ndarray:
    """Degree matrix minus adjacency, for a stack of graphs."""
    degrees = adjacency.sum(-1)
    return degrees[..., None] * np.eye(adjacency.shape[-1]) - adjacency


def laplacian_mixing(adjacency: np.ndarray, *, scale: float = 1.5) -> np.ndarray:
    r""":math:`W = I - L / (c\,\lambda_{\max}(L))`.

    Paper 000, section V uses :math:`c = 3/2`; any :math:`c > 1/2` keeps the spectrum in (-1, 1].
    """
    require(scale > 0.5, "network.scale", scale, "a number > 0.5")
    lap = laplacian(adjacency)
    largest = np.linalg.eigvalsh(lap)[..., -1]
    return np.eye(adjacency.shape[-1]) - lap / (scale * largest[..., None, None])


def metropolis_mixing(adjacency: np.ndarray) -> np.ndarray:
    r""":math:`w_{ij} = 1/(1+\max(d_i, d_j))` on links, the rest on the diagonal."""
    degrees = adjacency.sum(-1)
    weights = adjacency / (1.0 + np.maximum(degrees[..., :, None], degrees[..., None, :]))
    return weights + np.eye(adjacency.shape[-1]) * (1.0 - weights.sum(-1))[..., None]


def max_degree_mixing(adjacency: np.ndarray) -> np.ndarray:
    r""":math:`W = I - L/(d_{\max}+1)`."""
    largest = adjacency.sum(-1).max(-1)
    return np.eye(adjacency.shape[-1]) - laplacian(adjacency) / (1.0 + largest[..., None, None])


MIXINGS: dict[str, Callable[..., np.ndarray]] = {
    "laplacian": laplacian_mixing,
    "metropolis": metropolis_mixing,
    "max_degree": max_degree_mixing,
}


def second_eigenvalue(mixing: np.ndarray) -> np.ndarray:
    """Largest absolute eigenvalue apart from the first, a network's rate of consensus; 0 of one
    agent alone."""
    if mixing.shape[-1] == 1:
        return np.zeros(mixing.shape[:-2])
    eigenvalues = np.linalg.eigvalsh(mixing)
    return np.maximum(np.abs(eigenvalues[..., 0]), np.abs(eigenvalues[..., -2]))


def connected(adjacency: np.ndarray) -> np.ndarray:
    """For each graph of a stack, whether every agent reaches every other."""
    n = adjacency.shape[-1]
    reach = adjacency | np.eye(n, dtype=bool)
    for _ in range(max(1, int(np.ceil(np.log2(max(2, n)))))):
        reach = (reach.astype(np.float32) @ reach.astype(np.float32)) > 0
    return reach[..., 0, :].all(-1)


def erdos_renyi(streams: Streams, agents: int, *, probability: float) -> np.ndarray:
    """One connected G(n, p) a run, by rejection.

    Links compare one uniform each with ``probability``; the same uniforms serve every probability.

    Raises
    ------
    InvalidInput
        Where no draw was connected after ``MAX_ATTEMPTS`` graphs.
    """
    require(0 < probability <= 1, "network.probability", probability, "a number in (0, 1]")
    upper = np.triu_indices(agents, 1)

    def attempt(generator, count):
        return generator.random((count, len(upper[0]))) < probability

    return _connected_draws(streams, agents, attempt, "network.probability", probability)


def random_edges(streams: Streams, agents: int, *, edges: int) -> np.ndarray:
    """One connected graph a run, uniform among those with a given number of links."""
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


def _batches() -> Iterator[int]:
    """Sizes of batches, doubling, that add up to ``MAX_ATTEMPTS``."""
    left, (count, most) = MAX_ATTEMPTS, _BATCHES
    while left:
        yield min(count, left)
        left -= min(count, left)
        count = min(2 * count, most)


def _first_connected(generator, agents, attempt, key, value) -> np.ndarray:
    upper = np.triu_indices(agents, 1)
    for count in _batches():
        links = attempt(generator, count)
        links = links[links.sum(1) >= agents - 1]
        adjacency = np.zeros((len(links), agents, agents), dtype=bool)
        adjacency[:, upper[0], upper[1]] = links
        adjacency |= adjacency.transpose(0, 2, 1)
        found = np.flatnonzero(connected(adjacency))
        if found.size:
            return adjacency[found[0]]
    raise InvalidInput(
        key,
        value,
        f"a graph of {agents} agents that can be connected (none in {MAX_ATTEMPTS} draws)",
    )


def from_edges(agents: int, edges: list[tuple[int, int]]) -> np.ndarray:
    """Adjacency of a list of links between agents numbered from 1, as papers print them."""
    _require_links(agents, edges)
    return _linked(agents, ((i - 1, j - 1) for i, j in edges))


def always(maker: Callable[[int], Any]) -> Callable[[Streams, int], np.ndarray]:
    """A graph that is the same in every run, as a maker for :data:`GRAPHS`.

    Parameters
    ----------
    maker : callable
        From the number of agents to the links between agents 0, 1, ..., or to a graph of networkx.
    """

    def adjacency(streams: Streams, agents: int) -> np.ndarray:
        made = maker(agents)
        return _linked(agents, getattr(made, "edges", made))

    return adjacency


def _linked(agents: int, links: Iterable[tuple[int, int]]) -> np.ndarray:
    adjacency = np.zeros((agents, agents), dtype=bool)
    for i, j in links:
        adjacency[i, j] = adjacency[j, i] = True
    return adjacency


GRAPHS: dict[str, Callable[..., np.ndarray]] = {
    "erdos_renyi": erdos_renyi,
    "random_edges": random_edges,
    "edges": lambda streams, agents, *, edges: from_edges(agents, edges),
    "ring": always(lambda agents: ((i, (i + 1) % agents) for i in range(agents))),
    "path": always(lambda agents: pairwise(range(agents))),
    "star": always(lambda agents: ((0, i) for i in range(1, agents))),
    "complete": always(lambda agents: combinations(range(agents), 2)),
}
"""Adjacency ([R,] n, n) from streams, a number of agents and parameters of its own."""


def require_buildable(
    name: str, agents: int, *, weights: str = "laplacian", scale: float = 1.5, **parameters: Any
) -> None:
    """Raise :class:`InvalidInput` for what :func:`build` could not even begin."""
    require(type(agents) is int, "network.agents", agents, "a whole number")
    if name == "single":
        require(agents == 1, "network.agents", agents, "1 agent for single")
        return
    require(agents >= 2, "network.agents", agents, "at least 2 agents")
    require(weights in MIXINGS, "network.weights", weights, f"one of {', '.join(MIXINGS)}")
    require(type(scale) in (int, float), "network.scale", scale, "a number > 0.5")
    require(name in GRAPHS, "network.name", name, f"one of {', '.join(GRAPHS)}")
    _require_parameters(name, parameters)
    if "probability" in parameters:
        given = parameters["probability"]
        known = type(given) in (int, float) and 0 < given <= 1
        require(known, "network.probability", given, "a number in (0, 1]")
    if name == "random_edges":
        _require_edges(agents, parameters["edges"])
    if name == "edges":
        _require_links(agents, parameters["edges"])


def _require_edges(agents: int, edges: Any) -> None:
    pairs = agents * (agents - 1) // 2
    require(
        type(edges) is int and agents - 1 <= edges <= pairs,
        "network.edges",
        edges,
        f"between {agents - 1} (a tree) and {pairs} (all pairs) for {agents} agents",
    )


def _require_links(agents: int, edges: Any) -> None:
    links = edges if isinstance(edges, list | tuple) else [edges]
    known = all(
        isinstance(link, list | tuple)
        and len(link) == 2
        and all(type(number) is int and 1 <= number <= agents for number in link)
        for link in links
    )
    require(known, "network.edges", edges, f"pairs of agents numbered 1 to {agents}")


def _require_parameters(name: str, given: Mapping[str, Any]) -> None:
    known = dict(list(signature(GRAPHS[name]).parameters.items())[2:])
    needed = {key for key, parameter in known.items() if parameter.default is parameter.empty}
    expected = f"{', '.join(known) or 'no parameters'} for {name}"
    for key in sorted({*given} - {*known} | needed - {*given}):
        require(False, f"network.{key}", given.get(key, "nothing"), expected)


def build(
    streams: Streams, name: str, agents: int, *, weights: str = "laplacian", **parameters
) -> Network:
    """The network that a configuration names.

    Parameters
    ----------
    name : str
        Of :data:`GRAPHS`, with that graph's parameters: ``erdos_renyi`` (``probability``),
        ``random_edges`` (``edges``), ``edges`` (a list of links) and others without any; or
        ``single``: one agent alone, for what is computed in one place.
    weights : str
        Mixing matrix: ``laplacian`` (with ``scale``), ``metropolis`` or ``max_degree``.

    Raises
    ------
    InvalidInput
        For fewer than two agents (``single``: other than one), an unknown name, a parameter too
        few or too many, or a graph that cannot be connected.
    """
    require_buildable(name, agents, weights=weights, **parameters)
    if name == "single":
        return Network(np.zeros((1, 1), dtype=bool), np.ones((1, 1)))
    mixing_parameters = {"scale": parameters.pop("scale")} if "scale" in parameters else {}
    adjacency = GRAPHS[name](streams, agents, **parameters)
    return Network(adjacency, MIXINGS[weights](adjacency, **mixing_parameters))
