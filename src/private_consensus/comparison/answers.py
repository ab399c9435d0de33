"""Conclusions of the comparison, computed from its table, as JSON for the page.

They are ``headline`` and ``advice``; the mean ``ranks`` by observer and tuning, with and without
the cells whose budget is too small; ``learned``, the loss of the best private method; by problem
the ``cells`` with the best methods, their differences and intervals; the ``budgets`` of goals;
the ``gains`` of tuning; ``borders``, the positions of tuned parameters in their ranges;
``tuning_check``, the comparison with a fine grid; and, separately, methods without a proof.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from private_consensus.common.fields import INFINITE
from private_consensus.common.grouping import grouped

from .headline import ahead_of_private, local_baselines, sentences
from .ranks import Ranking, rank
from .schema import ANYONE, CELL, OBSERVERS, PRIMARY, TRANSFERRED, TUNINGS
from .statistics import (
    CENTRAL,
    COSTS,
    LOCAL,
    UNDEFINED,
    budget_needed,
    closed_fractions,
    front,
    methods_by_mean,
    tuning_ratio,
)
from .tables import (
    Cube,
    base_cells,
    baselines_of,
    compared,
    cube,
    learnable_by_transfer,
    learnable_cells,
    remaining,
    rows_of,
)

LOSS = "excess_loss_mean"
STRONGEST = OBSERVERS[0]
REPEATED = (
    "delta", "relation", "runs", "trials", "public_records", "records", "epsilons", "axes",
    "titles", "methods",
)  # fmt: skip
"""Keys of the design that the answers repeat."""
OTHER_MEASURES = ("excess_loss_worst", "accuracy_mean", "consensus_error")
"""Further measures of a cell, next to the loss."""
METHOD_COLUMNS = (
    "method", "mean", "low", "high", "behind_low", "may_be_best", "share", "share_low",
    "share_high", *OTHER_MEASURES, "front",
)  # fmt: skip
"""Columns of a method in a cell; ``front`` has one bit per cost on whose front the method is."""
UNPROVEN = ("method", "mean", "epsilon_lower", "epsilon_accountant")
BORDER = 0.05
"""Distance from an end, as a fraction of a range, within which a parameter is at the border."""

Row = list[float | int | None]


def answers(
    table: pl.DataFrame, design: Mapping[str, Any], advice: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Compute all conclusions of the comparison.

    Parameters
    ----------
    table : DataFrame
        Results with the columns of :mod:`.schema`.
    design : mapping
        Content of ``cells.json``.
    advice : sequence of mappings
        Rows of :func:`.advice.judged`.

    Returns
    -------
    dict
        Values that JSON can represent.
    """
    names = [method["name"] for method in design["methods"]]
    problems = design["titles"]["problem"]
    base = base_cells(design["cells"])
    observers = set(table["observer"].unique()) - {"none", ANYONE}
    # A guarantee against the eavesdropper also holds against every weaker observer.
    tables = {
        name: compared(table, name, () if name == STRONGEST else [LOCAL])
        for name in OBSERVERS
        if name in observers
    }
    losses = {
        name: {tuning: cube(rows, LOSS, tuning) for tuning in TUNINGS}
        for name, rows in tables.items()
    }
    strongest = losses.get(STRONGEST, dict.fromkeys(TUNINGS, cube(table.clear(), LOSS)))
    free = baselines_of(table)
    outcomes = {
        name: {tuning: learnable_cells(by_cell, free) for tuning, by_cell in by_tuning.items()}
        for name, by_tuning in losses.items()
    }
    rankings = {
        tuning: _over_problems(remaining(strongest[tuning], by_cell))
        for tuning, by_cell in outcomes.get(STRONGEST, {}).items()
    }
    primary = outcomes.get(STRONGEST, {}).get(PRIMARY, {})
    local = local_baselines(table, design["cells"], primary)
    transferred = learnable_by_transfer(compared(table, STRONGEST), LOSS)
    all_primary = cube(table, LOSS)
    cells = _cells(table, tables, losses, outcomes, names)
    return {
        **{key: design[key] for key in REPEATED},
        "absent": _absent(design["absent"]),
        "headline": [
            *ahead_of_private(strongest[PRIMARY], free, design),
            *sentences(rankings, primary, transferred, local, design),
        ],
        "primary": PRIMARY,
        "baselines": free,
        "too_small": {
            name: {tuning: _counts(by_cell) for tuning, by_cell in by_tuning.items()}
            for name, by_tuning in outcomes.items()
        },
        "learned": _learned(table, strongest, design, base, free),
        "borders": _borders(design.get("borders", [])),
        "tuning_check": list(design.get("tuning_check", [])),
        "advice": list(advice),
        "observers": list(tables),
        "place": METHOD_COLUMNS,
        "unproven": UNPROVEN,
        "costs": [*COSTS, "seconds"],
        "ranks": {
            name: {
                tuning: _ranks(losses[name][tuning], problems, outcomes[name][tuning])
                for tuning in TUNINGS
            }
            for name in tables
        },
        "problems": {
            problem: [entry for entry in cells if entry["cell"][0] == problem]
            for problem in problems
        },
        "budgets": {
            problem: _budgets(
                all_primary, strongest[PRIMARY], design["epsilons"],
                {cell for cell in base if cell[0] == problem},
            )
            for problem in problems
        },
        "gains": {name: _gains(by_tuning, base) for name, by_tuning in losses.items()},
    }  # fmt: skip


def _ranks(losses: Cube, problems: Iterable[str], outcomes: Mapping[tuple, Any]) -> dict[str, Any]:
    """Return mean ranks over the cells that remain, over all cells, and over each problem's."""
    judged = remaining(losses, outcomes)
    cubes = {"remaining": judged, "all": losses} | {
        problem: judged.part([i for i, cell in enumerate(judged.cells) if cell[0] == problem])
        for problem in problems
    }
    return {key: _ranking(_over_problems(selection)) for key, selection in cubes.items()}


def _over_problems(losses: Cube) -> Ranking:
    return rank(losses.methods, losses.means, [cell[0] for cell in losses.cells])


def _ranking(ranking: Ranking) -> dict[str, Any]:
    return {
        "methods": ranking.methods,
        **{
            key: [_short(value) for value in getattr(ranking, key)]
            for key in ("mean_ranks", "low", "high")
        },
        "problems": ranking.problems,
        "cells": ranking.cells,
        "of": ranking.of,
        "p": _short(ranking.p),
        "indistinguishable": ranking.indistinguishable() if len(ranking.problems) > 1 else [],
        "left_out": ranking.left_out,
        "left_out_lower": ranking.left_out_lower,
    }


def _counts(outcomes: Mapping[tuple, bool | None]) -> dict[str, int]:
    """Return the numbers of cells, of judged cells, and of cells with too small a budget."""
    values = list(outcomes.values())
    judged = sum(value is not None for value in values)
    return {"cells": len(values), "judged": judged, "too_small": values.count(False)}


def _learned(
    table: pl.DataFrame,
    ranked: Mapping[str, Cube],
    design: Mapping[str, Any],
    base: Iterable[tuple],
    free: Sequence[str],
) -> list[dict[str, Any]]:
    """Return, for each problem and tuning, what the best private method attains.

    The base cell with the largest budget is used. ``fraction`` is the decrease of the loss from the
    model without data, relative to the decrease without privacy.
    """
    largest = max(design["epsilons"])
    data_free = {
        method["name"] for method in design["methods"] if method.get("baseline") == "data_free"
    }
    not_private = table.filter(pl.col("observer") == "none")["method"].unique()
    rows = []
    for tuning in TUNINGS:
        losses, all_losses = ranked[tuning], cube(table, LOSS, tuning)
        for i, cell in enumerate(losses.cells):
            if cell not in base or cell[-1] != largest:
                continue
            means = {name: float(runs.mean()) for name, runs in losses.of_cell(i).items()}
            all_of_cell = all_losses.of_cell(all_losses.cells.index(cell))
            private = {name: value for name, value in means.items() if name not in free}
            start = [means[name] for name in data_free if name in means]
            end = [all_of_cell[name].mean() for name in not_private if name in all_of_cell]
            if not (private and start and end):
                continue
            best = min(private, key=private.__getitem__)
            gap = start[0] - min(end)
            baseline = min((means[name], name) for name in free if name in means)
            rows.append({
                "problem": cell[0], "tuning": tuning, "epsilon": largest, "method": best,
                "loss": _short(private[best]), "data_free": _short(start[0]),
                "baseline": _short(baseline[0]), "baseline_method": baseline[1],
                "without_privacy": _short(float(min(end))),
                "fraction": _short((start[0] - private[best]) / gap if gap > 0 else math.nan),
            })  # fmt: skip
    return rows


def _borders(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Count, per method and parameter, the searches that end at a border of the range."""
    groups = grouped(rows, lambda row: (row["method"], row["parameter"]))
    counted = []
    for (method, parameter), group in groups.items():
        low = [row for row in group if row["position"] < BORDER]
        high = [row for row in group if row["position"] > 1 - BORDER]
        counted.append({
            "method": method, "parameter": parameter, "searches": len(group),
            "low": len(low), "high": len(high),
            "natural": sorted({row["natural"] for row in low + high if row["natural"]}),
        })  # fmt: skip
    return counted


def _cells(
    table: pl.DataFrame,
    tables: Mapping[str, pl.DataFrame],
    losses: Mapping[str, Mapping[str, Cube]],
    outcomes: Mapping[str, Mapping[str, Mapping[tuple, Any]]],
    names: Sequence[str],
) -> list[dict[str, Any]]:
    """Return the cells with the ranked methods, by tuning and observer."""
    by_cell: defaultdict[tuple, dict[str, Any]] = defaultdict(
        lambda: {tuning: {} for tuning in TUNINGS}
    )
    for tuning in TUNINGS:
        ends = _ends(table, tuning)
        for observer, ranked in tables.items():
            places = _places(ranked, losses[observer][tuning], tuning, ends, names)
            for cell, rows in places.items():
                by_cell[cell][tuning][observer] = rows
                learnable = by_cell[cell][tuning].setdefault("learnable", {})
                learnable[observer] = outcomes[observer][tuning].get(cell)
        for key, by_cell_of in (("unproven", _unproven), ("costs", _costs)):
            for cell, rows in by_cell_of(table, tuning, names).items():
                by_cell[cell][tuning][key] = rows
    return [
        {"cell": list(cell), **{tuning: rows for tuning, rows in by_tuning.items() if rows}}
        for cell, by_tuning in sorted(by_cell.items())
    ]


def _ends(table: pl.DataFrame, tuning: str) -> dict[tuple, dict[str, np.ndarray]]:
    """Return the runs of local training and of central noise in each cell."""
    losses = cube(table.filter(pl.col("method").is_in([LOCAL, CENTRAL])), LOSS, tuning)
    return {cell: losses.of_cell(i) for i, cell in enumerate(losses.cells)}


def _places(
    table: pl.DataFrame,
    losses: Cube,
    tuning: str,
    ends: Mapping[tuple, Any],
    names: Sequence[str],
) -> dict[tuple, list[Row]]:
    """Return the ranked methods of each cell, best first."""
    other_means, costs = (
        [_means(table, measure, tuning) for measure in measures]
        for measures in (OTHER_MEASURES, COSTS)
    )
    rows_by_cell = {}
    for i, cell in enumerate(losses.cells):
        runs = losses.of_cell(i)
        fronts = _fronts(runs, cell, costs)
        fractions = _fractions(runs, ends.get(cell, {}))
        rows_by_cell[cell] = [
            [
                names.index(standing.method),
                *map(_short, (standing.mean, standing.low, standing.high, standing.behind_low)),
                int(standing.may_be_best),
                *map(_short, fractions[standing.method]),
                *(
                    _short(abs(measure.get((cell, standing.method), np.nan)))
                    for measure in other_means
                ),
                fronts[standing.method],
            ]
            for standing in methods_by_mean(runs)
        ]
    return rows_by_cell


def _means(table: pl.DataFrame, measure: str, tuning: str) -> dict[tuple, float]:
    means_cube = cube(table, measure, tuning)
    return {
        (cell, method): float(value)
        for cell, row in zip(means_cube.cells, means_cube.means, strict=True)
        for method, value in zip(means_cube.methods, row, strict=True)
    }


def _fractions(runs: Mapping[str, np.ndarray], ends: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the fraction of the gap that each method closes, in common runs."""
    if not runs or not {LOCAL, CENTRAL} <= ends.keys():
        return dict.fromkeys(runs, UNDEFINED)
    series = [*runs.values(), ends[LOCAL], ends[CENTRAL]]
    common = min(map(len, series))
    *methods, local, central = (values[:common] for values in series)
    return dict(zip(runs, closed_fractions(np.array(methods), local, central), strict=True))


def _fronts(
    runs: Mapping[str, np.ndarray], cell: tuple, costs: Sequence[Mapping]
) -> dict[str, int]:
    """Return, per method, the bits of the costs on whose Pareto front against the loss it is."""
    bits = np.zeros(len(runs), int)
    for bit, cost in enumerate(costs):
        points = [(runs[name].mean(), cost.get((cell, name), np.nan)) for name in runs]
        bits |= front(np.reshape(points, (-1, 2))).astype(int) << bit
    return dict(zip(runs, bits.tolist(), strict=True))


def _unproven(table: pl.DataFrame, tuning: str, names: Sequence[str]) -> dict[tuple, list[Row]]:
    """Return, for each cell, the methods without a proof and the methods that are not private.

    Methods without a proof have bounds on epsilon.
    """
    rows = rows_of(table, LOSS, tuning).filter(~pl.col("proven") | (pl.col("observer") == "none"))
    means = rows.group_by([*CELL, "method"], maintain_order=True).agg(
        pl.col("value").mean(), pl.col("epsilon_lower").max(), pl.col("epsilon_accountant").max()
    )
    rows_by_cell = defaultdict(list)
    for *cell, method, mean, lower, upper in means.iter_rows():
        rows_by_cell[tuple(cell)].append([names.index(method), *map(_short, (mean, lower, upper))])
    return {cell: sorted(rows, key=lambda row: row[0]) for cell, rows in rows_by_cell.items()}


def _costs(table: pl.DataFrame, tuning: str, names: Sequence[str]) -> dict[tuple, list[Row]]:
    """Return the costs of each method per cell, by :data:`.statistics.COSTS`, and its seconds."""
    rows_by_cell = defaultdict(list)
    means = [_means(table, measure, tuning) for measure in (*COSTS, "seconds")]
    for cell, method in means[0]:
        values = [_short(measure.get((cell, method), np.nan)) for measure in means]
        if values[0] is not None:
            rows_by_cell[cell].append([names.index(method), *values])
    return rows_by_cell


def _budgets(
    losses: Cube, ranked: Cube, epsilons: Sequence[float], base: Iterable[tuple]
) -> list[dict[str, Any]]:
    """Return, for each goal, the budgets that methods need in some base cells.

    The goals are the losses of local training and of central noise at the middle budget.
    """
    ends, curves = _base_curves(losses, base), _base_curves(ranked, base)
    middle = sorted(epsilons)[len(epsilons) // 2]
    goals = []
    for end in (LOCAL, CENTRAL):
        values = ends[end].get(middle) if end in ends else None
        if values is None or not np.isfinite(values).all():
            continue
        goal = float(values.mean())
        needed = {
            method: [
                _short(bound)
                for bound in budget_needed(
                    sorted(curve), np.array([curve[epsilon] for epsilon in sorted(curve)]), goal
                )
            ]
            for method, curve in curves.items()
        }
        goals.append({"end": end, "epsilon": middle, "goal": _short(goal), "needed": needed})
    return goals


def _base_curves(losses: Cube, base: Iterable[tuple]) -> dict[str, dict[float, np.ndarray]]:
    """Return the runs in the base cells, by method and epsilon."""
    curves: defaultdict[str, dict[float, np.ndarray]] = defaultdict(dict)
    for i, cell in enumerate(losses.cells):
        if cell in base:
            for method, runs in losses.of_cell(i).items():
                curves[method][cell[-1]] = runs
    return curves


def _gains(losses: Mapping[str, Cube], base: Iterable[tuple]) -> dict[str, dict[str, Row]]:
    """Return the loss of each method relative to transferred parameters, per kind of tuning.

    The base cells are used in which both kinds of tuning have all runs.
    """
    reference = losses[TRANSFERRED]
    gains_by_method: defaultdict[str, dict[str, Row]] = defaultdict(dict)
    for tuning in TUNINGS:
        tuned = losses[tuning]
        cells = [cell for cell in tuned.cells if cell in base and cell in reference.cells]
        common = [name for name in tuned.methods if name in reference.methods]
        runs = min(tuned.values.shape[-1], reference.values.shape[-1])
        for method in common if tuning != TRANSFERRED and cells else ():
            pairs = np.array([
                [side.runs(cell, method)[:runs] for cell in cells]
                for side in (tuned, reference)
            ])  # fmt: skip
            complete = ~np.isnan(pairs).any((0, 2))
            if complete.any():
                ratio, count = tuning_ratio(*pairs[:, complete])
                gains_by_method[method][tuning] = [*map(_short, ratio), count]
    return gains_by_method


def _absent(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """List the methods that are not entered, per reason, with common attributes of the cells."""
    groups = grouped(rows, lambda row: (row["method"], row["because"]))
    absences = []
    for (method, because), group in groups.items():
        keys = [key for key in group[0] if key not in ("method", "because")]
        values = {key: {row[key] for row in group if key in row} for key in keys}
        # Attributes equal to 0, as in the base cell, are omitted.
        common = {
            key: value
            for key, (value, *further_values) in values.items()
            if value != 0 and not further_values
        }
        absences.append(
            {"method": method, "because": because, "where": common, "times": len(group)}
        )
    return absences


def _short(value: float) -> float | int | None:
    """Round to three significant digits.

    NaN becomes None, and infinity becomes :data:`INFINITE`, since JSON represents neither.
    """
    if math.isnan(value):
        return None
    if math.isinf(value):
        return INFINITE if value > 0 else -INFINITE
    rounded = float(f"{value:.3g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e6 else rounded
