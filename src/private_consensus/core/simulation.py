"""Monte-Carlo simulation of the settings of one algorithm: calibrated once, run in blocks.

The noise of a setting is calibrated before any run, from the sensitivities that the problem states
for all data sets and from the public graph. With random graphs it is calibrated for the graph of
each run. The noise of a run therefore depends on no other run, and the privacy table and the audits
examine the algorithm that ran.

Runs are computed in blocks of a fixed size. The last block is filled up with further runs, which
are discarded. The results of a run therefore depend neither on the number of runs nor on the number
of cores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from private_consensus.common.errors import Diverged, arguments, require
from private_consensus.privacy import Budget

from .algorithms.base import Algorithm, Finite, join_runs, stack, structure
from .kernels.forks import map_in_forks
from .networks import Network, require_same_agents
from .problems import Problem
from .randomness import Streams

DIVERGENCES = ("raise", "record")

BLOCK = 10
"""Runs per block: few enough that the arrays of a block stay in the cache."""


class Environment(NamedTuple):
    """Functions that build the problem and the network of some runs from their streams."""

    problem: Callable[[Streams], Problem]
    network: Callable[[Streams], Network]


@dataclass(frozen=True)
class Setting:
    """Experimental setting: algorithm, privacy budget, number of iterations, and whether
    intermediate iterations are measured.
    """

    algorithm: Algorithm
    budget: Budget
    horizon: int
    name: str = ""
    course: bool = True


class Case(NamedTuple):
    """Calibrated algorithm and its network, which belongs to one run or to all runs."""

    algorithm: Algorithm
    network: Network


@dataclass(frozen=True, eq=False)
class Calibration:
    """Settings with calibrated noise for all runs of an experiment.

    Parameters
    ----------
    settings : sequence of Setting
        Experimental settings.
    environment : Environment
        Functions that build problem and network.
    root, groups
        See :class:`private_consensus.core.randomness.Streams`.
    runs, block : int
        Number of runs; number of runs that are computed together.
    problem : Problem
        Problem of the first run. Its sensitivities hold for the data of every run.
    network : Network
        Network of all runs, including the runs that fill up the last block.
    algorithms : sequence of sequences of Algorithm
        For each setting, one algorithm if all runs share a graph, else one per run.
    """

    settings: Sequence[Setting]
    environment: Environment
    root: int
    groups: Mapping[str, str]
    runs: int
    block: int
    problem: Problem
    network: Network
    algorithms: Sequence[Sequence[Algorithm]]

    @cached_property
    def graphs(self) -> list[Network]:
        """Network that all runs share, or the network of each run without the filled-up ones."""
        return _graphs(self.network)[: self.runs]

    def cases(self, index: int) -> list[Case]:
        """Return the calibrated algorithms of a setting with their graphs.

        Of several graphs with equal privacy, only the first is returned. The privacy loss of the
        setting is that of the worst graph.
        """
        kind, distinct = self.settings[index].algorithm, {}
        for algorithm, graph in zip(self.algorithms[index], self.graphs, strict=False):
            distinct.setdefault(kind.graph_statistics(graph), Case(algorithm, graph))
        return list(distinct.values())

    def only(self, indices: Sequence[int]) -> Calibration:
        """Return the calibration of a selection of settings, given by their indices."""
        settings, algorithms = (
            [entries[index] for index in indices] for entries in (self.settings, self.algorithms)
        )
        return replace(self, settings=settings, algorithms=algorithms)

    def of_block(self, index: int, first: int) -> Algorithm:
        """Return the algorithm of a setting for the block of runs that starts at ``first``.

        Parameters
        ----------
        index : int
            Index of the setting.
        first : int
            Index of the first run of the block.

        Returns
        -------
        Algorithm
        """
        candidates = self.algorithms[index]
        return (
            candidates[0]
            if len(candidates) == 1
            else join_runs(candidates[first : first + self.block])
        )


def calibrate(
    settings: Sequence[Setting],
    environment: Environment,
    *,
    root: int,
    groups: Mapping[str, str],
    runs: int,
    block: int = BLOCK,
) -> Calibration:
    """Calibrate the noise of every setting for all runs of an experiment.

    The sensitivities of the problem are bounds for all data sets. With random graphs, the noise is
    calibrated for the graph of each run.

    Parameters
    ----------
    settings : sequence of Setting
        Experimental settings.
    environment : Environment
        Functions that build problem and network.
    root, groups
        See :class:`private_consensus.core.randomness.Streams`.
    runs : int
        Number of Monte-Carlo runs.
    block : int, default BLOCK
        Number of runs that are computed together.

    Returns
    -------
    Calibration

    Raises
    ------
    InvalidInput
        If a number is invalid, or problem and network do not fit together.
    """
    for name, count in {"runs": runs, "block": block}.items():
        arguments.whole(name, count, 1)
    for setting in settings:
        arguments.whole("horizon", setting.horizon, 1)
    problem = environment.problem(Streams(root, (0,), groups))
    computed = -(-runs // block) * block
    network = environment.network(Streams(root, tuple(range(computed)), groups))
    _require_comparable(problem, network, computed)
    graphs = _graphs(network)
    algorithms = [_on_graphs(setting, problem, graphs) for setting in settings]
    return Calibration(
        settings, environment, root, groups, runs, block, problem, network, algorithms
    )


def _require_comparable(problem: Problem, network: Network, runs: int) -> None:
    """Refuse a problem and a network with different numbers of agents, or of other runs."""
    require_same_agents(problem, network)
    own_data = getattr(problem, "n_runs", None)
    expected_runs = "data for 1 run, or a function of streams that returns data for each run"
    require(own_data in (None, 1), "runs of the problem", own_data, expected_runs)
    own_graphs = runs if network.shared else len(network.degrees)
    expected = f"1 graph for all runs, or a function of streams that returns {runs} graphs"
    require(own_graphs == runs, "graphs of the network", own_graphs, expected)


def calibrated(setting: Setting, problem: Problem, network: Network) -> Algorithm:
    """Calibrate the noise of a setting to its privacy budget on one network.

    Parameters
    ----------
    setting : Setting
        Algorithm, privacy budget and number of iterations.
    problem : Problem
        States the sensitivities, which hold for all data sets.
    network : Network
        Public communication graph.

    Returns
    -------
    Algorithm
        Algorithm with its noise set.
    """
    setting.algorithm.check_needs(problem)
    return setting.algorithm.calibrate(setting.budget, problem, network, setting.horizon)


def _on_graphs(setting: Setting, problem: Problem, graphs: Sequence[Network]) -> list[Algorithm]:
    calibrated_algorithms: dict[Hashable, Algorithm] = {}
    algorithms = []
    for graph in graphs:
        statistics = setting.algorithm.graph_statistics(graph)
        if statistics not in calibrated_algorithms:
            calibrated_algorithms[statistics] = calibrated(setting, problem, graph)
        algorithms.append(calibrated_algorithms[statistics])
    return algorithms


def _graphs(network: Network) -> list[Network]:
    if network.shared:
        return [network]
    return [network.of_runs(run, run + 1) for run in range(len(network.degrees))]


@dataclass(frozen=True)
class MeasurementPlan:
    """Measurement plan: pairs (quantity, metric), and the intermediate iterations at which they
    are measured.

    A quantity is an observable of the algorithm (``internal``, ``released``, ``consensus``, ...).
    The metric ``value`` records the quantity itself. For pairs in ``averages``, the mean over all
    iterations t = 1, ..., T is recorded at T, under the name :func:`averaged`. Before the last
    iteration the pairs in ``intermediate`` are recorded, or all pairs if it is empty.
    """

    measures: tuple[tuple[str, str], ...]
    iterations: frozenset[int] = frozenset()
    averages: tuple[tuple[str, str], ...] = ()
    intermediate: tuple[tuple[str, str], ...] = ()

    @property
    def intermediate_measures(self) -> tuple[tuple[str, str], ...]:
        """Pairs that are measured before the last iteration."""
        return self.intermediate or self.measures

    def keys(self, horizon: int, course: bool = True) -> set[tuple[int, str, str]]:
        """Return the (iteration, quantity, metric) triples to record in a run.

        Parameters
        ----------
        horizon : int
            Number of iterations of the run.
        course : bool, default True
            True if metrics are recorded at intermediate iterations, not only at the last.

        Returns
        -------
        set of tuple
        """
        times = [t for t in self.iterations if t < horizon] if course else []
        triples = {(t, *measure) for t in times for measure in self.intermediate_measures}
        triples |= {(horizon, *measure) for measure in self.measures}
        return triples | {(horizon, of, averaged(metric)) for of, metric in self.averages}


class MeasurementRequest(NamedTuple):
    """Additional measurements for some settings (by index), in the first runs only."""

    watch: MeasurementPlan
    settings: frozenset[int]
    runs: int


def averaged(metric: str) -> str:
    """Return the name of a metric's mean over all iterations of a run."""
    return f"mean_{metric}"


@dataclass
class Records:
    """Measurements ``values[setting][(t, quantity, metric)]``, each an array ``[runs]``.

    ``additional`` has the additional measurements in the same form, for the runs of the blocks that
    contain the requested runs.
    """

    values: list[dict[tuple[int, str, str], np.ndarray]] = field(default_factory=list)
    additional: list[dict[tuple[int, str, str], np.ndarray]] = field(default_factory=list)

    def rows(self) -> dict[str, np.ndarray]:
        """Return the columns setting, t, quantity, metric, run, value: one row per measurement."""
        columns: dict[str, list] = defaultdict(list)
        for index, measured in enumerate(self.values):
            for (t, quantity, metric), numbers in measured.items():
                count = len(numbers)
                columns["setting"].append(np.full(count, index))
                columns["t"].append(np.full(count, t))
                columns["quantity"].append(np.full(count, quantity, dtype=object))
                columns["metric"].append(np.full(count, metric, dtype=object))
                columns["run"].append(np.arange(count))
                columns["value"].append(numbers)
        return {name: np.concatenate(arrays) for name, arrays in columns.items()}


def simulate(
    calibration: Calibration,
    *,
    watch: MeasurementPlan,
    divergence: str = "raise",
    progress: Callable[[int, int], None] = lambda done, of: None,
    processes: int = 1,
    requests: Sequence[MeasurementRequest] = (),
) -> Records:
    """Run every setting and record its measurements.

    Parameters
    ----------
    calibration : Calibration
        See :func:`calibrate`.
    watch : MeasurementPlan
        Quantities and metrics to record.
    divergence : {"raise", "record"}
        Treatment of an infinite iterate: an error, or a measurement of infinity.
    progress : callable
        Called after each block with the number of finished runs and of all runs.
    processes : int, default 1
        Number of worker processes. The results do not depend on it.
    requests : sequence of MeasurementRequest
        Additional measurements; their averages have to be those of ``watch``.

    Returns
    -------
    Records

    Raises
    ------
    Diverged
        At the first non-finite iterate, naming algorithm, setting, iteration and run; not with
        ``divergence="record"``.
    """
    how = {"watch": watch, "divergence": divergence, "progress": progress, "processes": processes}
    return simulate_together([calibration], requests=[requests], **how)[0]


def simulate_together(
    calibrations: Sequence[Calibration],
    *,
    watch: MeasurementPlan,
    divergence: str = "raise",
    progress: Callable[[int, int], None] = lambda done, of: None,
    processes: int = 1,
    requests: Sequence[Sequence[MeasurementRequest]],
) -> list[Records]:
    """Run several environments on the same runs and record their measurements.

    Each block of runs is computed for all environments before the next block. Identical objects
    are then built once. The results do not depend on it.

    Parameters
    ----------
    calibrations : sequence of Calibration
        One calibration per environment, with equal numbers of runs and equal blocks.
    watch : MeasurementPlan
        Quantities and metrics to record.
    divergence : {"raise", "record"}
        See :func:`simulate`.
    progress : callable
        Called after each block with the number of finished runs and of all runs.
    processes : int, default 1
        Number of worker processes. The results do not depend on it.
    requests : sequence of sequences of MeasurementRequest
        Additional measurements for each calibration.

    Returns
    -------
    list of Records
        One element per calibration.
    """
    require(divergence in DIVERGENCES, "divergence", divergence, f"one of {DIVERGENCES}")
    runs, block = calibrations[0].runs, calibrations[0].block
    beginnings = range(0, runs, block)

    def compute(first: int) -> list[list[dict]]:
        recorder_type = _Recorder if divergence == "raise" else _Counter
        handling = None if divergence == "raise" else "ignore"
        with np.errstate(over=handling, invalid=handling):
            return [
                _run_block(
                    calibration,
                    first,
                    watch,
                    [request for request in additional if first < request.runs],
                    recorder_type,
                )
                for calibration, additional in zip(calibrations, requests, strict=True)
            ]

    blocks: list[list[list[dict]]] = []
    computed = map_in_forks(compute, beginnings, processes)
    for first, block_results in zip(beginnings, computed, strict=True):
        blocks.append(block_results)
        progress(min(first + block, runs), runs)
    return [
        _records(calibration, watch, block_results)
        for calibration, *block_results in zip(calibrations, *blocks, strict=True)
    ]


def _records(calibration: Calibration, watch: MeasurementPlan, blocks: list[list[dict]]) -> Records:
    """Collect the measurements of all blocks of one environment."""
    runs, records = calibration.runs, Records()
    for index, setting in enumerate(calibration.settings):
        planned = watch.keys(setting.horizon, setting.course)
        joined = {key: _joined(blocks, index, key)[:runs] for key in blocks[0][index]}
        records.values.append({key: joined[key] for key in joined if key in planned})
        records.additional.append({key: joined[key] for key in joined if key not in planned})
    return records


def _joined(blocks: list[list[dict]], index: int, key: tuple[int, str, str]) -> np.ndarray:
    return np.concatenate([block[index][key] for block in blocks if key in block[index]])


def _run_block(
    calibration: Calibration,
    first: int,
    watch: MeasurementPlan,
    also: Sequence[MeasurementRequest],
    recorder_type,
) -> list[dict]:
    """Run a block of one environment; return the measurements of each setting."""
    last = first + calibration.block
    streams = Streams(calibration.root, tuple(range(first, last)), calibration.groups)
    problem = calibration.environment.problem(streams)
    network = calibration.network.of_runs(first, last)
    settings = calibration.settings
    measured: list[dict] = [{} for _ in settings]
    algorithms = [calibration.of_block(index, first) for index in range(len(settings))]
    for members in _batches(algorithms):
        plans = [
            (request.watch, np.array([member in request.settings for member in members]))
            for request in also
        ]
        member_settings = [settings[i] for i in members]
        recorder = recorder_type(watch, problem, streams, member_settings, plans)
        horizon = np.array([settings[i].horizon for i in members])
        stack([algorithms[i] for i in members]).run(problem, network, streams, horizon, recorder)
        for index, member in enumerate(members):
            measured[member] = recorder.measured[index]
    return measured


def _batches(algorithms: Sequence[Algorithm]) -> Collection[list[int]]:
    batches: dict[Any, list[int]] = defaultdict(list)
    for index, algorithm in enumerate(algorithms):
        batches[structure(algorithm)].append(index)
    return batches.values()


class _Recorder:
    """Recorder of the planned measurements, which stops a run with an infinite iterate.

    ``also`` has additional measurement plans, each with a mask of its settings.
    """

    def __init__(
        self,
        watch: MeasurementPlan,
        problem: Problem,
        streams: Streams,
        settings: list[Setting],
        also: Sequence[tuple[MeasurementPlan, np.ndarray]] = (),
    ):
        self.watch, self.problem, self.streams, self.settings = watch, problem, streams, settings
        all_settings = np.ones(len(settings), bool)
        courses = np.array([setting.course for setting in settings])
        self.watches = [
            (watch, all_settings, courses),
            *((plan, mask, mask) for plan, mask in also),
        ]
        self.measures = dict.fromkeys(pair for plan, *_ in self.watches for pair in plan.measures)
        self.horizon = np.array([setting.horizon for setting in settings])
        self.times = {*self.horizon.tolist()}.union(*(plan.iterations for plan, *_ in self.watches))
        self.measured: list[dict] = [{} for _ in settings]
        self.sums: list[dict] = [defaultdict(float) for _ in settings]

    def __call__(self, t: int, active: np.ndarray, observables: Mapping[str, np.ndarray]) -> None:
        # Several observables are often the same array, which is checked once.
        if not isinstance(observables, Finite):
            for array in {id(array): array for array in observables.values()}.values():
                self._require_finite(t, active, array)
        for quantity, metric in self.watch.averages:
            if quantity in observables:
                self._add(t, active, quantity, metric, observables[quantity])
        now = self._now(t, active)
        if not any(mask.any() for _, mask in now):
            return
        for quantity, metric in self.measures:
            if quantity not in observables:
                continue
            asking = [mask for measures, mask in now if (quantity, metric) in measures]
            measured = np.flatnonzero(np.any(asking, axis=0))
            if len(measured):
                self._measure(
                    t, active[measured], quantity, metric, observables[quantity][measured]
                )

    def _now(self, t: int, active: np.ndarray) -> list[tuple[Any, np.ndarray]]:
        """Return the measures of each plan and the settings to which they apply: those that end,
        and those at intermediate iterations.
        """
        if t not in self.times:
            return []
        ends, now = self.horizon[active] == t, []
        for plan, mask, courses in self.watches:
            now.append((plan.measures, mask[active] & ends))
            if t in plan.iterations:
                now.append((plan.intermediate_measures, courses[active] & ~ends))
        return now

    def _add(self, t, active, quantity, metric, array) -> None:
        values = self._values(metric, array)
        for index, numbers in zip(active, values, strict=True):
            self.sums[index][quantity, metric] += numbers
            if self.horizon[index] == t:
                mean = self.sums[index][quantity, metric] / t
                self.measured[index][t, quantity, averaged(metric)] = mean

    def _measure(self, t, active, quantity, metric, array) -> None:
        values = self._values(metric, array)
        for index, numbers in zip(active, values, strict=True):
            self.measured[index][(t, quantity, metric)] = numbers

    def _values(self, metric, array) -> np.ndarray:
        return array if metric == "value" else self.problem.measure(metric, array)

    def _require_finite(self, t: int, active: np.ndarray, array: np.ndarray) -> None:
        # Numbers per run, such as a bound of a theorem, may be infinite; iterates may not.
        if array.ndim < 4:
            return
        # A sum is finite only if every term is, and costs one pass without a temporary array.
        if np.isfinite(array.sum()):
            return
        indices = np.argwhere(~np.isfinite(array))
        if len(indices):
            setting = self.settings[active[indices[0][0]]]
            run = self.streams.runs[indices[0][1]]
            raise Diverged(type(setting.algorithm).__name__, setting.name, t, run)


class _Counter(_Recorder):
    """Recorder that records infinity for values that are not finite, and continues the run."""

    def _values(self, metric, array) -> np.ndarray:
        values = super()._values(metric, array)
        return np.where(np.isfinite(values), values, np.inf)

    def _require_finite(self, t: int, active: np.ndarray, array: np.ndarray) -> None:
        """Accept all values; counters require no finite numbers."""
