"""Monte-Carlo simulation of the settings of one algorithm.

The noise of each setting is calibrated once, before any run, from the public graph and the
problem's sensitivities, which hold for all data sets. With random graphs, the noise is calibrated
for the graph of each run and depends on no other run.

Runs are computed in blocks of a fixed size. The last block is filled up with further runs, which
are discarded. The results of a run therefore depend neither on the number of runs nor on the number
of cores.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from private_consensus.common.errors import Diverged, require
from private_consensus.common.grouping import grouped
from private_consensus.kernels.forks import map_in_forks
from private_consensus.privacy import Budget

from .algorithms.base import Algorithm, Attack, join_runs, parameters, stack, structure
from .networks import Network, require_same_agents
from .problems import Problem
from .randomness import Streams

MAX_HORIZON, MAX_RUNS = 10_000_000, 1_000_000
"""Largest numbers of iterations and of runs."""

BLOCK = 10
"""Number of runs per block, small enough that the arrays of a block stay in the cache."""


class Environment(NamedTuple):
    """Functions that build the problem and the network of some runs from their streams."""

    problem: Callable[[Streams], Problem]
    network: Callable[[Streams], Network]


@dataclass(frozen=True)
class Setting:
    """Experimental setting of a simulation.

    Parameters
    ----------
    algorithm : Algorithm
        Algorithm, whose noise need not be calibrated yet.
    budget : Budget
        Privacy budget of a run.
    name : str
        Name in error messages.
    intermediate : bool
        True if metrics are recorded at intermediate iterations, False for the last iteration only.
    """

    algorithm: Algorithm
    budget: Budget
    horizon: int
    name: str = ""
    intermediate: bool = True


class Case(NamedTuple):
    """Calibrated algorithm, and the network of one run or of all runs."""

    algorithm: Algorithm
    network: Network


@dataclass(frozen=True, eq=False)
class Calibration:
    """Settings with calibrated noise for all runs of an experiment.

    Parameters
    ----------
    environment : Environment
        Functions that build problem and network.
    root, groups
        See :class:`private_consensus.core.randomness.Streams`.
    runs, block : int
        Number of runs; number of runs that are computed together.
    problem : Problem
        Problem of the first run. No other run may have a larger privacy loss.
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
        """Network that all runs share, or the network of each run that is not discarded."""
        return _graphs(self.network)[: self.runs]

    def cases(self, index: int) -> list[Case]:
        """Return the calibrated algorithms of a setting with their graphs.

        Only the first of several graphs with equal privacy is returned. The privacy loss of the
        setting is that of the worst graph.
        """
        uncalibrated, cases = self.settings[index].algorithm, {}
        for algorithm, graph in zip(self.algorithms[index], self.graphs, strict=False):
            cases.setdefault(uncalibrated.graph_statistics(graph), Case(algorithm, graph))
        return list(cases.values())

    def of_block(self, index: int, first: int) -> Algorithm:
        """Return the algorithm of a setting for the block of runs that starts at ``first``."""
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

    The parameters are those of :class:`Calibration`. A problem and a network that do not fit
    together raise ``InvalidInput``.
    """
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
    """Refuse a problem and a network with different numbers of agents or of runs."""
    require_same_agents(problem, network)
    expected = "data for 1 run, or a function of streams that returns data for each run"
    require(problem.n_runs in (None, 1), "runs of the problem", problem.n_runs, expected)
    graph_count = runs if network.shared else len(network.degrees)
    expected = f"1 graph for all runs, or a function of streams that returns {runs} graphs"
    require(graph_count == runs, "graphs of the network", graph_count, expected)


def calibrated(setting: Setting, problem: Problem, network: Network) -> Algorithm:
    """Calibrate the noise of a setting to its privacy budget on one network.

    A budget for which the noise is infinite is refused.
    """
    algorithm, budget = setting.algorithm, setting.budget
    algorithm.check_needs(problem)
    require_same_agents(problem, network)
    for name, value in parameters(algorithm).items():
        is_batch = isinstance(value, np.ndarray) and value.size > 1
        require(not is_batch, f"algorithm.{name}", value, "a number")
    with np.errstate(divide="ignore", over="ignore"):
        noisy = algorithm.calibrate(budget, problem, network, setting.horizon)
    expected = "a larger epsilon or delta, or finite sensitivities: the noise is infinite"
    before, after = parameters(algorithm), parameters(noisy).items()
    calibrated_numbers = [v for n, v in after if isinstance(v, float) and v != before[n]]
    # The epsilon that an audit keeps may be infinite; it adds no noise for a budget.
    is_finite = isinstance(algorithm, Attack) or not any(map(math.isinf, calibrated_numbers))
    require(is_finite, "budget", str(budget), expected)
    return noisy


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
    return [network.of_run(slice(run, run + 1)) for run in range(len(network.degrees))]


@dataclass(frozen=True)
class MeasurementPlan:
    """Pairs (quantity, metric) to record in a run, and the iterations at which they are recorded.

    A quantity is an observable of the algorithm (``internal``, ``released``, ``consensus``, ...).
    The metric ``value`` records the quantity itself.

    Parameters
    ----------
    measures : tuple of (str, str)
        Pairs to record after the last iteration T.
    averages : tuple of (str, str)
        Pairs whose mean over the iterations 1, ..., T is recorded at T, under the metric's name in
        :func:`averaged`.
    intermediate : tuple of (str, str)
        Pairs to record at intermediate iterations; if empty, those of ``measures``.
    """

    measures: tuple[tuple[str, str], ...]
    iterations: frozenset[int] = frozenset()
    averages: tuple[tuple[str, str], ...] = ()
    intermediate: tuple[tuple[str, str], ...] = ()


def averaged(metric: str) -> str:
    """Return the name under which a metric's mean over all iterations of a run is recorded."""
    return f"mean_{metric}"


Values = dict[tuple[int, str, str], np.ndarray]


def rows_of(values: Sequence[Values]) -> dict[str, np.ndarray]:
    """Return the columns setting, t, quantity, metric, run, value: one row per measurement."""
    columns: dict[str, list] = defaultdict(list)
    for index, measured in enumerate(values):
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
    plan: MeasurementPlan,
    divergence: str = "raise",
    progress: Callable[[int, int], None] = lambda done, total: None,
    processes: int = 1,
) -> list[Values]:
    """Run every setting and return its measurements.

    Parameters
    ----------
    divergence : {"raise", "record"}
        Treatment of an infinite iterate: an error, or a measurement of infinity.
    progress : callable
        Called after each block with the number of finished runs and of all runs.
    processes : int, default 1
        Number of worker processes. The results do not depend on it.

    Returns
    -------
    list of dict
        For each setting, its measurements: arrays [runs] by (iteration, quantity, metric).

    Raises
    ------
    Diverged
        At the first non-finite iterate, naming algorithm, setting, iteration and run; not with
        ``divergence="record"``.
    """
    runs, block = calibration.runs, calibration.block

    def compute(first: int) -> list[Values]:
        handling = None if divergence == "raise" else "ignore"
        with np.errstate(over=handling, invalid=handling):
            return _run_block(calibration, first, plan, divergence)

    blocks = []
    for values in map_in_forks(compute, range(0, runs, block), processes):
        blocks.append(values)
        progress(min(len(blocks) * block, runs), runs)
    return [
        {key: np.concatenate([values[key] for values in of_blocks])[:runs] for key in of_blocks[0]}
        for of_blocks in zip(*blocks, strict=True)
    ]


def _run_block(
    calibration: Calibration, first: int, plan: MeasurementPlan, divergence: str
) -> list[Values]:
    """Run a block of one environment; return the measurements of each setting."""
    last = first + calibration.block
    streams = Streams(calibration.root, tuple(range(first, last)), calibration.groups)
    problem = calibration.environment.problem(streams)
    network = calibration.network.of_run(slice(first, last))
    settings = calibration.settings
    if problem is not calibration.problem:
        for index in range(len(settings)):
            _require_covered(calibration, index, problem, first)
    measured: list[dict] = [{} for _ in settings]
    algorithms = [calibration.of_block(index, first) for index in range(len(settings))]
    for members in grouped(range(len(settings)), lambda i: structure(algorithms[i])).values():
        member_settings = [settings[i] for i in members]
        recorder = _Recorder(plan, problem, streams, member_settings, divergence)
        horizon = np.array([settings[i].horizon for i in members])
        stack([algorithms[i] for i in members]).run(problem, network, streams, horizon, recorder)
        for index, member in enumerate(members):
            measured[member] = recorder.measured[index]
    return measured


def _require_covered(calibration: Calibration, index: int, problem: Problem, run: int) -> None:
    """Refuse a problem with which a setting has a larger privacy loss than in its calibration."""
    setting = calibration.settings[index]
    setting.algorithm.check_needs(problem)
    allowed, releases = (
        calibration.algorithms[index][0].releases(instance, calibration.graphs[0], setting.horizon)
        for instance in (calibration.problem, problem)
    )
    expected = "at most that of the first run, for which noise is calibrated"
    for release, limit in zip_longest(releases, allowed):
        if release is not None:
            is_covered = limit is not None and limit.covers(release)
            loss = float(release.losses().max())
            require(is_covered, f"privacy loss of run {run}", loss, expected)


class _Recorder:
    """Recorder of the planned measurements; for ``divergence``, see :func:`simulate`."""

    def __init__(
        self,
        plan: MeasurementPlan,
        problem: Problem,
        streams: Streams,
        settings: list[Setting],
        divergence: str,
    ):
        self.plan, self.problem, self.streams, self.settings = plan, problem, streams, settings
        self.records_infinity = divergence == "record"
        self.intermediate = np.array([setting.intermediate for setting in settings])
        self.horizon = np.array([setting.horizon for setting in settings])
        self.measured: list[dict] = [{} for _ in settings]
        self.sums: list[dict] = [defaultdict(float) for _ in settings]

    def __call__(self, t: int, active: np.ndarray, observables: Mapping[str, np.ndarray]) -> None:
        # Several observables may be the same array, which is checked once.
        if not self.records_infinity:
            for array in {id(array): array for array in observables.values()}.values():
                self._require_finite(t, active, array)
        for quantity, metric in self.plan.averages:
            if quantity in observables:
                self._add(t, active, quantity, metric, observables[quantity])
        is_last = self.horizon[active] == t
        self._measure(t, active, is_last, self.plan.measures, observables)
        if t in self.plan.iterations:
            before_last = ~is_last & self.intermediate[active]
            intermediate = self.plan.intermediate or self.plan.measures
            self._measure(t, active, before_last, intermediate, observables)

    def _measure(self, t, active, mask, measures, observables) -> None:
        """Measure the active settings of a mask."""
        for quantity, metric in measures:
            if quantity in observables and mask.any():
                values = self._values(metric, observables[quantity][mask])
                for index, numbers in zip(active[mask], values, strict=True):
                    self.measured[index][t, quantity, metric] = numbers

    def _add(self, t, active, quantity, metric, array) -> None:
        for index, numbers in zip(active, self._values(metric, array), strict=True):
            self.sums[index][quantity, metric] += numbers
            if self.horizon[index] == t:
                mean = self.sums[index][quantity, metric] / t
                self.measured[index][t, quantity, averaged(metric)] = mean

    def _values(self, metric, array) -> np.ndarray:
        values = array if metric == "value" else self.problem.measure(metric, array)
        return np.where(np.isfinite(values), values, np.inf) if self.records_infinity else values

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
