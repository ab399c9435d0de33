"""Simulation of one algorithm on one problem and one network, with its privacy guarantee."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from . import simulation
from .algorithms.base import Algorithm
from .errors import require
from .networks import Network
from .privacy import Budget, Guarantee, account
from .problems import Problem
from .randomness import PURPOSES, Streams
from .simulation import Environment, Setting, Watch


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
        When to measure; none: after every one.

    Returns
    -------
    Simulation
        The calibrated algorithm, what an accountant says of all that was sent, and measurements.

    Raises
    ------
    InvalidInput
        For a budget, problem or network that the algorithm cannot have.
    """
    environment = Environment(_built(problem), _built(network))
    calibration = simulation.calibrate(
        [Setting(algorithm, budget, horizon)],
        environment,
        root=seed,
        groups=dict.fromkeys(PURPOSES, "simulate"),
        runs=runs,
    )
    metrics = calibration.problem.metrics
    measures = tuple(measures) or (("released", next(iter(metrics))),)
    for _, metric in measures:
        require(metric in metrics, "measures", metric, f"one of {', '.join(metrics)}")
    times = frozenset(range(1, horizon + 1) if iterations is None else iterations)
    records = simulation.simulate(calibration, watch=Watch(measures, times))
    rows = pl.DataFrame(records.rows()).drop("setting")
    guarantees = [
        account(case.algorithm.releases(calibration.problem, case.network, horizon), budget.delta)
        for case in calibration.cases(0)
    ]
    worst = max(guarantees, key=lambda guarantee: guarantee.epsilon)
    return Simulation(calibration.algorithms[0][0], budget, worst, rows)


def _built(given):
    return given if callable(given) else lambda streams: given
