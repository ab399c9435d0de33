"""Test the example script for user data, and the model that it exports."""

import json
import runpy
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "3_own_data.py"


@pytest.fixture
def variables(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return runpy.run_path(str(SCRIPT))


def test_the_script_splits_trains_plots_audits_and_exports(variables, capsys):
    shares = variables["shares"]
    assert shares.n_agents == 7 and shares.sizes.max() > 4 * shares.sizes.min()
    for name in ("first", "second"):
        result = variables[name]
        assert result.guarantee.epsilon == pytest.approx(1.0, abs=1e-6)
        assert result.guarantee.proven
        error = result.measurements.filter(pl.col("t") == 20)["value"].item()
        assert 0.2 < error < 0.26  # a constant prediction has error 0.45
    assert not variables["audit"].finding
    assert json.loads(Path("model.json").read_text())["epsilon"] == pytest.approx(1.0)
    assert "vega" in Path("errors.html").read_text()
