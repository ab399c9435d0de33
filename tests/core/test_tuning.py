"""Parameters found on runs of their own; medians; runs that left the finite numbers."""

import numpy as np
import polars as pl
import pytest

from private_consensus.errors import InvalidInput
from private_consensus.experiments.cells import with_tuned
from private_consensus.experiments.numbers import QUARTILES, curve_points

TUNED = {"experiment": "grid", "run": "v", "quantity": "released", "metric": "error",
         "criterion": "last", "over": {"rho": "algorithm.rho"}}  # fmt: skip


def grid():
    """rho = 2 ends best, rho = 1 is best on the way; at epsilon = 9 nothing is finite but rho 3."""
    errors = {1.0: (1.0, 1.0), 2.0: (5.0, 0.5), 3.0: (9.0, 9.0)}
    rows = [
        {"experiment": "grid", "variant": "v", "quantity": "released", "metric": "error",
         "epsilon": epsilon, "rho": rho, "t": t, "run": run,
         "value": np.inf if epsilon == 9.0 and rho < 3 and run == 0 else value}
        for epsilon in (0.5, 9.0) for rho, values in errors.items()
        for t, value in zip((1, 2), values, strict=True) for run in range(3)
    ]  # fmt: skip
    return pl.DataFrame(rows)


def setting(epsilon=0.5, **changes):
    return {"columns": {"epsilon": epsilon}, "algorithm": {"c": 1}, "tuned": {**TUNED, **changes}}


@pytest.mark.parametrize(
    ("given", "rho"),
    [(setting(), 2.0), (setting(criterion="mean"), 1.0), (setting(epsilon=9.0), 3.0)],
)
def test_the_grid_point_with_the_least_mean_error_is_taken(given, rho):
    found = with_tuned(given, grid())
    assert found["algorithm"] == {"c": 1, "rho": rho}
    assert "tuned" not in found and given["algorithm"] == {"c": 1}


def test_settings_without_tuning_stay_what_they_are():
    plain = {"columns": {}, "algorithm": {"rho": 1}}
    assert with_tuned(plain, None) is plain


def test_a_point_that_was_not_tuned_is_named():
    with pytest.raises(InvalidInput, match="that point in the grid"):
        with_tuned(setting(epsilon=0.7), grid())


def points(values, **changes):
    runs = pl.DataFrame({
        "experiment": "e", "algorithm": "a", "variant": "v", "reading": "resolved",
        "quantity": "q", "metric": "m", "t": 1, "x": 1.0, "run": range(len(values)),
        "value": values,
    })  # fmt: skip
    curve = {"algorithm": "a", "run": "v", "variant": "v", "reading": "resolved", "quantity": "q",
             "metric": "m", "where": {}, "by": None, "series": "", "low": None,
             **changes}  # fmt: skip
    return curve_points(runs, pl.DataFrame(), curve, "x").row(0, named=True)


def test_a_median_comes_with_quartiles():
    found = points([1.0, 2.0, 3.0, 4.0, 100.0], statistic="median")
    assert (found["low"], found["y"], found["high"]) == (2.0, 3.0, 4.0)
    assert found["interval"] == QUARTILES and "diverged" not in found


def test_runs_without_a_finite_value_are_counted_and_make_the_mean_infinite():
    values = [1.0, 2.0, np.inf, 3.0, 4.0]
    mean, median = points(values), points(values, statistic="median")
    assert mean["y"] == mean["low"] == mean["high"] == np.inf
    assert median["y"] == 3.0
    assert mean["diverged"] == median["diverged"] == 1
