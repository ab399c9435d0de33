"""Test the example script for user data, and the model that it exports."""

import json
import runpy
from pathlib import Path

import numpy as np
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


def test_predictions_by_the_documented_steps_agree_with_the_exported_model(variables):
    """All records are clipped, since the encoded category by itself has norm 1."""
    problem, model = variables["problem"], json.loads(Path("model.json").read_text())
    table = pl.read_csv("clinics.csv").to_dict()
    table = {name: column.to_numpy() for name, column in table.items()}
    values = np.stack(
        [
            table["sex"] == name.removeprefix("sex=")
            if name.startswith("sex=")
            else (2 * np.clip(table[name], low, high) - low - high) / (high - low)
            for name, (low, high) in model["bounds"].items()
        ],
        axis=-1,
    )
    norms = np.linalg.norm(values, axis=-1, keepdims=True)
    values *= np.minimum(1.0, model["clip"] / norms)
    margins = values @ [*model["encoded_coefficients"].values()] + model["encoded_intercept"]
    rows = np.concatenate([problem.features[i, :n] for i, n in enumerate(problem.record_counts)])
    expected = np.concatenate([rows, problem.test_features]) @ model["model"]
    np.testing.assert_allclose(np.sort(margins), np.sort(expected), atol=1e-12)
    labels = np.where(margins > 0, model["labels"]["+1"], model["labels"]["-1"])
    assert (labels == table["ill"]).mean() > 0.74
    slopes = model["encoded_coefficients"]  # the labels depend on age / 20 - dose / 2
    assert slopes["age"] > 0 > slopes["dose"]
