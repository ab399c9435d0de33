"""Simulation of one algorithm on one problem and one network, with its privacy guarantee."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import polars as pl

from . import simulation
from .algorithms.base import Algorithm
from .errors import InvalidInput, arguments, require
from .large_networks import SparseNetwork
from .networks import Network
from .privacy import Budget, Guarantee, account
from .problems import Problem
from .randomness import PURPOSES, Streams
from .simulation import Environment, Setting, Watch

MAX_HORIZON, MAX_RUNS = 10_000_000, 1_000_000
"""Largest numbers of iterations and runs."""
MAX_MEASUREMENTS = 100_000_000
"""Largest number of measurements of one simulation."""


@dataclass(frozen=True)
class Simulation:
    """The result of :func:`simulate`.

    Parameters
    ----------
    algorithm : Algorithm
        With the noise that its budget asked for, on the first graph.
    claimed : Budget
        What the algorithm promises.
    guarantee : Guarantee
        The accountant's guarantee for everything that the agent with the greatest loss sends, on
        the graph of all runs on which it loses most, under ``algorithm.relation``.
    measurements : polars.DataFrame
        Columns t, quantity, metric, run, value.
    """

    algorithm: Algorithm
    claimed: Budget
    guarantee: Guarantee
    measurements: pl.DataFrame


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
) -> Simulation:
    """Calibrate an algorithm to a budget, run it, and account for what it released.

    Parameters
    ----------
    algorithm : Algorithm
    problem, network
        As they are, the same in all runs, or built from the streams of some runs.
    budget : Budget
        What the noise of all iterations together is for.
    horizon : int
        Iterations T.
    runs, seed : int
        Adding runs changes no earlier one; the same seed gives the same numbers.
    measures : sequence of (quantity, metric)
        What an algorithm shows (``released``, ``internal``, ...) and which of ``problem.metrics``;
        none: the first of these, of what is released.
    iterations : iterable of int, optional
        When to measure, each between 1 and ``horizon``; none: after every one. The last iteration
        is always measured.

    Returns
    -------
    Simulation
        The calibrated algorithm, what an accountant says of all that was sent, and measurements.

    Raises
    ------
    InvalidInput
        For an argument of another type or out of range, a measure that does not exist, and a
        budget, problem or network that the algorithm cannot have.
    """
    arguments.instance("algorithm", algorithm, Algorithm, "an Algorithm")
    arguments.instance("budget", budget, Budget, "a Budget")
    horizon = arguments.whole("horizon", horizon, 1, MAX_HORIZON)
    runs = arguments.whole("runs", runs, 1, MAX_RUNS)
    seed = arguments.whole("seed", seed, 0)
    measures = _pairs(measures)
    times = _times(iterations, horizon)
    size = runs * (len(times) + 1) * max(1, len(measures))
    expected = f"at most {MAX_MEASUREMENTS:,} measurements: fewer runs or iterations"
    require(size <= MAX_MEASUREMENTS, "runs, iterations, measures", size, expected)
    environment = Environment(
        _builder("problem", problem, Problem),
        _builder("network", network, (Network, SparseNetwork)),
    )
    calibration = simulation.calibrate(
        [Setting(algorithm, budget, horizon)],
        environment,
        root=seed,
        groups=dict.fromkeys(PURPOSES, "simulate"),
        runs=runs,
    )
    metrics = calibration.problem.metrics
    measures = measures or (("released", next(iter(metrics))),)
    for _, metric in measures:
        require(metric in metrics, "measures", metric, f"one of {', '.join(metrics)}")
    records = simulation.simulate(calibration, watch=Watch(measures, times))
    measured = {(quantity, metric) for _, quantity, metric in records.values[0]}
    for quantity, metric in measures:
        expected = f"a quantity that {type(algorithm).__name__} has, e.g. released"
        require((quantity, metric) in measured, "measures", quantity, expected)
    rows = pl.DataFrame(records.rows()).drop("setting")
    guarantees = [
        account(case.algorithm.releases(calibration.problem, case.network, horizon), budget.delta)
        for case in calibration.cases(0)
    ]
    worst = max(guarantees, key=lambda guarantee: guarantee.epsilon)
    return Simulation(calibration.algorithms[0][0], budget, worst, rows)


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


def _builder(key: str, value: Any, kind: type | tuple[type, ...]) -> Callable[[Streams], Any]:
    """Return a function of the streams, whose results are checked."""
    names = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
    expected = f"a {names}, or a function from Streams to one"
    if isinstance(value, kind):
        return lambda streams: value
    if inspect.isclass(value) or not callable(value):
        raise InvalidInput(key, value, expected)

    def build(streams: Streams) -> Any:
        return arguments.instance(key, value(streams), kind, expected)

    return build
