r"""Execute an algorithm with chosen noise, to find what its messages reveal.

If messages are affine in the noise and in the private values, an execution per unit of noise and
per change of a private value gives their matrices. All executions of one question run as one batch,
each as a run of its own.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.handlers import Running
from private_consensus.core.networks import Network
from private_consensus.core.randomness import Streams
from private_consensus.privacy.mechanisms import Mechanism, SecureSum, sizes_of

from .network import RecordingNetwork

Units = Callable[[str, int, np.ndarray], None]
"""Function of a mechanism, an iteration and an array [runs, *shape] of zeros, which it fills."""


class Message(NamedTuple):
    """Values that agents send in one call, [runs, agents, dim] or [runs, from, to, dim].

    ``released`` is the last iteration whose private values are released before. ``received``,
    [runs, agents, dim], is the sum that each agent receives if sums are computed securely.
    ``is_public`` is True if every agent receives the values of all agents.
    """

    released: int
    values: np.ndarray
    received: np.ndarray
    is_public: bool


@dataclass
class View:
    """Messages of an execution, in order, with the private values that mechanisms protect.

    Attributes
    ----------
    queries : dict
        Query of each mechanism and iteration, [runs, ...], if it is an array.
    final : ndarray, shape (runs, agents, dim)
        Models that are released after the last iteration.
    samples : bool
        True if iterations use public random numbers, which are those of the first run.
    """

    messages: list[Message] = field(default_factory=list)
    queries: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    final: Any = None
    samples: bool = False


class _Enough(Exception):
    """End of an execution: all messages that depend on the counted releases are sent."""


class FedStreams:
    """Streams of the first run for all runs; ``units``, if any, fills the noise of mechanisms."""

    def __init__(self, count: int, units: Units | None, mechanisms: Mapping[str, Mechanism]):
        self.runs, self.units, self.first = range(count), units, Streams(0, (0,))
        self.names = {m.stream: name for name, m in mechanisms.items() if m.noise_streams}
        self.samples = False

    def generators(self, purpose: str, name: str = "") -> list[np.random.Generator]:
        return [self.first.generators(purpose, name)[0] for _ in self.runs]

    def draw(self, *options: Any) -> np.ndarray:
        return np.repeat(self.first.draw(*options), len(self.runs), axis=0)

    def counter_normals(self, *options: Any) -> Iterator[Any]:
        for noise in self.first.counter_normals(*options):
            yield noise._replace(keys=np.repeat(noise.keys, len(self.runs), axis=0))

    def sequence(
        self, purpose: str, law: Any, shape: tuple[int, ...], name: str = ""
    ) -> Iterator[np.ndarray]:
        is_fed = purpose == "noise" and self.units is not None and name in self.names
        self.samples |= purpose == "sampling"
        for t, values in enumerate(self.first.sequence(purpose, law, shape, name), 1):
            unit = np.repeat(0 * values if is_fed else values, len(self.runs), axis=0)
            if is_fed:
                self.units(self.names[name], t, unit)
            yield unit


class Feeding(Running):
    """Handler that changes private values or outputs of mechanisms, and keeps the queries.

    Parameters
    ----------
    view : View
        View to which queries are added.
    ignores_queries : bool
        True to replace each query by 0, so that nothing reacts to earlier outputs.
    shift : callable, optional
        Function that fills the change of a query, or of an output that is an array.
    after : bool
        True to change outputs instead of queries.
    """

    def __init__(self, *args: Any, view: View, ignores_queries=False, shift=None, after=False):
        super().__init__(*args)
        self.view, self.ignores_queries = view, ignores_queries
        self.shift, self.after, self.last, self.stopped = shift, after, 0, False
        self.public: Callable[[Any], None] = lambda output: None

    def release(self, name: str, query: Any, where: np.ndarray | None) -> Any:
        if self.stopped:
            raise _Enough
        mechanism, unit = self.prepare(name)
        self.last = self.t
        if isinstance(query, np.ndarray):
            runs = len(self.streams.runs)
            query = np.broadcast_to(query, (len(query), runs, *query.shape[2:]))
            self.view.queries[name, self.t] = query[0]
            query = np.zeros_like(query) if self.ignores_queries else query.copy()
        output = mechanism.output(self._shifted(name, query, not self.after), unit, self.t)
        output = self._shifted(name, output, self.after)
        if isinstance(mechanism, SecureSum):
            self.public(output)
        return output

    def _shifted(self, name: str, value: Any, now: bool) -> Any:
        """Return a value with its change, if it is an array of numbers."""
        is_array = isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim > 2
        if not (now and self.shift and is_array):
            return value
        change = np.zeros((len(self.streams.runs), *value.shape[2:]))
        self.shift(name, self.t, change)
        return value + change


def feed(
    algorithm: Algorithm, problem: Any, network: Network, horizon: int, count: int,
    units: Units | None = None, **options: Any,
) -> View:  # fmt: skip
    """Execute a batch of one setting in ``count`` runs with chosen noise and changes.

    ``units`` fills the unit noise, and ``options`` are those of :class:`Feeding`. The data of the
    problem broadcast over the runs. The result has the messages of iterations 1 to T, and the
    values that iteration T + 1 sends before it releases private values, since the releases up to T
    cover them.
    """
    view, mechanisms = View(), algorithm.mechanisms(problem, network, horizon)
    streams = FedStreams(count, units, mechanisms)
    handler = Feeding(mechanisms, problem, streams, np.array([horizon]), view=view, **options)
    is_last = False

    def record(values: Any, received: Any, is_public: bool = False) -> None:
        arrays = np.asarray(values)[0], np.asarray(received)[0]
        message = Message(handler.last, *arrays, is_public or is_last)
        # A second call with equal values, such as a mean and an interval, sends nothing new.
        same = (m for m in view.messages if m.released == message.released)
        if not any(np.array_equal(m.values, message.values) for m in same):
            view.messages.append(message)

    def deliver(received: Any) -> Any:
        name, values = sent[0]
        record(values, received, name == "combine")
        sent.clear()
        return received

    sent: list[tuple[str, Any]] = []
    wire = RecordingNetwork(network, lambda *value: sent.append(value), deliver)
    handler.public = lambda output: record(output, output, True)
    release = handler.function()
    with np.errstate(all="ignore"):
        state = algorithm.start(problem, wire, release)  # ty: ignore[invalid-argument-type]
        for t in range(1, horizon + 1):
            handler.begin(t)
            state = algorithm.step(state, problem, wire, release, t)  # ty: ignore
            last = algorithm.observables(state, problem, t).get("released")
        view.final = None if last is None else np.asarray(last)[0]
        is_last = True  # Consensus without noise follows, in which every agent learns the values.
        algorithm.outcome(state, problem, wire, release, horizon)  # ty: ignore
        is_last, handler.stopped = False, True
        handler.begin(horizon + 1)
        with suppress(_Enough):
            algorithm.step(state, problem, wire, release, horizon + 1)  # ty: ignore
    view.samples = streams.samples
    return view


class Tilted:
    """Problem with a linear term added to each objective: all gradients change by a constant.

    If all records have the same Hessian, the replacement of a record is such a ``change``, [runs,
    agents, dim].
    """

    def __init__(self, problem: Any, change: np.ndarray):
        self.problem, self.change = problem, change

    def __getattr__(self, name: str) -> Any:
        return getattr(self.problem, name)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self.problem.gradient(x) + self.change

    def proximal(self, linear: np.ndarray, *points: Any, **options: Any) -> np.ndarray:
        return self.problem.proximal(linear + self.change, *points, **options)


def unit_count(mechanism: Mechanism, problem: Any) -> int:
    """Return the number of standard normal vectors of one iteration."""
    return int(np.prod(sizes_of(mechanism.shape, problem)[:-1]))
