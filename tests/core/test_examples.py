"""What is shown in tutorials and in the notebook runs, and shows what the text says."""

import ast
import json
import runpy
from pathlib import Path

import altair as alt
import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("plot_*.py"))


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    """As on a machine without the internet or a mirror; files that are written vanish."""
    monkeypatch.delenv("PRIVATE_CONSENSUS_MIRROR", raising=False)
    monkeypatch.setenv("PRIVATE_CONSENSUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def run(number: int) -> dict:
    """What a tutorial's script ends with."""
    (script,) = EXAMPLES.glob(f"plot_{number}_*.py")
    return runpy.run_path(str(script))


def test_every_tutorial_has_a_title_and_a_test_here():
    numbers = [int(script.name.split("_")[1]) for script in SCRIPTS]
    assert numbers == [1, 2, 3, 4, 5]
    for script in SCRIPTS:
        title, line, *_ = ast.get_docstring(ast.parse(script.read_text())).splitlines()
        assert title and set(line) == {"="} and len(line) == len(title)


def test_no_tutorial_uses_a_name_that_the_documentation_does_not_define():
    """Sphinx-Gallery executes scripts without ``__file__``."""
    for script in SCRIPTS:
        names = {n.id for n in ast.walk(ast.parse(script.read_text())) if isinstance(n, ast.Name)}
        assert "__file__" not in names, script.name


def test_a_noise_is_calibrated_to_the_budget_and_its_cost_grows_with_the_releases():
    shown = run(1)
    assert shown["guarantee"].epsilon == pytest.approx(1, rel=1e-6) and shown["guarantee"].proven
    assert shown["classical"] > 10 * shown["scale"]
    assert (np.diff(shown["epsilons"]) > 0).all()
    assert isinstance(shown["chart"], alt.Chart)


def test_three_algorithms_run_on_adult_and_are_accounted_for(monkeypatch):
    from private_consensus.reproduction import datasets

    def small(source):
        return datasets.acquisition.Acquisition(source="surrogate", surrogate_rows=6000)

    monkeypatch.setattr(datasets, "Acquisition", small)
    shown = run(2)
    assert shown["origin"].is_surrogate
    accounted = {row["algorithm"]: row for row in shown["guarantees"]}
    assert accounted["dvp"]["proven"] and 0.99 < accounted["dvp"]["accountant"] <= 1
    assert shown["means"].height == 3 * 20 and shown["means"]["value"].is_finite().all()


def test_the_broken_copy_is_found_and_the_right_one_is_not():
    shown = run(3)["found"]
    assert not shown["NoisyGossip"].flagged and shown["HastyGossip"].flagged


def test_a_figure_is_planned_run_and_drawn():
    shown = run(4)
    assert shown["numbers"].height == 8
    assert "mark" in json.dumps(shown["chart"].to_dict())
    exact = shown["privacy"].filter(variant="exact")
    assert (exact["epsilon_accountant"] <= exact["epsilon_claimed"]).all()


def test_a_paper_is_judged_by_its_claim():
    table = run(5)["table"]
    assert table["id"].to_list() == ["mine_c01"] and table["verdict"].to_list() == ["held"]


def test_the_notebook_runs_from_top_to_bottom_and_is_kept_without_output(capsys):
    notebook = json.loads((EXAMPLES / "tour.ipynb").read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    shown: dict = {}
    for cell in cells:
        assert cell["outputs"] == [] and cell["execution_count"] is None
        exec("".join(cell["source"]), shown)
    assert 0 < shown["done"].guarantee.epsilon <= 1
    assert not shown["found"].flagged
    assert "guaranteed" in capsys.readouterr().out
