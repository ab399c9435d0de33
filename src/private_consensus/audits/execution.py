"""Execution on one data set: all messages of all agents in order, for many simultaneous runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from private_consensus.common.errors import require
from private_consensus.core.algorithms.base import Algorithm, stack
from private_consensus.core.networks import Network
from private_consensus.core.randomness import Streams
from private_consensus.kernels.compiling import limited_threads

from .recording import RecordingNetwork
from .streams import AuditStreams

LINKS = "links"
"""Name of the observable with messages that differ by receiver."""
EXCHANGES = 4
"""Recorded exchanges per iteration, in addition to those of links. Later exchanges are a consensus
over recorded values."""


@dataclass(frozen=True)
class Execution:
    """All messages of many runs on one data set.

    Parameters
    ----------
    sent : ndarray, shape (runs, iterations, agents, dim)
        Released messages; exchanged values if the algorithm releases nothing.
    unannounced : ndarray, shape (runs, k, agents, dim)
        Other exchanged values, including the starting point.
    internal : ndarray or None, shape as ``sent``, of the first runs or of all
        Iterates before noise, if the algorithm shows them; no observer receives them.
    links : ndarray or None, shape (runs, iterations, agents, receivers, dim)
        Exchanged values of an algorithm that sends a different message to each neighbour.
    outcome : ndarray or None, shape (runs, 1, agents, dim)
        Value that ``outcome`` releases after the last message.
    """

    sent: np.ndarray
    unannounced: np.ndarray
    internal: np.ndarray | None
    links: np.ndarray | None = None
    outcome: np.ndarray | None = None

    @cached_property
    def released(self) -> np.ndarray:
        """Released messages, and the outcome if there is one."""
        if self.outcome is None:
            return self.sent
        return np.concatenate([self.sent, self.outcome], axis=1)

    @cached_property
    def messages(self) -> np.ndarray:
        """Released messages and other exchanged values."""
        if not self.unannounced.size:
            return self.released
        return np.concatenate([self.released, self.unannounced], axis=1)

    def at(self, t: int) -> Execution:
        """Return iteration t = 1, 2, ... without the axis of iterations."""
        at_t = self._changed(lambda array: array[:, t - 1], "sent", "internal", "links")
        return replace(at_t, outcome=None)

    def first(self, runs: int) -> Execution:
        """Return the execution restricted to the first ``runs`` runs."""
        return self._changed(lambda array: array[:runs], *(field.name for field in fields(self)))

    def finite(self) -> Execution:
        """Return the execution with zeros in place of NaN and infinite numbers of messages."""
        names = "sent", "unannounced", "outcome"
        return self._changed(lambda array: np.where(np.isfinite(array), array, 0.0), *names)

    def _changed(self, change: Callable[[np.ndarray], np.ndarray], *names: str) -> Execution:
        """Return the execution with some of its arrays changed."""
        arrays = {name: getattr(self, name) for name in names}
        present = {name: array for name, array in arrays.items() if array is not None}
        return replace(self, **{name: change(array) for name, array in present.items()})

    def public(self) -> Execution:
        """Return the outputs that an observer receives."""
        return replace(self, internal=None)


def run_batch(
    algorithm: Algorithm,
    problem: Any,
    network: Network,
    streams: Streams,
    horizon: int,
    observe: Callable[[int, np.ndarray, Mapping[str, Any]], None],
) -> None:
    """Run a calibrated algorithm for all runs of ``streams``, on one problem and graph.

    All runs have the data of the first run. ``observe`` receives iteration, active settings and
    observables, which have the axis of settings.
    """
    with limited_threads(1):
        batch = stack([algorithm])
        batch.run(
            problem.repeated(len(streams.runs)), network, streams, np.array([horizon]), observe
        )


def execute(
    algorithm: Algorithm,
    problem: Any,
    network: Network,
    streams: AuditStreams,
    horizon: int,
    *,
    internal_of: int | None = None,
) -> Execution:
    """Execute all runs of a calibrated algorithm on one data set.

    The iterates before noise are recorded in the first ``internal_of`` runs, by default in all. An
    algorithm that neither releases nor exchanges anything raises ``InvalidInput``.
    """
    recording = RecordingNetwork.on(network)
    messages = _Heard(recording, len(streams.runs), internal_of)
    run_batch(algorithm, problem, recording, streams, horizon, messages)
    expected = "an algorithm whose agents exchange or release something"
    require(bool(messages.sent), "algorithm", type(algorithm).__name__, expected)
    return messages.execution()


class _Heard:
    """Observer that records observables and exchanged values."""

    def __init__(self, network: RecordingNetwork, runs: int, internal_of: int | None):
        self.network, self.runs = network, runs
        self.internal_of = runs if internal_of is None else internal_of
        self.sent: dict[int, np.ndarray] = {}
        self.internal: dict[int, np.ndarray] = {}
        self.links: dict[int, np.ndarray] = {}
        self.unannounced: list[np.ndarray] = []
        self.outcome: np.ndarray | None = None

    def __call__(self, t: int, active: np.ndarray, observables: Mapping[str, Any]) -> None:
        if "released" in observables:
            released = np.array(observables["released"][0])
            if t not in self.sent:
                self.sent[t] = released
            else:
                self.outcome = released
        if "internal" in observables and self.internal_of:
            self.internal[t] = np.array(observables["internal"][0][: self.internal_of])
        exchanged = self.network.taken(self.runs)
        max_exchanges = EXCHANGES
        if LINKS in observables:
            links = _by_receiver(exchanged, observables[LINKS][0])
            if links is not None:
                self.links[t] = links
                max_exchanges += links.shape[-2]
        exchanged = exchanged[:max_exchanges]
        if exchanged and t not in self.sent:
            self.sent[t] = exchanged.pop(0)  # nothing is announced: what is exchanged is released
        self._listen(exchanged)

    def _listen(self, exchanged: list[np.ndarray]) -> None:
        recent = list(self.sent.values())[-2:]
        for values in exchanged:
            fresh = not any(_same(values, earlier) for earlier in (*recent, *self.unannounced[-2:]))
            if fresh:
                self.unannounced.append(values)

    def execution(self) -> Execution:
        shapes = sorted({values.shape[1:] for values in self.sent.values()})
        expected = "messages of the same shape in all iterations"
        require(len(shapes) == 1, "released", f"shapes {shapes} [agents, dim]", expected)
        sent = np.stack(list(self.sent.values()), axis=1)
        extra = [values for values in self.unannounced if values.shape == sent[:, 0].shape]
        none = sent[:, :0]
        internal, links = (
            np.stack(list(by_iteration.values()), axis=1)
            if len(by_iteration) == len(self.sent)
            else None
            for by_iteration in (self.internal, self.links)
        )
        outcome = None
        if self.outcome is not None and self.outcome.shape == sent[:, 0].shape:
            outcome = self.outcome[:, None]
        unannounced = np.stack(extra, axis=1) if extra else none
        return Execution(sent, unannounced, internal, links, outcome)


def _by_receiver(exchanged: list[np.ndarray], declared_links: np.ndarray) -> np.ndarray | None:
    """Return the exchanged values by receiving agent, or None if their shape differs."""
    receivers = declared_links.shape[-2]
    if len(exchanged) < receivers:
        return None
    links = np.stack(exchanged[:receivers], axis=-2)
    return links if links.shape == declared_links.shape else None


def _same(first: np.ndarray, second: np.ndarray) -> bool:
    return first.shape == second.shape and np.array_equal(first, second)
