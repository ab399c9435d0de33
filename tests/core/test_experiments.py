"""Test the configuration, its expansion to cells, and the rows of results."""

import copy
import json
import math
import os
import re
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from private_consensus.common import yamls
from private_consensus.common.errors import InvalidInput, Refused
from private_consensus.core import algorithms, networks, problems
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget
from private_consensus.reproduction.configuration import plan as planning
from private_consensus.reproduction.configuration import schema
from private_consensus.reproduction.configuration.checks import wrong_settings
from private_consensus.reproduction.configuration.schema import read_yaml
from private_consensus.reproduction.results import files as results
from private_consensus.reproduction.results.cells import run_cell
from private_consensus.reproduction.results.numbers import (
    curve_points,
    figure_numbers,
    guarantee_of,
)

CONFIG = Path(__file__).parents[2] / "config"
ALL = read_yaml(CONFIG / "config.yaml")
ONE = {**ALL, "papers": ["showkatbakhsh"]}
FIG1 = "experiments/showkatbakhsh_fig1"


@pytest.fixture(scope="module")
def plan():
    return planning.load({**ONE, "scale": "smoke"}, CONFIG)


def test_at_smoke_scale_the_number_of_runs_is_a_multiple_of_the_block_size():
    """Only complete blocks are computed, so a remainder would cause unused runs."""
    small = planning.load({**ALL, "scale": "smoke"}, CONFIG)
    cells = {pair: small.cell(*pair) for pair in small.cells()}
    assert [pair for pair, cell in cells.items() if cell["runs"] % cell["runs_per_batch"]] == []


def changed(path: str, value) -> dict:
    config = copy.deepcopy(ONE)
    target = config
    *parents, last = path.split(".")
    for parent in parents:
        target = target[parent]
    target[last] = value
    return config


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("seeds", 3, "seeds: unknown key"),
        ("seed", -1, "seed: .*found -1"),
        ("data.surrogate_rows", 10**12, "data.surrogate_rows: found 1000000000000, .*10000000"),
        ("papers", ["nobody"], "papers: found 'nobody', expected one of .*showkatbakhsh"),
        ("papers", ["xiao", "xiao"], "papers: .*expected each value once"),
        ("scale", "smokey", "scale: found 'smokey', .*did you mean smoke"),
        ("seed", True, "seed: found True, expected a whole number"),
        ("data.connection_timeout_s", math.nan, "data.connection_timeout_s: .*found nan"),
    ],
)
def test_the_error_of_an_invalid_configuration_names_key_and_value(path, value, message):
    with pytest.raises(Refused, match=message):
        planning.load(changed(path, value), CONFIG)


def content(paper: str = "showkatbakhsh") -> dict:
    """Return the content of a paper's file as a copy that a test may change."""
    return json.loads(json.dumps(read_yaml(CONFIG / "papers" / f"{paper}.yaml")))


@pytest.fixture
def loaded(monkeypatch):
    """Return a function that plans a paper from a dictionary instead of a file."""

    def load(paper: dict, config: dict = ONE) -> planning.Plan:
        monkeypatch.setattr(schema, "read_yaml", lambda path: paper)
        return planning.load(config, CONFIG)

    return load


@pytest.fixture
def spoilt(loaded):
    """Return a function that sets one value of a paper and returns the configuration error."""

    def spoil(path: str, value) -> Refused:
        target = paper = content()
        *parents, last = path.split("/")
        for parent in parents:
            target = target[int(parent)] if parent.isdigit() else target.setdefault(parent, {})
        target[int(last) if last.isdigit() else last] = value
        with pytest.raises(Refused) as caught:
            loaded(paper)
        return caught.value

    return spoil


AXIS = {"set": "budget.epsilon", "values": [1.0]}
REPAIRED = f"{FIG1}/algorithms/gradient_descent/repaired"
FIGURE = "figures/showkatbakhsh_fig1"
INCOMPLETE = {"kind": "slope", "method": "gradient_descent.whole", "measure": "released.squared"}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (f"{FIG1}/axes/e", {**AXIS, "set": "network.agents", "values": [4.5]}, "agents: found 4.5"),
        (
            f"{FIG1}/axes/e",
            {**AXIS, "values": [-1.0]},
            r"papers/showkatbakhsh.yaml: experiments.showkatbakhsh_fig1.algorithms.gradient_descent"
            r"\[repaired, horizon=1, e=-1.0\].budget.epsilon: found -1.0, expected a",
        ),
        (
            f"{FIG1}/network",
            {"name": "edges", "agents": 5, "edges": [[1, 2], [3, 4], [4, 5]]},
            r"\[repaired, horizon=1\].network: found 'disconnected graph', expected a connected",
        ),
        (f"{REPAIRED}/set", {"algorithm.decay": "x"}, "algorithm.decay: found 'x', expected a num"),
        (f"{REPAIRED}/set", {"network.name": "rign"}, "name: found 'rign', expected one of"),
        (f"{REPAIRED}/set", {"network": 0.5}, "network: found 0.5, expected a mapping"),
        (f"{REPAIRED}/set", {"horizon": 10**9}, "horizon: found 1000000000, expected .* <= 1"),
        (f"{FIG1}/budget/delta", 0, "delta: found 0, expected a number above 0, since the noise"),
        (f"{FIG1}/iterations", [10**6], "iterations: found 1000000, expected .* up to the horizon"),
        (f"{FIGURE}/where", {"t": 999}, "where.t: found 999, expected one of"),
        (f"{FIGURE}/where", {"t": [998, 999]}, "where.t: found .*, expected a range with a rec"),
    ],
)
def test_invalid_settings_are_refused_when_the_plan_is_loaded(spoilt, path, value, message):
    lines = spoilt(path, value).lines
    assert any(re.search(message, line) for line in lines), lines


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (f"{FIG1}/budget/epsilon", 0, "showkatbakhsh_fig1.budget.epsilon: .*found 0"),
        (f"{FIG1}/problem/name", "chess", "problem.name: found 'chess', .*mean_estimation"),
        (f"{FIG1}/problem/prepared", "nothing", "prepared: found 'nothing', expected one of adult"),
        (f"{FIG1}/algorithms", {"magic": {}}, "expected one of .*gradient_descent"),
        (f"{FIG1}/axes/horizon/set", "weather.today", "found 'weather.today', expected one of"),
        (f"{FIG1}/smoke/axes", {"gamma": [1]}, "axes: found 'gamma', expected one of"),
        (f"{FIG1}/paper_values", {"problem.recordz": 100}, "paper_values: found 'problem.recordz'"),
        (f"{FIGURE}/curves/0/method", "gradient_descent.no", "found 'gradient_descent.no', expec"),
        ("claims/showkatbakhsh_c01/figure", "no", "c01.figure: found 'no', expected one of"),
        ("claims/showkatbakhsh_c01/tests/0/kind", "guess", "c01.tests.0.kind: .*guess"),
        ("claims/showkatbakhsh_c03/test", INCOMPLETE, "c03.test.x: missing, expected a value"),
        ("claims/showkatbakhsh_c03/test/kind", "below", "c03.test.against: missing, expected"),
        ("claims/showkatbakhsh_c03/test/kind", "largest", "c03.test.best_at: missing, expected"),
    ],
)
def test_the_error_of_an_invalid_paper_file_names_key_and_value(spoilt, path, value, message):
    error = spoilt(path, value)
    assert any(re.search(message, line) for line in error.lines), error.lines


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ("decay: 1.0", "tuned: 1.0", "inverse_t.tuned: found 1.0"),
        ("dim: 5", "dimm: 5", "problem: found 'dimm', .*did you mean dim"),
        ("  showkatbakhsh_fig1:\n    <<", "  fig1:\n    <<", "found 'showkatbakhsh_fig1'"),
        ("{name: mean_estimation, ", "{name: mean, ", "name: found 'mean', .*mean_estimation"),
    ],
)
def test_a_mistake_with_many_consequences_has_one_line(monkeypatch, old, new, mistake):
    text = (CONFIG / "papers" / "showkatbakhsh.yaml").read_text()
    assert old in text
    changed_text = text.replace(old, new)
    monkeypatch.setattr(schema, "read_yaml", lambda path: yamls.parse(changed_text, path.name))
    with pytest.raises(Refused) as caught:
        planning.load(ONE, CONFIG)
    [line] = caught.value.lines
    assert line.startswith(f"{os.path.relpath(CONFIG / 'papers' / 'showkatbakhsh.yaml')}: ")
    assert re.search(rf"{mistake}.* \(first of \d+ places\)", line)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"experiment": "nobody_fig1"}, "experiment: found 'nobody_fig1', expected one of"),
        ({"experiment": "xiao_fig1"}, None),  # of a paper that is not selected
        ({"algorithm": "dvp"}, "method: found 'dvp.*', expected one of gradient_descent"),
        ({"variant": "exat"}, "found 'gradient_descent.exat', .*did you mean"),
        ({"where": {"epsilo": 1}}, "where: found 'epsilo', .*did you mean epsilon"),
    ],
)
def test_unknown_names_in_the_file_of_audits_are_refused(monkeypatch, change, message):
    audits = read_yaml(CONFIG / "audits.yaml")
    entry = {"experiment": "showkatbakhsh_fig2", "algorithm": "gradient_descent", **change}
    content = {**audits, "settings": [entry]}
    monkeypatch.setattr(
        planning, "read_yaml", lambda p: content if p.name == "audits.yaml" else read_yaml(p)
    )
    refusal = pytest.raises(Refused, match=message) if message else nullcontext()
    with refusal:
        planning.load(ONE, CONFIG)


@pytest.mark.parametrize(
    ("value", "hint"), [("1e-5", True), ("1.5E3", True), ("one", False), ("e", False)]
)
def test_only_numbers_in_exponent_notation_have_a_hint_on_their_notation(value, hint):
    assert ("write 1.0e-5" in str(InvalidInput("delta", value, "a number"))) == hint


def test_a_cell_lists_every_setting_explicitly(plan):
    cell = plan.cell("showkatbakhsh_fig2", "gradient_descent")
    epsilons, powers, variants = 3, 3, 5
    assert len(cell["settings"]) == epsilons * powers * variants
    assert json.loads(json.dumps(cell)) == cell
    setting = cell["settings"][0]
    assert setting["budget"]["delta"] == pytest.approx(
        (10 * 100) ** setting["columns"]["delta_power"]
    )
    assert setting["horizon"] == 100  # of the smoke scale


@pytest.fixture(scope="module")
def plan_of_all():
    return planning.load(ALL, CONFIG)


def test_a_variant_overrides_an_axis(plan_of_all):
    cell = plan_of_all.cell("ding_fig14_waiting", "dsgd")
    private = [s for s in cell["settings"] if s["variant"] == "private"]
    assert {s["horizon"] for s in private} == {246}
    assert len({s["columns"]["rounds"] for s in private}) == 6


def test_an_infinite_epsilon_is_preserved_in_a_cell(plan_of_all):
    cell = plan_of_all.cell("ding_fig5", "admm")
    assert {s["budget"]["epsilon"] for s in cell["settings"]} == {math.inf}


@pytest.fixture(scope="module")
def ran(plan):
    cell = plan.cell("showkatbakhsh_fig1", "gradient_descent")
    cell = {**cell, "runs": 3, "settings": cell["settings"][::3]}
    return cell, *run_cell(cell, {})


def test_a_cell_has_one_row_per_measurement_and_one_privacy_row_per_setting(ran):
    cell, runs, privacy = ran
    assert runs.height == len(cell["settings"]) * 3 * len(cell["measures"])
    assert privacy.height == len(cell["settings"])
    assert runs["value"].is_finite().all()
    settings = {(s["variant"], s["columns"]["horizon"]) for s in cell["settings"]}
    assert set(privacy.select("variant", "horizon").rows()) == settings


def test_the_accounted_epsilon_is_below_those_of_the_formula_and_the_claim(ran):
    _, _, privacy = ran
    private = privacy.filter(pl.col("variant") == "repaired")
    assert (private["epsilon_accountant"] < private["epsilon_formula"]).all()
    assert (private["epsilon_formula"] <= private["epsilon_claimed"] + 1e-9).all()
    assert set(private["verdict"]) == {"holds"}


def test_plotted_numbers_are_the_means_of_the_runs(plan, ran):
    _, runs, privacy = ran
    panel = plan.figures["showkatbakhsh_fig1"].model_dump(mode="json")["panels"][0]
    panel["curves"] = panel["curves"][:1]
    cells = {("showkatbakhsh_fig1", "gradient_descent"): (runs, privacy)}
    numbers = figure_numbers([panel], cells, source="made")
    for row in numbers.iter_rows(named=True):
        values = runs.filter(
            (pl.col("variant") == "repaired") & (pl.col("quantity") == "consensus")
            & (pl.col("horizon") == row["horizon"])
        )["value"].to_numpy()  # fmt: skip
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert row["y"] == pytest.approx(values.mean())
        assert (row["low"], row["high"]) == pytest.approx((row["y"] - error, row["y"] + error))
        assert row["runs"] == 3


def test_result_files_contain_their_provenance_and_data_source(tmp_path):
    mark = results.stamp({"a": 1}, "code", "adult (surrogate)")
    results.write(pl.DataFrame({"x": [1]}), tmp_path / "a.parquet", mark)
    assert results.provenance_of(tmp_path / "a.parquet") == mark
    results.write(pl.DataFrame({"y": [1]}), tmp_path / "b.parquet", {**mark, "source": "made"})
    both = results.read_all([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    assert both["source"].to_list() == ["adult (surrogate)", "made"]
    assert results.sources([tmp_path / "a.parquet"] * 2) == "adult (surrogate)"


def test_repeated_runs_give_byte_identical_result_files(ran, tmp_path):
    cell, runs, _ = ran
    again, _ = run_cell(cell, {})
    for name, frame in (("first", runs), ("second", again)):
        results.write(frame, tmp_path / name, results.stamp(cell, "", ""))
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_a_curve_can_show_selected_runs_with_range_or_standard_deviation():
    runs = pl.DataFrame(
        {
            "experiment": "e", "algorithm": "a", "variant": "v", "interpretation": "resolved",
            "quantity": "q", "metric": "m", "t": 1, "run": [0, 1, 2, 3],
            "value": [1.0, 5.0, 3.0, 100.0], "source": "made",
        }
    )  # fmt: skip
    curve = {
        "method": "a", "variant": "v", "style": "v", "interpretation": "resolved",
        "measure": "q.m", "where": {"run": [0, 2]}, "by": None, "label": "", "low": None,
        "interval": "range",
    }  # fmt: skip
    [point] = curve_points(runs, pl.DataFrame(), curve, "t").to_dicts()
    assert (point["y"], point["low"], point["high"], point["runs"]) == (3.0, 1.0, 5.0, 3)
    assert point["interval"] == "least and largest run"
    [spread] = curve_points(
        runs, pl.DataFrame(), {**curve, "interval": "standard deviation"}, "t"
    ).to_dicts()
    deviation = np.std([1.0, 3.0, 5.0], ddof=1)
    assert (spread["low"], spread["high"]) == pytest.approx((3 - deviation, 3 + deviation))
    assert spread["interval"] == "mean +- standard deviation"


@pytest.mark.parametrize(
    ("changes", "guarantee"),
    [
        ({"where": {"epsilon": 1.0}}, "proven"),
        ({"where": {"epsilon": [1.0, 2.0]}}, "not proven"),  # one of two settings
        ({"where": {"epsilon": 2.0, "run": 0}}, "not proven"),
        ({"variant": "open"}, ""),  # states no guarantee
        ({"variant": "broken"}, "refuted"),  # one setting is violated, another one is not proven
        ({"measure": "messages"}, "not proven"),
        (
            {"measure": "internal.test_error", "where": {"epsilon": 1.0}},
            "",
        ),  # internal values are not sent
        ({"measure": "released.majority_test_error"}, ""),
        ({"measure": "released.origin_log_distance"}, ""),
    ],
)
def test_a_curve_is_proven_only_if_all_its_settings_are_proven(changes, guarantee):
    privacy = pl.DataFrame(
        {"variant": ["main", "main", "open", "broken", "broken"],
         "epsilon": [1.0, 2.0, np.inf, 1.0, 2.0],
         "verdict": ["holds by slack", "not proven", "no claim", "violated", "not proven"]}
    )  # fmt: skip
    curve = {"variant": "main", "measure": "released.test_error", "where": {}}
    assert guarantee_of(privacy, curve | changes) == guarantee


MEANS = {"name": "mean_estimation", "records": 10, "dim": 2, "box": 5.0}
ADULT = {"name": "logistic_regression", "prepared": "adult-onehot104", "ridge": 0.1, "box": 5.0}


@pytest.mark.parametrize(
    ("algorithm", "problem", "error"),
    [
        ("gradient_descent", {**MEANS, "records": -5}, "records: found -5, expected a whole numbe"),
        ("gradient_descent", {**MEANS, "box": 0.0}, "box: found 0.0, expected a number > 0"),
        ("gradient_descent", {**MEANS, "box": "wide"}, "box: found 'wide', expected a number"),
        ("gradient_descent", {**ADULT, "records": 40_000}, "records: found 40000, expected a whol"),
        ("d_zoa", MEANS, "name: found 'mean_estimation', expected a problem with gram"),
    ],
)
def test_a_wrong_problem_is_refused_without_its_data(algorithm, problem, error):
    setting = {
        "columns": {}, "variant": "v", "interpretation": "resolved", "horizon": 2,
        "algorithm": {}, "budget": {"epsilon": 1.0, "delta": 1e-5}, "problem": problem,
        "network": {"name": "ring", "agents": 3, "weights": "metropolis"},
    }  # fmt: skip
    ((_, line),) = wrong_settings({"algorithm": algorithm, "settings": [setting]})
    assert re.match(f"problem.{error}", line)


@pytest.mark.parametrize(
    ("name", "is_refused"),
    [("gradient_descent", True), ("one_shot_averaging", True), ("ldp_gradient_descent", False)],
)
def test_a_delta_of_0_is_refused_unless_the_noise_allows_it(name, is_refused):
    features, labels = np.full((1, 3, 10, 2), 0.5), np.resize([-1.0, 1.0], (1, 3, 10))
    problem = problems.class_of("logistic_regression")(
        features, labels, features[:, 0], labels[:, 0], weight=1.0, ridge=0.1, box=5.0
    )
    network = networks.build(Streams(0, (0,)), "ring", 3, weights="metropolis")
    algorithm = algorithms.load(name)()
    algorithm.calibrate(Budget(1.0, 1e-5), problem, network, 2)
    refusal = pytest.raises(InvalidInput, match=r"^budget") if is_refused else nullcontext()
    with refusal:
        algorithm.calibrate(Budget(1.0, 0.0), problem, network, 2)
