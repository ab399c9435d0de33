"""Test results of the Python API: models, guarantee, tables, plots, audits and exports."""

import json
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import private_consensus as pc
from private_consensus.common.errors import InvalidInput

STREAMS = pc.Streams(0, (0,))
MEANS = np.random.default_rng(1).uniform(-0.2, 0.2, (1, 5, 3))
PROBLEM = pc.problems.class_of("mean_estimation")(MEANS, records=50, box=1.0)
RING = pc.networks.build(STREAMS, "ring", 5)
BUDGET = pc.Budget(1.0, 1e-5)
ROWS = np.random.default_rng(2).normal(size=(40, 2))
TABLE = {"x0": ROWS[:, 0], "x1": ROWS[:, 1], "label": (ROWS[:, 0] > 0).astype(int)}
OPTIONS = {"label": "label", "agent": 5, "clip": 1.0, "test": 0.25}
SHARES = pc.split(TABLE, **OPTIONS)


def result(name="gradient_descent", problem=PROBLEM, horizon=20, budget=BUDGET, **options):
    parameters = options.pop("parameters", {})
    algorithm = pc.algorithms.load(name)(**parameters)
    return pc.simulate(algorithm, problem, RING, budget, horizon, runs=3, **options)


def test_released_models_have_the_error_of_the_last_measurement():
    done = result(parameters={"calibration": "gaussian_dp"})
    assert done.models.released.shape == done.models.per_agent.shape == (3, 5, 3)
    errors = PROBLEM.measure("normalised_error", done.models.released)
    last = done.measurements.filter(pl.col("t") == 20).sort("run")["value"]
    np.testing.assert_allclose(errors, last)
    np.testing.assert_allclose(done.models.average, done.models.released.mean(1))
    # the local estimates lack the noise of the last message
    noise = done.models.released - done.models.per_agent
    assert noise.std() == pytest.approx(done.releases[0].scale[-1], rel=0.3)


def test_the_derivation_explains_an_epsilon_below_the_budget():
    """Theorem 2 bounds the sum of 1 / sqrt(t) by 2 sqrt(T)."""
    done = result(parameters={"calibration": "gaussian_dp"})
    text = done.guarantee.derivation
    assert done.guarantee.epsilon == pytest.approx(0.9142, abs=1e-4)
    used_fraction = (np.arange(1, 21) ** -0.5).sum() / (2 * np.sqrt(20))
    assert f"the releases use {used_fraction:.1%} of its square" in text
    factor = float(re.search(r"smaller by the factor ([\d.]+)", text)[1])
    assert factor == pytest.approx(np.sqrt(used_fraction), abs=1e-4)
    assert "spending = 'theorem_2'" in text
    # With noise smaller by this factor, the accountant returns the budget.
    quiet = replace(done.algorithm, noise=done.algorithm.noise * np.sqrt(used_fraction))
    releases = quiet.releases(PROBLEM, RING, 20)
    assert pc.account(releases, 1e-5).epsilon == pytest.approx(1.0, rel=1e-6)


def test_the_guarantee_is_the_smallest_epsilon_of_the_accountants_in_a_derivation():
    done = result("dvp", SHARES.logistic_regression(), 5)
    text = done.guarantee.derivation
    values = [float(v) for v in re.findall(r"^[A-Z].*: epsilon ([\d.]+)\.$", text, re.MULTILINE)]
    assert len(values) >= 2 and min(values) == pytest.approx(done.guarantee.epsilon, rel=1e-3)
    assert str(done.guarantee) == "Guarantee: epsilon 1 at delta 1e-05, as claimed."


def test_the_audit_of_a_result_uses_the_simulated_setting():
    done = result("muffliato_gd", SHARES.logistic_regression(), 2)
    audit_result = done.audit(pairs=20)
    assert audit_result.verdict == "not contradicted"
    assert audit_result.epsilon == pytest.approx(done.guarantee.epsilon)
    assert (audit_result.pairs, audit_result.agents, audit_result.iterations) == (20, 5, 2)


def test_an_exported_model_contains_its_guarantee_and_prediction_rule(tmp_path):
    done = result("muffliato_gd", SHARES.logistic_regression(), 5)
    exported = json.loads(done.export(tmp_path / "model.json", SHARES, run=1).read_text())
    assert (
        exported["epsilon"] == pytest.approx(1.0) and exported["relation"] == "replace one record"
    )
    assert exported["observer"] == "an eavesdropper, who receives every message"
    np.testing.assert_array_equal(exported["model"], done.models.average[1])
    assert exported["labels"] == {"-1": 0, "+1": 1} and exported["clip"] == 1.0
    assert exported["bounds"] == {"x0": None, "x1": None}
    rule = SHARES.prediction_rule(done.models.average[1])
    assert exported["encoded_coefficients"] == rule["encoded_coefficients"]
    assert exported["encoded_intercept"] == rule["encoded_intercept"]
    with pytest.raises(InvalidInput, match="run: found 3"):
        done.export(tmp_path / "model.json", run=3)


@pytest.mark.parametrize(
    "changes", [{"clip": 2.0}, {"bounds": (-9, 9)}, {"labels": (1, 0)}, {"agent": 4}, {"seed": 1}]
)
def test_a_model_is_not_exported_in_the_units_of_other_shares(tmp_path, changes):
    done = result("muffliato_gd", SHARES.logistic_regression(), 2)
    assert done.export(tmp_path / "model.json", pc.split(TABLE, **OPTIONS)).is_file()
    with pytest.raises(InvalidInput, match=r"shares: found Shares.* expected the Shares whose"):
        done.export(tmp_path / "other.json", pc.split(TABLE, **{**OPTIONS, **changes}))
    with pytest.raises(InvalidInput, match="shares: found Shares"):
        result(horizon=2).export(tmp_path / "other.json", SHARES)
    assert not (tmp_path / "other.json").exists()
