"""Test JSON output, help, divergence messages and progress bars of the command line."""

import json
import re

import polars as pl
import pytest

from private_consensus.api.json_values import plain
from private_consensus.privacy.safe_digits import rounded_down, rounded_up


@pytest.fixture
def as_json(call):
    def run(*arguments: str) -> dict:
        code, out, _ = call(*arguments, "--json")
        assert code == 0
        return json.loads(out)

    return run


def test_json_output_has_the_same_numbers_as_the_tables(call, as_json):
    setting = ("gradient_descent", "--horizon", "4", "--runs", "3", "--agents", "5")
    run_report = as_json("run", *setting)
    _, out, _ = call("run", *setting)
    assert f"{run_report['course'][-1]['mean']:.4g}" in out and len(run_report["course"]) == 4
    assert run_report["setting"]["network"] == {"agents": 5, "edges": 5}
    assert run_report["setting"]["problem_parameters"]["records"] == 100 and "records=100" in out
    assert run_report["epsilon"]["accountant"] <= run_report["epsilon"]["claimed"] == 1
    assert run_report["diverged"] is False and run_report["runs"] == 3


@pytest.mark.parametrize(
    ("value", "above", "below"),
    [(11.238045, "11.24", "11.23"), (1.1538443, "1.154", "1.153"), (1.00000000001, "1", "1"),
     (4.000001, "4.001", "4"), (0.1, "0.1", "0.1"), (1234567.0, "1.235e+06", "1.234e+06"),
     (0.0, "0", "0"), (float("inf"), "inf", "inf")],
)  # fmt: skip
def test_upper_bounds_are_rounded_up_and_lower_bounds_down(value, above, below):
    assert (rounded_up(value), rounded_down(value)) == (above, below)


def test_json_of_an_audit_has_verdict_and_setting(as_json):
    audit_report = as_json("audit", "gradient_descent", "--pairs", "4")
    assert audit_report["verdict"] == "not contradicted" and audit_report["pairs"] == 4
    assert audit_report["setting"]["algorithm"] == "GradientDescent"


def test_infinity_becomes_text_and_nan_becomes_null_in_json():
    values = {"a": float("inf"), "b": float("nan"), "c": (1, {2.5}), 3: None}
    assert plain(values) == {"a": "inf", "b": None, "c": [1, [2.5]], "3": None}


MEANS = ("run", "muffliato_gd", "--problem", "mean_estimation", "--runs", "2", "--horizon", "30")


def test_a_diverged_run_reports_the_largest_stable_step(call, as_json):
    """Gradient descent with 100 records has L = 100 and is stable below 2/L = 0.02."""
    code, _, err = call(*MEANS, "--set", "algorithm.eta=0.1", "--epsilon", "inf")
    assert code == 0 and "muffliato_gd diverged: normalised_error grew from" in err
    largest = float(re.search(r"algorithm.eta=VALUE below 2/L = ([\d.]+)", err)[1])
    assert largest == pytest.approx(0.02)
    below = as_json(*MEANS, "--set", f"algorithm.eta={0.99 * largest}", "--epsilon", "inf")
    above = as_json(*MEANS, "--set", "algorithm.eta=0.06", "--epsilon", "inf")
    assert above["diverged"] and not below["diverged"]
    code, _, err = call(*MEANS[:-1], "400", "--set", "algorithm.eta=1", "--epsilon", "inf")
    assert code == 2 and "non-finite" in err and "below 2/L = 0.02" in err


def test_run_writes_the_measurements_of_all_runs_to_a_csv_file(as_json, tmp_path):
    path = tmp_path / "runs.csv"
    setting = ("gradient_descent", "--horizon", "4", "--runs", "3", "--output", str(path))
    report = as_json("run", *setting)
    rows = pl.read_csv(path)
    last = rows.filter(pl.col("t") == 4)["value"]
    assert len(last) == 3 and last.mean() == pytest.approx(report["course"][-1]["mean"])
