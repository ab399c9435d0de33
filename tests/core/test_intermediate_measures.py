"""Test which iterations and measures a cell records for each setting."""

import copy

import polars as pl
import pytest

from private_consensus.reproduction.results.cells import run_cell

INTERNAL = ["internal", "normalised_error"]
CONSENSUS = ["consensus", "normalised_error"]


def setting(epsilon: float) -> dict:
    return {
        "columns": {"epsilon": epsilon},
        "variant": "main",
        "interpretation": "resolved",
        "problem": {"name": "mean_estimation", "dim": 2, "records": 3, "box": 5.0},
        "network": {"name": "ring", "agents": 4, "weights": "metropolis"},
        "budget": {"epsilon": epsilon, "delta": 1e-4},
        "horizon": 5,
        "algorithm": {},
    }


@pytest.fixture
def cell() -> dict:
    groups = dict.fromkeys(("data", "noise", "sampling", "graph"), "together")
    return {
        "experiment": "mine", "algorithm": "gradient_descent", "seed": 7, "runs": 3,
        "runs_per_batch": 2, "measures": [CONSENSUS, INTERNAL], "iterations": [1, 2],
        "groups": groups, "settings": [setting(1.0), setting(5.0)],
    }  # fmt: skip


def test_a_setting_without_intermediate_measurements_records_its_last_iteration(cell):
    """Measurements are unchanged, and earlier iterations are not recorded."""
    restricted = copy.deepcopy(cell)
    restricted["settings"][0]["intermediate"] = False
    all_runs, some_runs = (run_cell(config, {})[0] for config in (cell, restricted))
    assert some_runs.equals(all_runs.filter((pl.col("t") == 5) | (pl.col("epsilon") == 5.0)))
    assert 0 < some_runs.height < all_runs.height
