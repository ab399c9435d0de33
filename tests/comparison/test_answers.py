"""Test the answers of the comparison: best methods per cell, margins and significance."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from handmade import BASE, rows, table

from private_consensus.comparison.answers import (
    INFINITE,
    LOSS,
    METHOD_COLUMNS,
    STRONGEST,
    UNPROVEN,
    answers,
)
from private_consensus.comparison.ranks import rank
from private_consensus.comparison.schema import CELL
from private_consensus.comparison.statistics import tuning_ratio
from private_consensus.comparison.tables import (
    baselines_of,
    compared,
    cube,
    learnable_by_transfer,
    learnable_cells,
    remaining,
)
from private_consensus.core.randomness import generator
from private_consensus.reproduction.experiments.results import rows_of

ROOT = Path(__file__).parents[2]

SHARED = generator(1, "shared").normal(size=10)
OWN = generator(2, "own").normal(size=(4, 10)) / 50
METHODS = ["local_training", "secure_aggregation", "talks", "hopes", "no_privacy"]


def rows_at(epsilon, scale):
    """Return results with loss 8 for local training, 4 with central noise and 5 by messages."""
    levels = {"local_training": 8.0, "talks": 5.0}
    at = {"epsilon": epsilon}
    row_lists = [
        *(rows(name, scale * (level + SHARED / 5 + OWN[i]), **at)
          for i, (name, level) in enumerate(levels.items())),
        rows("secure_aggregation", scale * (4 + SHARED / 5 + OWN[2]), observer="sums", **at),
        rows("hopes", scale * (1 + OWN[3]), proven=False, epsilon_lower=2 * epsilon,
             epsilon_accountant=np.inf, **at),
        rows("no_privacy", [0.0] * 10, observer="none", **at),
    ]  # fmt: skip
    for cost, values in {
        "messages": (0, 90),
        "bits": (0, 900),
        "gradient_evaluations": (7, 5),
    }.items():
        row_lists += [
            rows(name, [value] * 10, measure=cost, **at)
            for name, value in zip(levels, values, strict=True)
        ]
    return [row for method_rows in row_lists for row in method_rows]


DESIGN = {
    "delta": 1e-5, "relation": "replace one record", "runs": 10, "trials": 8,
    "public_records": 0, "records": {},
    "epsilons": [0.3, 1.0, 3.0], "axes": {},
    "titles": {"problem": {"mean_estimation": "means"}, "graph": {}, "partition": {}},
    "methods": [{"name": name, "title": name, "observer": "", "because": ""} for name in METHODS],
    "cells": [{**BASE, "epsilon": e, "axis": "base"} for e in (0.3, 1.0, 3.0)], "absent": [],
}  # fmt: skip


@pytest.fixture(scope="module")
def comparison_answers():
    results = table(rows_at(0.3, 3.0), rows_at(1.0, 1.0), rows_at(3.0, 0.3))
    return json.loads(json.dumps(answers(results, DESIGN, []), allow_nan=False))


def methods_of_cell(comparison_answers, observer, epsilon=1.0):
    (cell,) = [
        c for c in comparison_answers["problems"]["mean_estimation"] if c["cell"][-1] == epsilon
    ]
    method_records = [
        dict(zip(METHOD_COLUMNS, row, strict=True)) for row in cell["tuned_paid"][observer]
    ]
    return {METHODS[row["method"]]: row for row in method_records}


def test_a_cell_states_the_best_method_margins_and_intervals(comparison_answers):
    cell = methods_of_cell(comparison_answers, "eavesdropper")
    assert list(cell) == ["talks", "local_training"]
    assert [row["may_be_best"] for row in cell.values()] == [1, 0]
    assert cell["local_training"]["behind_low"] == pytest.approx(3.0, abs=0.1)
    talks = cell["talks"]
    assert talks["low"] < talks["mean"] < talks["high"]
    # The method closes three quarters of the gap of 4 to central noise.
    assert talks["share_low"] < talks["share"] < talks["share_high"]
    assert talks["share"] == pytest.approx(0.75, abs=0.02)
    assert cell["local_training"]["share"] == 0.0


def test_pareto_fronts_are_encoded_as_bits_in_the_order_of_costs(comparison_answers):
    cell = methods_of_cell(comparison_answers, "eavesdropper")
    # Local training has fewer messages and bits; the other method fewer gradients and less loss.
    assert (cell["talks"]["front"], cell["local_training"]["front"]) == (0b111, 0b011)


def test_local_training_is_the_baseline_for_weaker_observers(comparison_answers):
    assert list(methods_of_cell(comparison_answers, "sums")) == [
        "secure_aggregation",
        "local_training",
    ]
    assert comparison_answers["observers"] == ["eavesdropper", "sums"]


def test_unproven_methods_are_listed_separately_with_their_epsilon_bounds(comparison_answers):
    (cell,) = [c for c in comparison_answers["problems"]["mean_estimation"] if c["cell"][-1] == 1.0]
    unproven_records = [
        dict(zip(UNPROVEN, row, strict=True)) for row in cell["tuned_paid"]["unproven"]
    ]
    assert [METHODS[row["method"]] for row in unproven_records] == ["hopes", "no_privacy"]
    assert (unproven_records[0]["epsilon_lower"], unproven_records[0]["epsilon_accountant"]) == (
        2.0,
        INFINITE,
    )
    assert (
        "hopes" not in comparison_answers["ranks"]["eavesdropper"]["tuned_paid"]["all"]["methods"]
    )


def test_the_budget_needed_for_a_goal_is_interpolated(comparison_answers):
    alone, central = comparison_answers["budgets"]["mean_estimation"]
    assert (alone["end"], central["end"]) == ("local_training", "secure_aggregation")
    # The goal, 8, is between the losses 15 and 5 of the method that communicates.
    share = (15 - 8) / (15 - 5)
    value, low, high = alone["needed"]["talks"]
    assert low < value < high
    assert np.log(value / 0.3) == pytest.approx(share * np.log(1 / 0.3), rel=0.1)
    assert alone["needed"]["local_training"][0] == pytest.approx(1.0)


def test_answers_have_the_cells_of_the_design_and_consistent_ranks(comparison_answers):
    cells = comparison_answers["problems"]["mean_estimation"]
    assert [len(cell["cell"]) for cell in cells] == [len(CELL)] * 3
    rank_tables = comparison_answers["ranks"]["eavesdropper"]["tuned_paid"]
    assert rank_tables["all"] == rank_tables["mean_estimation"]
    assert (rank_tables["all"]["methods"], rank_tables["all"]["mean_ranks"]) == (
        ["talks", "local_training"],
        [1, 2],
    )
    assert (
        "talks has the lowest mean rank: 1.0 of 2, in 3 cells of 1 problem."
        in comparison_answers["headline"][0]
    )
    assert "better than local training in 3 of 3 base cells" in comparison_answers["headline"][-1]


def test_the_readme_states_the_published_comparison():
    """Compute the numbers from the published runs."""
    folder = ROOT / "results" / "reference" / "comparison"
    runs = rows_of(folder / "runs.parquet").rename({LOSS: "value"})
    ranked = compared(runs.with_columns(measure=pl.lit(LOSS)), STRONGEST)
    free, losses = baselines_of(ranked), cube(ranked, LOSS)
    outcomes, transferred = learnable_cells(losses, free), learnable_by_transfer(ranked, LOSS)
    small = [cell for cell, outcome in outcomes.items() if outcome is False]
    rest = remaining(losses, outcomes)
    ranking = rank(rest.methods, rest.means, [cell[0] for cell in rest.cells])
    lasso = sum(cell[0] == "lasso" for cell in rest.cells)
    assert "lasso" not in ranking.problems and lasso == ranking.of - ranking.cells
    private = [name for name in ranking.methods if name not in free]
    different = set(ranking.methods[1:]) - set(ranking.indistinguishable())
    assert ranking.methods[0] == "muffliato_gd" and different == {"data_free"}
    assert set(free) & set(ranking.methods) == {"data_free", "public_minimiser"}
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    trials = json.loads((folder / "cells.json").read_text())["trials"]
    for sentence in (
        f"in {len(outcomes)} cells.",
        f"If {trials} trials of the tuning share the budget, no private method is better than all "
        f"of them in {len(small)} cells.",
        f"better in {sum(map(bool, transferred.values()))} cells, including "
        f"{sum(transferred[cell] is True for cell in small)} of the {len(small)}.",
        f"In {ranking.cells} of the other {ranking.of} cells, the same {len(private)} private "
        "methods and two baselines",
        f"the other {lasso} cells are of the lasso.",
        f"Of these {len(ranking.methods)}, Muffliato-GD has the lowest mean rank "
        f"({ranking.mean_ranks[0]:.1f}).",
        f"all {ranking.cells} cells has a lower loss in {ranking.left_out_lower} of the "
        f"{ranking.of} cells",
    ):
        assert sentence in text


def test_exclusions_with_equal_reasons_are_merged_with_their_common_columns():
    at = [{**BASE, "missing": 0.2, "graph": graph, "epsilon": 1.0} for graph in ("ring", "grid")]
    absent = [{"method": "hopes", "because": "It waits.", **cell} for cell in at]
    divergence = {"method": "hopes", "because": "It diverges.", "problem": "lasso"}
    design = {**DESIGN, "absent": [*absent, divergence]}
    waits, diverges = answers(table(rows_at(1.0, 1.0)), design, [])["absent"]
    assert waits["times"] == 2 and "graph" not in waits["where"]
    assert waits["where"]["missing"] == 0.2 and "links" not in waits["where"]
    assert diverges == {
        "method": "hopes", "because": "It diverges.", "where": {"problem": "lasso"}, "times": 1
    }  # fmt: skip


def test_the_gain_of_tuning_is_the_geometric_mean_of_ratios():
    default = np.array([[1.0] * 8, [10.0] * 8]) * np.exp(SHARED[:8] / 10)
    exact, cells = tuning_ratio(default * [[0.5], [0.125]], default)
    assert exact == pytest.approx((0.25,) * 3) and cells == 2
    half, cells = tuning_ratio(np.vstack([default[0] / 2, default[1] - 100]), default)
    assert (half.value, cells) == (pytest.approx(0.5), 1)
    assert tuning_ratio(-default, default)[1] == 0
