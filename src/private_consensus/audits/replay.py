"""Execution of an algorithm with the messages of an earlier execution.

The first execution, on D, records every message. A second execution, on D' or with other noise,
receives these messages in place of its own. Whatever still differs between the two executions did
not come from messages.

Messages are replaced in three ways. Values that pass through the network are replaced when they are
mixed. The noise of the attacked agent is chosen such that the agent releases the recorded message.
Arrays of the state that hold the released message are overwritten with the recorded one.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from private_consensus.core.algorithms.base import Algorithm, Iterative
from private_consensus.core.networks import Network
from private_consensus.core.randomness import UNIT_LAWS, Law

from .execution import run_batch
from .recording import Exchanges, RecordingNetwork
from .result import Untested
from .streams import AuditStreams

RELEASED, LINKS = "released", "links"
MESSAGES = (RELEASED, LINKS)
"""Names of outputs that are messages."""
LOUDNESS = 1e3
"""Factor of loud noise. A comparison with such noise is decided by the noise alone."""
TINY = 1e-12
RANDOM = ("noise", "sampling")
"""Purposes of random numbers on which privacy relies."""
MAX_NEWTON_DIM = 12
"""Largest dimension for which noise in a minimisation is computed by Newton's method."""
NEWTON_STEPS = 12
UNEVEN = 8.0
"""Largest change of noise with which it is tested whether messages are affine in the noise."""
MAX_JOINT = 24
"""Largest number of noise vectors for which the noise of all agents is solved for jointly."""
LEAST_EFFECT = 1e-6
"""Relative effect of a record that is attributed to the record and not to rounding."""
CLOSE = 1e-7
"""Relative error up to which a replayed message equals the recorded one."""


Line = tuple[str, int]
"""File and number of a line of code."""


@dataclass(frozen=True)
class PairedStreams(AuditStreams):
    """Streams in which the second half of the runs repeats the first half."""

    def sequence(
        self, purpose: str, law: str | Law, shape: tuple[int, ...], name: str = ""
    ) -> Iterator[np.ndarray]:
        for unit in AuditStreams.sequence(self, purpose, law, shape, name):
            half = len(unit) // 2
            yield np.concatenate([unit[:half], unit[:half]])

    def generators(self, purpose: str, name: str = "") -> list[np.random.Generator]:
        half = len(self.runs) // 2
        first = replace(self, runs=self.runs[:half])
        return [g for _ in range(2) for g in AuditStreams.generators(first, purpose, name)]


@dataclass(frozen=True)
class LoudStreams(PairedStreams):
    """Streams whose noise and sampling are drawn again, with extreme values.

    Normal and Laplace noise is multiplied by :data:`LOUDNESS`; uniform numbers are close to 0 or 1.
    The second half of the runs has the opposite values of the first half, so that a comparison of a
    random number with a threshold ends differently in the two halves. Starting points and graphs
    stay.

    Parameters
    ----------
    agent : int, optional
        The only agent whose noise is loud, where an array has one row per agent; default: all.
    weak : list of str
        Receives the purposes of random numbers that have another distribution: these are drawn
        again only.
    unbounded : list of str
        Receives the purposes of random numbers that are multiplied.
    label : str, default "loud"
        Name of the draws; draws with other names are independent.
    """

    agents: int = 0
    agent: int | None = None
    weak: list[str] = field(default_factory=list)
    unbounded: list[str] = field(default_factory=list)
    label: str = "loud"

    def sequence(
        self, purpose: str, law: str | Law, shape: tuple[int, ...], name: str = ""
    ) -> Iterator[np.ndarray]:
        unchanged = super().sequence(purpose, law, shape, name)
        if purpose not in RANDOM:
            yield from unchanged
            return
        again = replace(self, groups={**self.groups, purpose: self.label})
        sampled = UNIT_LAWS[law] if isinstance(law, str) else law
        opposite = OPPOSITES.get(sampled)
        if purpose == "noise" and opposite is _extreme_numbers:
            opposite = _distinct_extremes
        if opposite is None:
            self.weak.append(purpose)
        if opposite is _loud_numbers:
            self.unbounded.append(purpose)
        rows = self.agent is not None and bool(shape) and shape[0] == self.agents
        fresh = AuditStreams.sequence(again, purpose, law, shape, name)
        for unit, loud in zip(unchanged, fresh, strict=False):
            if opposite is not None:
                half = len(loud) // 2
                loud = np.concatenate(opposite(loud[:half]))
            if rows:
                merged = np.array(unit)
                merged[:, self.agent] = loud[:, self.agent]
                loud = merged
            yield loud

    def generators(self, purpose: str, name: str = "") -> list[np.random.Generator]:
        if purpose not in RANDOM:
            return super().generators(purpose, name)
        self.weak.append(purpose)
        again = replace(self, groups={**self.groups, purpose: self.label})
        return AuditStreams.generators(again, purpose, name)


def _loud_numbers(unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return multiples of noise, and their negatives."""
    return LOUDNESS * unit, -LOUDNESS * unit


def _extreme_numbers(unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return 0 or 1 up to rounding, and 1 or 0."""
    low = unit < 0.5
    return np.where(low, TINY, 1.0 - TINY), np.where(low, 1.0 - TINY, TINY)


def _distinct_extremes(unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct numbers close to 0 or 1, and close to 1 or 0.

    The logarithms of equal numbers would cancel in noise that is the difference of two draws.
    """
    low, position = unit < 0.5, 2 * unit % 1
    near = TINY ** (0.5 + 0.5 * position)
    return np.where(low, near, 1.0 - near), np.where(low, 1.0 - near, near)


OPPOSITES: dict[Any, Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    UNIT_LAWS["normal"]: _loud_numbers,
    UNIT_LAWS["laplace"]: _loud_numbers,
    UNIT_LAWS["uniform"]: _extreme_numbers,
}
"""By distribution, loud numbers of the first half of the runs and of the second half."""


@dataclass
class Trace:
    """Record of one execution of a few runs.

    Parameters
    ----------
    outputs : dict
        By quantity and iteration, the values without the axis of settings; a quantity of
        ``outcome`` has the key ``(quantity, "end")``.
    exchanges : dict
        By iteration, the values that passed through the network; those before the first step have
        the iteration 0.
    states : dict
        By iteration, copies of the arrays of the state.
    replayed : dict
        By iteration, whether the attacked agent released the recorded message.
    errors : dict
        By iteration, the relative difference of the released message from the recorded one.
    bare : dict
        By iteration, the message that the agent would have released with its sampled noise.
    unreachable : dict
        By iteration, True if no noise of the agents leads to the recorded messages.
    lines : dict
        By iteration, the executed lines of the algorithm's own modules.
    shifts : dict
        By iteration, the required change of the agent's unit noise, [runs, dim].
    calls : list
        Iterations for which the algorithm returned observables, in order.
    """

    outputs: dict[tuple[str, Any], np.ndarray] = field(default_factory=dict)
    exchanges: dict[int, list[np.ndarray]] = field(default_factory=dict)
    states: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    replayed: dict[int, bool] = field(default_factory=dict)
    errors: dict[int, float] = field(default_factory=dict)
    bare: dict[int, np.ndarray] = field(default_factory=dict)
    unreachable: dict[int, bool] = field(default_factory=dict)
    lines: dict[int, frozenset[Line]] = field(default_factory=dict)
    shifts: dict[int, np.ndarray] = field(default_factory=dict)
    calls: list[int] = field(default_factory=list)
    all_exchanges: list[np.ndarray] = field(default_factory=list)
    is_weak: bool = False
    is_bounded: bool = False

    def sampled_release(self, t: int) -> np.ndarray | None:
        """Return the message of iteration ``t`` with the sampled noise."""
        return self.bare.get(t, self.outputs.get((RELEASED, t)))

    @property
    def iterations(self) -> int:
        """Number of iterations for which the algorithm returned observables."""
        return len(set(self.calls))


class _TraceRecorder:
    """Observer that fills a trace and, with a source, replays the messages of the source.

    Parameters
    ----------
    exchanges : Exchanges
        Values that pass through the network.
    source : Trace, optional
        Execution whose messages are replayed.
    """

    def __init__(self, rows: int | slice, exchanges: Exchanges, source: Trace | None = None):
        self.rows, self.source = rows, source
        self.files: frozenset[str] = frozenset()
        self.exchanges = exchanges
        self.trace = Trace(all_exchanges=exchanges.values)
        self.is_stepping = False
        self._seen = 0

    # As an observer.

    def __call__(self, t: int, active: np.ndarray, observables: Mapping[str, Any]) -> None:
        later = t in self.trace.calls
        self.trace.calls.append(t)
        for quantity, values in observables.items():
            key = (quantity, "end" if later and (quantity, t) in self.trace.outputs else t)
            self.trace.outputs[key] = np.array(_first(values))
        self._collect(t)

    def _collect(self, t: int) -> None:
        fresh = self.exchanges.values[self._seen :]
        self._seen = len(self.exchanges.values)
        self.trace.exchanges.setdefault(t, []).extend(fresh)

    # As the step of the algorithm.

    def step(self, call: Callable[..., Any], algorithm: Any, state, problem, network, draw, t):
        """Take one step, with the recorded message of the agent where there is one."""
        if self.is_stepping:
            return call(algorithm, state, problem, network, draw, t)
        self.is_stepping = True
        try:
            return self._step(call, algorithm, state, problem, network, draw, t)
        finally:
            self.is_stepping = False

    def _step(self, call, algorithm, state, problem, network, draw, t):
        if self.source is None:
            after = self._traced(call, algorithm, state, problem, network, draw, t)
            self.trace.states[t] = _copies(after)
            return after
        target = self.source.outputs.get((RELEASED, t))
        if target is not None:
            draw = self._explaining(call, algorithm, state, problem, network, draw, t, target)
        after = self._traced(call, algorithm, state, problem, network, draw, t)
        if target is None:
            return after
        released = released_of(algorithm, after, problem, t)
        self._compare(t, released, target)
        return self._substituted(after, released, target, t)

    def _traced(self, call, algorithm, state, problem, network, draw, t):
        """Take one step and record which lines of the algorithm's own modules are executed."""
        with executed_lines(self.files) as lines:
            try:
                return call(algorithm, state, problem, network, draw, t)
            finally:
                self.trace.lines[t] = frozenset(lines)

    def _compare(self, t: int, released: np.ndarray | None, target: np.ndarray) -> None:
        error = np.inf
        if released is not None and released.shape == target.shape:
            error = _distance(self._row(released), self._row(target))
        self.trace.errors[t], self.trace.replayed[t] = error, bool(error <= CLOSE)

    def _row(self, values: np.ndarray) -> np.ndarray:
        """Return the values of the agents; all values if there are no agents."""
        return values[:, self.rows] if values.ndim >= 3 else values

    def _substituted(self, state: Any, released: np.ndarray | None, target: np.ndarray, t: int):
        """Overwrite the arrays of the state that hold the agent's message with the recorded one."""
        recorded = self.source.states.get(t) if self.source is not None else None
        if (
            recorded is None
            or released is None
            or released.shape != target.shape
            or target.ndim < 3
        ):
            return state
        arrays = list(state) if isinstance(state, tuple) else []
        if len(arrays) != len(recorded):
            return state
        for index, (now, before) in enumerate(zip(arrays, recorded, strict=True)):
            if not _holds(now, released, self.rows) or not _holds(before, target, self.rows):
                continue
            changed = np.array(now)
            changed[0][:, self.rows] = target[:, self.rows]
            arrays[index] = changed
        return type(state)(*arrays) if hasattr(state, "_fields") else type(state)(arrays)

    def _explaining(self, call, algorithm, state, problem, network, draw, t, target):
        """Return the draw with which the agent releases the recorded message."""
        count = len(self.exchanges.values)

        def released_with(trial) -> np.ndarray:
            try:
                after = call(algorithm, copy.deepcopy(state), problem, network, trial, t)
                released = released_of(algorithm, after, problem, t)
            finally:
                self.exchanges.rewind(count)
            if released is None or released.shape != target.shape or target.ndim < 3:
                raise ValueError("the released messages are missing or have a different shape")
            return released

        try:
            noiseless = released_with(copy.deepcopy(draw))
            self.trace.bare[t] = noiseless
            if _distance(self._row(noiseless), self._row(target)) <= 1e-14:
                return draw
            paths = noise_places(draw, target.shape)
            for path in paths:
                solution = _solve(
                    lambda rows, path=path: self._row(
                        released_with(_with_rows(draw, path, self.rows, rows))
                    ),
                    np.array(at_place(draw, path)[:, self.rows]),
                    self._row(target),
                )
                if solution is None:
                    continue
                changed = _with_rows(draw, path, self.rows, solution)
                after = released_with(changed)
                if _distance(after, target) <= CLOSE or not self._others_change(after, noiseless):
                    self.trace.shifts[t] = solution - at_place(draw, path)[:, self.rows]
                    return changed
            return self._jointly(released_with, draw, paths, target, t)
        except (TypeError, ValueError, IndexError, FloatingPointError, np.linalg.LinAlgError):
            return draw

    def _others_change(self, after: np.ndarray, noiseless: np.ndarray) -> bool:
        """Return True if the messages of other agents differ."""
        of_others = [np.delete(values, self.rows, axis=1) for values in (after, noiseless)]
        return _distance(*of_others) > CLOSE

    def _jointly(self, released_with, draw, paths, target, t: int):
        """Return the draw with which all agents release the recorded messages.

        The noise of an agent also enters messages of others here. If no noise leads to the
        recorded messages, mark the iteration as unreachable and return the draw unchanged.
        """
        agents = target.shape[1]
        if not 0 < agents * len(paths) <= MAX_JOINT:
            return draw
        noiseless = released_with(draw)
        uneven = UNEVEN * np.cos(np.arange(agents))
        columns = []
        for path in paths:
            for agent in range(agents):
                rows = at_place(draw, path)[:, agent]
                columns.append(released_with(_with_rows(draw, path, agent, rows + 1.0)) - noiseless)
        response = np.moveaxis(np.stack(columns, axis=-1), 2, 1)  # [runs, dim, agents, columns]
        missing = np.moveaxis(target - noiseless, 2, 1)[..., None]
        units = (np.linalg.pinv(response, rcond=1e-9) @ missing)[..., 0]
        units = np.moveaxis(units.reshape(*units.shape[:2], len(paths), agents), 1, -1)
        probe = np.broadcast_to(uneven[:, None], units.shape)
        for added in (probe, units):
            changed = draw
            for number, path in enumerate(paths):
                for agent in range(agents):
                    rows = at_place(draw, path)[:, agent] + added[:, number, agent]
                    changed = _with_rows(changed, path, agent, rows)
            predicted = noiseless + np.moveaxis((response @ _columns(added))[..., 0], 1, 2)
            after = released_with(changed)
            if _distance(after, predicted) > CLOSE:  # messages are not affine in the noise
                return draw
        if _distance(after, target) <= LEAST_EFFECT:
            return changed
        self.trace.unreachable[t] = bool(response[:, :, self.rows].any(-1).all())
        return draw


def _columns(units: np.ndarray) -> np.ndarray:
    """Return noise [runs, arrays, agents, dim] as columns [runs, dim, arrays * agents, 1]."""
    runs, arrays, agents, dim = units.shape
    return np.moveaxis(units, -1, 1).reshape(runs, dim, arrays * agents, 1)


def run_traced(
    algorithm: Algorithm,
    problem: Any,
    network: Network,
    streams: AuditStreams,
    horizon: int,
    rows: int | slice,
    source: Trace | None = None,
) -> Trace:
    """Execute a calibrated algorithm and record outputs and messages.

    With ``source``, the messages of that execution are replayed. All runs share one graph.
    """
    exchanges = Exchanges(None if source is None else source.all_exchanges)
    recorder = _TraceRecorder(rows, exchanges, source)
    if isinstance(algorithm, Iterative):
        recorder.files = source_files(type(algorithm))
        algorithm = with_step(algorithm, recorder)
    recording = RecordingNetwork.on(network, exchanges)
    with np.errstate(all="ignore"):
        run_batch(algorithm, problem, recording, streams, horizon, recorder)
    return recorder.trace


@contextmanager
def executed_lines(files: frozenset[str]) -> Generator[set[Line]]:
    """Record the lines of some files that are executed within the context."""
    lines: set[Line] = set()

    def in_function(frame, event, argument):
        if event == "line":
            lines.add((frame.f_code.co_filename, frame.f_lineno))
        return in_function

    def on_call(frame, event, argument):
        return in_function if frame.f_code.co_filename in files else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield lines
    finally:
        sys.settrace(before)


def source_files(kind: type) -> frozenset[str]:
    """Return the files of a class and of the classes that it extends, without the interface."""
    modules = {sys.modules.get(base.__module__) for base in kind.__mro__}
    modules -= {None, sys.modules[Algorithm.__module__]}
    files = {getattr(module, "__file__", None) for module in modules}
    return frozenset(file for file in files if file is not None)


def with_step(algorithm: Algorithm, recorder: Any) -> Algorithm:
    """Return an algorithm whose steps are taken by a recorder.

    Its method ``step`` receives the step of the algorithm, the algorithm and the arguments of the
    step.
    """
    kind = type(algorithm)

    def step(self, state, problem, network, draw, t):
        return recorder.step(kind.step, self, state, problem, network, draw, t)  # ty: ignore

    derived = type(kind.__name__, (kind,), {"step": step, "__module__": kind.__module__})
    derived.__qualname__ = kind.__qualname__
    changed = copy.copy(algorithm)
    object.__setattr__(changed, "__class__", derived)
    return changed


def _first(values: Any) -> Any:
    """Return the values of the only setting."""
    return values[0] if np.ndim(values) else values


def _copies(state: Any) -> tuple[Any, ...]:
    arrays = state if isinstance(state, tuple) else ()
    return tuple(np.array(array) if isinstance(array, np.ndarray) else None for array in arrays)


def released_of(algorithm: Any, state: Any, problem: Any, t: int) -> np.ndarray | None:
    """Return the released messages of a state of one setting; None if there are none."""
    observables = algorithm.observables(state, problem, t)
    return np.array(_first(observables[RELEASED])) if RELEASED in observables else None


def _holds(array: Any, released: np.ndarray, rows: int | slice) -> bool:
    """Return True if an array [1, runs, agents, ...] holds the agents' messages."""
    if not isinstance(array, np.ndarray) or array.shape != (1, *released.shape):
        return False
    return np.array_equal(array[0][:, rows], released[:, rows])


def _distance(first: np.ndarray, second: np.ndarray) -> float:
    """Return the largest difference, relative to the largest value."""
    scale = max(float(np.abs(first).max(initial=0)), float(np.abs(second).max(initial=0)))
    largest = float(np.abs(first - second).max(initial=0))
    return largest / scale if scale else largest


Place = tuple[int, ...]
"""Indices that lead from a draw to one of its arrays."""


def noise_places(draw: Any, shape: tuple[int, ...]) -> list[Place]:
    """Return the paths of arrays that have one vector per run and agent, ``noise`` first."""
    paths = [path for path in _places(draw) if np.shape(at_place(draw, path)) == shape]
    fields = getattr(draw, "_fields", ())
    first = fields.index("noise") if "noise" in fields else -1
    return sorted(paths, key=lambda path: not path or path[0] != first)


def _places(draw: Any, before: Place = ()) -> list[Place]:
    if isinstance(draw, np.ndarray):
        return [before]
    if not isinstance(draw, tuple):
        return []
    return [path for i, element in enumerate(draw) for path in _places(element, (*before, i))]


def at_place(draw: Any, path: Place) -> Any:
    """Return the array of a draw at a path."""
    for index in path:
        draw = draw[index]
    return draw


def with_array(draw: Any, path: Place, array: np.ndarray) -> Any:
    """Return a copy of the draw with another array at a path."""
    if not path:
        return array
    elements = list(draw)
    elements[path[0]] = with_array(elements[path[0]], path[1:], array)
    return type(draw)(*elements) if hasattr(draw, "_fields") else type(draw)(elements)


def _with_rows(draw: Any, path: Place, rows: int | slice, values: np.ndarray) -> Any:
    """Return a copy of the draw with other noise of some agents."""
    changed = np.array(at_place(draw, path))
    changed[:, rows] = values
    return with_array(draw, path, changed)


def _solve(
    message: Callable[[np.ndarray], np.ndarray], drawn: np.ndarray, target: np.ndarray
) -> np.ndarray | None:
    """Return the noise [runs, dim] for which ``message`` returns ``target``; None if there is none.

    First each coordinate is solved alone, as if the message were affine in it. Otherwise Newton's
    method is used with differences.
    """
    noiseless = message(drawn)
    missing = target - noiseless
    slope = message(drawn + 1.0) - noiseless
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = drawn + np.where(missing == 0, 0.0, missing / slope)
    if np.isfinite(unit).all() and _distance(message(unit), target) <= 1e-9:
        again = unit + np.where(
            slope == 0, 0.0, (target - message(unit)) / np.where(slope, slope, 1)
        )
        return again if _distance(message(again), target) <= CLOSE else unit
    return _newton(message, drawn, target)


def _newton(message, drawn: np.ndarray, target: np.ndarray) -> np.ndarray | None:
    dim = drawn.shape[-1]
    if drawn.shape != target.shape or dim > MAX_NEWTON_DIM:
        return None
    unit, jacobian = drawn, None
    for _ in range(NEWTON_STEPS):
        noiseless = message(unit)
        missing = target - noiseless
        if not np.isfinite(missing).all():
            return None
        if _distance(noiseless, target) <= CLOSE / 10:
            return unit
        size = 1e-4
        columns = [(message(unit + size * axis) - noiseless) / size for axis in np.eye(dim)]
        jacobian = np.stack(columns, axis=-1)
        unit = unit + (np.linalg.pinv(jacobian) @ missing[..., None])[..., 0]
    return unit if _distance(message(unit), target) <= CLOSE else None


REPETITIONS = 24
"""Executions with different loud noise in which a value without noise has to stay equal."""
RUNS = 12
"""Runs of each execution, of which the second half has the same random numbers as the first."""


@dataclass(frozen=True)
class Replays:
    """Execution with three further executions that receive its messages.

    Parameters
    ----------
    recorded : Trace
        On D.
    neighbour : Trace or None
        On D', with the same noise except where the agent needs other noise to release the recorded
        messages. None if this execution raised an error.
    loud : Trace or None
        On D, with loud noise of all agents; the messages of all agents are replayed.
    loud_agent : Trace or None
        On D, with loud noise of the attacked agent.
    loud_neighbour : Trace or None
        On D', with loud noise of all agents; the messages of all agents are replayed.
    repeated : callable
        Execute on D (0) or D' (1) with other loud noise of all agents: data set and number of the
        repetition to Trace or None.
    """

    recorded: Trace
    neighbour: Trace | None
    loud: Trace | None
    loud_agent: Trace | None
    loud_neighbour: Trace | None
    error: str
    repeated: Callable[[int, int], Trace | None]

    def not_tested(self, item: str) -> Untested:
        """Return that an item was not tested because the execution on D' raised an error."""
        return Untested(item, f"the execution with equal messages failed ({self.error})")

    def lacks_noise(
        self, index: int, first: Any, second: Any, value: Callable[[Trace], Any]
    ) -> bool:
        """Return True if a value depends on the data set and not on noise, in some run.

        The value must stay equal for all of :data:`REPETITIONS` amplifications of the noise. A
        value with few possible values, such as the index of the largest noisy coordinate, is often
        equal for one of them by chance. ``first`` and ``second`` have sampled noise on data set
        ``index`` (0 for D, 1 for D') and on the other data set. ``value`` returns the value of an
        execution, or None if it has no such value.
        """
        trace = (self.loud, self.loud_neighbour)[index]
        if trace is None:
            return False
        mask = runs_without_noise(first, second, value(trace), trace)
        for repetition in range(1, REPETITIONS):
            if not mask.any():
                return False
            repeated = self.repeated(index, repetition)
            if repeated is not None:
                mask = mask & runs_without_noise(first, second, value(repeated), trace)
        return bool(mask.any())


_LAST: list[tuple[tuple[Any, ...], Replays]] = []


def replays(algorithm: Algorithm, attack: Any, horizon: int, *, seed: int) -> Replays:
    """Execute an algorithm on both data sets, with the messages of the execution on D.

    The result of the last call is cached, so that several checks share it.
    """
    key = (algorithm, *attack.pair, attack.network, horizon, seed, attack.agent)
    for cached_key, result in _LAST:
        if all(
            a is b or (isinstance(a, int) and a == b) for a, b in zip(cached_key, key, strict=True)
        ):
            return result
    result = _replays(algorithm, attack, horizon, seed)
    _LAST[:] = [(key, result)]
    return result


def _replays(algorithm: Algorithm, attack: Any, horizon: int, seed: int) -> Replays:
    agents, agent, everyone = attack.network.n_agents, attack.agent, slice(None)
    streams = PairedStreams.labelled("replay", RUNS, seed)
    loud = LoudStreams(streams.root, streams.runs, streams.groups, agents=agents)

    def attempt(index: int, drawn: AuditStreams, rows: int | slice) -> tuple[Trace | None, str]:
        arguments_of_run = attack.pair[index], attack.network, drawn, horizon
        try:
            return run_traced(algorithm, *arguments_of_run, rows, recorded), ""
        except Exception as error:  # code from outside may raise anything
            return None, f"{type(error).__name__}: {error}"

    repeated = cache(lambda index, k: attempt(index, replace(loud, label=f"loud {k}"), everyone)[0])
    recorded = run_traced(algorithm, attack.pair[0], attack.network, streams, horizon, agent)
    neighbour, error = attempt(1, streams, agent)
    of_all, _ = attempt(0, loud, everyone)
    of_agent, _ = attempt(0, replace(loud, agent=agent), agent)
    of_neighbour, _ = attempt(1, loud, everyone)
    for trace in (of_all, of_agent, of_neighbour):
        if trace is not None:
            trace.is_weak = bool(loud.weak)
            trace.is_bounded = "noise" not in loud.unbounded
    return Replays(recorded, neighbour, of_all, of_agent, of_neighbour, error, repeated)


def runs_without_noise(first: Any, second: Any, loud: Any, trace: Trace) -> np.ndarray:
    """Return in which runs and entries a value depends on the data set and not on noise.

    The result has one element if all entries have to agree. Otherwise it has one row per pair of
    runs with opposite noise, or a single row if all runs have to agree.

    Parameters
    ----------
    first, second : array-like
        Values with sampled noise on either data set; the first axis is that of runs, if there are
        several. ``first`` belongs to the data set of ``loud``.
    loud : array-like or None
        Values with amplified noise.
    trace : Trace
        The execution with amplified noise. If some of its noise could not be amplified, all runs
        have to agree, and discrete values are assumed to depend on noise. All runs also have to
        agree if all noise is uniform: discrete noise often adds equal numbers.
    """
    first, second, loud = map(np.asarray, (first, second, loud))
    if not first.shape == second.shape == loud.shape:
        return np.zeros(1, bool)
    differs, same = ~_near(first, second, LEAST_EFFECT), _near(first, loud, EXACT * LOUDNESS)
    if trace.is_weak or not first.ndim or len(first) != RUNS:
        discrete = trace.is_weak and 2 * np.unique(first).size <= max(first.size, 3)
        return np.array([differs.any() and same.all() and not discrete])
    if trace.is_bounded:
        return np.atleast_1d(differs.any(0) & same.all(0))
    pairs = (differs.reshape(2, RUNS // 2, -1), same.reshape(2, RUNS // 2, -1))
    return np.atleast_1d(pairs[0].any(0) & pairs[1].all(0))


def _near(first: np.ndarray, second: np.ndarray, tolerance: float) -> np.ndarray:
    """Return a mask of the entries that agree in two arrays, relative to the largest value."""
    if not set(first.dtype.kind + second.dtype.kind) <= set("fc"):
        return np.asarray(first == second)
    with np.errstate(invalid="ignore"):
        scale = np.nanmax(np.abs(first), initial=0.0)
        near = np.abs(first - second) <= tolerance * scale
    return near | (first == second) | (np.isnan(first) & np.isnan(second))


def equal(first: Any, second: Any, tolerance: float) -> bool:
    """Return True if two arrays agree up to ``tolerance``, relative to the largest value.

    Integers, Booleans and values that are no numbers have to be equal.
    """
    first, second = np.asarray(first), np.asarray(second)
    if first.shape != second.shape:
        return False
    kinds = first.dtype.kind + second.dtype.kind
    if not set(kinds) <= set("fc"):
        return bool(np.array_equal(first, second))
    finite = np.isfinite(first)
    if not np.array_equal(finite, np.isfinite(second)):
        return False
    if not np.array_equal(first[~finite], second[~finite], equal_nan=True):
        return False
    coarse = max(np.finfo(values.dtype).eps for values in (first, second))
    return _distance(first[finite], second[finite]) <= max(tolerance, 1e3 * coarse)


def tolerance_until(trace: Trace, t: Any) -> float:
    """Return the relative difference that errors of the replayed messages may explain."""
    errors = [
        error
        for time, error in trace.errors.items()
        if trace.replayed[time] and (t == "end" or time <= t)
    ]
    return max(EXACT, AMPLIFICATION * max(errors, default=0.0))


EXACT = 1e-9
"""Relative difference of values that only rounding tells apart."""
AMPLIFICATION = 1e3
"""Factor by which an output may amplify the error of a replayed message."""
