"""Test a small comparison from end to end, and the problems that all cells share."""

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
from private_consensus.comparison.engine import (
    NOTHING_LEARNED,
    CalibratedCandidate,
    ComparisonEntry,
    entries_of,
)
from private_consensus.comparison.problems import (
    Classified,
    ClippedPerceptron,
    Means,
    Regressed,
    _classified,
    _images,
    pool_of,
    shared_out,
)
from private_consensus.comparison.schema import ENVIRONMENT, MEASURES, TUNINGS, checked
from private_consensus.comparison.tuning import (
    ObjectiveScales,
    SearchSpace,
    Trial,
    TuningCandidate,
    best,
    stage_sizes,
)
from private_consensus.comparison.tuning_check import checked_tuning
from private_consensus.core.networks import build
from private_consensus.core.problems.perceptron import Perceptron
from private_consensus.core.randomness import Streams

RAW = yamls.read(ROOT / "config" / "comparison.yaml")
AXES = Axes(agents=[10], graph=["erdos_renyi"], partition=["iid"], missing=[0.0, 0.2], links=[0.0])
METHODS = (
    "data_free", "public_minimiser", "no_privacy", "local_training", "secure_aggregation", "dp_gd",
    "one_shot_averaging",
)  # fmt: skip
EPSILONS = [1.0, 10.0]
STREAMS = Streams(3, (0, 1), {"data": "engine"})
GENERATOR = np.random.default_rng(0)


@pytest.fixture(scope="module")
def design():
    full = read_comparison(RAW)
    reduced = full.scales["smoke"].model_copy(
        update={"problems": ["mean_estimation"], "axes": AXES, "sample": 0, "epsilons": EPSILONS}
    )
    smoke_design = full.model_copy(update={"scales": {"smoke": reduced}}).at("smoke")
    return smoke_design.model_copy(
        update={"methods": {name: full.methods[name] for name in METHODS}}
    )


def results_of(design):
    entries = entries_of(design, {})
    rows = pl.concat([entry.rows() for entry in entries])
    return rows, [row for entry in entries for row in entry.absent]


def entry_of(design, name):
    return ComparisonEntry(design, name, "mean_estimation", pool_of(design, "mean_estimation", {}))


@pytest.fixture(scope="module")
def ran(design):
    return results_of(design)


def test_every_cell_has_rows_or_a_stated_exclusion(design, ran):
    rows, absent = ran
    assert checked(rows).height == rows.height
    keys = [*ENVIRONMENT, "epsilon", "method", "tuning"]
    present = {*rows.select(keys).unique().iter_rows()}
    for cell in cells(design):
        cell_keys = {key: value for key, value in cell.row().items() if key != "axis"}
        for name in METHODS:
            left_out = any(
                exclusion["method"] == name
                and all(cell_keys[key] == exclusion[key] for key in cell_keys if key in exclusion)
                for exclusion in absent
            )
            for tuning in TUNINGS:
                public = name == "public_minimiser" and tuning == "transferred"
                assert (left_out or public) != ((*cell_keys.values(), name, tuning) in present)
    assert {exclusion["method"] for exclusion in absent} == {"secure_aggregation"}


def test_accounted_epsilons_use_the_budget_without_exceeding_it(ran):
    rows, _ = ran
    free = rows.filter(pl.col("observer") == "anyone")
    assert {*free["method"]} == {"data_free", "public_minimiser"}
    assert free["epsilon_accountant"].max() == 0.0 and free["proven"].all()
    private = rows.filter(~pl.col("observer").is_in(["none", "anyone"]))
    share = private["epsilon_accountant"] / private["epsilon"]
    assert private["proven"].all()
    assert 0.99 <= share.min() <= share.max() <= 1
    assert (private["epsilon_lower"] <= private["epsilon_accountant"]).all()


def test_local_training_sends_no_messages_and_is_unaffected_by_missing_agents(ran):
    rows, _ = ran
    alone = rows.filter(pl.col("method") == "local_training")
    assert (alone.filter(pl.col("measure") == "messages")["value"] == 0).all()
    loss = alone.filter(pl.col("measure") == "excess_loss_mean")
    by_fault = [
        loss.filter(pl.col("missing") == p).sort("epsilon", "tuning", "run") for p in (0, 0.2)
    ]
    np.testing.assert_array_equal(by_fault[0]["value"], by_fault[1]["value"])


def test_methods_without_noise_run_once_for_all_budgets(monkeypatch):
    design = read_comparison(RAW).at("smoke")
    entry = entry_of(design, "local_training_kept")
    world = entry.world(entry.base, 1, 2)
    default = entry.space.candidate()
    algorithm = replace(default.algorithm, eta=default.algorithm.eta / 3)
    slower = default._replace(algorithm=algorithm)
    requested = [
        (epsilon, "tuned", candidate) for candidate in (default, slower) for epsilon in EPSILONS
    ]
    settings, refused = entry.settings(requested, world)
    assert not refused
    ran, run = [], entry._run
    monkeypatch.setattr(
        entry, "_run", lambda batch, *args: ran.append(len(batch)) or run(batch, *args)
    )
    losses = [values["excess_loss_mean"] for values in entry.measured(settings, world)]
    assert ran == [2]
    np.testing.assert_array_equal(losses[0], losses[1])
    np.testing.assert_array_equal(losses[2], losses[3])
    assert (losses[0] != losses[2]).all()


def test_missing_agents_reduce_the_number_of_messages(ran):
    rows, _ = ran
    sent = rows.filter(pl.col("measure") == "messages", pl.col("method") == "dp_gd")
    means = dict(sent.group_by("missing").agg(pl.col("value").mean()).iter_rows())
    assert 0.6 * means[0.0] < means[0.2] < means[0.0]


def test_secure_aggregation_has_a_lower_loss_than_local_training(ran):
    """A secure sum of all agents has the noise of a central server."""
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
def test_the_tuning_score_does_not_depend_on_records_of_agents(name):
    """Changing the agents' records changes their losses and not the score."""
    pool = pools()[name]
    x = GENERATOR.normal(size=(2, 3, 4, 2))
    array_name = {"means": "records", "classified": "classes", "regressed": "responses"}[name]
    turned = replace(pool, **{array_name: -getattr(pool, array_name)})
    np.testing.assert_array_equal(turned.score(x), pool.score(x))
    assert not np.allclose(turned.losses(x.reshape(-1, 2)), pool.losses(x.reshape(-1, 2)))


@pytest.mark.parametrize("name", ["logistic", "perceptron"])
def test_public_training_and_test_records_are_disjoint(name):
    """The only feature of a record is its index, so that records can be identified."""
    numbered = np.arange(200.0)[:, None]
    labels = np.ones(200)
    if name == "logistic":
        prepared = SimpleNamespace(features=numbered, labels=labels)
        pool = _classified(GENERATOR, 100, 40, prepared=prepared, ridge=0.1, test_rows=60)
        feature_splits = pool.features, pool.test_features, pool.public_features
    else:
        splits = {"train": np.arange(150), "test": np.arange(150, 200)}
        prepared = SimpleNamespace(features=numbered, labels=labels, splits=splits)
        options = {"prepared": prepared, "hidden": 1, "side": 1, "test_rows": 50}
        pool = _images(GENERATOR, 100, 50, **options)
        feature_splits = [pool.features[rows] for rows in (pool.train, pool.test, pool.public)]
    numbers = np.concatenate(feature_splits).ravel()
    assert [len(split) for split in feature_splits] == (
        [100, 60, 40] if name == "logistic" else [100, 50, 50]
    )
    assert len(set(numbers.tolist())) == 200


def test_accounted_tuning_does_not_use_the_losses_of_agents(design):
    """Changing the agents' losses changes the result of the unaccounted search only."""

    class Turned(Means):
        def losses(self, x):
            return -super().losses(x)

    base_pool = pool_of(design, "mean_estimation", {})
    candidates_by_pool = []
    for kind in (Means, Turned):
        entry = ComparisonEntry(
            design.model_copy(update={"tuning": design.tuning.model_copy(update={"trials": 6})}),
            "dp_gd", "mean_estimation", kind(base_pool.records, base_pool.public, base_pool.box),
        )  # fmt: skip
        entry.tune()
        candidates_by_pool.append(entry.candidates)
    straight, turned = candidates_by_pool
    assert straight[1.0, "tuned_paid"] == turned[1.0, "tuned_paid"]
    assert straight[1.0, "tuned"] != turned[1.0, "tuned"]


@pytest.mark.parametrize("name", pools())
def test_records_of_the_public_start_do_not_change_the_score(name):
    """The start minimises the loss on its part; the score is the loss on the other part."""
    pool = pools()[name]
    assert 0 < pool._starting_records < pool.public_count
    public = {"means": "public", "classified": "public_classes", "regressed": "public_responses"}
    values = getattr(pool, public[name]).copy()
    values[: pool._starting_records] *= -1
    turned = replace(pool, **{public[name]: values})
    x = GENERATOR.normal(size=(5, 2))
    np.testing.assert_array_equal(turned.score(x), pool.score(x))
    assert not np.allclose(turned.public_start, pool.public_start)


@pytest.mark.parametrize("name", pools())
def test_baselines_are_the_losses_of_their_models(name):
    pool = pools()[name]
    zero = pool.excess(np.zeros((1, 1, 2)))[0, 0]
    assert pool.data_free().excess == pytest.approx(zero)
    # Here the public records equal those of the agents, so that both minima agree.
    assert pool.public_minimiser().excess == pytest.approx(0.0, abs=1e-7)
    accuracy = pool.data_free().accuracy
    assert accuracy == (0.5 if name == "classified" else None)


def test_the_majority_class_is_estimated_from_the_public_records():
    rows = np.ones((8, 1)) / 2
    classes = np.array([1.0, 1, 1, -1, -1, -1, -1, -1])
    pool = Classified(rows, classes, rows, classes, rows[:3], np.array([1.0, 1.0, -1.0]), 0.1)
    # Frequencies (2 + 1) / 5 and (1 + 1) / 5.
    loss = -(3 * np.log(0.6) + 5 * np.log(0.4)) / 8
    assert pool.majority().excess == pytest.approx(loss - pool.least)
    assert pool.majority().accuracy == 3 / 8


def test_a_clipped_perceptron_bounds_the_gradient_change_of_a_record():
    """Replacing one record changes an agent's gradient by at most 2 C / m."""
    features = GENERATOR.normal(size=(24, 4)).astype(np.float32)
    labels = GENERATOR.integers(0, 10, 24)
    rows = np.arange(20).reshape(1, 2, 10)
    arguments = features, labels, rows, np.arange(20, 24), 3
    perceptron = ClippedPerceptron(*arguments, clip=0.05)
    relabelled = ClippedPerceptron(
        features, (labels + 1) % 10, rows, np.arange(20, 24), 3, clip=0.05
    )
    x = GENERATOR.normal(size=(2, 1, 2, perceptron.dim))
    assert np.linalg.norm(perceptron.gradient(x), axis=-1).max() <= 0.05 + 1e-6
    moved = np.linalg.norm(perceptron.gradient(x) - relabelled.gradient(x), axis=-1)
    assert perceptron.record_change("l2") == pytest.approx(2 * 0.05 / 10)
    assert (
        moved <= 10 * perceptron.record_change("l2") + 1e-6
    ).all()  # all ten records differ here
    # Without an active bound, the gradient equals that of the perceptron without clipping.
    loose = ClippedPerceptron(*arguments, clip=1e6)
    np.testing.assert_allclose(loose.gradient(x), Perceptron(*arguments).gradient(x), atol=1e-5)


@pytest.mark.parametrize("name", pools())
def test_the_minimum_loss_of_the_pool_equals_that_of_scipy(name):
    pool = pools()[name]
    minimum = minimize(lambda x: pool.losses(x[None])[0], np.full(2, 0.1), method="Nelder-Mead",
                     options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000})  # fmt: skip
    assert pool.least == pytest.approx(minimum.fun, abs=1e-9)
    assert pool.excess(minimum.x[None, None]).shape == (1, 1)


@pytest.mark.parametrize("name", ["means", "classified"])
@pytest.mark.parametrize("how", [{}, {"concentration": 1.0, "of": "sizes"}, {"concentration": 0.1}])
def test_agents_gradients_add_up_to_the_pool_gradient_for_any_partition(name, how):
    """The gradients of the agents add up to N times the gradient of F, for unequal sizes too."""
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


def test_the_stated_record_change_bounds_gradients_for_unequal_sizes():
    pool = pools()["classified"]
    rows = shared_out(pool, {"concentration": 1.0, "of": "sizes"}, 4, STREAMS)
    problem = pool.problem(rows)
    x = GENERATOR.normal(size=(1, 2, 4, 2))
    turned = replace(pool, classes=-pool.classes)
    sizes = (rows >= 0).sum(-1)
    moved = np.linalg.norm(turned.problem(rows).gradient(x) - problem.gradient(x), axis=-1)
    assert (moved <= sizes * problem.record_change("l2")).all()


def space_of(design):
    scales = ObjectiveScales(200.0, 3.0)
    return SearchSpace(design, "dp_gd", "mean_estimation", scales)


def test_the_search_covers_the_ranges_and_then_refines_the_best_point(design):
    many = design.model_copy(update={"tuning": design.tuning.model_copy(update={"trials": 12})})
    assert stage_sizes(12) == [4, 4, 4] and stage_sizes(2) == [1, 1, 0] and stage_sizes(1)[1] == 0
    space = space_of(many)
    default = space.default_units
    first = space.points(0, default)
    np.testing.assert_array_equal(first[0], default)
    assert default[-1] == 0.0 and len({*map(tuple, first)}) == 4
    assert {bool(point[-1] >= 0.5) for point in first} == {True, False}
    built = space.candidate()
    limits = many.problems["mean_estimation"].ranges
    assert built.algorithm.eta == limits["eta"].default / 200 and not built.from_public
    centre = np.array([0.05, 0.5, 1.0])
    second, third = (space.points(stage, centre) for stage in (1, 2))
    np.testing.assert_array_equal(second[0], [0.05, 0.5, 0.0])  # from the other starting point
    assert (np.abs(second - centre)[:, :2] <= 0.3).all() and (second >= 0).all()
    assert (np.abs(third - centre)[:, :2] <= 0.12).all() and (third[:, -1] == 1.0).all()
    for units in (*first, *second, *third):
        point_candidate = space.candidate(units)
        assert (
            limits["eta"].low / 200.001
            <= point_candidate.algorithm.eta
            <= limits["eta"].high / 199.999
        )
        assert point_candidate.from_public == (units[-1] >= 0.5)
    trials = [Trial(built, loss) for loss in (np.inf, 2.0, 2.0)]
    assert best(trials) is trials[1]


def test_transferred_parameters_are_the_mean_position_without_the_public_start(design):
    space = space_of(design)
    units = [np.array([0.2, 0.4, 1.0]), np.array([0.6, 0.8, 0.0])]
    selected = space.transferred(units)
    assert not selected.from_public
    positions = [border.position for border in space.positions(selected)]
    np.testing.assert_allclose(positions, [0.4, 0.6], atol=0.01)  # the horizon is a whole number
    assert space.transferred([]) == space.candidate()


def test_a_parameter_at_the_end_of_its_range_has_a_position_near_one(design):
    space = space_of(design)
    eta, horizon = space.positions(space.candidate(np.array([0.999999, 0.5, 0.0])))
    assert (eta.parameter, horizon.parameter) == ("eta", "horizon")
    assert eta.position > 0.999 and "local mean" in eta.natural
    assert 0.4 < horizon.position < 0.6


@pytest.mark.parametrize(("epsilon", "learned"), [(1e-4, False), (50.0, True)])
def test_range_ends_are_natural_limits_only_if_nothing_is_learned(design, epsilon, learned):
    sized = design.tuning.model_copy(update={"trials": 6})
    changed = design.model_copy(update={"tuning": sized, "epsilons": [epsilon]})
    entry = entry_of(changed, "dp_gd")
    entry.tune()
    limits = {
        row["natural"] == NOTHING_LEARNED for row in entry.borders() if row["parameter"] == "eta"
    }
    assert limits == {not learned}


def test_the_public_start_changes_the_iterates_and_not_the_noise(design):
    """A run without steps returns its starting point."""
    entry = entry_of(design, "dp_gd")
    world = entry.world(entry.base, 1, 2)
    still = replace(entry.space.candidate().algorithm, eta=1e-12)
    ends = []
    for from_public in (False, True):
        start_candidate = TuningCandidate(still, 3, from_public)
        calibrated = entry.calibrated(start_candidate, 1.0, "tuned", world)
        setting = CalibratedCandidate(1.0, "tuned", start_candidate, calibrated)
        ends.append(entry.measured([setting], world)[0]["excess_loss_mean"])
        noise = calibrated.algorithm.noise.scale
    np.testing.assert_allclose(ends[0], entry.pool.data_free().excess)
    start = entry.pool.excess(entry.pool.public_start[None, None])[0, 0]
    np.testing.assert_allclose(ends[1], start)
    again = entry.calibrated(TuningCandidate(still, 3, False), 1.0, "tuned", world)
    assert again.algorithm.noise.scale == noise


def test_the_search_is_close_to_a_fine_grid_on_new_runs(design):
    """Repeat the tuning check of the published comparison at small size."""
    tuning = design.tuning.model_copy(
        update={"trials": 12, "checked": ["muffliato_gd"], "checked_on": "mean_estimation"}
    )
    methods = {"muffliato_gd": read_comparison(RAW).methods["muffliato_gd"]}
    small = design.model_copy(update={"tuning": tuning, "runs": 6, "methods": methods})
    (entry,) = entries_of(small, {})
    checks = list(checked_tuning(entry))
    assert [row["epsilon"] for row in checks] == EPSILONS
    for row in checks:
        assert row["passed"] and row["points"] == 2 * 8**2
        assert row["ratio"] == pytest.approx(row["tuned"] / row["grid"])
    worst = entry.trials[10.0, "tuned"]
    entry.candidates[10.0, "tuned"] = max(worst, key=lambda t: t.loss).candidate
    assert not list(checked_tuning(entry))[-1]["passed"]


def test_invalid_tuning_ranges_are_refused(design, monkeypatch):
    problem = design.problems["mean_estimation"].model_copy(update={"ranges": {}})
    changed = design.model_copy(update={"problems": {"mean_estimation": problem}})
    kind = type(space_of(changed).candidate().algorithm)
    eta_range = kind.ranges["eta"]
    for wrong in (
        {"temperature": eta_range},
        {"eta": eta_range._replace(low=9.0)},
        {"eta": eta_range._replace(unit="m")},
    ):
        monkeypatch.setattr(kind, "ranges", wrong)
        with pytest.raises(InvalidInput, match=kind.__name__):
            _ = space_of(changed).ranges


def test_all_runs_of_a_cell_have_the_same_graph(design):
    entry = entry_of(design, "dp_gd")
    base = next(cell.environment for cell in cells(design) if cell.axis == BASE)
    first, again = (entry.world(base, root, runs).network for root, runs in ((1, 2), (9, 3)))
    assert first.shared and first.identity == again.identity
    assert first.n_agents == build(Streams(0, (0,)), "ring", 10).n_agents


def test_methods_for_neighbour_observers_use_their_full_budget(design):
    """The exact formula for a neighbour assumes that all messages arrive."""
    names = ["decor_near", "zip_dl_near", "local_training_kept"]
    full = read_comparison(RAW)
    neighbour_design = design.model_copy(
        update={"methods": {name: full.methods[name] for name in names}}
    )
    rows = checked(results_of(neighbour_design)[0])
    assert {*rows["observer"]} == {"neighbour"} and {*rows["method"]} == {*names}
    assert rows["proven"].all()
    used_fraction = pl.col("epsilon_accountant") / pl.col("epsilon")
    is_local = pl.col("method") == "local_training_kept"
    assert rows.filter(is_local)["epsilon_accountant"].max() == 0.0
    assert rows.filter(~is_local).select(used_fraction.min()).item() > 1 - 1e-6
    loss = rows.filter(
        (pl.col("measure") == "excess_loss_mean") & (pl.col("tuning") == "transferred")
    )
    alone = loss.filter(is_local).group_by("run").agg(pl.col("value").n_unique())
    assert alone["value"].max() == 1  # no noise, for any budget and any missing agents
