"""Test tuning: separate runs, medians, and runs that diverge."""

import numpy as np
import polars as pl
import pytest

from private_consensus.reproduction.results.cells import with_tuned
from private_consensus.reproduction.results.numbers import QUARTILES, curve_points

TUNED = {"experiment": "grid", "variant": "v", "quantity": "released", "metric": "error",
         "criterion": "last", "axes": {"rho": "algorithm.rho"}}  # fmt: skip


def grid():
    """Return a tuning grid with different best values of rho for different criteria.

    The error at the last iteration is smallest for rho = 2. Its mean over the iterations is
    smallest for rho = 1.
    At epsilon = 9, only rho = 3 has finite results in all runs.
    """
    errors = {1.0: ((1.0, 1.0), 1.0), 2.0: ((0.1, 0.5), 5.0), 3.0: ((9.0, 9.0), 9.0)}
    rows = [
        {"experiment": "grid", "variant": "v", "quantity": "released", "metric": metric,
         "epsilon": epsilon, "rho": rho, "t": t, "run": run,
         "value": np.inf if epsilon == 9.0 and rho < 3 and run == 0 else value}
        for epsilon in (0.5, 9.0) for rho, (values, mean) in errors.items()
        for metric, t, value in [("error", 1, values[0]), ("error", 2, values[1]),
                                 ("mean_error", 2, mean)]
        for run in range(3)
    ]  # fmt: skip
    return pl.DataFrame(rows)


def setting(epsilon=0.5, **changes):
    return {"columns": {"epsilon": epsilon}, "algorithm": {"c": 1}, "tuned": {**TUNED, **changes}}


@pytest.mark.parametrize(
    ("spec", "rho"),
    [(setting(), 2.0), (setting(criterion="mean"), 1.0), (setting(epsilon=9.0), 3.0)],
)
def test_tuning_selects_the_grid_point_with_the_smallest_mean_error(spec, rho):
    tuned_spec = with_tuned(spec, grid())
    assert tuned_spec["algorithm"] == {"c": 1, "rho": rho}
    assert spec["algorithm"] == {"c": 1}
    assert tuned_spec["tuned"] == spec["tuned"]  # the privacy row lists this data use


def points(values, statistic="mean", **changes):
    runs = pl.DataFrame({
        "experiment": "e", "algorithm": "a", "variant": "v", "interpretation": "resolved",
        "quantity": "q", "metric": "m", "t": 1, "x": 1.0, "run": range(len(values)),
        "value": values,
    })  # fmt: skip
    curve = {"method": "a", "variant": "v", "style": "v", "interpretation": "resolved",
             "measure": "q.m", "where": {}, "by": None, "label": "", "low": None,
             **changes}  # fmt: skip
    return curve_points(runs, pl.DataFrame(), curve, "x", statistic).row(0, named=True)


def test_median_curves_have_quartiles_as_intervals():
    point = points([1.0, 2.0, 3.0, 4.0, 100.0], statistic="median")
    assert (point["low"], point["y"], point["high"]) == (2.0, 3.0, 4.0)
    assert point["interval"] == QUARTILES and "diverged" not in point


def test_runs_without_a_finite_value_are_counted_and_make_the_mean_infinite():
    values = [1.0, 2.0, np.inf, 3.0, 4.0]
    mean, median = points(values), points(values, statistic="median")
    assert mean["y"] == mean["low"] == mean["high"] == np.inf
    assert median["y"] == 3.0
    assert mean["diverged"] == median["diverged"] == 1


def test_only_tuned_cells_depend_on_their_tuning_grid(plan):
    assert plan.tunings("gratton_fig2", "dp_admm") == [("gratton_tuning", "dp_admm")]
    assert plan.tunings("gratton_fig2", "d_zoa") == []
    assert plan.tunings("gratton_tuning", "dp_admm") == []
    tuned = [s for s in plan.cell("gratton_fig2", "dp_admm")["settings"] if "tuned" in s]
    assert tuned and {s["tuned"]["experiment"] for s in tuned} == {"gratton_tuning"}


def test_tuning_and_figures_use_different_data_and_noise_streams(plan):
    """The tuning grid has separate streams for data and noise."""
    figure_cell, grid_cell = (
        plan.cell(name, "dp_admm") for name in ("gratton_fig2", "gratton_tuning")
    )
    assert figure_cell["groups"]["data"] != grid_cell["groups"]["data"]
    assert figure_cell["groups"]["noise"] != grid_cell["groups"]["noise"]
