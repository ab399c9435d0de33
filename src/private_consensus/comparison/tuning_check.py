"""Check of tuning: loss after the search, and the smallest loss on a fine grid, on fresh runs.

The check uses the base cell of one problem, the smallest and the largest budget, and runs whose random streams no trial has used. The
grid has the budget of the uncounted search. The smallest mean loss on the grid is chosen on the
runs by which it is measured, and so is too small rather than too large.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from private_consensus.common.errors import InvalidInput
from private_consensus.common.multiplicity import ALPHA

from .leaders import interval
from .schema import TUNINGS
from .tuning import candidate, default_units

if TYPE_CHECKING:
    from .engine import Engine

TUNED = TUNINGS[1]
FRESH_SEED_OFFSET = 1
"""Difference of the seed of the fresh runs from that of the trials."""
GRID_POINTS = {1: 25, 2: 7, 3: 4}
"""Points per parameter of the grid, by the number of parameters."""
ALLOWED = 1.2
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
    return [row for name in names for row in _of_method(engine, name)]


def _of_method(engine: Engine, name: str) -> Iterator[dict[str, Any]]:
    from .engine import Setting

    design = engine.design
    world = engine.world(engine.base, design.tuning.seed + FRESH_SEED_OFFSET, design.runs)
    points = grid(engine, name)
    for epsilon in sorted({design.epsilons[0], design.epsilons[-1]}):
        chosen = engine.chosen.get((name, epsilon, TUNED))
        if chosen is None:
            continue
        settings = []
        for configured in [chosen, *points]:
            try:
                calibrated = engine.calibrated(name, configured, epsilon, 1, world)
            except InvalidInput:
                continue
            horizon, start = configured.horizon, configured.from_public
            settings.append(Setting(epsilon, TUNED, calibrated, horizon, start))
        measured = engine.measured(name, settings, world)
        losses = np.array([values["excess_loss_mean"] for values in measured])
        tuned, best = losses[0], losses[1:][losses[1:].mean(-1).argmin()]
        _, low, high = interval(tuned - best, ALPHA)
        ratio = float(tuned.mean() / best.mean())
        yield {
            "method": name, "problem": engine.problem, "epsilon": epsilon,
            "tuned": float(tuned.mean()), "grid": float(best.mean()), "ratio": ratio,
            "low": float(low), "high": float(high), "points": len(losses) - 1,
            "passed": bool(ratio <= ALLOWED or low <= 0),
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
    list of Candidate
    """
    method = engine.design.methods[name]
    units = default_units(engine.design, name, engine.problem, engine.scales)
    count = len(units) - method.public_start
    steps = np.linspace(0.0, 1.0, GRID_POINTS[count])
    starts = [[0.0], [1.0]] if method.public_start else [[]]
    return [
        candidate(
            engine.design, name, engine.problem, engine.scales, np.array([*point, *start])
        )
        for start in starts
        for point in product(steps, repeat=count)
    ]
