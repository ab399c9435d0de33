r"""The privacy cost of a pair of data sets, from the response of all messages to all noise draws.

An algorithm takes its noise from streams of unit draws. This module executes an algorithm with
draws that it chooses, for all agents, iterations and coordinates. Messages that are affine in the
draws are :math:`y = b + J\xi`. The matrix J shows the noise as it is added, not as it is drawn:
missing noise, noise with a smaller factor, noise that is used twice and noise that cancels later
all show in J. On neighbouring data the same messages need the draws

.. math:: \xi' = J^+(b - b')

if the data without noise give b and b'. No :math:`\xi'` exists if a message changes with the data
and carries no noise. Otherwise its length is the exact cost of the pair: for Gaussian noise mu is
:math:`\|\xi'\|_2`. The pair is one of many, so that a larger cost than declared is a fault.

Messages that are not affine, such as gradient steps of a logistic loss, need Newton's method for
:math:`y(D', \xi') = y(D, \xi)`. One base point :math:`\xi` is the absence of noise, because there
a sign or a rotation of the noise that depends on the data changes no length.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import lstsq
from scipy.sparse.csgraph import connected_components

from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.algorithms.noise import LAWS
from private_consensus.core.networks import Network
from private_consensus.core.randomness import Law, Streams, generator

from .execution import LINKS, run_batch
from .recording import RecordingNetwork
from .streams import ROOT, AuditStreams

MAX_UNITS = 4_000
"""Largest number of unit draws whose responses are computed."""
MAX_NUMBERS = 16_000_000
"""Largest number of responses."""
NUMBERS_AT_ONCE = 4_000_000
"""Largest number of message entries of the runs that are executed simultaneously."""
MAX_EXCHANGES = 12
"""Exchanges per iteration that are recorded."""
FAR = 8.0
"""Largest draw, in units of its scale, for which messages must be affine."""
AFFINE, EXACT = 1e-4, 1e-5
"""Relative errors of an affine prediction, and of one up to rounding; float32 has 1e-6."""
STEP_OF_NEWTON = 1e-2
"""Step of the difference quotient for messages that are not affine."""
PRECISION = 1e-10
"""Relative accuracy of responses in float64."""
NEWTON_STEPS, CHORD_STEPS = 24, 40
"""Largest numbers of steps; Newton's method for the logarithm of a message takes about 12."""
ROUGH, AVERAGED = 0.5, 300
"""Largest error of messages that are affine on average, in deviations, and number of draws."""
REMAINING, SIZES = 24, (1.0, FAR, 1e3)
"""Number of draws that test whether a message has noise, and their sizes in deviations."""
LEAK = 1e-6
"""Smallest reported difference without explaining noise, in deviations of the row's noise."""
FINE = 1e-10
"""Difference at which Newton's method ends; in float32 it ends below :data:`CONVERGED`."""
CONVERGED = 1e-5
"""Difference of the messages after Newton's method, in deviations of their noise."""


NOISE_DIFFERS = 0.1
"""Relative difference of the effects of equal draws from which both directions are solved for."""
CONTINUOUS = 0.9
"""Fraction of the numbers in messages that tiny draws change, for continuous messages."""


class Draws(NamedTuple):
    """Array of unit draws: distribution, shape, and offset among all unit draws.

    ``iteration`` counts the arrays of one stream from 1.
    """

    law: str
    shape: tuple[int, ...]
    offset: int
    iteration: int


@dataclass
class Layout:
    """All arrays of unit draws of an execution, by stream and position in the stream.

    ``purposes`` are those of random numbers that are not chosen.
    """

    draws: dict[tuple[int, int], Draws] = field(default_factory=dict)
    uncontrolled: set[str] = field(default_factory=set)
    purposes: set[str] = field(default_factory=set)
    units: int = 0

    def at(self, stream: int, position: int, law: str, shape: tuple[int, ...]) -> Draws:
        """Return the array of one position, with the shape of one run; add it if it is new."""
        key = stream, position
        if key not in self.draws:
            self.draws[key] = Draws(law, shape, self.units, position + 1)
            self.units += int(np.prod(shape))
        return self.draws[key]

    @property
    def laws(self) -> np.ndarray:
        """Name of the distribution of each unit draw."""
        arrays = [np.full(int(np.prod(d.shape)), d.law, object) for d in self.draws.values()]
        return np.concatenate(arrays) if arrays else np.zeros(0, object)


def _law_of(law: str | Law) -> str | None:
    """Return the name of an additive distribution; None for any other distribution."""
    return next((name for name, noise_law in LAWS.items() if noise_law.unit == law), None)


@dataclass(frozen=True)
class ControlledStreams(AuditStreams):
    """Streams whose unit noise is chosen; every run has equal numbers for all other purposes.

    Parameters
    ----------
    layout : Layout
        Filled by the execution.
    values : ndarray, shape (runs, units), optional
        Unit noise; zeros by default, and for draws that are not in it.
    """

    layout: Layout = field(default_factory=Layout)
    values: np.ndarray | None = None
    opened: list[tuple] = field(default_factory=list)

    def sequence(
        self, purpose: str, law: str | Law, shape: tuple[int, ...], name: str = ""
    ) -> Iterator[np.ndarray]:
        additive_law = _law_of(law) if purpose == "noise" else None
        if additive_law is None:
            if purpose == "noise":
                self.layout.uncontrolled.add(f"noise with the distribution {law}")
            return self._equal(purpose, law, shape, name)
        return self._chosen(self._number(name, additive_law, tuple(shape)), additive_law, shape)

    def _number(self, *stream: Any) -> int:
        """Return the number of a stream. One that is opened again starts with the same draws."""
        if stream not in self.opened:
            self.opened.append(stream)
        return self.opened.index(stream)

    def _equal(self, purpose, law, shape, name) -> Iterator[np.ndarray]:
        self.layout.purposes.add(purpose)
        streams = Streams(self.root, self.runs[:1], self.groups)
        for unit in streams.sequence(purpose, law, shape, name):
            yield np.repeat(unit, len(self.runs), axis=0)

    def _chosen(self, stream: int, law: str, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
        position = 0
        while True:
            yield self.chosen(stream, position, law, tuple(shape), slice(None))
            position += 1

    def chosen(
        self, stream: int, position: int, law: str, shape: tuple[int, ...], runs: slice
    ) -> np.ndarray:
        """Return the chosen draws of one position of a stream, ``(runs, *shape)``."""
        draws = self.layout.at(stream, position, law, shape)
        size = int(np.prod(shape))
        count = len(self.runs[runs])
        if self.values is None or draws.offset + size > self.values.shape[1]:
            return np.zeros((count, *shape))
        values = self.values[runs, draws.offset : draws.offset + size]
        return values.reshape((count, *shape)).copy()

    def generators(self, purpose: str, name: str = "") -> list[np.random.Generator]:
        if purpose == "noise":
            stream = self._number(name)
            return [ChosenGenerator(self, stream, run) for run in range(len(self.runs))]
        self.layout.purposes.add(purpose)
        group = self.groups.get(purpose, "")
        return [generator(self.root, purpose, group, self.runs[0], name) for _ in self.runs]

    def shared(self, purpose: str, name: str = "") -> np.random.Generator:
        self.layout.purposes.add(purpose)
        if purpose == "noise":
            self.layout.uncontrolled.add("noise that all runs share")
        return super().shared(purpose, name)


class ChosenGenerator(np.random.Generator):
    """The generator of one run, whose normal and Laplace numbers are chosen.

    Other distributions are drawn at random, equally for all runs, and noted as uncontrolled.
    """

    def __init__(self, streams: ControlledStreams, stream: int, run: int) -> None:
        super().__init__(np.random.PCG64(streams.root))
        self._streams, self._stream, self._run, self._position = streams, stream, run, 0

    def _unit(self, law: str, size: Any) -> Any:
        shape = () if size is None else tuple(np.atleast_1d(size).tolist())
        run = slice(self._run, self._run + 1)
        unit = self._streams.chosen(self._stream, self._position, law, shape, run)[0]
        self._position += 1
        return float(unit) if size is None else unit

    def standard_normal(self, size: Any = None, dtype: Any = float, out: Any = None) -> Any:
        """Return the prescribed unit noise in place of normal samples."""
        if out is None:
            return self._unit("gaussian", size)
        out[...] = self._unit("gaussian", np.shape(out))
        return out

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Return the prescribed unit noise times ``scale`` plus ``loc``."""
        size = np.broadcast_shapes(np.shape(loc), np.shape(scale)) or None if size is None else size
        return loc + scale * self._unit("gaussian", size)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Return the prescribed unit noise times ``scale`` plus ``loc``."""
        size = np.broadcast_shapes(np.shape(loc), np.shape(scale)) or None if size is None else size
        return loc + scale * self._unit("laplace", size)

    def __getattribute__(self, name: str) -> Any:
        controlled = ("standard_normal", "normal", "laplace")
        if not name.startswith("_") and name not in controlled:
            streams = super().__getattribute__("_streams")
            streams.layout.uncontrolled.add(f"noise that is drawn by {name} of a generator")
        return super().__getattribute__(name)


class Row(NamedTuple):
    """Entry of a message: iteration, agent, coordinate, and where it was recorded."""

    iteration: int
    agent: int
    coordinate: int
    kind: str

    def __str__(self) -> str:
        return f"the {self.kind} of agent {self.agent} in iteration {self.iteration}"


class _ValueRecorder:
    """Recorder of released and exchanged values as [runs, agents, numbers]."""

    def __init__(
        self,
        network: RecordingNetwork,
        runs: int,
        internal: tuple[str, ...] | None,
        last: float = np.inf,
    ) -> None:
        self.network, self.runs, self.outputs, self.last = network, runs, internal, last
        self.parts: list[tuple[int, str, np.ndarray]] = []
        self.hashes: list[int] = []

    def __call__(self, t: int, active: np.ndarray, observables: Mapping[str, Any]) -> None:
        if t > self.last:
            raise _LastIteration
        exchanged = self.network.taken(self.runs)
        limit = MAX_EXCHANGES + (observables[LINKS].shape[-2] if LINKS in observables else 0)
        if "released" in observables:
            self._add(t, "message", observables["released"][0])
        for values in exchanged[:limit]:
            self._add(t, "exchanged value", values)
        for name, values in observables.items() if self.outputs is not None else ():
            if name in ("released", LINKS, *(self.outputs or ())):
                continue
            values = np.asarray(values)
            if values.ndim == 4:
                self._add(t, f"output '{name}'", values[0])
            elif values.ndim == 2 and values.shape[1] in (1, self.runs):
                self._add(t, f"output '{name}'", values[0][:, None, None])

    def _add(self, t: int, kind: str, values: np.ndarray) -> None:
        """Add values, unless they are exchanged and equal messages or values exchanged before."""
        values = np.array(np.broadcast_to(values, (self.runs, *np.shape(values)[1:])), float)
        values += 0.0  # -0.0 becomes 0.0, so that equal values have equal bytes
        key = hash(values.tobytes())
        if kind == "exchanged value" and self._is_known(values, key):
            return
        self.parts.append((t, kind, values))
        self.hashes.append(key)

    def _is_known(self, values: np.ndarray, key: int) -> bool:
        """Return True if values equal one of the last messages or exchanged values."""
        first = max(0, len(self.parts) - 2 * MAX_EXCHANGES)
        return any(
            key == self.hashes[index]
            and not self.parts[index][1].startswith("output")
            and self.parts[index][2].shape == values.shape
            and np.array_equal(self.parts[index][2], values)
            for index in range(first, len(self.parts))
        )


class _LastIteration(BaseException):
    """Signal to end an execution whose later messages are not needed."""


class OtherMessages(Exception):
    """Error: the number of messages depends on the noise or on the data."""


class Transcripts(NamedTuple):
    """Entries of all messages, [runs, rows], with the row descriptions that identify them."""

    values: np.ndarray
    rows: tuple[Row, ...]


@dataclass
class Work:
    """Number of iterations that were executed, of all executions."""

    rounds: int = 0


@dataclass(frozen=True)
class Executed:
    """An algorithm on one data set, whose messages are a function of chosen unit noise.

    Parameters
    ----------
    algorithm, problem, network, horizon
        Calibrated algorithm, data, graph and number of iterations of the execution.
    seed : int
        Seed of the random numbers that are not noise.
    internal : tuple of str, optional
        Outputs that no observer receives; all other outputs count as messages. Default: no output
        does.
    work : Work, optional
        Counts the executed iterations.
    """

    algorithm: Algorithm
    problem: Any
    network: Network
    horizon: int
    seed: int
    layout: Layout
    internal: tuple[str, ...] | None = None
    work: Work = field(default_factory=Work)

    def messages(self, values: np.ndarray, last: float = np.inf) -> Transcripts:
        """Return the messages for unit noise, [runs, units], up to iteration ``last``.

        Two additional runs with noise are executed, so that equal numbers of two messages are
        equal in general and not only without noise.
        """
        width = max(1, self.layout.units)
        varied = FAR * np.cos(np.arange(2 * width)).reshape(2, width)
        rows, blocks = (), []
        max_runs = max(8, NUMBERS_AT_ONCE // max(1, self._numbers_of_run))
        for begin in range(0, len(values), max_runs):
            block = values[begin : begin + max_runs]
            padded = np.zeros((len(block), width))
            padded[:, : block.shape[1]] = block
            transcripts = self._execute(np.concatenate([padded, varied]), last)
            rows = transcripts.rows
            blocks.append(transcripts.values[:-2])
        return Transcripts(np.concatenate(blocks), rows)

    def values(self, units: np.ndarray, rows: tuple[Row, ...], last: float = np.inf) -> np.ndarray:
        """Return the numbers of ``rows``, [runs, rows], for unit noise, [runs, units].

        The rows are in the order of iterations, unless all are executed; those after iteration
        ``last`` are left out. Messages other than ``rows`` raise ``OtherMessages``.
        """
        transcripts = self.messages(units, last)
        if last < np.inf:
            rows = rows[: bisect_right(rows, last, key=lambda row: row.iteration)]
        if transcripts.rows != rows:
            raise OtherMessages
        return transcripts.values

    @property
    def _numbers_of_run(self) -> int:
        messages = self.horizon * self.problem.n_agents * self.problem.dim
        return max(messages, self.layout.units)

    def _execute(self, values: np.ndarray, last: float) -> Transcripts:
        runs = len(values)
        recording = RecordingNetwork.on(self.network)
        recorder = _ValueRecorder(recording, runs, self.internal, last)
        streams = ControlledStreams(
            ROOT + self.seed, tuple(range(runs)), layout=self.layout, values=values
        )
        with suppress(_LastIteration):
            run_batch(self.algorithm, self.problem, recording, streams, self.horizon, recorder)
        self.work.rounds += int(min(last, self.horizon))
        columns = [np.zeros((runs, 0))] + [
            recorded.reshape(runs, -1) for *_, recorded in recorder.parts
        ]
        flat = np.concatenate(columns, axis=1)
        sizes = (
            (t, kind, recorded.shape[1], int(np.prod(recorded.shape[2:])))
            for t, kind, recorded in recorder.parts
        )
        # NaN: nothing is sent
        return Transcripts(np.where(np.isfinite(flat), flat, 0.0), _rows(tuple(sizes)))


@lru_cache(maxsize=256)
def _rows(blocks: tuple[tuple[int, str, int, int], ...]) -> tuple[Row, ...]:
    """Return the rows of values: iteration, kind, number of agents and of coordinates of each."""
    return tuple(
        Row(t, agent, coordinate, kind)
        for t, kind, agents, coordinates in blocks
        for agent in range(agents)
        for coordinate in range(coordinates)
    )


class Response(NamedTuple):
    """Messages near the absence of noise: values without noise, and the response to each draw.

    Parameters
    ----------
    base : ndarray, shape (rows,)
    matrix : ndarray, shape (rows, units)
    affine : bool
        Whether messages are affine up to draws of :data:`FAR`.
    precision : float
        Relative accuracy of ``matrix``.
    scale : ndarray, shape (rows,)
        Standard deviation of the noise in each row; 0 where no draw changes the row.
    """

    base: np.ndarray
    matrix: np.ndarray
    rows: tuple[Row, ...]
    affine: bool
    precision: float
    scale: np.ndarray

    @property
    def is_exact(self) -> bool:
        """True if messages are affine up to rounding."""
        return self.affine and self.precision <= EXACT

    @property
    def times(self) -> np.ndarray:
        """Iteration of each row."""
        return np.array([row.iteration for row in self.rows])

    def prefix(self, rows: np.ndarray) -> Response:
        """Return the response of the rows that a boolean array selects."""
        selected = tuple(compress(self.rows, rows))
        return self._replace(
            base=self.base[rows], matrix=self.matrix[rows], rows=selected, scale=self.scale[rows]
        )


def response(executed: Executed) -> Response:
    """Compute the response of all messages to each single draw of size 1."""
    units = executed.layout.units
    probes = FAR * np.cos(1.0 + np.arange(3 * units) ** 1.1).reshape(3, units)
    probes[2] /= FAR
    values = np.concatenate([np.zeros((1, units)), probes, np.eye(units)])
    transcripts = executed.messages(values)
    base, probe_values, unit_values = (
        transcripts.values[0],
        transcripts.values[1:4],
        transcripts.values[4:],
    )
    matrix = (unit_values - base).T
    predicted = base + probes @ matrix.T
    size = np.abs(probes) @ np.abs(matrix).T + np.abs(base)
    error = np.abs(probe_values - predicted) / np.where(size > 0, size, 1.0)
    worst = float(error.max(initial=0.0))
    scale = np.linalg.norm(matrix, axis=1)
    noisy = (np.abs(probe_values - base) > PRECISION * np.abs(base)).any(0)
    scale = np.where(noisy, np.maximum(scale, 1e-300), scale)
    return Response(base, matrix, transcripts.rows, worst <= AFFINE, max(worst, PRECISION), scale)


class Shift(NamedTuple):
    """The draws that turn the messages of one data set into those of the other.

    Parameters
    ----------
    units : ndarray, shape (units,)
        Draws with the smallest norm.
    unexplained : ndarray, shape (rows,)
        Difference of the messages that no draws explain, in deviations of the row's noise; infinite
        where the row has no noise.
    unique : bool
        Whether the draws that enter messages follow from the messages.
    change : ndarray, shape (rows,)
    local_response : Response
        The response that was solved for.
    is_certain : bool
        Whether an unexplained message stays equal for all draws, of any size, that no earlier
        message depends on.
    """

    units: np.ndarray
    unexplained: np.ndarray
    unique: bool
    change: np.ndarray
    local_response: Response
    is_certain: bool = False

    @property
    def rows(self) -> tuple[Row, ...]:
        """Descriptions of the message entries."""
        return self.local_response.rows


def shift(local_response: Response, change: np.ndarray) -> Shift:
    """Solve for the draws that change the messages by ``change``, [rows].

    Draws and rows that no response connects are solved for separately.
    """
    noisy = local_response.scale > 0
    tolerance = local_response.precision * (np.abs(local_response.base) + np.abs(change)) + 1e-300
    unexplained = np.where(~noisy & (np.abs(change) > 1e2 * tolerance), np.inf, 0.0)
    units, unique = np.zeros(local_response.matrix.shape[1]), True
    weights = np.divide(
        1.0, local_response.scale, out=np.zeros_like(local_response.scale), where=noisy
    )
    scaled, goals = local_response.matrix * weights[:, None], change * weights
    for rows, columns in _components(scaled):
        block, goal = scaled[np.ix_(rows, columns)], goals[rows]
        if not np.any(goal):
            continue
        solved, _, rank, _ = lstsq(
            block, goal, cond=10 * local_response.precision, lapack_driver="gelsy"
        )
        units[columns] = solved
        unique &= bool(rank == len(columns))
        gap = np.abs(block @ solved - goal)
        rounding = local_response.precision * (
            np.abs(local_response.base[rows]) * weights[rows] + np.abs(goal)
        )
        allowed = (
            1e2 * np.sqrt(len(rows)) * (local_response.precision * max(1.0, np.abs(solved).max()))
        )
        unexplained[rows] = np.where(gap > allowed + 1e2 * rounding, gap, 0.0)
    return Shift(units, unexplained, unique, change, local_response)


def _components(matrix: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Return rows and columns of the diagonal blocks into which a matrix can be permuted."""
    present = sparse.csr_matrix(matrix != 0)
    graph = sparse.bmat([[None, present], [present.T, None]])
    _, labels = connected_components(graph, directed=False)
    of_rows, of_columns = np.split(labels, [matrix.shape[0]])
    for label in np.unique(of_columns):
        rows = np.flatnonzero(of_rows == label)
        if len(rows):
            yield rows, np.flatnonzero(of_columns == label)


class Blocks(NamedTuple):
    """The response by iteration, with the inverse of each block of new draws.

    Parameters
    ----------
    rows, columns : tuple of ndarray
        Indices per iteration: its messages, and the draws that no earlier message depends on.
    inverses : tuple of ndarray
    unique : bool
        Whether all draws that messages depend on follow from them.
    """

    local_response: Response
    rows: tuple[np.ndarray, ...]
    columns: tuple[np.ndarray, ...]
    inverses: tuple[np.ndarray, ...]
    unique: bool

    @classmethod
    def of(cls, local_response: Response) -> Blocks:
        """Divide a response into blocks, one per iteration."""
        times, first = _order(local_response)
        blocks, unique = [], True
        for t in np.unique(times):
            rows, columns = np.flatnonzero(times == t), np.flatnonzero(first == t)
            rows = rows[local_response.scale[rows] > 0]
            block = local_response.matrix[np.ix_(rows, columns)] / local_response.scale[rows, None]
            unique &= not len(columns) or int(np.linalg.matrix_rank(block, 1e-6)) == len(columns)
            blocks.append((rows, columns, np.linalg.pinv(block, rcond=1e-6)))
        return cls(local_response, *map(tuple, zip(*blocks, strict=True)), unique)

    def solve(self, gap: np.ndarray) -> np.ndarray:
        """Return draws that change the messages by ``gap``, [rows], by forward substitution."""
        units = np.zeros(self.local_response.matrix.shape[1])
        for rows, columns, inverse in zip(self.rows, self.columns, self.inverses, strict=True):
            remainder = gap[rows] - self.local_response.matrix[rows] @ units
            units[columns] = inverse @ (remainder / self.local_response.scale[rows])
        return units


def _order(local_response: Response) -> tuple[np.ndarray, np.ndarray]:
    """Return the iteration of each row, and the first iteration that depends on each draw."""
    times = local_response.times
    responds = np.abs(local_response.matrix) > PRECISION * local_response.scale[:, None]
    return times, np.where(responds.any(0), times[responds.argmax(0)], 0)


def solved_by_blocks(
    executed: Executed, blocks: Blocks, target: np.ndarray, start: np.ndarray
) -> Shift | None:
    """Find draws with which the messages equal ``target``, by Newton's method with one response.

    Return the shift from ``start``, [units], or None if the method does not converge to equal
    messages.
    """
    local_response = blocks.local_response
    if not blocks.unique:
        return None
    noisy = local_response.scale > 0
    units, before = start, np.inf
    change = None
    for _ in range(CHORD_STEPS):
        gap = target - executed.values(units[None], local_response.rows)[0]
        change = gap if change is None else change
        is_unexplained = np.abs(gap[~noisy]) > 1e-9 * np.abs(target[~noisy])
        size = float((np.abs(gap[noisy]) / local_response.scale[noisy]).max(initial=0.0))
        if is_unexplained.any():
            return None
        if size <= FINE or (size <= CONVERGED and not size < 0.8 * before):
            units = _without_idle_draws(executed, blocks, target, start, units, max(FINE, size))
            return Shift(units - start, np.zeros(len(target)), True, change, local_response)
        if not size < 0.8 * before:
            return None
        units, before = units + blocks.solve(gap), size
    return None


def _without_idle_draws(
    executed: Executed, blocks: Blocks, target: np.ndarray, start: np.ndarray, units: np.ndarray,
    error: float,
) -> np.ndarray:  # fmt: skip
    """Return draws with which the messages equal ``target``, equal to ``start`` where possible."""
    local_response = blocks.local_response
    allowed = np.where(
        local_response.scale > 0, 2.0 * error * local_response.scale, 1e-9 * np.abs(target)
    )
    without = np.repeat(units[None], len(blocks.columns), axis=0)
    for index in range(len(without)):
        later = np.concatenate(blocks.columns[index:])
        without[index, later] = start[later]
    shorter = units.copy()
    values = executed.values(without, local_response.rows)
    for of_block, rows, columns in zip(values, blocks.rows, blocks.columns, strict=True):
        changed = rows[np.abs(target - of_block)[rows] > allowed[rows]]
        idle = columns[~(local_response.matrix[np.ix_(changed, columns)] != 0).any(0)]
        shorter[idle] = start[idle]
    gap = np.abs(target - executed.values(shorter[None], local_response.rows)[0])
    return shorter if (gap <= allowed).all() else units


def is_continuous(executed: Executed, local_response: Response, start: np.ndarray) -> bool:
    """Return True if tiny draws change almost all messages that carry noise.

    Rounded messages, and messages below a threshold, stay equal: equal messages then do not
    determine the draws.
    """
    tiny = 1e-3 * np.cos(1.0 + np.arange(2 * len(start)) ** 1.1).reshape(2, -1)
    values = executed.values(start + np.concatenate([0.0 * tiny[:1], tiny]), local_response.rows)
    noisy = local_response.scale > 0
    changed = (values[1:] != values[0]).any(0)
    return bool(changed[noisy].mean() >= CONTINUOUS) if noisy.any() else True


def solved_in_order(
    executed: Executed, local_response: Response, target: np.ndarray, start: np.ndarray
) -> Shift | None:
    """Find draws with which the messages equal ``target``, [rows], iteration by iteration.

    The messages of an iteration are solved for with the draws that no earlier message depends on,
    by Newton's method, while all earlier messages equal their targets. Which draws enter a message
    can depend on earlier messages: an algorithm that stops by its messages adds no more noise. If
    the draws of ``local_response``, which is computed without noise, do not explain the messages,
    the draws that enter are determined again, with all earlier messages equal to their targets.

    Return the shift from ``start``, [units]. It is None if the method fails, or if the draws do not
    follow from the messages.
    """
    times, first = _order(local_response)
    units, unexplained = start.copy(), np.zeros(len(times))
    values, floor = executed.values(start[None], local_response.rows)[0], FINE
    change = target - values
    is_solved, is_certain = np.zeros(len(units), bool), False
    iterations = np.unique(times)
    in_order = bool((np.diff(times) >= 0).all())
    for t, following in zip(iterations, [*iterations[1:], np.inf], strict=True):
        rows, columns = np.flatnonzero(times == t), np.flatnonzero((first == t) & ~is_solved)
        last = following if in_order else np.inf
        iteration = _IterationMessages(executed, local_response, target, values, rows, last)
        step = _solved_step(iteration, units, columns, local_response.scale[rows], floor)
        if step is None or step.unexplained.any():
            columns, scale = _entering(executed, local_response, units, is_solved, t)
            step = _solved_step(iteration, units, columns, scale, floor)
            if step is None:
                return None
        units, values, floor = step.units, step.values, step.floor
        is_solved[columns] = True
        unexplained[rows] = step.unexplained
        if unexplained.any():
            constant, noisy = _rows_by_noise(executed, local_response, units, is_solved, t)
            # Larger draws change these messages, so that the cost of the pair is unknown.
            if (np.isinf(unexplained) & noisy)[unexplained > 0].all():
                return None
            is_certain = bool((constant & (unexplained > 0)).any())
            break
    return Shift(units - start, unexplained, True, change, local_response, is_certain)


class _IterationMessages(NamedTuple):
    """Messages of one iteration, to be solved for while earlier messages equal their targets.

    Parameters
    ----------
    target : ndarray, shape (rows,)
        Target values of the messages of all iterations.
    values : ndarray
        Messages with the draws so far, at least up to this iteration.
    rows : ndarray
        Indices of the messages of this iteration.
    last : float
        Last iteration to execute: the following one, or infinity if rows are not in the order of
        iterations.
    """

    executed: Executed
    local_response: Response
    target: np.ndarray
    values: np.ndarray
    rows: np.ndarray
    last: float

    def values_at(self, units: np.ndarray) -> np.ndarray:
        """Return the messages up to iteration ``last`` for draws [runs, units]."""
        return self.executed.values(units, self.local_response.rows, self.last)


class _Step(NamedTuple):
    """Draws that solve for the messages of one iteration.

    Parameters
    ----------
    units : ndarray, shape (units,)
        All draws.
    unexplained : ndarray, shape (rows of the iteration,)
        Difference of the messages that no draws explain, in deviations of the row's noise.
    floor : float
        Largest error of a solved message so far, in deviations.
    values : ndarray
        Messages with ``units``, at least up to the following iteration.
    """

    units: np.ndarray
    unexplained: np.ndarray
    floor: float
    values: np.ndarray


def _solved_step(
    iteration: _IterationMessages,
    units: np.ndarray,
    columns: np.ndarray,
    scale: np.ndarray,
    floor: float,
) -> _Step | None:
    """Solve for the messages of one iteration with the draws ``columns``."""
    units, size = units.copy(), np.where(scale > 0, scale, 1e-300)
    rows, goal, values = iteration.rows, iteration.target[iteration.rows], iteration.values
    gap = goal - values[rows]
    error, previous_error, rank = np.inf, np.inf, 0
    has_noise = np.zeros(len(rows), bool)
    for _ in range(NEWTON_STEPS if len(columns) else 0):
        matrix = slopes(iteration.values_at, units[None], columns)[0, rows] / size[:, None]
        has_noise = np.abs(matrix).max(1, initial=0.0) > 1e-6
        step, _, rank, _ = lstsq(matrix[has_noise], gap[has_noise] / size[has_noise], cond=1e-6)
        if rank < len(columns) or not np.isfinite(step).all():
            return None
        units[columns] += step
        values = iteration.values_at(units[None])[0]
        gap = goal - values[rows]
        previous_error = error
        error = float(np.abs(gap[has_noise] / size[has_noise]).max(initial=0.0))
        if error <= FINE or not error < 0.5 * previous_error:
            break
    if not len(columns):
        error, values = 0.0, iteration.values_at(units[None])[0]
    excess = has_noise.sum() > rank and np.isfinite(previous_error)
    if error > CONVERGED and not excess:
        return None
    floor = max(floor, error if error <= CONVERGED else 0.0)
    allowed = 1e-9 * np.abs(goal) + 1e2 * floor * scale
    return _Step(units, _leaks(gap, scale, allowed, 1e3 * floor), floor, values)


def slopes(
    values_at: Callable[[np.ndarray], np.ndarray], points: np.ndarray, columns: np.ndarray,
    step: float = STEP_OF_NEWTON,
) -> np.ndarray:  # fmt: skip
    """Return the response, [points, rows, columns], to selected draws, by central differences.

    ``values_at`` maps draws, [runs, units], to messages, [runs, rows]. ``columns`` are the indices
    of the selected draws.
    """
    single = np.zeros((len(columns), points.shape[1]))
    single[np.arange(len(columns)), columns] = step
    both = points[:, None] + np.concatenate([single, -single])
    values = values_at(both.reshape(-1, points.shape[1]))
    values = values.reshape(len(points), 2, len(columns), values.shape[1])
    return np.swapaxes(values[:, 0] - values[:, 1], 1, 2) / (2 * step)


def _entering(
    executed: Executed, local_response: Response, units: np.ndarray, is_solved: np.ndarray, t: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the draws that enter the messages of an iteration first, and the scale of its rows."""
    times = local_response.times
    last = t if (np.diff(times) >= 0).all() else np.inf
    times = times[times <= last]
    values_at = partial(executed.values, rows=local_response.rows, last=last)
    matrix = np.zeros((len(times), 0))
    if len(units):  # noise may come from another generator
        matrix = slopes(values_at, units[None], np.arange(len(units)))[0]
    scale = np.linalg.norm(matrix, axis=1)
    responds = np.abs(matrix) > PRECISION * scale[:, None]
    enters = responds[times == t].any(0) & ~responds[times < t].any(0) & ~is_solved
    return np.flatnonzero(enters), scale[times == t]


def _rows_by_noise(
    executed: Executed, local_response: Response, units: np.ndarray, is_solved: np.ndarray, t: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return which messages of an iteration certainly have no noise, and which have noise.

    Draws that no earlier message depends on are replaced by random ones. A message that stays equal
    is a function of earlier messages. A message that changes although all earlier messages are
    equal has noise. Small draws may leave it unchanged, such as the index of the largest noisy
    coordinate, or a noisy value below a threshold.
    """
    times = local_response.times
    random = generator(ROOT, "remaining draws", t).standard_normal((REMAINING, len(units)))
    sizes = np.resize(SIZES, REMAINING)
    random *= sizes[:, None] * ~is_solved
    try:
        values = executed.values(
            units + np.concatenate([np.zeros((1, len(units))), random]), local_response.rows
        )
    except OtherMessages:
        return np.zeros(len(times), bool), np.zeros(len(times), bool)
    equal = np.abs(values[1:] - values[0]) <= PRECISION * np.abs(values[0])
    is_before_equal = equal[:, times < t].all(1)
    constant = equal.all(0) & (times == t) & is_before_equal.all()
    noisy = (~equal & (is_before_equal & (sizes <= FAR))[:, None]).any(0) & (times == t)
    return constant, noisy


def _leaks(gap: np.ndarray, scale: np.ndarray, allowed: np.ndarray, rounding: float) -> np.ndarray:
    """Differences in deviations of the noise, infinite without noise; 0 within rounding errors."""
    size = np.abs(gap) / np.where(scale > 0, scale, 1.0)
    noisy = np.where(size > max(LEAK, rounding), size, 0.0)
    return np.where(scale > 0, noisy, np.where(np.abs(gap) > allowed, np.inf, 0.0))


def noise_differs(executions: Sequence[Executed], rows: tuple[Row, ...]) -> bool:
    """Return True if equal draws change a message of the two data sets by different lengths.

    The cost then depends on the data set that is taken first. The result is False if the data sets
    lead to other messages than ``rows``.
    """
    draws = np.zeros((2, max(1, executions[0].layout.units)))
    draws[1] = generator(ROOT, "draws of both data sets").standard_normal(draws.shape[1])
    try:
        values = [executed.values(draws, rows) for executed in executions]
    except OtherMessages:
        return False
    _, message = np.unique([row[:2] for row in rows], axis=0, return_inverse=True)
    first, second = (
        np.sqrt(np.bincount(message.ravel(), (value[1] - value[0]) ** 2)) for value in values
    )
    return bool((np.abs(first - second) > NOISE_DIFFERS * np.maximum(first, second)).any())


class Rough(NamedTuple):
    """Shift for messages that are affine in the noise up to bounded errors, such as rounding.

    ``error`` is the uncertainty of the length of the shift.
    """

    shift: Shift
    error: float


def solved_on_average(pair: tuple[Executed, Executed], seed: int) -> Rough | None:
    """Find the shift from the mean change of messages over random draws of equal noise.

    Rounding of whole messages averages out. Draws come with their negatives, so that a rotation of
    the noise that depends on the data cancels. The result is None if the messages are not affine up
    to an error of :data:`ROUGH`, in deviations.
    """
    units = pair[0].layout.units
    draws = 2.0 * generator(ROOT + seed, "average").standard_normal((AVERAGED, units))
    draws = np.concatenate([draws, -draws])
    far = FAR * np.eye(units)
    wide = pair[0].messages(np.concatenate([far, -far, np.zeros((1, units))]))
    forward, backward, base = np.split(wide.values, [units, 2 * units])
    matrix = (forward - backward).T / (2 * FAR)
    all_values = [executed.values(draws, wide.rows) for executed in pair]
    constant = np.all([(values == all_values[0][0]).all(0) for values in all_values], axis=0)
    matrix, base = matrix[~constant], base[:, ~constant]
    scale = np.linalg.norm(matrix, axis=1)
    if not len(scale) or not (scale > 0).all():
        return None
    changes, worst = [], 0.0
    rows = tuple(compress(wide.rows, ~constant))
    for values in (values[:, ~constant] for values in all_values):
        error = np.abs(values - values.mean(0) - draws @ matrix.T) / scale
        worst = max(worst, float(error.max()))
        changes.append(values)
    if worst > ROUGH:
        return None
    difference = changes[0] - changes[1]
    change = difference.mean(0)
    local_response = Response(base[0], matrix, rows, True, PRECISION, scale)
    solution = shift(local_response, change)._replace(unexplained=np.zeros(len(scale)))
    gap = np.abs(matrix @ solution.units - change) / scale
    allowed = 6.0 * worst / np.sqrt(AVERAGED)
    if (gap > max(1e-2, allowed)).any():
        return None
    moved = np.linalg.pinv(matrix / scale[:, None], rcond=1e-6)
    direction = solution.units / max(1e-300, float(np.linalg.norm(solution.units)))
    error = 6.0 * worst / np.sqrt(AVERAGED) * float(np.linalg.norm(direction @ moved))
    return Rough(solution, error)
