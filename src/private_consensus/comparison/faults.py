r"""Agents that miss a round, and links that fail, without touching any algorithm.

In every exchange each agent is missing with one probability and each link fails with another, all
independently, of the data too. A missing agent sends nothing; it hears, and goes on with what it
has. A message that does not arrive is replaced by the last one that did on that link, and before
there was any by the receiver's own value.

Why the account of all rounds still holds: think of the run in which every agent sends every message
to somebody who only listens. The steps of that run use what arrived, which is a function of those
messages and of masks that do not depend on data, so that each release has the sensitivity and noise
that the accountant was told of, given all earlier ones. What an eavesdropper sees of the run with
faults is a part of it: a function of that run and the masks.

An algorithm takes part if it hears of others by one exchange a round, a mixing or a sum over
neighbours. What reads values at the ends of links, or needs noise of others to arrive, does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InvalidInput, require
from ..networks import Network
from ..randomness import Streams

SILENT = {"coordinate_descent", "local_training"}
"""Algorithms that send nothing on the way: faults change nothing."""

BROKEN = {
    "decor": "its noise cancels between neighbours only where both messages arrive",
    "dp_admm": "a server averages what all agents send, and has no neighbours",
    "dsgd": "its round mixes models in place, without keeping messages",
    "ldp_gradient_descent": "it compares neighbours' values of one round with each other",
    "ldp_subgradient": "it compares neighbours' values of one round with each other",
    "mafalda_sgd": "its noise is correlated over rounds for messages that all arrive",
    "pr_admm": "agents compare messages with earlier ones of the same neighbour",
    "q_dpsgd_1": "its round mixes models in place, without keeping messages",
    "q_dpsgd_2": "its round mixes models in place, without keeping messages",
    "sdm_dsgd": "its round mixes models in place, without keeping messages",
    "secure_aggregation": "the sum lacks the share of noise of an agent that is missing",
    "zip_dl": "its noise cancels at its sender only where all of its messages arrive",
}
"""Why an algorithm's guarantee or update has no meaning with faults."""

KEPT = ("n_agents", "degrees", "own_weights", "consensus_rate", "shared", "identity")
"""What of a network does not depend on which messages arrive."""


class UnreliableNetwork:
    """A network on which messages are lost, for one batch of settings and runs.

    Parameters
    ----------
    network : Network
        One graph for all runs.
    missing, links : float
        Probabilities, of an agent and of a link, in each exchange.
    streams : Streams
        Masks of a run are drawn from a stream of its own.

    Attributes
    ----------
    sent : list of ndarray, shape (runs,)
        Messages sent in each exchange, one a neighbour.
    """

    def __init__(self, network: Network, missing: float, links: float, streams: Streams):
        require(network.shared, "network", "one graph a run", "one graph for all runs")
        for key, value in {"missing": missing, "links": links}.items():
            require(0 <= value < 1, f"faults.{key}", value, "a probability below 1")
        self._network, self._missing, self._links = network, missing, links
        self._generators = streams.generators("graph", "faults")
        self._to, self._from = np.nonzero(network.adjacency)
        self._weights = _gathering(self._to, network.mixing[self._to, self._from], network)
        self._ones = _gathering(self._to, np.ones(len(self._to)), network)
        self._heard: np.ndarray | None = None
        self._kind = ""
        self.sent: list[np.ndarray] = []

    def __getattr__(self, name: str) -> Any:
        if name not in KEPT:
            expected = "an algorithm that hears of others by one mixing or one sum a round"
            raise InvalidInput("faults", name, expected)
        return getattr(self._network, name)

    def mix(self, x: np.ndarray) -> np.ndarray:
        r""":math:`w_{ii}x_i + \sum_j w_{ij}\hat x_j` with what was last heard of neighbours."""
        heard = self._hear("mix", x)
        return self._network.own_weights[:, None] * x + self._weights @ heard

    def neighbour_sum(self, x: np.ndarray) -> np.ndarray:
        r""":math:`\sum_{j\in N_i}\hat x_j` with what was last heard of neighbours."""
        return self._ones @ self._hear("neighbour_sum", x)

    def _hear(self, kind: str, x: np.ndarray) -> np.ndarray:
        """What was last heard on each link, [settings, runs, links, dim]."""
        require(
            self._kind in ("", kind), "faults", kind, f"{self._kind} alone: one kind of exchange"
        )
        self._kind = kind
        arrived = self._arrived()
        now = x[..., self._from, :]
        before = x[..., self._to, :] if self._heard is None else self._heard
        self._heard = np.where(arrived[..., None], now, before)
        return self._heard

    def _arrived(self) -> np.ndarray:
        """Which messages arrive, [runs, links]; a link fails in both directions."""
        n = self._network.n_agents
        units = np.stack([g.random((1 + n, n)) for g in self._generators])
        present = units[:, 0] >= self._missing
        works = np.triu(units[:, 1:] >= self._links, 1)
        works |= works.swapaxes(-1, -2)
        sent = present[:, self._from]
        self.sent.append(sent.sum(-1))
        return sent & works[:, self._to, self._from]


def _gathering(to: np.ndarray, weights: np.ndarray, network: Network) -> np.ndarray:
    """Matrix [agents, links] that adds up what arrives at each agent."""
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
    if name in BROKEN:
        raise InvalidInput("faults", name, f"no faults: {BROKEN[name]}")
