"""Test the configuration, its expansion to cells, and the rows of results."""

import copy
import json
import math
import re
import time
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from private_consensus import algorithms, problems
from private_consensus.common.errors import InvalidInput
from private_consensus.common.fields import validate
from private_consensus.reproduction.experiments import plan as planning
from private_consensus.reproduction.experiments import results
from private_consensus.reproduction.experiments.cells import run_cell
from private_consensus.reproduction.experiments.checks import (
    require_rows,
    require_settings,
    wrong_settings,
)
from private_consensus.reproduction.experiments.files import read_paper
from private_consensus.reproduction.experiments.numbers import (
    curve_points,
    figure_numbers,
    guarantee_of,
)
from private_consensus.reproduction.experiments.schema import (
    Config,
    ConfigurationError,
    Figure,
    FigurePanel,
    Paper,
    Scale,
    read_yaml,
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


@pytest.mark.parametrize("scale", ["paper", "smoke"])
def test_a_scale_sets_the_number_of_runs_and_of_runs_per_batch(scale):
    paper = planning.load(ONE, CONFIG).papers["showkatbakhsh"]
    experiment = paper.experiments["showkatbakhsh_fig1"].model_copy(
        update={"scales": {"smoke": Scale(runs=6, runs_per_batch=3)}}
    )
    config = validate(Config, {**ONE, "scale": scale})
    cell = planning.expand(experiment, "showkatbakhsh_fig1", "gradient_descent", config)
    assert (cell["runs"], cell["runs_per_batch"]) == {
        "paper": (experiment.runs, experiment.runs_per_batch), "smoke": (6, 3)
    }[scale]  # fmt: skip


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
        ("seed", "many", "seed: .*found 'many'"),
        ("seed", -1, "seed: .*found -1"),
        ("data.source", "internet", "data.source: .*found 'internet'"),
        ("data.cash", "x", "data.cash: unknown key"),
        ("data.connection_timeout_s", 0, "data.connection_timeout_s: .*found 0"),
        ("data.connection_timeout_s", math.inf, "data.connection_timeout_s: .*86400.*found inf"),
        ("data.cache", "", "data.cache: .*at least 1 character"),
        ("data.surrogate_rows", 10**12, "data.surrogate_rows: .*10000000.*found 1000000000000"),
        ("papers", ["nobody"], "papers: found 'nobody', expected one of .*showkatbakhsh"),
        ("papers", [], "papers: "),
        ("papers", ["xiao", "xiao"], "papers: expected each value once"),
        ("runs", 0, "runs: .*found 0"),
        ("scale", "Paper scale", "scale: "),
        ("scale", "smokey", "scale: found 'smokey', expected one of paper, smoke$"),
        ("scale", "reference", "scale: found 'reference', expected one of paper, smoke$"),
        ("seed", True, "seed: .*integer.*found True"),
        ("seed", "1", "seed: .*integer.*found '1'"),
        ("runs", 2.0, "runs: .*integer.*found 2.0"),
        ("data.connection_timeout_s", "3", "data.connection_timeout_s: .*number.*found '3'"),
        ("data.connection_timeout_s", math.nan, "data.connection_timeout_s: .*found nan"),
    ],
)
def test_the_error_of_an_invalid_configuration_names_key_and_value(path, value, message):
    with pytest.raises(ConfigurationError, match=message):
        planning.load(changed(path, value), CONFIG)


def complete() -> dict:
    """Return the expanded file of Showkatbakhsh et al. as a new object that a test may change."""
    return copy.deepcopy(read_paper(CONFIG / "papers" / "showkatbakhsh.yaml"))


@pytest.fixture
def loaded(monkeypatch):
    """Return a function that plans a paper from a dictionary instead of a file."""

    def load(paper: dict, config: dict = ONE) -> planning.Plan:
        monkeypatch.setattr(planning, "read_paper", lambda path: paper)
        return planning.load(config, CONFIG)

    return load


@pytest.fixture
def spoilt(loaded):
    """Return a function that sets one value of a paper and returns the configuration error."""

    def spoil(path: str, value) -> ConfigurationError:
        target = paper = complete()
        *parents, last = path.split("/")
        for parent in parents:
            target = target[int(parent)] if parent.isdigit() else target.setdefault(parent, {})
        target[int(last) if last.isdigit() else last] = value
        with pytest.raises(ConfigurationError) as caught:
            loaded(paper)
        return caught.value

    return spoil


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("scales", ["reference"], "scales: 'reference' is a predefined name"),
        ("scales", ["smoke"], "scales: 'smoke' is a predefined name"),
        ("scales", ["tiny"], r"fig1\.scales\.tiny: missing"),
        (f"{FIG1}/scales", {"smokey": {"runs": 2}}, "found 'smokey', expected one of smoke$"),
        (f"{FIG1}/horizon", True, "horizon: .*found True"),
        (f"{FIG1}/budget", {"epsilon": "1", "delta": 0.1}, r"budget\.epsilon: .*found '1'"),
        (f"{FIG1}/budget", {"epsilon": 1.0, "delta": "1e-5"}, r"budget\.delta: .*write 1\.0e-5"),
        (f"{FIG1}/budget", {"epsilon": 1.0, "delta": False}, r"budget\.delta.*found False"),
        ("figures/showkatbakhsh_fig1/panels/0/log_x", "yes", "log_x: .*found 'yes'"),
    ],
)
def test_unknown_scales_and_values_of_the_wrong_type_are_refused(spoilt, path, value, message):
    assert any(re.search(message, line) for line in spoilt(path, value).lines)


AXIS = {"set": "budget.epsilon", "values": [1.0]}
REPAIRED = f"{FIG1}/algorithms/gradient_descent/repaired"
PANEL = "figures/showkatbakhsh_fig1/panels/0"
BEFORE_THE_END = f"{FIG1}/intermediate_measures"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (f"{FIG1}/axes/value", AXIS, "axes: 'value' is a column of results"),
        (f"{FIG1}/axes/t", AXIS, "axes: 't' is a column of results"),
        (f"{FIG1}/axes/run", AXIS, "axes: 'run' is a column of results"),
        (f"{FIG1}/axes/verdict", AXIS, "axes: 'verdict' is a column of results"),
        (f"{FIG1}/axes/e", {**AXIS, "set": "budget.epsilonn"}, "found 'budget.epsilonn', expected"),
        (
            f"{FIG1}/axes/e",
            {**AXIS, "set": "budgett.epsilon"},
            "'budgett.epsilon', expected one of",
        ),
        (f"{FIG1}/axes/e", {**AXIS, "set": "algorithm.step"}, "'algorithm.step', expected one of"),
        (f"{FIG1}/axes/e", {**AXIS, "set": "horizon.x"}, "'horizon.x', expected one of horizon"),
        (f"{REPAIRED}/set", {"seed": 1}, r"repaired\.set: found 'seed', expected one of problem"),
        (
            f"{REPAIRED}/set",
            {"algorithm.shfit": 1},
            "found 'algorithm.shfit', expected one of algo",
        ),
        (f"{REPAIRED}/set", {"budget": {}}, "found 'budget', expected one of budget.epsilon"),
        (f"{FIG1}/scales/smoke/set", {"problem.recrods": 1}, "found 'problem.recrods', expected"),
        (f"{FIG1}/problem/size", 3, "found 'problem.size', expected one of problem.name, "),
        (f"{FIG1}/network/edges_", 3, "found 'network.edges_', expected one of network.name"),
        (f"{FIG1}/measures", ["released.eror"], "released: found 'eror', expected one of"),
        (f"{FIG1}/iterations", [0], "iterations: found 0, expected a whole number"),
        (f"{FIG1}/iterations", [9000], "iterations: found 9000, expected .* within the horizon, "),
        (
            BEFORE_THE_END,
            {"measures": ["consensus.eror"]},
            "measures: found 'consensus.eror', expected one of internal.normalised_error",
        ),
        (
            BEFORE_THE_END,
            {"where": {"epsilom": 1.0}},
            "intermediate_measures.where: found 'epsilom', expected one of horizon",
        ),
        (BEFORE_THE_END, {"where": {"horizon": 4}}, r"where\.horizon: found 4, expected one of"),
        (BEFORE_THE_END, {"where": {"horizon": [1, 5]}}, "horizon: found .1, 5., expected one"),
        (
            f"{FIG1}/measures",
            ["relaesed.node_error"],
            "measures: found 'relaesed', expected one of internal, released, con",
        ),
        (f"{PANEL}/curves/0/where", {"t": "last"}, r"where\.t: found 'last', expected a whole"),
        (
            f"{PANEL}/curves/0/where",
            {"t": [3, 1]},
            r"where\.t: found \[3, 1\], expected a value, or",
        ),
        (f"{PANEL}/curves/0/where", {"t": [1, 2, 3]}, "expected a value, or a range"),
        (f"{PANEL}/where", {"t": 99999}, r"where\.t: found 99999, expected one of "),
        (f"{PANEL}/where", {"run": 100_000}, r"where\.run: found 100000, expected one of 0 to "),
        ("paper/key", "other", "paper.key: found 'other', expected 'showkatbakhsh'"),
        (f"{FIG1}/runs_per_batch", 10**9, "runs_per_batch: .*10000.*found 1000000000"),
        (f"{FIG1}/problem/records", -5, "problem.records: found -5, expected a whole number >= 1"),
        (f"{FIG1}/problem/box", 0.0, "problem.box: found 0.0, expected a finite number > 0"),
        (f"{PANEL}/goals", [0.1, 0.1], "goals: found 0.1, expected different positive numbers"),
        (f"{PANEL}/goals", [-1.0], "goals: found -1.0, expected different positive numbers"),
        (f"{PANEL}/goals", [float("inf")], "goals: found inf, expected different positive numbers"),
        (f"{FIG1}/scales/smoke/set", {"horizon": 1.5}, "horizon: found 1.5, expected a whole"),
        (f"{PANEL}/x", "epsilom", "x: found 'epsilom', expected one of "),
        (f"{PANEL}/curves/0/by", "deltas", "by: found 'deltas', expected one of "),
        (f"{PANEL}/curves/0/measure", "nope", "found 'nope', expected one of "),
        (f"{PANEL}/curves/0/where", {"epsilom": 1.0}, "where: found 'epsilom', expected one of"),
        (f"{PANEL}/curves/0/where", {"horizon": 4}, r"where\.horizon: found 4, expected one of"),
    ],
)
def test_unknown_names_and_invalid_values_in_a_paper_file_are_refused(spoilt, path, value, message):
    assert any(re.search(message, line) for line in spoilt(path, value).lines)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (f"{FIG1}/axes/e", {**AXIS, "set": "network.agents", "values": [4.5]}, "agents: found 4.5"),
        (
            f"{FIG1}/axes/e",
            {**AXIS, "set": "problem.records", "values": ["a"]},
            "records: found 'a'",
        ),
        (
            f"{FIG1}/axes/e",
            {**AXIS, "values": [-1.0]},
            "budget.epsilon: found -1.0, expected a num",
        ),
        (f"{FIG1}/axes/e", {**AXIS, "set": "budget.delta", "values": ["a"]}, "delta: found 'a'"),
        (f"{REPAIRED}/set", {"algorithm.decay": "x"}, "algorithm.decay: found 'x', expected a num"),
        (f"{REPAIRED}/set", {"problem.dim": True}, "problem.dim: found True, expected a whole"),
        (
            f"{REPAIRED}/set",
            {"network.name": "rign"},
            "network.name: found 'rign', expected one of",
        ),
        (
            f"{REPAIRED}/set",
            {"budget.delta": 0.1, "budget.delta.records_power": -1},
            "a section with keys",
        ),
        (f"{REPAIRED}/set", {"network": 0.5}, "network: found 0.5, expected a mapping"),
        (
            f"{REPAIRED}/set",
            {"network": {"name": "edges", "agents": 3, "edges": [[1, 9]]}},
            "pairs of",
        ),
        (
            f"{REPAIRED}/set",
            {"horizon": 1_000_000_000},
            "horizon: found 1000000000, expected .* <= 10000000",
        ),
        (f"{FIG1}/runs", 1_000_000_000, "runs: found 1000000000, expected .* <= 1000000"),
        (
            f"{REPAIRED}/set",
            {"network.agents": 1_000_000_000},
            "agents: found 1000000000, expected",
        ),
        (
            f"{FIG1}/axes/e",
            {**AXIS, "values": [float(i) for i in range(1, 5001)]},
            "5,000 values of e x .* variants = .*,000 settings, expected at most 100,000",
        ),
    ],
)
def test_invalid_settings_are_refused_when_the_plan_is_loaded(spoilt, path, value, message):
    lines = spoilt(path, value).lines
    assert any(re.search(message, line) for line in lines), lines


@pytest.mark.parametrize("name", ["../../../ESCAPED", ".*", "a/b", "", "a" * 101, "1a", "a b"])
@pytest.mark.parametrize("section", ["figures", "tables", "claims"])
def test_invalid_names_of_figures_tables_and_claims_are_refused(section, name):
    paper = {"paper": {"key": "x", "number": "", "title": "", "authors": [], "venue": ""},
             "experiments": {}, "figures": {}, "tables": {}, "claims": {}}  # fmt: skip
    validate(Paper, paper)
    with pytest.raises(ConfigurationError) as caught:
        validate(Paper, {**paper, section: {name: {}}})
    assert any("String should" in line for line in caught.value.lines)


def test_names_of_workflow_rules_and_duplicate_names_are_refused(spoilt, monkeypatch, tmp_path):
    spec = complete()
    figure = spec["figures"]["showkatbakhsh_fig1"]
    lines = spoilt("figures/everything", figure).lines
    assert any("everything: the name is that of a rule of the workflow" in line for line in lines)
    rules = "".join(f.read_text() for f in (CONFIG.parent / "workflow/rules").glob("*.smk"))
    rules += (CONFIG.parent / "Snakefile").read_text()
    assert set(re.findall(r"^(?:use )?rule (\w+)(?: as (\w+))?", rules, re.M)) <= {
        pair for name in planning.RULES for pair in ((name, ""), ("acquire", name))
    }
    (tmp_path / "papers").mkdir()
    (tmp_path / "styles.yaml").write_text((CONFIG / "styles.yaml").read_text())
    for key in ("showkatbakhsh", "copy"):
        (tmp_path / "papers" / f"{key}.yaml").touch()
    monkeypatch.setattr(
        planning, "read_paper", lambda path: {**spec, "paper": {**spec["paper"], "key": path.stem}}
    )
    with pytest.raises(ConfigurationError) as caught:
        planning.load({**ONE, "papers": ["showkatbakhsh", "copy"]}, tmp_path)
    for section in ("figures", "experiments"):
        where = f"{section}.showkatbakhsh_fig1"
        assert any(f"copy.{where}: the name is that of showkatbakhsh.{where}" in line
                   for line in caught.value.lines)  # fmt: skip


def test_unknown_axes_and_measures_in_claims_are_refused(loaded):
    for claim, spoil, message in (
        (0, {"where": {"epsilom": 1}}, "where: found 'epsilom'"),
        (0, {"measure": "nope.x"}, "found 'nope.x'"),
    ):
        paper = complete()
        variant = next(iter(list(paper["claims"].values())[claim]["variants"].values()))
        variant["tests"][0]["series"] |= spoil
        with pytest.raises(ConfigurationError, match=message):
            loaded(paper)


def test_a_study_can_declare_a_scale(loaded):
    paper = complete()
    for experiment in paper["experiments"].values():
        experiment["scales"]["tiny"] = {"runs": 1}
    tiny_plan = loaded({**paper, "scales": ["tiny"]}, {**ONE, "scale": "tiny"})
    assert {tiny_plan.cell(*cell)["runs"] for cell in tiny_plan.cells()} == {1}


def test_a_duplicate_key_in_a_paper_file_is_refused(tmp_path):
    text = (CONFIG / "papers" / "showkatbakhsh.yaml").read_text()
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "showkatbakhsh.yaml").write_text(f"{text}\nexperiments: {{}}\n")
    with pytest.raises(InvalidInput, match="'experiments' again, first in line"):
        planning.load(ONE, tmp_path)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (f"{FIG1}/budget/epsilon", 0, "showkatbakhsh_fig1.budget.epsilon: .*found 0"),
        (f"{FIG1}/budget/epsilon", -2.0, "budget.epsilon: .*found -2.0"),
        (f"{FIG1}/budget/delta", 1.0, r"budget.delta.*\[0, 1\) .*found 1.0"),
        (f"{FIG1}/network/agents", 1, "network.agents: .*found 1"),
        (f"{FIG1}/network", {"name": "single", "agents": 3}, "network.agents: .*found 3"),
        (f"{FIG1}/network/probability", 1.5, "network.probability: .*found 1.5"),
        (f"{FIG1}/network/name", "torus", "network.name: expected one of erdos_renyi"),
        (f"{FIG1}/problem/name", "chess", "problem.name: expected one of .*mean_estimation"),
        (f"{FIG1}/problem/prepared", "nothing", "problem.prepared: expected one of adult"),
        (
            f"{FIG1}/algorithms/gradient_descent/exact/set",
            {"problem.prepared": "nothing"},
            "problem.prepared: found 'nothing', expected one of adult",
        ),
        (f"{FIG1}/horizon", 0, "horizon: .*found 0"),
        (f"{FIG1}/runs", "some", "runs: .*found 'some'"),
        (f"{FIG1}/algorithms", {"magic": {}}, "expected one of .*gradient_descent"),
        (f"{FIG1}/axes/horizon/set", "weather.today", "found 'weather.today', expected one of"),
        (f"{FIG1}/scales/smoke/axes", {"gamma": [1]}, "axes: found 'gamma', expected one of"),
        ("figures/showkatbakhsh_fig1/panels/0/experiment", "no", "found 'no', expected one of"),
        (f"{PANEL}/curves/0/variant", "no", "found 'no', expected one of"),
        (
            "tables",
            {
                "t": {
                    "title": "",
                    "caption": "",
                    "row_axis": "x",
                    "row_title": "x",
                    "measure": "q.m",
                    "blocks": [
                        {
                            "label": "",
                            "experiment": "no",
                            "methods": [
                                {
                                    "label": "",
                                    "method": "a",
                                    "variant": "r",
                                    "interpretation": "resolved",
                                }
                            ],
                        }
                    ],
                }
            },
            "tables.t: found 'no', expected one of",
        ),
        ("claims/showkatbakhsh_c01/figure", "no", "c01.figure: found 'no', expected one of"),
        ("claims/showkatbakhsh_c01/primary_variant", "no", "c01.primary_variant: found 'no'"),
        ("claims/showkatbakhsh_c01/variants/released/tests/0/kind", "guess", "kind: .*guess"),
    ],
)
def test_the_error_of_an_invalid_paper_file_names_key_and_value(spoilt, path, value, message):
    error = spoilt(path, value)
    assert any(re.search(message, line) for line in error.lines), error.lines


def test_all_errors_of_a_paper_file_are_reported_together(spoilt):
    error = spoilt(FIG1, {"runs": 0})
    assert len(error.lines) > 3


@pytest.mark.parametrize("content", [{"experiment": "e"}, {"graph": True}])
def test_a_panel_shows_curves_or_the_graph_of_an_experiment(content):
    with pytest.raises(ValidationError):
        FigurePanel(title="", **content)


def test_a_cell_lists_every_setting_explicitly(plan):
    cell = plan.cell("showkatbakhsh_fig2", "gradient_descent")
    epsilons, powers, variants = 3, 3, 4
    assert len(cell["settings"]) == epsilons * powers * variants
    assert json.loads(json.dumps(cell)) == cell
    setting = cell["settings"][0]
    assert setting["budget"]["delta"] == pytest.approx(
        (10 * 100) ** setting["columns"]["delta_power"]
    )
    assert setting["horizon"] == 100  # of the smoke scale


def test_an_algorithm_requires_the_data_sets_of_all_its_variants(timed_plan):
    plan, _ = timed_plan
    names = ["fair-onehot", "fair-onehot-sex", "fair12", "fair12-bias", "fair13"]
    required = [f"adult-{name}" for name in names]
    assert plan.preparations("ding_table1_adult", "logistic") == required
    assert plan.preparations("showkatbakhsh_fig1") == []


def test_a_variant_overrides_an_axis(timed_plan):
    cell = timed_plan[0].cell("ding_fig14_waiting", "dsgd")
    private = [s for s in cell["settings"] if s["variant"] == "private"]
    assert {s["horizon"] for s in private} == {246}
    assert len({s["columns"]["rounds"] for s in private}) == 6


def test_an_infinite_epsilon_is_preserved_in_a_cell(timed_plan):
    cell = timed_plan[0].cell("ding_fig5", "admm")
    assert {s["budget"]["epsilon"] for s in cell["settings"]} == {math.inf}


def timed(work) -> tuple[object, float]:
    """Return the result of a function and its processor time in seconds."""
    start = time.process_time()
    return work(), time.process_time() - start


def plan_of_all():
    return planning.load(ALL, CONFIG)


@pytest.fixture(scope="module")
def timed_plan():
    """Return the plan of the whole configuration and the processor time of planning.

    Modules are imported once per process, before the measurement.
    """
    for name, package in (*product(algorithms.names(), [algorithms]),
                          *product(problems.names(), [problems])):  # fmt: skip
        package.load(name)
    return timed(plan_of_all)


def test_the_noise_streams_of_gratton_fig2_are_shared_as_configured():
    plan = plan_of_all()
    groups = [
        plan.cell("gratton_fig2", name)["groups"]["noise"]
        for name in ("d_zoa", "exact_admm", "dp_admm")
    ]
    assert groups == ["gratton_fig3a d_zoa", "gratton_fig3a exact_admm", "gratton_fig2 dp_admm"]


def a_million_steps() -> None:
    """Run a million loop steps, which take about 0.017 s on an idle machine."""
    for _ in range(10**6):
        _ + 1


def test_an_infinite_parameter_is_preserved_in_a_cell(loaded):
    """JSON cannot represent infinity, and a missing value would become the default."""
    paper = copy.deepcopy(read_paper(CONFIG / "papers" / "xiao.yaml"))
    paper["experiments"]["xiao_fig2"]["problem"]["box"] = math.inf
    cell = loaded(paper, {**ALL, "papers": ["xiao"]}).cell("xiao_fig2", "ldp_admm")
    assert {setting["problem"]["box"] for setting in cell["settings"]} == {math.inf}


def test_planning_takes_less_time_than_60_million_loop_steps(timed_plan):
    """Time is relative to a reference loop, since other work slows the processor down."""

    def unit() -> float:
        return min(timed(a_million_steps)[1] for _ in range(3))

    ratios = (timed(plan_of_all)[1] / unit() for _ in range(4))
    assert timed_plan[1] < 60 * unit() or any(ratio < 60 for ratio in ratios)


def test_figures_claims_and_experiments_follow_the_naming_scheme(timed_plan):
    plan, _ = timed_plan
    for key, paper in plan.papers.items():
        assert all(name.startswith(f"{key}_") for name in (*paper.figures, *paper.experiments))
        for number, claim in enumerate(paper.claims, 1):
            assert claim == f"{key}_c{number:02d}"
    expected = {f"showkatbakhsh_fig{i}" for i in range(1, 5)}
    assert expected <= set(plan.figures)


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


def test_equal_settings_have_equal_results(ran):
    _, runs, _ = ran
    consensus_rows = runs.filter(
        (pl.col("variant") == "one_shot") & (pl.col("quantity") == "consensus")
    )
    by_run = consensus_rows.group_by("run").agg(pl.col("value").n_unique())
    assert (by_run["value"] == 1).all()


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
    required = {"panel", "algorithm", "variant", "interpretation", "x", "y", "low", "high", "runs",
                "interval", "source"}  # fmt: skip
    assert required <= set(numbers.columns)


def test_an_unknown_or_missing_parameter_is_refused(ran):
    cell = copy.deepcopy(ran[0])
    cell["settings"] = cell["settings"][:1]
    cell["settings"][0]["algorithm"] = {"momentum": 0.9}
    with pytest.raises(InvalidInput, match=r"algorithm: found .*momentum"):
        run_cell(cell, {})
    cell["settings"][0] |= {"algorithm": {}, "problem": {"name": "mean_estimation", "dim": 2}}
    with pytest.raises(InvalidInput, match=r"problem: .*records"):
        run_cell(cell, {})


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


def test_all_iterations_means_those_of_the_longest_setting(plan):
    experiment = next(iter(plan.experiments.values())).model_copy(update={"iterations": "all"})
    cell = planning.expand(experiment, "e", next(iter(experiment.algorithms)), plan.config)
    longest = max(setting["horizon"] for setting in cell["settings"])
    assert cell["iterations"] == list(range(1, longest + 1))


def test_quantities_read_at_intermediate_iterations_must_be_recorded_there(loaded):
    """Figure 1 of the paper has one run per horizon; here intermediate iterations are requested."""
    paper = complete()
    experiment = paper["experiments"]["showkatbakhsh_fig1"]
    experiment |= {"iterations": [1, 2], "intermediate_measures": {"where": {"horizon": 1000}}}
    with pytest.raises(ConfigurationError) as caught:
        loaded(paper)
    assert any(
        re.search(r"figures\.showkatbakhsh_fig1\.where\.horizon: found 'all values', expected 1000",
                  line)
        for line in caught.value.lines
    )  # fmt: skip
    for section in ("figures", "claims"):
        expected = "or last_iteration_only: true"
        assert any(f".{section}." in line and expected in line for line in caught.value.lines)
    experiment["intermediate_measures"] = {"measures": ["internal.normalised_error"]}
    with pytest.raises(ConfigurationError) as caught:
        loaded(paper)
    message = "found 'consensus.normalised_error', expected one of internal.normalised_error, or"
    assert any(message in line for line in caught.value.lines)
    assert not any("found 'internal" in line for line in caught.value.lines)
    # The quantity on the x axis is also read at intermediate iterations.
    experiment["intermediate_measures"] = {"measures": ["consensus.normalised_error", "expected"]}
    paper["figures"]["showkatbakhsh_fig1"]["panels"][0]["x"] = "bound"
    with pytest.raises(ConfigurationError) as caught:
        loaded(paper)
    assert any(
        "showkatbakhsh_fig1: found 'bound', expected one of consensus" in line
        for line in caught.value.lines
    )


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


def test_panels_with_equal_titles_are_refused():
    panel = {"title": "C = 1", "experiment": "e", "graph": True}
    figure = {"title": "t", "caption": "c", "panels": [panel, {**panel, "title": "C = 2"}]}
    assert Figure.model_validate(figure)
    with pytest.raises(ValueError, match=r"a different title for each panel.*C = 1"):
        Figure.model_validate(figure | {"panels": [panel, panel]})


def small(name: str, rows: int):
    """Return a small prepared data set and its card."""
    data = SimpleNamespace(
        features=np.full((rows + 2, 2), 0.5), labels=np.where(np.arange(rows + 2) % 2, 1, -1),
    )  # fmt: skip
    if name == "perceptron":
        data.labels = np.arange(rows + 2) % 10
        data.splits = {"train": np.arange(rows), "test": np.arange(rows, rows + 2)}
    else:
        data.features, data.labels = data.features[:rows], data.labels[:rows]
        data.splits = {"train": np.arange(rows - 4), "test": np.arange(rows - 4, rows)}
    return data, {"rows": len(data.labels), "splits": {k: len(v) for k, v in data.splits.items()}}


@pytest.mark.parametrize("records", [3, 4, 5, 12, 13])
@pytest.mark.parametrize(("name", "options"), [("logistic_regression", {"ridge": 0.1}),
                                               ("perceptron", {"hidden": 1})])  # fmt: skip
def test_the_card_of_a_data_set_suffices_to_refuse_too_many_records(
    tmp_path, streams, name, options, records
):
    data, card = small(name, 12)
    (tmp_path / "x.json").write_text(json.dumps(card))
    problem = {"name": name, "prepared": "x", "records": records, **options}
    setting = {"problem": problem, "network": {"name": "ring", "agents": 3}}
    cell = {"experiment": "e", "algorithm": "a", "settings": [setting]}

    def accepted(work) -> bool:
        try:
            work()
        except InvalidInput as error:
            assert f"problem.records: found {records}" in str(error)
            return False
        return True

    built = {**options, "records": records, "prepared": data}
    runs = accepted(lambda: problems.load(name).build(streams, 3, **built))
    assert accepted(lambda: require_rows(cell, [tmp_path / "x.json"])) == runs
    assert accepted(lambda: require_rows(cell, [tmp_path / "missing.json"]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protected": "height"}, "problem.protected: found 'height'"),
        ({"test_share": 1.5}, "problem.test_share: found 1.5"),
        ({"splits": 0}, "problem.splits: found 0"),
        ({"prepared": "mnist-pixels"}, "problem.prepared: found 'mnist-pixels'"),
    ],
)
def test_invalid_options_of_fair_classification_are_refused_without_data(changes, message):
    def cell(**changed):
        problem = {"name": "fair_classification", "prepared": "adult-fair12", "protected": "sex"}
        setting = {
            "columns": {}, "variant": "v", "interpretation": "resolved", "horizon": 1,
            "algorithm": {}, "budget": {"epsilon": float("inf"), "delta": 0.0},
            "problem": {**problem, **changed}, "network": {"name": "single", "agents": 1},
        }  # fmt: skip
        return {
            "experiment": "e", "algorithm": "logistic", "seed": 0, "runs": 1, "iterations": [1],
            "measures": [["released", "test_error"]], "groups": {}, "settings": [setting],
        }  # fmt: skip

    require_settings(cell())
    with pytest.raises(InvalidInput, match=message):
        require_settings(cell(**changes))


@pytest.mark.parametrize(
    ("name", "is_refused"),
    [("gradient_descent", True), ("one_shot_averaging", True), ("ldp_gradient_descent", False)],
)
def test_a_delta_of_0_is_refused_before_a_run_unless_the_noise_allows_it(name, is_refused):
    setting = {
        "columns": {}, "variant": "v", "interpretation": "resolved", "horizon": 2,
        "algorithm": {}, "budget": {"epsilon": 1.0, "delta": 0.0},
        "problem": {"name": "logistic_regression", "prepared": "adult-onehot104", "ridge": 0.1,
                    "box": 5.0, "records": 10},
        "network": {"name": "ring", "agents": 3, "weights": "metropolis"},
    }  # fmt: skip
    cell = {
        "experiment": "e", "algorithm": name, "seed": 0, "runs": 1, "iterations": [1],
        "measures": [["released", "test_error"]], "groups": {}, "settings": [setting],
    }  # fmt: skip
    lines = list(wrong_settings(cell))
    assert len(lines) == is_refused and all(line.startswith("budget") for line in lines)
    with_noise = {**setting, "budget": {"epsilon": 1.0, "delta": 1e-5}}
    assert not list(wrong_settings({**cell, "settings": [with_noise]}))
