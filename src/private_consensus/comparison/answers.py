"""Conclusions of the comparison, computed from its table, as JSON for the page.

They are ``headline`` and ``advice``; the mean ``ranks`` by observer and tuning, with and without
the cells whose budget is too small; ``learned``, the loss of the best private method; by problem
the ``cells`` with the best methods, their differences and intervals; the ``budgets`` of goals;
the ``gains`` of tuning; ``borders``, the positions of tuned parameters in their ranges;
``tuning_check``, the comparison with a fine grid; and, separately, methods without a proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from private_consensus.common.fields import INFINITE

from .baselines import baselines_of, learnable_cells, remaining
from .gains import gain
from .gap import CENTRAL, LOCAL, closed_by_each
from .goals import budget_needed
from .headline import alone, sentences
from .leaders import places
from .pareto import COSTS, front
from .ranks import Ranking, rank
from .schema import ANYONE, CELL, OBSERVERS, PRIMARY, TRANSFERRED, TUNINGS
from .tables import Cube, Parts, compared, cube

LOSS = "excess_loss_mean"
STRONGEST = OBSERVERS[0]
KEPT = (
    "delta", "relation", "runs", "trials", "public_records", "records", "epsilons", "axes",
    "titles", "methods",
)  # fmt: skip
"""Keys of the design that the answers repeat."""
BESIDE = ("excess_loss_worst", "accuracy_mean", "consensus_error")
"""Further measures of a cell, next to the loss."""
PLACE = (
    "method", "mean", "low", "high", "behind_low", "may_be_best", "share", "share_low",
    "share_high", *BESIDE, "front",
)  # fmt: skip
"""Entries of a row of a cell; ``front`` has one bit per cost on whose front the method is."""
UNPROVEN = ("method", "mean", "epsilon_lower", "epsilon_accountant")

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
    observers = set(table["observer"].unique()) - {"none", ANYONE}
    all_parts = Parts(table)
    # A guarantee against the eavesdropper also holds against every weaker observer.
    tables = {
        name: all_parts.kept(partial(_ranked, observer=name))
        for name in OBSERVERS
        if name in observers
    }
    strongest = tables.get(STRONGEST, Parts(table.clear()))
    free = baselines_of(table)
    outcomes = {
        name: {tuning: learnable_cells(rows.cube(LOSS, tuning), free) for tuning in TUNINGS}
        for name, rows in tables.items()
    }
    rankings = {
        tuning: _over_problems(remaining(strongest.cube(LOSS, tuning), by_cell))
        for tuning, by_cell in outcomes.get(STRONGEST, {}).items()
    }
    primary = outcomes.get(STRONGEST, {}).get(PRIMARY, {})
    local = alone(table, design["cells"], primary)
    titles = {method["name"]: method["title"] for method in design["methods"]}
    return {
        **{key: design[key] for key in KEPT},
        "absent": _absent(design["absent"]),
        "headline": sentences(rankings, primary, local, problems, titles),
        "primary": PRIMARY,
        "baselines": free,
        "too_small": {
            name: {tuning: _counts(by_cell) for tuning, by_cell in by_tuning.items()}
            for name, by_tuning in outcomes.items()
        },
        "learned": _learned(all_parts, strongest, design, free),
        "borders": _borders(design.get("borders", [])),
        "tuning_check": list(design.get("tuning_check", [])),
        "advice": list(advice),
        "observers": list(tables),
        "place": PLACE,
        "unproven": UNPROVEN,
        "costs": [*COSTS, "seconds"],
        "ranks": {
            name: {
                tuning: _ranks(rows, tuning, problems, outcomes[name][tuning]) for tuning in TUNINGS
            }
            for name, rows in tables.items()
        },
        "problems": {
            problem: _problem(problem, all_parts, tables, names, outcomes) for problem in problems
        },
        "budgets": {
            problem: _budgets(all_parts, strongest, problem, design) for problem in problems
        },
        "gains": {name: _gains(observer_parts, design) for name, observer_parts in tables.items()},
    }


def _ranked(rows: pl.DataFrame, observer: str) -> pl.DataFrame:
    return compared(rows, observer, () if observer == STRONGEST else [LOCAL])


def _ranks(
    table: Parts, tuning: str, problems: Iterable[str], outcomes: Mapping[tuple, Any]
) -> dict[str, Any]:
    """Return mean ranks over the cells that remain, over all cells, and over each problem's."""
    losses = table.cube(LOSS, tuning)
    rest = remaining(losses, outcomes)
    parts = {
        problem: [i for i, cell in enumerate(rest.cells) if cell[0] == problem]
        for problem in problems
    }
    return {
        "remaining": _ranking(_over_problems(rest)),
        "all": _ranking(_over_problems(losses)),
        **{
            problem: _ranking(
                _over_problems(Cube([rest.cells[i] for i in rows], rest.methods, rest.values[rows]))
            )
            for problem, rows in parts.items()
        },
    }


def _over_problems(losses: Cube) -> Ranking:
    return rank(losses.methods, losses.means, [cell[0] for cell in losses.cells])


def _ranking(ranking: Ranking) -> dict[str, Any]:
    return {
        "methods": ranking.methods,
        "mean_ranks": [_short(value) for value in ranking.mean_ranks],
        "low": [_short(value) for value in ranking.low],
        "high": [_short(value) for value in ranking.high],
        "problems": ranking.problems,
        "cells": ranking.cells,
        "of": ranking.of,
        "p": _short(ranking.p),
        "indistinguishable": ranking.indistinguishable() if len(ranking.problems) > 1 else [],
        "left_out": ranking.left_out,
    }


def _counts(outcomes: Mapping[tuple, bool | None]) -> dict[str, int]:
    """Return the numbers of cells, of judged cells, and of cells with too small a budget."""
    values = list(outcomes.values())
    judged = sum(value is not None for value in values)
    return {"cells": len(values), "judged": judged, "too_small": values.count(False)}


def _learned(
    table: Parts, ranked: Parts, design: Mapping[str, Any], free: Sequence[str]
) -> list[dict[str, Any]]:
    """Return, for each problem and tuning, what the best private method attains.

    The base cell with the largest budget is used. ``fraction`` is the decrease of the loss from the
    model without data, relative to the decrease without privacy.
    """
    base = {tuple(cell[key] for key in CELL) for cell in design["cells"] if cell["axis"] == "base"}
    largest = max(design["epsilons"])
    without = {
        method["name"] for method in design["methods"] if method.get("baseline") == "data_free"
    }
    rows = []
    for tuning in TUNINGS:
        losses, everything = ranked.cube(LOSS, tuning), cube(table.rows(LOSS, tuning), LOSS, tuning)
        free_of_privacy = set(
            table.rows(LOSS, tuning).filter(pl.col("observer") == "none")["method"].unique()
        )
        for i, cell in enumerate(losses.cells):
            if cell not in base or cell[-1] != largest:
                continue
            means = {name: float(runs.mean()) for name, runs in losses.of_cell(i).items()}
            all_of_cell = everything.of_cell(everything.cells.index(cell))
            private = {name: value for name, value in means.items() if name not in free}
            start = [means[name] for name in without if name in means]
            end = [all_of_cell[name].mean() for name in free_of_privacy if name in all_of_cell]
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


BORDER = 0.05
"""Distance from an end, as a fraction of a range, within which a parameter is at the border."""


def _borders(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Count, per method and parameter, the searches that end at a border of the range."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["method"], row["parameter"]), []).append(row)
    counted = []
    for (method, parameter), group in groups.items():
        ends = {
            "low": [row for row in group if row["position"] < BORDER],
            "high": [row for row in group if row["position"] > 1 - BORDER],
        }
        counted.append({
            "method": method, "parameter": parameter, "searches": len(group),
            **{end: len(found) for end, found in ends.items()},
            "natural": sorted({
                row["natural"] for found in ends.values() for row in found if row["natural"]
            }),
        })  # fmt: skip
    return counted


def _problem(
    problem: str,
    table: Parts,
    tables: Mapping[str, Parts],
    names: Sequence[str],
    outcomes: Mapping[str, Mapping[str, Mapping[tuple, Any]]],
) -> list[dict[str, Any]]:
    """Return the cells of a problem with the places of methods by tuning and observer."""
    of_problem = partial(_of_problem, problem=problem)
    problem_parts, ranked_parts = (
        table.kept(of_problem),
        {name: rows.kept(of_problem) for name, rows in tables.items()},
    )
    by_cell: dict[tuple, dict[str, Any]] = {}
    for tuning in TUNINGS:
        ends = _ends(problem_parts, tuning)
        for observer, ranked in ranked_parts.items():
            for cell, rows in _places(ranked, tuning, ends, names).items():
                by_tuning = by_cell.setdefault(cell, {}).setdefault(tuning, {})
                by_tuning[observer] = rows
                learnt = by_tuning.setdefault("learnable", {})
                learnt[observer] = outcomes[observer][tuning].get(cell)
        for cell, rows in _unproven(problem_parts, tuning, names).items():
            by_cell.setdefault(cell, {}).setdefault(tuning, {})["unproven"] = rows
        for cell, rows in _costs(problem_parts, tuning, names).items():
            by_cell.setdefault(cell, {}).setdefault(tuning, {})["costs"] = rows
    return [{"cell": list(cell), **by_tuning} for cell, by_tuning in sorted(by_cell.items())]


def _of_problem(rows: pl.DataFrame, problem: str) -> pl.DataFrame:
    return rows.filter(pl.col("problem") == problem)


def _ends(table: Parts, tuning: str) -> dict[tuple, dict[str, np.ndarray]]:
    """Return the runs of local training and of central noise in each cell."""
    ends = table.rows(LOSS, tuning).filter(pl.col("method").is_in([LOCAL, CENTRAL]))
    losses = cube(ends, LOSS, tuning)
    return {cell: losses.of_cell(i) for i, cell in enumerate(losses.cells)}


def _places(
    table: Parts, tuning: str, ends: Mapping[tuple, Any], names: Sequence[str]
) -> dict[tuple, list[Row]]:
    """Return the ranked methods of each cell, best first."""
    losses = table.cube(LOSS, tuning)
    beside = [_means(table, measure, tuning) for measure in BESIDE]
    costs = [_means(table, measure, tuning) for measure in COSTS]
    rows_by_cell = {}
    for i, cell in enumerate(losses.cells):
        runs = losses.of_cell(i)
        fronts = _fronts(runs, cell, costs)
        shares = _shares(runs, ends.get(cell, {}))
        rows_by_cell[cell] = [
            [
                names.index(standing.method),
                *map(_short, (standing.mean, standing.low, standing.high, standing.behind_low)),
                int(standing.may_be_best),
                *shares[standing.method],
                *(_short(abs(measure.get((cell, standing.method), np.nan))) for measure in beside),
                fronts.get(standing.method, 0),
            ]
            for standing in places(runs)
        ]
    return rows_by_cell


def _means(table: Parts, measure: str, tuning: str) -> dict[tuple, float]:
    means_cube = table.cube(measure, tuning)
    return {
        (cell, method): float(value)
        for cell, row in zip(means_cube.cells, means_cube.means, strict=True)
        for method, value in zip(means_cube.methods, row, strict=True)
    }


def _shares(
    runs: Mapping[str, np.ndarray], ends: Mapping[str, np.ndarray]
) -> dict[str, list[float | None]]:
    """Return the fraction of the gap that each method closes, in common runs."""
    if not runs or not {LOCAL, CENTRAL} <= ends.keys():
        return {name: [None] * 3 for name in runs}
    values = np.array([*runs.values()])
    common = min(values.shape[1], *(len(ends[name]) for name in (LOCAL, CENTRAL)))
    fractions = closed_by_each(values[:, :common], ends[LOCAL][:common], ends[CENTRAL][:common])
    return {
        name: [_short(value) for value in (share.value, share.low, share.high)]
        for name, share in zip(runs, fractions, strict=True)
    }


def _fronts(
    runs: Mapping[str, np.ndarray], cell: tuple, costs: Sequence[Mapping]
) -> dict[str, int]:
    """Return, per method, the bits of the costs on whose Pareto front against the loss it is."""
    names = list(runs)
    bits_by_method = dict.fromkeys(names, 0)
    for bit, cost in enumerate(costs):
        points = [(runs[name].mean(), cost.get((cell, name), np.nan)) for name in names]
        on = front(np.reshape(points, (-1, 2)))
        bits_by_method = {
            name: bits_by_method[name] | int(on[i]) << bit for i, name in enumerate(names)
        }
    return bits_by_method


def _unproven(table: Parts, tuning: str, names: Sequence[str]) -> dict[tuple, list[Row]]:
    """Return, for each cell, the methods without a proof and the methods that are not private.

    Methods without a proof have bounds on epsilon.
    """
    rows = table.rows(LOSS, tuning).filter(~pl.col("proven") | (pl.col("observer") == "none"))
    means = rows.group_by([*CELL, "method"], maintain_order=True).agg(
        pl.col("value").mean(), pl.col("epsilon_lower").max(), pl.col("epsilon_accountant").max()
    )
    rows_by_cell: dict[tuple, list[Row]] = {}
    for *cell, method, mean, lower, upper in means.iter_rows():
        row = [names.index(method), *map(_short, (mean, lower, upper))]
        rows_by_cell.setdefault(tuple(cell), []).append(row)
    return {cell: sorted(rows, key=lambda row: row[0] or 0) for cell, rows in rows_by_cell.items()}


def _costs(table: Parts, tuning: str, names: Sequence[str]) -> dict[tuple, list[Row]]:
    """Return the costs of each method per cell, by :data:`.pareto.COSTS`, and its seconds."""
    rows_by_cell: dict[tuple, list[Row]] = {}
    means = [_means(table, measure, tuning) for measure in (*COSTS, "seconds")]
    for cell, method in means[0]:
        values = [_short(measure.get((cell, method), np.nan)) for measure in means]
        if values[0] is not None:
            rows_by_cell.setdefault(cell, []).append([names.index(method), *values])
    return rows_by_cell


def _budgets(
    table: Parts, ranked: Parts, problem: str, design: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return, for each goal, the budgets that methods need in the base cells of a problem.

    The goals are the losses of local training and of central noise at the middle budget.
    """
    base = {tuple(c[key] for key in CELL) for c in design["cells"] if c["axis"] == "base"}
    ends, curves = (
        _base_curves(cube(_of_problem(rows.rows(LOSS), problem), LOSS), base)
        for rows in (table, ranked)
    )
    epsilons = sorted(design["epsilons"])
    middle = epsilons[len(epsilons) // 2]
    goals = []
    for end in (LOCAL, CENTRAL):
        values = ends.get(end, {}).get(middle)
        if values is None or not np.isfinite(values).all():
            continue
        goal = float(values.mean())
        needed = {method: _needed(curve, goal) for method, curve in curves.items()}
        goals.append({"end": end, "epsilon": middle, "goal": _short(goal), "needed": needed})
    return goals


def _needed(curve: Mapping[float, np.ndarray], goal: float) -> list[float | None]:
    """Return the budget for a goal with its interval; 0 is at or below the smallest budget."""
    epsilons = sorted(curve)
    budget = budget_needed(epsilons, np.array([curve[epsilon] for epsilon in epsilons]), goal)
    return [_short(end) for end in (budget.value, budget.low, budget.high)]


def _base_curves(losses: Cube, base: Iterable[tuple]) -> dict[str, dict[float, np.ndarray]]:
    """Return the runs in the base cells, by method and epsilon."""
    base, curves = set(base), {}
    for i, cell in enumerate(losses.cells):
        if cell in base:
            for method, runs in losses.of_cell(i).items():
                curves.setdefault(method, {})[cell[-1]] = runs
    return curves


def _gains(table: Parts, design: Mapping[str, Any]) -> dict[str, dict[str, Row]]:
    """Return the loss of each method relative to transferred parameters, per kind of tuning.

    The base cells are used.
    """
    base = {tuple(c[key] for key in CELL) for c in design["cells"] if c["axis"] == "base"}
    cubes = {tuning: table.cube(LOSS, tuning) for tuning in TUNINGS}
    gains_by_method: dict[str, dict[str, Row]] = {}
    for tuning in TUNINGS:
        for method in cubes[tuning].methods if tuning != TRANSFERRED else ():
            both = _both(cubes[tuning], cubes[TRANSFERRED], method, base)
            if both is not None:
                *numbers, cells = gain(*both)
                gains_by_method.setdefault(method, {})[tuning] = [*map(_short, numbers), cells]
    return gains_by_method


def _both(first_cube: Cube, second_cube: Cube, method: str, base: set[tuple]) -> np.ndarray | None:
    """Return runs [2, cells, runs] of a method in base cells that are complete in both cubes."""
    if method not in second_cube.methods:
        return None
    runs = min(first_cube.values.shape[-1], second_cube.values.shape[-1])
    pairs = []
    for i, cell in enumerate(first_cube.cells):
        if cell in base and cell in second_cube.cells:
            first_runs = first_cube.values[i, first_cube.methods.index(method), :runs]
            second_runs = second_cube.values[
                second_cube.cells.index(cell), second_cube.methods.index(method), :runs
            ]
            if not np.isnan([first_runs, second_runs]).any():
                pairs.append([first_runs, second_runs])
    return np.moveaxis(np.array(pairs), 0, 1) if pairs else None


def _absent(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """List the methods that are not entered, per reason, with common attributes of the cells."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["method"], row["because"]), []).append(row)
    absences = []
    for (method, because), group in groups.items():
        keys = [key for key in group[0] if key not in ("method", "because")]
        values = {key: sorted({row[key] for row in group if key in row}) for key in keys}
        where = {key: alike[0] for key, alike in values.items() if len(alike) == 1}
        # Attributes equal to 0, as in the base cell, are omitted.
        stated = {key: value for key, value in where.items() if value != 0}
        absences.append(
            {"method": method, "because": because, "where": stated, "times": len(group)}
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
