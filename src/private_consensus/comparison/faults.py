"""Agents that miss a round, and edges that fail, without changing any algorithm.

In every exchange each agent is missing with one probability and each edge fails with another. All
failures are independent of each other and of the data. A missing agent sends nothing, but it
receives messages and continues with its state. A message that does not arrive is replaced by the
last one that arrived on that edge. Before the first arrival, it is replaced by the message that the
receiver itself sends on that edge.

The guarantee for all rounds still holds. Consider the run in which every agent sends every
message to an additional agent who only receives. The steps of that run use the messages that
arrived, a function of these messages and of masks that do not depend on data. Given all earlier
releases, each release therefore has the sensitivity and the noise that the accountant assumes. The
eavesdropper's view of the run with faults is a function of that run and of the masks.

Noise that cancels (DECOR, Zip-DL) cancels only if messages arrive. Losses of messages thus reduce
the accuracy, not the privacy. An algorithm can run with faults if it receives messages by one
exchange per round: a mixing, a sum or the values of neighbours, or one message per edge.
A lost difference, or a lost sum of a server, cannot be replaced by an earlier one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from private_consensus.common.errors import InvalidInput, require
from private_consensus.core import algorithms
from private_consensus.core.networks import Network
from private_consensus.core.randomness import Streams

RELIABLE_ATTRIBUTES = (
    "n_agents", "degrees", "own_weights", "consensus_rate", "shared", "identity", "graph",
    "closed_neighbourhoods", "open_neighbourhoods",
)  # fmt: skip
"""Attributes of a network that do not depend on the arrival of messages."""


@dataclass(frozen=True)
class LossyMixing:
    r"""Mixing operator under message loss: :math:`w_{ii}x_i + \sum_j w_{ij}\hat x_j` for one run.

    Parameters
    ----------
    own_weights : ndarray, shape (agents,)
        Weights of the agents' own values.
    weights : ndarray, shape (agents, links)
        Weights of the values received on each directed edge.
    receive : callable
        Map from values [agents, dim] to the values last received per directed edge, [links, dim].
    """

    own_weights: np.ndarray
    weights: np.ndarray
    receive: Callable[[np.ndarray], np.ndarray]

    def astype(self, kind: Any) -> LossyMixing:
        """Return a copy in another floating-point precision."""
        return replace(
            self, own_weights=self.own_weights.astype(kind), weights=self.weights.astype(kind)
        )

    def diagonal(self) -> np.ndarray:
        """Return the weights of the agents' own values."""
        return self.own_weights

    def without_diagonal(self) -> LossyMixing:
        """Return the operator without the agents' own values."""
        return replace(self, own_weights=np.zeros_like(self.own_weights))

    def __rmul__(self, factor: float) -> LossyMixing:
        return replace(self, own_weights=factor * self.own_weights, weights=factor * self.weights)

    def __matmul__(self, x: np.ndarray) -> np.ndarray:
        return self.own_weights[:, None] * x + self.weights @ self.receive(x)


class UnreliableNetwork:
    """Network that loses messages, for one batch of settings and runs.

    Parameters
    ----------
    network : Network
        One graph for all runs.
    missing, links : float
        Probabilities that an agent is missing and that an edge fails, in each exchange.
    streams : Streams
        Random streams; the masks of each run have a separate one.

    Attributes
    ----------
    sent : list of ndarray, shape (runs,)
        Number of messages sent in each exchange, one per neighbour.
    """

    lossless = False

    def __init__(self, network: Network, missing: float, links: float, streams: Streams):
        require(network.shared, "network", "one graph per run", "one graph for all runs")
        for key, value in {"missing": missing, "links": links}.items():
            require(0 <= value < 1, f"faults.{key}", value, "a probability below 1")
        self._network, self._missing, self._links = network, missing, links
        self._generators = streams.generators("graph", "faults")
        self._to, self._from = np.nonzero(network.adjacency)
        self._weights = _receiver_matrix(self._to, network.mixing[self._to, self._from], network)
        self._ones = _receiver_matrix(self._to, np.ones(len(self._to)), network)
        self._received: np.ndarray | None = None
        self._received_in: dict[tuple[int, int], np.ndarray] = {}
        self._kind = ""
        self.sent: list[np.ndarray] = []

    def __getattr__(self, name: str) -> Any:
        if name not in RELIABLE_ATTRIBUTES:
            expected = "an algorithm that receives messages in one exchange per round"
            raise InvalidInput("faults", name, expected)
        return getattr(self._network, name)

    def mix(self, x: np.ndarray) -> np.ndarray:
        r"""Return :math:`w_{ii}x_i + \sum_j w_{ij}\hat x_j` with the values last received."""
        received = self._receive("mix", x[..., self._from, :], x[..., self._to, :])
        return self._network.own_weights[:, None] * x + self._weights @ received

    def neighbour_sum(self, x: np.ndarray) -> np.ndarray:
        r"""Return :math:`\sum_{j\in N_i}\hat x_j` with the values last received."""
        received = self._receive("neighbour_sum", x[..., self._from, :], x[..., self._to, :])
        return self._ones @ received

    def mix_links(self, sent: np.ndarray) -> np.ndarray:
        r"""Return :math:`\sum_j w_{ij}\hat m_{j\to i}` with the messages last received.

        The messages have shape (..., senders, receivers, dim).
        """
        own_messages = sent[..., self._to, self._from, :]
        return self._weights @ self._receive(
            "mix_links", sent[..., self._from, self._to, :], own_messages
        )

    def gather(self, x: np.ndarray, neighbourhoods: np.ndarray) -> np.ndarray:
        """Return the values of members as each agent last received them.

        Parameters
        ----------
        x : ndarray, shape (..., agents, dim)
            Current values.
        neighbourhoods : ndarray of int, shape (agents, members)
            Members of each agent's neighbourhood, which may include the agent.

        Returns
        -------
        ndarray, shape (..., agents, members, dim)
        """
        received = self._receive("gather", x[..., self._from, :], x[..., self._to, :])
        edge_index = np.zeros((self._network.n_agents,) * 2, dtype=int)
        edge_index[self._to, self._from] = np.arange(len(self._to))
        agents = np.arange(len(edge_index))[:, None]
        member_values = received[..., edge_index[agents, neighbourhoods], :]
        return np.where((neighbourhoods == agents)[..., None], x[..., :, None, :], member_values)

    def exchange(self) -> Callable[[int, int], LossyMixing]:
        """Return the function that maps setting and run to the operator that mixes messages."""
        arrived = self._arrived("exchange")
        own_weights = np.asarray(self._network.own_weights)

        def operator_of(setting: int, run: int) -> LossyMixing:
            """Return the operator that mixes the messages of one setting and run.

            Parameters
            ----------
            setting, run : int
                Indices of setting and run.

            Returns
            -------
            LossyMixing
            """

            def receive(x: np.ndarray) -> np.ndarray:
                previous = self._received_in.get((setting, run), x[self._to])
                received = np.where(arrived[run][:, None], x[self._from], previous)
                self._received_in[setting, run] = received
                return received

            return LossyMixing(own_weights, self._weights, receive)

        return operator_of

    def _receive(self, kind: str, current: np.ndarray, fallback: np.ndarray) -> np.ndarray:
        """Return the value last received on each edge, [settings, runs, links, dim]."""
        arrived = self._arrived(kind)
        previous = fallback if self._received is None else self._received
        self._received = np.where(arrived[..., None], current, previous)
        return self._received

    def _arrived(self, kind: str) -> np.ndarray:
        """Return the mask of arriving messages, [runs, links]; an edge fails in both directions."""
        expected = f"only {self._kind}: an algorithm with faults uses one kind of exchange"
        require(self._kind in ("", kind), "faults", kind, expected)
        self._kind = kind
        n = self._network.n_agents
        uniforms = np.stack([g.random((1 + n, n)) for g in self._generators])
        present = uniforms[:, 0] >= self._missing
        is_working = np.triu(uniforms[:, 1:] >= self._links, 1)
        is_working |= is_working.swapaxes(-1, -2)
        sent = present[:, self._from]
        self.sent.append(sent.sum(-1))
        return sent & is_working[:, self._to, self._from]


def _receiver_matrix(to: np.ndarray, weights: np.ndarray, network: Network) -> np.ndarray:
    """Return the matrix [agents, links] that sums the messages arriving at each agent."""
    matrix = np.zeros((network.n_agents, len(to)))
    matrix[to, np.arange(len(to))] = weights
    return matrix


def require_faults(name: str) -> None:
    """Refuse an algorithm whose guarantee or update has no meaning with faults.

    Raises
    ------
    InvalidInput
        With the reason.
    """
    reason = algorithms.load(name).needs_all_messages_because
    require(not reason, "faults", name, f"a method that tolerates faults; here: {reason}")
