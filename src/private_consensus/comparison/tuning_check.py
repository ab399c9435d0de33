"""Check of tuning: loss after the search, and at the best point of a fine grid, on fresh runs.

The check uses the base cell of one problem, the smallest and the largest budget, and the budget of
the uncounted search. One set of runs chooses the best point of the grid. Another set, which neither
the search nor this choice has used, measures both losses.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from private_consensus.common.errors import InvalidInput
from private_consensus.common.multiplicity import ALPHA

from .schema import TUNINGS
from .statistics import interval
from .tuning import candidate, default_units

if TYPE_CHECKING:
    from .engine import Engine

TUNED = TUNINGS[1]
OFFSETS = (1, 2)
"""Differences of the seeds of the two sets of runs from that of the trials."""
GRID_POINTS = {1: 25, 2: 8, 3: 4}
"""Points per parameter of the grid, by the number of parameters."""
MAX_RATIO = 1.2
"""Largest ratio of the loss after tuning to the smallest loss on the grid."""


def checked_tuning(engine: Engine) -> list[dict[str, Any]]:
    """Compare the search with a fine grid for the methods that the design names.

    Parameters
    ----------
    engine : Engine
        Engine of one problem, whose parameters have been chosen.

    Returns
    -------
    list of dict
        One row per method and budget: the mean excess losses ``tuned`` and ``grid``, their
        ``ratio``, the interval ``low``, ``high`` of the paired difference, the number of grid
        points ``points``, and ``passed``: the ratio is at most 1.2, or the interval contains 0.
    """
    if engine.problem != engine.design.tuning.checked_on:
        return []
    names = [name for name in engine.design.tuning.checked if name in engine.copies]
    return [row for name in names for row in _method_checks(engine, name)]


def _method_checks(engine: Engine, name: str) -> Iterator[dict[str, Any]]:
    from .engine import CalibratedCandidate

    design = engine.design
    selection, evaluation = (
        engine.world(engine.base, design.tuning.seed + offset, design.runs) for offset in OFFSETS
    )
    points = grid(engine, name)
    for epsilon in sorted({design.epsilons[0], design.epsilons[-1]}):
        tuned_candidate = engine.candidates.get((name, epsilon, TUNED))
        if tuned_candidate is None:
            continue
        settings = []
        for configured in points:
            try:
                calibrated = engine.calibrated(name, configured, epsilon, 1, selection)
            except InvalidInput:
                continue
            settings.append(CalibratedCandidate(epsilon, TUNED, calibrated, configured))
        losses = [
            values["excess_loss_mean"].mean()
            for values in engine.measured(name, settings, selection)
        ]
        calibrated = engine.calibrated(name, tuned_candidate, epsilon, 1, evaluation)
        compared = [
            CalibratedCandidate(epsilon, TUNED, calibrated, tuned_candidate),
            settings[int(np.argmin(losses))],
        ]
        tuned, best = (
            values["excess_loss_mean"] for values in engine.measured(name, compared, evaluation)
        )
        _, low, high = interval(tuned - best, ALPHA)
        ratio = float(tuned.mean() / best.mean())
        yield {
            "method": name, "problem": engine.problem, "epsilon": epsilon,
            "tuned": float(tuned.mean()), "grid": float(best.mean()), "ratio": ratio,
            "low": float(low), "high": float(high), "points": len(settings),
            "passed": bool(ratio <= MAX_RATIO or low <= 0),
        }  # fmt: skip


def grid(engine: Engine, name: str) -> list[Any]:
    """Return the candidates of a regular grid over the ranges, from each starting point.

    Parameters
    ----------
    engine : Engine
        Engine of the problem.
    name : str
        Name of the method.

    Returns
    -------
    list of TuningCandidate
    """
    method = engine.design.methods[name]
    units = default_units(engine.design, name, engine.problem, engine.scales)
    count = len(units) - method.public_start
    steps = np.linspace(0.0, 1.0, GRID_POINTS[count])
    starts = [[0.0], [1.0]] if method.public_start else [[]]
    return [
        candidate(engine.design, name, engine.problem, engine.scales, np.array([*point, *start]))
        for start in starts
        for point in product(steps, repeat=count)
    ]
