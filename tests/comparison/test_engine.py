"""A small design from end to end, and the problems that all of its cells share."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from synthetic import ROOT

from private_consensus.common import yamls
from private_consensus.common.errors import InvalidInput
from private_consensus.comparison.design import BASE, Axes, cells, read_comparison
from private_consensus.comparison.engine import DEFAULT, Engine, Setting
from private_consensus.comparison.problems import (
    Classified,
    Means,
    Regressed,
    _classified,
    _images,
    pool_of,
    shared_out,
)
from private_consensus.comparison.schema import ENVIRONMENT, MEASURES, TUNINGS, checked
from private_consensus.comparison.tuning import Scales, best, candidate, trials, tuned_parameters
from private_consensus.core.networks import build
from private_consensus.core.randomness import Streams

RAW = yamls.read(ROOT / "config" / "comparison.yaml")
AXES = Axes(agents=[5], graph=["erdos_renyi"], partition=["iid"], missing=[0.0, 0.2], links=[0.0])
METHODS = ("no_privacy", "local_training", "secure_aggregation", "dp_gd", "one_shot_averaging")
EPSILONS = [1.0, 10.0]
STREAMS = Streams(3, (0, 1), {"data": "engine"})
GENERATOR = np.random.default_rng(0)


@pytest.fixture(scope="module")
def design():
    full = read_comparison(RAW)
    reduced = full.scales["smoke"].model_copy(
        update={"problems": ["mean_estimation"], "axes": AXES, "sample": 0, "epsilons": EPSILONS}
    )
    found = full.model_copy(update={"scales": {"smoke": reduced}}).at("smoke")
    return found.model_copy(update={"methods": {name: full.methods[name] for name in METHODS}})


@pytest.fixture(scope="module")
def ran(design):
    pool = pool_of(design, "mean_estimation", {})
    engine = Engine(design, "mean_estimation", pool, list(METHODS))
    return engine.rows(), engine.absent


def test_every_cell_has_its_rows_or_says_why_not(design, ran):
    rows, absent = ran
    assert checked(rows).height == rows.height
    keys = [*ENVIRONMENT, "epsilon", "method", "tuning"]
    found = {*rows.select(keys).unique().iter_rows()}
    for cell in cells(design):
        where = {key: value for key, value in cell.row().items() if key != "axis"}
        for name in METHODS:
            left_out = any(
                one["method"] == name and all(where[key] == one[key] for key in where if key in one)
                for one in absent
            )
            for tuning in TUNINGS:
                assert left_out != ((*where.values(), name, tuning) in found)
    assert {one["method"] for one in absent} == {"secure_aggregation"}


def test_budgets_are_used_and_never_passed(ran):
    rows, _ = ran
    private = rows.filter(pl.col("observer") != "none")
    share = private["epsilon_accountant"] / private["epsilon"]
    assert private["proven"].all()
    assert 0.99 <= share.min() <= share.max() <= 1
    assert (private["epsilon_lower"] <= private["epsilon_accountant"]).all()


def test_training_alone_sends_nothing_and_is_not_moved_by_faults(ran):
    rows, _ = ran
    alone = rows.filter(pl.col("method") == "local_training")
    assert (alone.filter(pl.col("measure") == "messages")["value"] == 0).all()
    loss = alone.filter(pl.col("measure") == "excess_loss_mean")
    by_fault = [
        loss.filter(pl.col("missing") == p).sort("epsilon", "tuning", "run") for p in (0, 0.2)
    ]
    np.testing.assert_array_equal(by_fault[0]["value"], by_fault[1]["value"])


def test_what_is_not_noised_runs_once_and_has_its_measures_at_each_budget(monkeypatch):
    design = read_comparison(RAW).at("smoke")
    name = "local_training_kept"
    engine = Engine(design, "mean_estimation", pool_of(design, "mean_estimation", {}), [name])
    base = next(cell.environment for cell in cells(design) if cell.axis == BASE)
    world = engine.world(base, 1, 2)
    default = candidate(design, name, "mean_estimation", engine.pool.scales(base.agents))
    algorithm = replace(default.algorithm, eta=default.algorithm.eta / 3)
    slower = default._replace(algorithm=algorithm)
    settings = [
        Setting(epsilon, DEFAULT, engine.calibrated(name, one, epsilon, 1, world), one.horizon)
        for one in (default, slower)
        for epsilon in EPSILONS
    ]
    ran, run = [], engine._run
    monkeypatch.setattr(engine, "_run", lambda name, batch, *rest: ran.append(len(batch)) or run(
        name, batch, *rest))  # fmt: skip
    found = [values["excess_loss_mean"] for values in engine.measured(name, settings, world)]
    assert ran == [2]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[2], found[3])
    assert (found[0] != found[2]).all()


def test_missing_agents_send_less(ran):
    rows, _ = ran
    sent = rows.filter(pl.col("measure") == "messages", pl.col("method") == "dp_gd")
    means = dict(sent.group_by("missing").agg(pl.col("value").mean()).iter_rows())
    assert 0.6 * means[0.0] < means[0.2] < means[0.0]


def test_sums_of_everybody_are_better_than_training_alone(ran):
    """Of sums the noise is that of a server."""
    rows, _ = ran
    loss = rows.filter(
        pl.col("measure") == "excess_loss_mean", pl.col("tuning") == "tuned", pl.col("missing") == 0
    )
    means = {
        (m, e): v
        for m, e, v in loss.group_by("method", "epsilon").agg(pl.col("value").mean()).iter_rows()
    }
    for epsilon in EPSILONS:
        order = ["no_privacy", "secure_aggregation", "local_training"]
        losses = [means[name, epsilon] for name in order]
        assert losses == sorted(losses)
    assert set(rows["measure"]) <= set(MEASURES)


def pools():
    records = GENERATOR.uniform(-1, 1, (40, 2))
    rows = records / 2
    classes = np.where(records[:, 0] > 0, 1.0, -1.0)
    return {
        "means": Means(records, records, 1.0),
        "classified": Classified(*3 * (rows, classes), 0.1),
        "regressed": Regressed(*2 * (rows, 3 * records[:, 1]), 0.05, 1.0),
    }


@pytest.mark.parametrize("name", pools())
def test_a_score_is_the_loss_on_the_public_records_alone(name):
    """Here they are the agents' own, so that both agree until those are turned."""
    pool = pools()[name]
    x = GENERATOR.normal(size=(2, 3, 4, 2))
    np.testing.assert_allclose(pool.score(x), pool.losses(x.reshape(-1, 2)).reshape(2, 3, 4))
    own = {"means": "records", "classified": "classes", "regressed": "responses"}[name]
    turned = replace(pool, **{own: -getattr(pool, own)})
    np.testing.assert_array_equal(turned.score(x), pool.score(x))
    assert not np.allclose(turned.losses(x.reshape(-1, 2)), pool.losses(x.reshape(-1, 2)))


@pytest.mark.parametrize("name", ["logistic", "perceptron"])
def test_public_records_are_nobody_s(name):
    """A record's number is its only feature."""
    numbered = np.arange(200.0)[:, None]
    labels = np.ones(200)
    if name == "logistic":
        prepared = SimpleNamespace(features=numbered, labels=labels)
        pool = _classified(GENERATOR, 100, 40, prepared=prepared, ridge=0.1, test_rows=60)
        parts = pool.features, pool.test_features, pool.public_features
    else:
        splits = {"train": np.arange(150), "test": np.arange(150, 200)}
        prepared = SimpleNamespace(features=numbered, labels=labels, splits=splits)
        given = {"prepared": prepared, "hidden": 1, "side": 1, "test_rows": 50}
        pool = _images(GENERATOR, 100, 50, **given)
        parts = [pool.features[rows] for rows in (pool.train, pool.test, pool.public)]
    numbers = np.concatenate(parts).ravel()
    assert [len(part) for part in parts] == ([100, 60, 40] if name == "logistic" else [100, 50, 50])
    assert len(set(numbers.tolist())) == 200


def test_trials_are_chosen_without_a_look_at_what_agents_lose(design):
    """Whose losses cannot be asked for."""

    class Closed(Means):
        def losses(self, x):
            raise AssertionError("the agents' own records were scored")

    given = pool_of(design, "mean_estimation", {})
    closed = Closed(given.records, given.public, given.box)
    engine = Engine(design, "mean_estimation", closed, ["dp_gd"])
    base = next(cell.environment for cell in cells(design) if cell.axis == BASE)
    engine.tune("dp_gd", base, [1.0], closed.scales(base.agents))
    assert {tuning for _, _, tuning in engine.chosen} == set(TUNINGS)


@pytest.mark.parametrize("name", pools())
def test_the_excess_is_least_at_a_minimum_that_scipy_finds(name):
    pool = pools()[name]
    found = minimize(lambda x: pool.losses(x[None])[0], np.full(2, 0.1), method="Nelder-Mead",
                     options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000})  # fmt: skip
    assert pool.least == pytest.approx(found.fun, abs=1e-9)
    assert pool.excess(found.x[None, None]).shape == (1, 1)


@pytest.mark.parametrize("name", ["means", "classified"])
@pytest.mark.parametrize("how", [{}, {"concentration": 1.0, "of": "sizes"}, {"concentration": 0.1}])
def test_agents_objectives_add_up_to_the_pool_s_whoever_holds_the_records(name, how):
    """Their gradients at one point: N times the gradient of F, also with unequal sizes."""
    pool = pools()[name]
    rows = shared_out(pool, how, 4, STREAMS)
    assert sorted(rows[rows >= 0].reshape(2, -1)[0]) == list(range(40))
    x, step = np.array([0.3, -0.2]), 1e-6
    total = pool.problem(rows).gradient(np.broadcast_to(x, (1, 2, 4, 2))).sum(-2)
    slope = [(pool.losses((x + e)[None]) - pool.losses((x - e)[None]))[0] / (2 * step)
             for e in step * np.eye(2)]  # fmt: skip
    weight = 40 if name == "means" else 4
    np.testing.assert_allclose(
        total, np.broadcast_to(weight * np.array(slope), total.shape), rtol=1e-6, atol=1e-8
    )


def test_a_record_moves_no_gradient_by_more_than_is_stated_with_unequal_sizes():
    pool = pools()["classified"]
    rows = shared_out(pool, {"concentration": 1.0, "of": "sizes"}, 4, STREAMS)
    problem = pool.problem(rows)
    x = GENERATOR.normal(size=(1, 2, 4, 2))
    turned = replace(pool, classes=-pool.classes)
    sizes = (rows >= 0).sum(-1)
    moved = np.linalg.norm(turned.problem(rows).gradient(x) - problem.gradient(x), axis=-1)
    assert (moved <= sizes * problem.record_change("l2")).all()


def test_the_first_trial_is_the_defaults_and_all_are_within_their_ranges(design):
    scales = Scales(200.0, 3.0)
    tried = trials(design, "dp_gd", "mean_estimation", scales)
    assert tried[0] == candidate(design, "dp_gd", "mean_estimation", scales)
    assert tried[0].algorithm.eta == 1 / 200
    assert len(tried) == design.tuning.trials and len({t.algorithm.eta for t in tried}) == len(
        tried
    )
    for one in tried:
        assert 0.05 / 200 <= one.algorithm.eta <= 4 / 200 and 3 <= one.horizon <= 40
    assert best({0: np.inf, 1: 2.0, 2: 2.0}) == 1


def test_a_range_of_no_parameter_or_an_empty_one_is_refused(design):
    method = design.methods["dp_gd"]
    kind = type(candidate(design, "dp_gd", "mean_estimation", Scales(1.0, 1.0)).algorithm)
    one = kind.ranges["eta"]
    for wrong in (
        {"temperature": one},
        {"eta": one._replace(low=9.0)},
        {"eta": one._replace(unit="m")},
    ):
        odd = type("Odd", (kind,), {"ranges": wrong})
        with pytest.raises(InvalidInput, match="Odd"):
            tuned_parameters(odd, method, "mean_estimation")


def test_the_graph_of_a_cell_is_one_for_all_methods_and_runs(design):
    pool = pool_of(design, "mean_estimation", {})
    engine = Engine(design, "mean_estimation", pool, [])
    base = next(cell.environment for cell in cells(design) if cell.axis == BASE)
    first, again = (engine.world(base, root, runs).network for root, runs in ((1, 2), (9, 3)))
    assert first.shared and first.identity == again.identity
    assert first.n_agents == build(Streams(0, (0,)), "ring", 5).n_agents


def test_weaker_observers_have_their_budgets_and_faults_their_own_noise(design):
    """A neighbour's exact formula is for rounds in which all messages arrive."""
    names = ["decor_near", "zip_dl_near", "local_training_kept"]
    full = read_comparison(RAW)
    own = design.model_copy(update={"methods": {name: full.methods[name] for name in names}})
    engine = Engine(own, "mean_estimation", pool_of(own, "mean_estimation", {}), names)
    rows = checked(engine.rows())
    assert {*rows["observer"]} == {"neighbour"} and {*rows["method"]} == {*names}
    assert rows["proven"].all()
    spent = pl.col("epsilon_accountant") / pl.col("epsilon")
    kept = pl.col("method") == "local_training_kept"
    assert rows.filter(kept)["epsilon_accountant"].max() == 0.0
    assert rows.filter(~kept).select(spent.min()).item() > 1 - 1e-6
    loss = rows.filter((pl.col("measure") == "excess_loss_mean") & (pl.col("tuning") == "default"))
    alone = loss.filter(kept).group_by("run").agg(pl.col("value").n_unique())
    assert alone["value"].max() == 1  # no noise, at any budget, whoever is missing
