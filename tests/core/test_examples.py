"""Test that the examples run and compute what their texts state."""

import json
import runpy
from pathlib import Path

import altair as alt
import numpy as np
import pytest

from private_consensus.reproduction.data import acquisition

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    """Simulate a machine without internet access and mirror; write to a temporary folder."""
    monkeypatch.delenv("PRIVATE_CONSENSUS_MIRROR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def run(number: int) -> dict:
    """Return the variables of an example after its run."""
    (script,) = EXAMPLES.glob(f"{number}_*.py")
    return runpy.run_path(str(script))


def test_example_1_calibrates_noise_and_epsilon_grows_with_the_releases():
    variables = run(1)
    assert (
        variables["guarantee"].epsilon == pytest.approx(1, rel=1e-6)
        and variables["guarantee"].proven
    )
    assert variables["classical"] > 10 * variables["scale"]
    assert (np.diff(variables["epsilons"]) > 0).all()
    assert isinstance(variables["chart"], alt.Chart)


def test_example_4_runs_and_accounts_three_algorithms_on_surrogate_data(monkeypatch):
    settings = acquisition.Acquisition(source="surrogate", surrogate_rows=6000)
    monkeypatch.setattr(acquisition, "Acquisition", lambda source: settings)
    variables = run(4)
    assert variables["origin"].is_surrogate
    accounted = {row["algorithm"]: row for row in variables["guarantees"]}
    assert accounted["dvp"]["proven"] and 0.99 < accounted["dvp"]["accountant"] <= 1
    assert variables["means"].height == 3 * 20 and variables["means"]["value"].is_finite().all()


def test_example_5_plans_runs_and_draws_a_figure():
    variables = run(5)
    assert variables["numbers"].height == 8
    assert "mark" in json.dumps(variables["chart"])
    exact = variables["privacy"].filter(variant="exact")
    assert (exact["epsilon_accountant"] <= exact["epsilon_claimed"]).all()


def test_example_6_gives_the_verdict_of_a_claim():
    table = run(6)["table"]
    assert table["id"].to_list() == ["mine_c01"] and table["verdict"].to_list() == ["held"]
