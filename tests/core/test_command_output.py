"""Test the numbers that the command line prints and writes, and its message for divergence."""

import re

import numpy as np
import polars as pl
import pytest

from private_consensus.cli.settings import _assignments
from private_consensus.privacy.safe_digits import rounded_down, rounded_up


@pytest.mark.parametrize(
    ("value", "above", "below"),
    [(11.238045, "11.24", "11.23"), (1.1538443, "1.154", "1.153"), (1.00000000001, "1", "1"),
     (4.000001, "4.001", "4"), (0.1, "0.1", "0.1"), (1234567.0, "1.235e+06", "1.234e+06"),
     (0.0, "0", "0"), (float("inf"), "inf", "inf")],
)  # fmt: skip
def test_upper_bounds_are_rounded_up_and_lower_bounds_down(value, above, below):
    assert (rounded_up(value), rounded_down(value)) == (above, below)


def test_printed_noise_is_not_below_the_noise():
    noises = np.random.default_rng(0).uniform(0.5, 5.0, 20).tolist()
    printed = [float(_assignments({"noise": noise}).removeprefix("noise=")) for noise in noises]
    assert np.all(np.array(printed) >= noises)


def test_a_diverged_run_reports_the_largest_stable_step(call):
    """Gradient descent with 100 records has L = 100 and is stable below 2/L = 0.02."""
    setting = ("run", "muffliato_gd", "--runs", "2", "--horizon", "400", "--epsilon", "inf")
    code, _, err = call(*setting, "--set", "algorithm.eta=1")
    assert code == 2 and "non-finite" in err
    assert float(re.search(r"algorithm.eta=VALUE below 2/L = ([\d.]+)", err)[1]) == 0.02


def test_run_writes_the_measurements_of_all_runs_to_a_csv_file(call, tmp_path):
    path = tmp_path / "runs.csv"
    setting = ("gradient_descent", "--horizon", "4", "--runs", "3", "--output", str(path))
    code, out, _ = call("run", *setting)
    last = pl.read_csv(path).filter(pl.col("t") == 4)["value"]
    assert code == 0 and len(last) == 3 and f"{last.mean():.4g}" in out
