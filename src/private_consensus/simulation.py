"""The driver: settings of one algorithm, in blocks of runs, to records.

Runs are computed in blocks of a fixed size; the last block is filled up with further runs that are
cut off again. So the numbers of a run depend on neither the number of runs nor the number of cores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .algorithms.base import Algorithm, stack, structure
from .errors import Diverged, require
from .networks import Network
from .privacy import Budget
from .problems import Problem
from .randomness import Streams

Environment = Callable[[Streams], tuple[Problem, Network]]

DIVERGENCES = ("raise", "record")

BLOCK = 10
"""Runs a block: few enough that a block's arrays stay in the cache."""


@dataclass(frozen=True)
class Setting:
    """One line of an experiment: an algorithm, what it may spend, how long it runs."""

    algorithm: Algorithm
    budget: Budget
    horizon: int
    name: str = ""


@dataclass(frozen=True)
class Watch:
    """What is measured: pairs (quantity, metric), and at which iterations besides the last.

    A quantity is what an algorithm shows (``internal``, ``released``, ``consensus``, ...). Metric
    ``value`` takes the quantity itself as the measurement. Of the pairs in ``averages`` the mean
    over ALL iterations t = 1, ..., T is measured too, at T and under the name :func:`averaged`.
    """

    measures: tuple[tuple[str, str], ...]
    iterations: frozenset[int] = frozenset()
    averages: tuple[tuple[str, str], ...] = ()


def averaged(metric: str) -> str:
    """Name of a metric's mean over all iterations of a run."""
    return f"mean_{metric}"


@dataclass
class Records:
    """Measurements ``values[setting][(t, quantity, metric)]``, each an array ``[runs]``."""

    values: list[dict[tuple[int, str, str], np.ndarray]] = field(default_factory=list)

    def rows(self) -> dict[str, np.ndarray]:
        """Columns setting, t, quantity, metric, run, value: one row a measurement."""
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
        return {name: np.concatenate(parts) for name, parts in columns.items()}


def simulate(
    settings: Sequence[Setting],
    environment: Environment,
    *,
    root: int,
    groups: Mapping[str, str],
    runs: int,
    watch: Watch,
    block: int = BLOCK,
    divergence: str = "raise",
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Records:
    """Run every setting ``runs`` times and measure.

    Parameters
    ----------
    environment : callable
        Builds the problem and the network of a block of runs from its streams.
    root, groups
        See :class:`private_consensus.randomness.Streams`.
    divergence : {"raise", "record"}
        What a non-finite iterate means: an error, or a measurement of infinity, where losing the
        finite numbers is an outcome to be counted.
    progress : callable
        Told after each block how many runs are done.

    Raises
    ------
    Diverged
        At the first non-finite iterate, naming algorithm, setting, iteration and run; not with
        ``divergence="record"``.
    """
    require(divergence in DIVERGENCES, "divergence", divergence, f"one of {DIVERGENCES}")
    require(runs >= 1, "runs", runs, "a whole number >= 1")
    for setting in settings:
        require(setting.horizon >= 1, "horizon", setting.horizon, "a whole number >= 1")
    parts: list[list[dict]] = []
    for first in range(0, runs, block):
        streams = Streams(root, tuple(range(first, first + block)), groups)
        if divergence == "record":
            with np.errstate(over="ignore", invalid="ignore"):
                parts.append(_run_block(settings, environment, streams, watch, _Counter))
        else:
            parts.append(_run_block(settings, environment, streams, watch, _Recorder))
        progress(min(first + block, runs), runs)
    joined = []
    for index in range(len(settings)):
        keys = parts[0][index]
        joined.append(
            {key: np.concatenate([part[index][key] for part in parts])[:runs] for key in keys}
        )
    return Records(joined)


def calibrated(setting: Setting, problem: Problem, network: Network) -> Algorithm:
    """The setting's algorithm with the noise that its budget asks for."""
    return setting.algorithm.calibrate(setting.budget, problem, network, setting.horizon)


def _run_block(settings, environment, streams, watch, recorder_type) -> list[dict]:
    problem, network = environment(streams)
    measured: list[dict] = [{} for _ in settings]
    algorithms = [calibrated(setting, problem, network) for setting in settings]
    for members in _batches(algorithms):
        recorder = recorder_type(watch, problem, streams, [settings[i] for i in members])
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
    """Measures what it is shown, and stops a run that has left the finite numbers."""

    def __init__(self, watch: Watch, problem: Problem, streams: Streams, settings: list[Setting]):
        self.watch, self.problem, self.streams, self.settings = watch, problem, streams, settings
        self.horizon = np.array([setting.horizon for setting in settings])
        self.measured: list[dict] = [{} for _ in settings]
        self.sums: list[dict] = [defaultdict(float) for _ in settings]

    def __call__(self, t: int, active: np.ndarray, seen: Mapping[str, np.ndarray]) -> None:
        for array in seen.values():
            self._require_finite(t, active, array)
        for quantity, metric in self.watch.averages:
            if quantity in seen:
                self._add(t, active, quantity, metric, seen[quantity])
        wanted = np.flatnonzero((self.horizon[active] == t) | (t in self.watch.iterations))
        if not len(wanted):
            return
        for quantity, metric in self.watch.measures:
            if quantity in seen:
                self._measure(t, active[wanted], quantity, metric, seen[quantity][wanted])

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
        # A sum is finite only if every term is, and costs one pass without a temporary array.
        if np.isfinite(array.sum()):
            return
        where = np.argwhere(~np.isfinite(array))
        if len(where):
            setting = self.settings[active[where[0][0]]]
            run = self.streams.runs[where[0][1]]
            raise Diverged(type(setting.algorithm).__name__, setting.name, t, run)


class _Counter(_Recorder):
    """Takes what is not finite for infinite, and lets the run go on."""

    def _values(self, metric, array) -> np.ndarray:
        values = super()._values(metric, array)
        return np.where(np.isfinite(values), values, np.inf)

    def _require_finite(self, t: int, active: np.ndarray, array: np.ndarray) -> None:
        """Nothing is required."""
