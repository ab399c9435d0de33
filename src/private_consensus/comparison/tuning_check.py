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

from private_consensus.common.multiplicity import ALPHA

from .schema import TUNINGS
from .statistics import interval

if TYPE_CHECKING:
    from .engine import ComparisonEntry
    from .tuning import SearchSpace, TuningCandidate

TUNED = TUNINGS[1]
OFFSETS = (1, 2)
"""Differences of the seeds of the two sets of runs from that of the trials."""
GRID_POINTS = {1: 25, 2: 8, 3: 4}
"""Points per parameter of the grid, by the number of parameters."""
MAX_RATIO = 1.2
"""Largest ratio of the loss after tuning to the smallest loss on the grid."""


def checked_tuning(entry: ComparisonEntry) -> Iterator[dict[str, Any]]:
    """Compare the search with a fine grid, for methods that the design names.

    Parameters
    ----------
    entry : ComparisonEntry
        Method on one problem, whose parameters have been chosen.

    Yields
    ------
    dict
        One row per budget: the mean excess losses ``tuned`` and ``grid``, their ``ratio``, the
        interval ``low``, ``high`` of the paired difference, the number of grid points ``points``,
        and ``passed``: the ratio is at most 1.2, or the interval contains 0.
    """
    design, tuning = entry.design, entry.design.tuning
    is_checked = entry.problem == tuning.checked_on and entry.name in tuning.checked
    if not (is_checked and entry.trials):
        return
    selection, evaluation = (
        entry.world(entry.base, tuning.seed + offset, design.runs) for offset in OFFSETS
    )
    points = grid(entry.space)
    for epsilon in sorted({design.epsilons[0], design.epsilons[-1]}):
        if not entry.trials[epsilon, TUNED]:
            continue
        settings, _ = entry.settings([(epsilon, TUNED, point) for point in points], selection)
        losses = [
            values["excess_loss_mean"].mean() for values in entry.measured(settings, selection)
        ]
        candidate = epsilon, TUNED, entry.candidates[epsilon, TUNED]
        (tuned_setting,), _ = entry.settings([candidate], evaluation)
        compared = [tuned_setting, settings[int(np.argmin(losses))]]
        tuned, best = (
            values["excess_loss_mean"] for values in entry.measured(compared, evaluation)
        )
        _, low, high = interval(tuned - best, ALPHA)
        ratio = float(tuned.mean() / best.mean())
        yield {
            "method": entry.name, "problem": entry.problem, "epsilon": epsilon,
            "tuned": float(tuned.mean()), "grid": float(best.mean()), "ratio": ratio,
            "low": float(low), "high": float(high), "points": len(settings),
            "passed": bool(ratio <= MAX_RATIO or low <= 0),
        }  # fmt: skip


def grid(space: SearchSpace) -> list[TuningCandidate]:
    """Return the candidates of a regular grid over the ranges, from each starting point."""
    count = len(space.ranges)
    steps = np.linspace(0.0, 1.0, GRID_POINTS[count])
    starts = [[0.0], [1.0]] if space.method.public_start else [[]]
    return [
        space.candidate(np.array([*point, *start]))
        for start in starts
        for point in product(steps, repeat=count)
    ]
