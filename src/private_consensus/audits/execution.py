"""Executions of an algorithm that keep everything an observer receives."""

import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from private_consensus.common.errors import arguments
from private_consensus.core.algorithms.base import INTERNAL, Algorithm, Internal
from private_consensus.core.handlers import Leak, Recording, Replaying, Running
from private_consensus.core.networks import Network
from private_consensus.core.problems import Problem
from private_consensus.core.randomness import Streams
from private_consensus.core.simulation import Setting, calibrated
from private_consensus.privacy import Budget
from private_consensus.privacy.mechanism_sampled import Batch, OnBatches
from private_consensus.privacy.mechanisms import (
    CancellingLinks,
    Mechanism,
    Recorded,
    Temporal,
    sizes_of,
)

from .frozen import freeze
from .network import RecordingNetwork
from .search import Push


def calibrated_on_first_graph(
    algorithm: Algorithm, problem: Any, network: Network, budget: Budget, horizon: int
) -> tuple[Algorithm, Network]:
    """Return an algorithm with its noise and the graph of the first run, of checked arguments."""
    arguments.instance("algorithm", algorithm, Algorithm, "an Algorithm object, no class")
    arguments.instance("problem", problem, Problem, "a Problem")
    arguments.instance("network", network, Network, "a Network")
    arguments.instance("budget", budget, Budget, "a Budget")
    arguments.whole("horizon", horizon, 1)
    network = network.of_run(0)
    return calibrated(Setting(algorithm, budget, horizon), problem, network), network


class Refused(Exception):
    """The audit cannot judge an execution, for example because of the type of a query."""


class Event(NamedTuple):
    """Value of an execution: kind (message, output or state), iteration, name and value."""

    kind: str
    t: int
    name: str
    value: Any


@dataclass
class Execution:
    """Everything that is observed of one execution.

    Attributes
    ----------
    declaration : object
        Frozen mechanisms.
    events : list of Event
        Messages, outputs and states, in order.
    releases : list of Recorded
        Releases, of a recorded execution.
    costs : list of (str, int, ndarray, ndarray)
        Name, iteration, cost and declared loss per release, of a replay.
    leak, refusal, error : str
        Reason why the execution ended early; empty if it did not.
    unsent : str
        Sentence on a state that depends on another agent without a message; empty if none does.
    weights : ndarray, shape (agents, records), optional
        Largest weight of each record in a batch that random numbers select.
    """

    declaration: Any = None
    events: list[Event] = field(default_factory=list)
    releases: list[Recorded] = field(default_factory=list)
    costs: list[tuple[str, int, np.ndarray, np.ndarray]] = field(default_factory=list)
    leak: str = ""
    refusal: str = ""
    error: str = ""
    unsent: str = ""
    weights: np.ndarray | None = None


def check_query(label: str, query: Any, scale: Any, shape: tuple[int, ...] | None = None) -> None:
    """Refuse a query that is not a plain array of finite real numbers, finer than its noise."""
    if type(query) is not np.ndarray or query.dtype.kind not in "fiub":
        raise Refused(f"{label} is {type(query).__name__}, expected a plain array of real numbers")
    if not np.isfinite(query).all():
        raise Refused(f"{label} is not finite")
    if shape is not None and query.shape != shape:
        # One noise would cover several values.
        raise Refused(f"{label} has shape {query.shape}, expected {shape}, the shape of its noise")
    largest, smallest = float(np.abs(query).max(initial=0.0)), float(np.min(scale))
    if smallest > 0 and np.spacing(np.asarray(largest, query.dtype)) > 1e-7 * smallest:
        text = f"is {largest:.3g} large, so that its resolution is coarser than the noise"
        raise Refused(f"{label} {text}")


def execute(
    algorithm: Algorithm,
    problem: Any,
    network: Network,
    horizon: int,
    streams: Streams,
    releases: list[Recorded] | None = None,
    push: Push | None = None,
) -> Execution:
    """Execute an algorithm, and record it, or replay the recorded ``releases``.

    The vectors of ``push`` are added to all noise of a recorded execution.
    """
    result = Execution()
    try:
        declared = algorithm.mechanisms(problem, network, horizon)
        result.declaration = freeze(dict(declared))
        setting = declared, problem, streams, np.array([horizon])
        if releases is None:
            handler: Running = AuditRecording(*setting, push=push)
            result.releases = handler.releases
        else:
            handler = Replaying(*setting, releases=releases)
            result.costs = handler.costs
        run_recorded(algorithm, problem, network, horizon, handler, result.events)
        if isinstance(handler, AuditRecording):
            result.weights = batch_weights(handler.selections, problem)
        if isinstance(handler, Replaying) and next(handler.recorded, None) is not None:
            raise Leak("an execution has fewer releases on one data set than on the other")
    except Leak as leak:
        result.leak = str(leak)
    except Refused as refusal:
        result.refusal = str(refusal)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        last = [frame for frame in frames if frame.name != "__getattr__"][-1]
        result.error = f"{type(error).__name__}: {error} ({last.name}, line {last.lineno})"
    return result


class AuditRecording(Recording):
    """Recording that refuses queries which their mechanism cannot protect.

    Parameters
    ----------
    push : Push, optional
        Vectors that are added to all noise, so that models become large: a guarantee holds for all
        outputs.
    """

    def __init__(self, *args: Any, push: Push | None = None):
        super().__init__(*args)
        self.push = push
        self.selections: list[Any] = []

    def draw(self, key, make):
        value = super().draw(key, make)
        purpose, name = key
        mechanism = self.mechanisms.get(name)
        if isinstance(mechanism, OnBatches) and purpose == "noise":
            self.selections.append(mechanism.public(value))
        elif purpose != "noise" and isinstance(value, np.ndarray):
            self.selections.append(value)
        return value

    def prepare(self, name):
        mechanism, unit = super().prepare(name)
        if self.push is None or not np.min(scale := mechanism.unit_scale(self.t)) > 0:
            return mechanism, unit
        push = self.push.at(self.t) / np.min(scale)
        if "agents" not in mechanism.shape:
            push = push[0]
        if isinstance(mechanism, Temporal):
            unit = (*unit[:-1], unit[-1] + push)
        elif isinstance(mechanism, CancellingLinks):
            # The noise of a sender cancels, so that its receivers need different signs.
            signs = (-1.0) ** np.arange(unit.shape[-2])
            unit = unit + signs[:, None] * push[:, None]
        elif isinstance(unit, np.ndarray):
            # A query may contain several vectors, one after the other.
            unit = unit + np.take(push, np.arange(unit.shape[-1]) % push.shape[-1], axis=-1)
        self.latest["noise", name] = unit
        return mechanism, unit

    def release(self, name: str, query: Any, where: np.ndarray | None) -> Any:
        mechanism = self.mechanisms.get(name)
        if isinstance(mechanism, Mechanism) and mechanism.takes_array:
            shape = sizes_of(mechanism.query_shape, self.problem)
            shape = (len(self.horizon), len(self.streams.runs), *shape)
            label = f"the query of {name!r} in iteration {self.t}"
            check_query(label, query, mechanism.at(mechanism.scale, self.t), shape)
        return super().release(name, query, where)


def batch_weights(selections: list[Any], problem: Any) -> np.ndarray | None:
    """Return the largest weight of each record in a sampled batch, [agents, records].

    ``selections`` are batches, and random numbers: indices of records, or uniform numbers that
    become indices. The result is None if all weights of each agent are equal.
    """
    agents, records = problem.n_agents, getattr(problem, "records", 0)
    weights = np.zeros((agents, records))
    for selection in selections:
        if isinstance(selection, Batch):
            sizes, rows = selection.sizes[0, 0], problem.rows_of(0)
            for agent, size in enumerate(sizes):
                is_used = np.isin(rows[agent], selection.rows[0, agent, :size])
                weights[agent] = np.maximum(weights[agent], is_used / max(size, 1))
            continue
        numbers = selection[0]
        if numbers.dtype.kind == "f":
            numbers = np.floor(numbers * records)
        if not numbers.size or numbers.min() < 0 or numbers.max() >= records:
            continue
        of_agents = numbers if numbers.shape[:1] == (agents,) else [numbers] * agents
        counts = [np.bincount(np.ravel(n).astype(int), minlength=records) for n in of_agents]
        weights = np.maximum(weights, counts)
    return weights if records and np.ptp(weights, axis=1).any() else None


def run_recorded(
    algorithm: Algorithm,
    problem: Any,
    network: Network,
    horizon: int,
    handler: Running,
    events: list[Event],
    deliver: Callable[[Any], Any] = lambda received: received,
) -> None:
    """Execute all iterations; append messages, outputs and states to ``events``.

    ``deliver`` returns the value that agents receive for the value that they should receive.
    """

    def record(name: str, value: Any) -> None:
        events.append(Event("message", handler.t, name, value))

    recording: Any = RecordingNetwork(network, record, deliver)
    release = handler.function()
    state = algorithm.start(problem, recording, release)
    events.extend(_states(0, state))
    for t in range(1, horizon + 1):
        handler.begin(t)
        state = algorithm.step(state, problem, recording, release, t)
        events.extend(_outputs(algorithm, t, algorithm.observables(state, problem, t)))
        events.extend(_states(t, state))
    last = algorithm.outcome(state, problem, recording, release, horizon)
    events.extend(_outputs(algorithm, horizon, last))


def _outputs(algorithm: Algorithm, t: int, observables: Mapping[str, Any]) -> Iterable[Event]:
    internal = {INTERNAL, *(name for name in algorithm.quantities if isinstance(name, Internal))}
    for name, value in observables.items():
        if name not in internal:
            yield Event("output", t, name, np.array(value))


def _states(t: int, state: Any) -> Iterable[Event]:
    for name, value in _entries(state):
        yield Event("state", t, name, np.array(value) if isinstance(value, np.ndarray) else value)


def _entries(state: Any, name: str = "") -> Iterable[tuple[str, Any]]:
    """Yield the named entries of a state: a NamedTuple, dataclass, mapping or single value."""
    if hasattr(state, "_asdict"):
        entries = state._asdict()
    elif is_dataclass(state):
        entries = {f.name: getattr(state, f.name) for f in fields(state)}
    elif isinstance(state, Mapping):
        entries = state
    else:
        yield name or "state", state
        return
    for part, value in entries.items():
        yield from _entries(value, f"{name}.{part}" if name else str(part))
