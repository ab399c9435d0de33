"""The comparison of methods: pairwise wins, transferred parameters and baselines."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from dp_accounting.dp_event import GaussianDpEvent, RepeatAndSelectDpEvent
from dp_accounting.rdp import RdpAccountant
from scipy.optimize import minimize
from scipy.stats import logser, norm, ttest_1samp

from private_consensus.core.randomness import Streams
from private_consensus.privacy.conversions import gaussian_mu
from private_consensus.report.views.comparison import answer, markdown, published
from private_consensus.reproduction import comparison
from private_consensus.reproduction.configuration.plan import load
from private_consensus.reproduction.configuration.schema import read_yaml
from private_consensus.reproduction.results.cells import environment_of, run_cell

ROOT = Path(__file__).parents[2]
MEANS = ("comparison_mean_corner", "comparison_mean_centre")
METHODS = ("gradient_descent", "muffliato", "muffliato_gd")
CELL = ["experiment", "agents", "records", "epsilon"]


@pytest.fixture(scope="module")
def plan():
    config = read_yaml(ROOT / "config" / "config.yaml")
    return load(config | {"papers": ["comparison"], "scale": "smoke"}, ROOT / "config")


@pytest.fixture(scope="module")
def runs(plan) -> pl.DataFrame:
    cells = [plan.cell(name, method) for name in MEANS for method in METHODS]
    public = [row for cell in cells[::3] for row in comparison.baselines(cell, {})]
    measured = pl.concat([run_cell(cell, {})[0] for cell in cells])
    return comparison.compared(measured, pl.DataFrame(public), {})


def test_wins_are_those_of_the_runs(runs):
    losses = comparison.transferred(runs)
    wins = comparison.wins(losses)
    assert wins.height == 7 * 6
    for row, column, share, decided in wins.select("row", "column", "share", "decided").rows():
        first, second = (losses.filter(method=name) for name in (row, column))
        pairs = first.join(second, on=[*CELL, "run"]).with_columns(
            difference=pl.col("value") - pl.col("value_right")
        )
        means = pairs.group_by(CELL).agg(pl.col("difference").mean())
        assert share == (means["difference"] < 0).mean()
        cells = [cell["difference"].to_numpy() for cell in pairs.partition_by(CELL)]
        assert decided == sum(ttest_1samp(cell, 0.0).pvalue < 0.05 for cell in cells)


def test_published_tables_and_answer_are_those_of_the_published_runs():
    folder = ROOT / "results" / "reference" / "comparison"
    means, losses = published(folder)
    assert markdown(means, losses) == (folder / "comparison.md").read_text(encoding="utf-8")
    by_cell = losses.group_by(*CELL, "method").agg(pl.col("value").mean())
    pairs = by_cell.join(means, on=[*CELL, "method"])
    assert pairs.height == means.height
    np.testing.assert_allclose(pairs["value"], pairs["loss"], rtol=1e-12)
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert answer(means) in readme


def test_published_thresholds_are_those_of_the_published_runs():
    means, losses = published(ROOT / "results" / "reference" / "comparison")
    by_cell = losses.group_by(*CELL, "problem", "algorithm", "kind").agg(pl.col("value").mean())
    for row in comparison.thresholds(means).iter_rows(named=True):
        setting = by_cell.filter(
            *(pl.col(key) == row[key] for key in ("problem", "agents", "records"))
        )
        best = setting.filter(kind=row["kind"]).group_by("epsilon").agg(pl.col("value").min())
        pairs = best.join(setting.filter(algorithm=row["algorithm"]), on="epsilon").sort("epsilon")
        beats = (pairs["value"] < pairs["value_right"]).to_list()
        # A larger epsilon does not lose again, so that the smallest one answers the question.
        assert beats == [
            row["epsilon"] is not None and e >= row["epsilon"] for e in pairs["epsilon"]
        ]


def test_parameters_are_those_of_the_other_data_set(runs):
    corner = comparison.transferred(runs).filter(experiment=MEANS[0])
    others = runs.filter(experiment=MEANS[1])
    for (method,), rows in corner.group_by("algorithm"):
        scores = others.filter(algorithm=method).group_by("variant", "point").agg(
            pl.col("value").log().mean()
        )  # fmt: skip
        assert set(rows["variant"]) == {scores.sort("value", "point")["variant"][0]}


def test_private_methods_have_the_loss_of_their_selected_parameters(runs):
    means = comparison.cell_means(runs)
    assert (means["loss"] >= means["best"] - 1e-15).all()
    lowest = means.filter(kind="private").group_by(CELL).agg(pl.col("ratio").min())
    assert (lowest["ratio"] == 1.0).all()


COUNT = logser(1 - comparison.STOPPING)
"""Number of runs of tuning."""


def at_least(lower):
    return pl.select(comparison.at_least(pl.Series(lower))).to_series().to_numpy()


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_total_epsilon_of_tuning_by_direct_computation_and_dp_accounting(epsilon, delta=1e-5):
    k, lower = np.arange(1, 3000), np.array([0.0, 0.1, 0.7, 1.0])
    np.testing.assert_allclose(comparison.EXPECTED_RUNS, COUNT.mean())
    np.testing.assert_allclose(
        at_least(lower), (1 - lower[:, None]) ** k @ COUNT.pmf(k), rtol=1e-10, atol=1e-15
    )
    mu, total = gaussian_mu(epsilon, delta), comparison.tuning_epsilon(epsilon, delta)
    edges = np.linspace(-8, 8, 161)  # The best of K outputs is the lowest interval.
    first, second = (-np.diff(at_least(norm.cdf(edges - shift))) for shift in (0, mu))
    for p, q in [(first, second), (second, first)]:
        assert np.maximum(p - np.exp(total) * q, 0).sum() <= delta
    assert np.maximum(first - np.exp(epsilon) * second, 0).sum() > delta
    accountant = RdpAccountant(1 + np.geomspace(0.05, 500, 300))
    accountant.compose(RepeatAndSelectDpEvent(GaussianDpEvent(1 / mu), COUNT.mean(), 0))
    np.testing.assert_allclose(accountant.get_epsilon(delta), total, rtol=1e-3)


def test_loss_of_tuning_is_that_of_simulated_random_stopping(plan, runs):
    privacy = pl.concat([run_cell(plan.cell(MEANS[0], m), {})[1] for m in METHODS], how="diagonal")
    means = comparison.cell_means(runs).filter(experiment=MEANS[0])
    tuned = comparison.with_tuning(means, runs, privacy).drop_nulls("tuned")
    assert set(tuned["algorithm"]) == {"gradient_descent", "muffliato_gd"}
    rng = np.random.default_rng(0)
    counts = COUNT.rvs(size=4000, random_state=rng)
    for row in tuned.iter_rows(named=True):
        expected, error = [], []
        cell = runs.filter(experiment=MEANS[0], algorithm=row["algorithm"])
        for losses in cell.partition_by("run"):
            points = np.log(np.minimum(losses["value"], 1.0))  # The origin has loss 1.
            lowest = np.array([rng.choice(points, count).min() for count in counts])
            expected.append(np.exp(lowest.mean()))
            error.append(expected[-1] * lowest.std() / np.sqrt(len(lowest)))
        assert abs(row["tuned"] - np.mean(expected)) < 5 * np.mean(error)
        assert row["total"] == comparison.tuning_epsilon(1.0, 1e-5)


def test_baselines_of_a_mean_are_the_origin_and_public_samples(runs):
    assert (runs.filter(algorithm="no data")["value"] == 1.0).all()
    losses = [runs.filter(algorithm=f"{k} public records")["value"].mean() for k in (50, 1000)]
    assert losses[0] > losses[1]


def test_baselines_of_logistic_regression_by_scipy(plan):
    rng = np.random.default_rng(0)
    features = np.column_stack([rng.uniform(-0.4, 0.4, (3000, 3)), np.full(3000, 0.5)])
    labels = np.where(features[:, 0] + rng.normal(0.1, 0.2, 3000) > 0, 1.0, -1.0)
    cell = plan.cell("comparison_adult", "muffliato_gd")
    prepared = {"adult-onehot41": SimpleNamespace(features=features, labels=labels)}
    rows = pl.DataFrame(list(comparison.baselines(cell, prepared))).filter(run=0)
    streams = Streams(cell["seed"], (0,), cell["groups"])
    problem: Any = environment_of(cell["settings"][0], prepared).problem(streams)
    private = problem.features.reshape(-1, 4), problem.labels.ravel()
    public = problem.test_features[0, :200], problem.test_labels[0, :200]

    def loss(model, records, ridge=0.001):
        margins = records[1] * (records[0] @ model)
        return np.logaddexp(0, -margins).mean() + ridge / 2 * model @ model

    lowest = minimize(loss, np.zeros(4), (private,), tol=1e-12).fun
    minimiser = minimize(loss, np.zeros(4), (public, 0.01), tol=1e-12).x
    predicted = (np.sum(public[1] > 0) + 1) / 202
    frequencies = -np.where(private[1] > 0, np.log(predicted), np.log(1 - predicted)).mean()
    expected = {
        ("no data", ""): np.log(2.0) - lowest,
        ("class frequencies", ""): frequencies - lowest,
        ("200 public records", "ridge 0.01"): loss(minimiser, private) - lowest,
    }
    for (method, variant), value in expected.items():
        row = rows.filter(algorithm=method, variant=variant)
        np.testing.assert_allclose(row["value"], value, rtol=1e-5)
