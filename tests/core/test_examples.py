"""Test that tutorials, gallery and notebook run and print what their texts state."""

import json
import runpy
from pathlib import Path

import altair as alt
import numpy as np
import polars as pl
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    """Simulate a machine without internet access and mirror; write to a temporary folder."""
    monkeypatch.delenv("PRIVATE_CONSENSUS_MIRROR", raising=False)
    monkeypatch.setenv("PRIVATE_CONSENSUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def run(number: int) -> dict:
    """Return the variables of a tutorial after its run."""
    (script,) = EXAMPLES.glob(f"plot_{number}_*.py")
    return runpy.run_path(str(script))


def test_tutorial_1_calibrates_noise_and_epsilon_grows_with_the_releases():
    variables = run(1)
    assert (
        variables["guarantee"].epsilon == pytest.approx(1, rel=1e-6)
        and variables["guarantee"].proven
    )
    assert variables["classical"] > 10 * variables["scale"]
    assert (np.diff(variables["epsilons"]) > 0).all()
    assert isinstance(variables["chart"], alt.Chart)


def test_tutorial_2_runs_and_accounts_three_algorithms_on_surrogate_data(monkeypatch):
    from private_consensus.reproduction import datasets

    def small(source):
        return datasets.acquisition.Acquisition(source="surrogate", surrogate_rows=6000)

    monkeypatch.setattr(datasets, "Acquisition", small)
    variables = run(2)
    assert variables["origin"].is_surrogate
    accounted = {row["algorithm"]: row for row in variables["guarantees"]}
    assert accounted["dvp"]["proven"] and 0.99 < accounted["dvp"]["accountant"] <= 1
    assert variables["means"].height == 3 * 20 and variables["means"]["value"].is_finite().all()


def test_tutorial_3_flags_the_faulty_algorithm_and_not_the_correct_one():
    audits = run(3)["audits"]
    assert not audits["NoisyGossip"].finding and audits["HastyGossip"].finding


def test_tutorial_4_plans_runs_and_draws_a_figure():
    variables = run(4)
    assert variables["numbers"].height == 8
    assert "mark" in json.dumps(variables["chart"])
    exact = variables["privacy"].filter(variant="exact")
    assert (exact["epsilon_accountant"] <= exact["epsilon_claimed"]).all()


def test_tutorial_5_gives_the_verdict_of_a_claim():
    table = run(5)["table"]
    assert table["id"].to_list() == ["mine_c01"] and table["verdict"].to_list() == ["held"]


def _by(table: pl.DataFrame, key: str, value: str) -> dict:
    """Return the column ``value`` as a list, by the values of ``key``."""
    groups = table.group_by(key, maintain_order=True)
    return {name: rows[value].to_list() for (name,), rows in groups}


def _noise_grows_like_the_root_of_the_releases(variables):
    noise = {
        count: np.array(v) for count, v in _by(variables["noise"], "releases", "noise").items()
    }
    assert noise[100] / noise[1] == pytest.approx(10, rel=1e-6)


def _exact_composition_is_smaller_than_the_sum(variables):
    bounds = _by(variables["bounds"], "bound", "epsilon")
    exact, total = bounds["exact composition"], bounds["sum of single epsilons"]
    assert exact[0] == pytest.approx(total[0])
    assert all(a < b for a, b in zip(exact[1:], total[1:], strict=True))


def _laplace_noise_is_smaller_for_one_release_only(variables):
    deviations = _by(variables["noise"], "mechanism", "deviation")
    assert deviations["laplace"][0] < deviations["gaussian"][0]
    assert deviations["laplace"][-1] > deviations["gaussian"][-1]


def _fewer_records_have_a_smaller_loss(variables):
    assert (np.diff(variables["epsilons"]) > 0).all()


def _averaging_approaches_consensus_slowest_on_the_ring(variables):
    errors = _by(variables["consensus"], "graph", "error")
    assert all((np.diff(error) < 0).all() for error in errors.values())
    assert max(errors, key=lambda name: errors[name][-1]) == "ring"


def _the_error_decreases_with_epsilon(variables):
    means = variables["errors"].group_by("epsilon").agg(pl.col("value").mean()).sort("epsilon")
    assert (np.diff(means["value"]) < 0).all()


def _the_consensus_error_decreases_with_the_rounds(variables):
    errors = _by(variables["errors"], "metric", "value")
    assert (np.diff(errors["consensus_error"]) < 0).all()
    assert np.argmin(errors["normalised_error"]) < len(errors["normalised_error"]) - 1


def _every_method_meets_the_budget(variables):
    assert all(0.9 < epsilon <= 1 for epsilon in variables["guarantees"].values())


GALLERY = {
    "calibrate_noise": _noise_grows_like_the_root_of_the_releases,
    "compose_releases": _exact_composition_is_smaller_than_the_sum,
    "compare_mechanisms": _laplace_noise_is_smaller_for_one_release_only,
    "sample_records": _fewer_records_have_a_smaller_loss,
    "mix_on_graphs": _averaging_approaches_consensus_slowest_on_the_ring,
    "error_against_epsilon": _the_error_decreases_with_epsilon,
    "choose_the_number_of_rounds": _the_consensus_error_decreases_with_the_rounds,
    "compare_methods": _every_method_meets_the_budget,
}
"""Names of the gallery scripts in their order, each with a check of the plotted numbers."""


def test_every_script_of_the_gallery_has_a_check():
    names = [script.stem for script in sorted((EXAMPLES / "gallery").glob("*.py"))]
    assert names == [f"plot_{i:02}_{name}" for i, name in enumerate(GALLERY, start=1)]


@pytest.mark.parametrize("name", GALLERY)
def test_the_plotted_numbers_of_a_gallery_script_pass_their_check(name):
    (script,) = (EXAMPLES / "gallery").glob(f"plot_*_{name}.py")
    variables = runpy.run_path(str(script))
    assert isinstance(variables["chart"], alt.TopLevelMixin)
    assert "__file__" not in script.read_text()
    GALLERY[name](variables)
