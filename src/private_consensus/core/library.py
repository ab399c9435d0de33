"""Simulation of one algorithm on one problem and one network, with its privacy guarantee."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from private_consensus.common.errors import InvalidInput, arguments, require
from private_consensus.privacy import Budget, Guarantee, Release, account

from . import simulation
from .algorithms.base import Algorithm
from .networks import Network
from .problems import Problem
from .randomness import PURPOSES, Streams
from .simulation import Environment, MeasurementPlan, MeasurementRequest, Setting

MAX_HORIZON, MAX_RUNS = 10_000_000, 1_000_000
"""Largest numbers of iterations and runs."""
MAX_MEASUREMENTS = 100_000_000
"""Largest number of measurements of one simulation."""
FINAL = (("released", "value"), ("internal", "value"))
"""Quantities whose values after the last iteration are the models."""


@dataclass(frozen=True)
class Models:
    """Models after the last iteration.

    Parameters
    ----------
    released : ndarray, shape (runs, agents, dim)
        Values that the agents release. The guarantee covers them, for one run.
    per_agent : ndarray, shape (runs, agents, dim)
        Values that the agents hold and do not release, if the algorithm has such values; otherwise
        equal to ``released``. The guarantee does not cover unreleased values: an agent may only
        use its own.
    """

    released: np.ndarray
    per_agent: np.ndarray

    @property
    def average(self) -> np.ndarray:
        """Mean of the released models over agents, which the guarantee covers; (runs, dim)."""
        return self.released.mean(-2)


@dataclass(frozen=True)
class Simulation:
    """Result of a simulation of one setting.

    Parameters
    ----------
    algorithm : Algorithm
        With calibrated noise, on the first graph.
    claimed : Budget
        Budget that the algorithm claims to meet.
    guarantee : Guarantee
        Guarantee for all releases of the agent with the largest privacy loss, on the graph with the
        largest loss among all runs, under ``algorithm.relation``. It covers one run.
    measurements : polars.DataFrame
        Columns t, quantity, metric, run, value. They are computed from the records; no guarantee
        covers them.
    releases : list of Release
        Releases from which the guarantee is computed.
    setting : Setting
        Algorithm before calibration, budget and number of iterations.
    problem : Problem
        Problem of the first run.
    network : Network
        Network of all runs.
    final : dict of str to ndarray
        Values after the last iteration, by quantity, (runs, agents, dim) for models.
    """

    algorithm: Algorithm
    claimed: Budget
    guarantee: Guarantee
    measurements: pl.DataFrame
    releases: Sequence[Release] = field(repr=False)
    setting: Setting = field(repr=False)
    problem: Problem = field(repr=False)
    network: Network = field(repr=False)
    final: dict[str, np.ndarray] = field(repr=False)

    @property
    def models(self) -> Models:
        """Models after the last iteration, released and per agent.

        Raises
        ------
        InvalidInput
            If the algorithm releases no model of each agent.
        """
        released = self.final.get("released", np.empty(0))
        expected = "an algorithm that releases one vector per agent"
        require(released.ndim == 3, "models", type(self.algorithm).__name__, expected)
        return Models(released, self.final.get("internal", released))


def simulate(
    algorithm: Algorithm,
    problem: Problem | Callable[[Streams], Problem],
    network: Network | Callable[[Streams], Network],
    budget: Budget,
    horizon: int,
    *,
    runs: int = 10,
    seed: int = 0,
    measures: Sequence[tuple[str, str]] = (),
    iterations: Iterable[int] | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Simulation:
    """Calibrate an algorithm to a budget, run it, and account for its releases.

    Parameters
    ----------
    algorithm : Algorithm
        Not yet calibrated.
    problem, network
        Objects, which all runs share, or functions that build them from the streams of some runs.
    budget : Budget
        Budget of all iterations of one run.
    horizon : int
        Number of iterations T.
    runs, seed : int
        Number of Monte-Carlo runs; more runs do not change earlier ones. Equal seeds give equal
        numbers.
    measures : sequence of (quantity, metric)
        Quantities of the algorithm (``released``, ``internal``, ...) and names of
        ``problem.metrics``. Default: the first metric of the released quantity.
    iterations : iterable of int, optional
        Iterations to measure, each between 1 and ``horizon``; the last one is always measured.
        Default: all.
    progress : callable, optional
        Called with the number of finished runs and of all runs.

    Returns
    -------
    Simulation
        Calibrated algorithm, guarantee of an accountant for all releases, and measurements.

    Raises
    ------
    InvalidInput
        For an argument of another type or out of range, a measure that does not exist, and a
        budget, problem or network that does not fit the algorithm.
    """
    arguments.instance("algorithm", algorithm, Algorithm, "an Algorithm")
    arguments.instance("budget", budget, Budget, "a Budget")
    horizon = arguments.whole("horizon", horizon, 1, MAX_HORIZON)
    runs = arguments.whole("runs", runs, 1, MAX_RUNS)
    seed = arguments.whole("seed", seed, 0)
    arguments.function("progress", progress)
    measures = _pairs(measures)
    times = _times(iterations, horizon)
    size = runs * (len(times) + 1) * max(1, len(measures))
    expected = f"at most {MAX_MEASUREMENTS:,} measurements: fewer runs or iterations"
    require(size <= MAX_MEASUREMENTS, "runs, iterations, measures", size, expected)
    environment = Environment(
        _builder("problem", problem, Problem),
        _builder("network", network, Network),
    )
    setting = Setting(algorithm, budget, horizon)
    calibration = simulation.calibrate(
        [setting],
        environment,
        root=seed,
        groups=dict.fromkeys(PURPOSES, "simulate"),
        runs=runs,
    )
    metrics = calibration.problem.metrics
    measures = measures or (("released", next(iter(metrics))),)
    for _, metric in measures:
        require(metric in metrics, "measures", metric, f"one of {', '.join(metrics)}")
        _require_test_records(calibration.problem, metric)
    final = MeasurementRequest(MeasurementPlan(FINAL), frozenset({0}), runs)
    records = simulation.simulate(
        calibration, watch=MeasurementPlan(measures, times), progress=progress, requests=[final]
    )
    measured = {(quantity, metric) for _, quantity, metric in records.values[0]}
    for quantity, metric in measures:
        expected = f"a quantity that {type(algorithm).__name__} records, such as released"
        require((quantity, metric) in measured, "measures", quantity, expected)
    rows = pl.DataFrame(records.rows()).drop("setting")
    releases = [
        case.algorithm.releases(calibration.problem, case.network, horizon)
        for case in calibration.cases(0)
    ]
    guarantees = [account(of_case, budget.delta) for of_case in releases]
    worst = max(range(len(releases)), key=lambda index: guarantees[index].epsilon)
    additional = {quantity: values for (_, quantity, _), values in records.additional[0].items()}
    return Simulation(
        calibration.algorithms[0][0], budget, guarantees[worst], rows, releases[worst], setting,
        calibration.problem, calibration.network, additional,
    )  # fmt: skip


def _require_test_records(problem: Problem, metric: str) -> None:
    """Refuse a metric on test records for a problem that has none."""
    labels = getattr(problem, "test_labels", None)
    tested = "test" not in metric or labels is None or labels.shape[-1] > 0
    require(tested, "measures", metric, "a metric without test records: this problem has none")


def _pairs(measures: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return pairs of a quantity and a metric."""
    expected = "pairs (quantity, metric) of texts"
    pairs = arguments.items("measures", measures, tuple | list, expected)
    for pair in pairs:
        fits = len(pair) == 2 and all(isinstance(name, str) for name in pair)
        require(fits, "measures", pair, expected)
    return tuple((quantity, metric) for quantity, metric in pairs)


def _times(iterations: Iterable[int] | None, horizon: int) -> frozenset[int]:
    """Return the iterations after which quantities are measured."""
    if iterations is None:
        return frozenset(range(1, horizon + 1))
    expected = f"at most {horizon} iterations, each a whole number between 1 and {horizon}"
    fits = isinstance(iterations, Iterable) and not isinstance(iterations, str | bytes)
    require(fits, "iterations", iterations, expected)
    times = list(islice(iterations, horizon + 1))
    require(len(times) <= horizon, "iterations", iterations, expected)
    return frozenset(arguments.whole("iterations", t, 1, horizon) for t in times)


def _builder(key: str, value: Any, kind: type) -> Callable[[Streams], Any]:
    """Return a function of the streams, whose results are checked."""
    expected = f"a {kind.__name__}, or a function from Streams to one"
    if isinstance(value, kind):
        return lambda streams: value
    if inspect.isclass(value) or not callable(value):
        raise InvalidInput(key, value, expected)

    def build(streams: Streams) -> Any:
        return arguments.instance(key, value(streams), kind, expected)

    return build
