"""Test that abbreviated paper files expand to the complete configuration."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from private_consensus import cli
from private_consensus.common.errors import InvalidInput
from private_consensus.common.fields import validate
from private_consensus.reproduction.experiments.files import (
    ADDED,
    complete,
    points,
    read_paper,
)
from private_consensus.reproduction.experiments.schema import (
    ConfigurationError,
    File,
    Paper,
    read_yaml,
)

CONFIG = Path(__file__).parents[2] / "config"
PAPERS = sorted((CONFIG / "papers").rglob("*.yaml"))
WIDTH = 130

SHORT = """
titles: {epsilon: privacy, released.normalised_error: error}
defaults:
  experiment:
    problem: {name: mean_estimation, records: 100, dim: 5, box: 5.0}
    network: {name: ring, agents: 10}
    budget: {epsilon: 1.0, delta: 1.0e-5}
    horizon: 50
    runs: 50
    measures: [released.normalised_error, seconds]
    scales: {smoke: {runs: 2}}
  panel: {log_x: false}
axes:
  epsilon: {set: budget.epsilon, values: [0.5, 1.0]}
  steps: {set: horizon, values: [1, 10], because: decades}
unspecified_details:
  noise: {resolved: Gaussian, because: simple}
variants:
  gradient_descent:
    plain: {because: as it is}
    exact: {extends: plain, calibration: gaussian_dp, because: exact}
    single: {extends: exact, set: {horizon: 1}, because: one step}
  dgd:
    network: {interpretation: literal, because: other weights}
curves:
  exact: {method: gradient_descent.exact, style: tight, where: {steps: 1}}
  all: [gradient_descent.plain, exact, dgd.network]
  both:
    method: {gradient_descent.plain: plain, gradient_descent.exact: exact}
    measures: {released.normalised_error: error, seconds: time}
sentences:
  data: "Problem: each agent holds 100 records."
claim_variants:
  steps: {one: {where: {steps: 1}}, ten: {where: {steps: 10}, interpretation: ablation}}
experiments:
  fig1:
    title: First
    location: Figure 1
    axes: [epsilon, steps]
    algorithms:
      gradient_descent: [plain, exact]
      dgd: [network]
    iterations: [{from: 1, to: 5, by: 2}, 10]
    unspecified_details: [noise]
  fig2:
    extends: fig1
    title: Second
    location: Figure 2
    problem: {dim: 3, box: ~}
    axes: {epsilon: {values: [2.0], because: larger}}
    algorithms:
      gradient_descent:
        exact:
        twice: {extends: exact, decay: 2.0, because: twice}
        again: {extends: twice, interpretation: resolved, because: a neighbour}
    scales: {smoke: {axes: {epsilon: [2.0]}}}
figures:
  fig1:
    title: First
    caption: "Error against steps. {data}"
    note: a remark
    grid: {epsilon: [0.5, 1.0]}
    panel_title: "{title}, epsilon = {epsilon}"
    measure: released.normalised_error
    x: steps
    panels:
      - {title: all, curves: all}
      - {title: one, curves: both, where: {steps: 1}, x: epsilon}
  fig1_extra_more:
    extends: fig1
    title: More
    caption: more
    grid: {epsilon: [0.25]}
claims:
  c01:
    claim: One.
    location: here
    figure: fig1
    because: an ordering
    test: {kind: below, x: epsilon}
    series: {method: [gradient_descent.exact, gradient_descent.plain], measure: seconds}
    against: [dgd.network, gradient_descent.plain]
    variants:
      steps:
      last: {for_each_variant_of: steps, last_iteration_only: true}
      other: {interpretation: literal, series: {experiment: fig2, where: {epsilon: 2.0}}}
  c02:
    claim: Two.
    location: here
    figure: fig1
    because: the best
    test:
      {kind: largest, x: steps, best_at: 3, method: gradient_descent.plain, where: {steps: [1, 10]}}
    tests:
      - {grid: {epsilon: [0.5, 1.0]}, measure: released.normalised_error}
"""


def short(**changes) -> dict:
    """Return the abbreviated paper file of these tests with replaced sections."""
    return yaml.safe_load(SHORT) | changes


@pytest.fixture(scope="module")
def completed():
    return complete(short(), "mine")


def test_an_experiment_inherits_file_defaults_and_the_experiment_it_extends(completed):
    first, second = completed["experiments"].values()
    assert first["problem"] == {"name": "mean_estimation", "records": 100, "dim": 5, "box": 5.0}
    assert second["problem"] == {"name": "mean_estimation", "records": 100, "dim": 3}
    assert (second["title"], second["location"]) == ("Second", "Figure 2")
    assert first["unspecified_details"] == {"noise": {"resolved": "Gaussian", "because": "simple"}}
    assert "unspecified_details" not in second  # details belong to one experiment
    assert first["iterations"] == second["iterations"] == [1, 3, 5, 10]
    assert second["scales"] == {"smoke": {"runs": 2, "axes": {"epsilon": [2.0]}}}
    assert first["measures"] == ["released.normalised_error", "seconds"]


def test_a_different_problem_inherits_no_parameter_of_the_default_problem():
    file = short()
    file["experiments"]["fig2"]["problem"] = {"name": "lasso", "dim": 2}
    assert complete(file, "mine")["experiments"]["fig2"]["problem"] == {"name": "lasso", "dim": 2}


def test_axes_are_referenced_by_name_and_new_values_drop_the_inherited_reason(completed):
    first, second = (e["axes"] for e in completed["experiments"].values())
    printed = {"set": "budget.epsilon", "values": [0.5, 1.0]}
    assert first["epsilon"] == printed
    assert first["steps"]["because"] == "decades"
    assert second == {"epsilon": {**printed, "values": [2.0], "because": "larger"}}
    file = short()
    file["experiments"]["fig1"]["axes"] = {"steps": {"values": [5]}}
    assert complete(file, "mine")["experiments"]["fig1"]["axes"]["steps"] == {
        "set": "horizon", "values": [5]
    }  # fmt: skip


def test_a_variant_inherits_the_settings_of_the_variant_it_extends(completed):
    variants = completed["experiments"]["fig2"]["algorithms"]["gradient_descent"]
    changed = {"algorithm.calibration": "gaussian_dp"}
    assert variants["exact"] == {"interpretation": "ablation", "because": "exact", "set": changed}
    assert variants["again"] == {
        "interpretation": "resolved", "because": "a neighbour",
        "set": {**changed, "algorithm.decay": 2.0},
    }  # fmt: skip
    file = short()
    file["experiments"]["fig1"]["algorithms"]["gradient_descent"] = ["single"]
    single = complete(file | {"figures": {}, "claims": {}}, "mine")["experiments"]["fig1"]
    assert single["algorithms"]["gradient_descent"]["single"]["set"] == {**changed, "horizon": 1}


def test_panels_are_grid_products_and_an_extending_figure_can_replace_the_grid(completed):
    first, extra_figure = completed["figures"].values()
    assert [(p["title"], p["where"]) for p in first["panels"]] == [
        ("all, epsilon = 0.5", {"epsilon": 0.5}),
        ("one, epsilon = 0.5", {"epsilon": 0.5, "steps": 1}),
        ("all, epsilon = 1", {"epsilon": 1.0}),
        ("one, epsilon = 1", {"epsilon": 1.0, "steps": 1}),
    ]
    assert [p["title"] for p in extra_figure["panels"]] == [
        "all, epsilon = 0.25",
        "one, epsilon = 0.25",
    ]
    assert {p["experiment"] for p in (*first["panels"], *extra_figure["panels"])} == {"fig1"}
    assert (first["added"], extra_figure["added"]) == (False, True)
    assert first["note"] == "a remark" and "note" not in extra_figure
    panel = first["panels"][1]
    assert (panel["x_title"], panel["y_title"], panel["log_x"]) == ("privacy", "error", False)
    assert first["panels"][0]["x_title"] == "steps"


def test_a_caption_contains_the_named_sentences_of_the_file(completed):
    caption = completed["figures"]["fig1"]["caption"]
    assert caption == "Error against steps. Problem: each agent holds 100 records."


def test_named_curve_sets_expand_and_product_curves_get_labels(completed):
    all_curves, product = (p["curves"] for p in completed["figures"]["fig1"]["panels"][:2])
    assert [(c["method"], c["variant"], c["style"], c["interpretation"]) for c in all_curves] == [
        ("gradient_descent", "plain", "plain", "resolved"),
        ("gradient_descent", "exact", "tight", "ablation"),
        ("dgd", "network", "network", "literal"),
    ]
    assert all_curves[1]["where"] == {"steps": 1}
    assert [(c["variant"], c["measure"], c["label"]) for c in product] == [
        ("plain", "released.normalised_error", "plain, error"),
        ("plain", "seconds", "plain, time"),
        ("exact", "released.normalised_error", "exact, error"),
        ("exact", "seconds", "exact, time"),
    ]


def test_a_panel_supplies_defaults_for_its_curves():
    file = short()
    file["figures"]["fig1"]["panels"] = [
        {
            "curves": [
                "gradient_descent",
                {"method": "gradient_descent.exact", "quantity": "internal"},
                {"method": "gradient_descent.exact", "measure": "seconds"},
            ],
            "variant": "plain",
            "last_iteration_only": True,
            "experiments": {"gradient_descent": "fig1"},
        }
    ]
    curves = complete(file, "mine")["figures"]["fig1"]["panels"][0]["curves"]
    assert [(c["variant"], c["measure"]) for c in curves] == [
        ("plain", "released.normalised_error"),
        ("exact", "internal.normalised_error"),
        ("exact", "seconds"),
    ]
    assert all(c["last_iteration_only"] and c["experiment"] == "fig1" for c in curves)


def test_a_claim_test_expands_to_the_product_of_its_lists(completed):
    claim = completed["claims"]["c01"]
    names = [
        (t["series"]["variant"], t["against"]["variant"], t["series"]["where"])
        for t in claim["variants"]["one"]["tests"]
    ]
    # The first list varies slowest.
    assert names == [
        (run, against, {"steps": 1})
        for run in ("exact", "plain") for against in ("network", "plain")
    ]  # fmt: skip
    assert list(claim["variants"]) == ["one", "ten", "one_last", "ten_last", "other"]
    assert claim["primary_variant"] == "one"
    interpretations = {n: v.get("interpretation") for n, v in claim["variants"].items()}
    assert interpretations == {
        "one": None, "ten": "ablation", "one_last": None, "ten_last": "ablation",
        "other": "literal",
    }  # fmt: skip
    assert all(
        t[side]["last_iteration_only"]
        for t in claim["variants"]["ten_last"]["tests"]
        for side in ("series", "against")
    )
    first = claim["variants"]["other"]["tests"][0]
    assert first["series"]["experiment"] == first["against"]["experiment"] == "fig2"
    assert first["against"]["where"] == {"epsilon": 2.0}


def test_a_claim_about_the_largest_value_is_tested_at_every_grid_point(completed):
    claim = completed["claims"]["c02"]
    assert (claim["primary_variant"], list(claim["variants"])) == ("resolved", ["resolved"])
    tests = claim["variants"]["resolved"]["tests"]
    assert [(t["kind"], t["best_at"]) for t in tests] == [("largest", 3)] * 2
    assert [t["series"]["where"] for t in tests] == [
        {"steps": [1, 10], "epsilon": epsilon} for epsilon in (0.5, 1.0)
    ]


def test_the_second_series_inherits_from_the_first_and_null_removes_a_value():
    file = short()
    file["claims"]["c02"] |= {
        "test": {
            "kind": "below", "x": "epsilon", "method": "gradient_descent", "variant": "plain",
            "measure": "seconds", "where": {"steps": 1, "epsilon": 1.0},
            "against": [{"where": {"steps": None}}, "dgd"],
        },
        "tests": [{}],
    }  # fmt: skip
    first, second = complete(file, "mine")["claims"]["c02"]["variants"]["resolved"]["tests"]
    assert first["against"] == {**first["series"], "where": {"epsilon": 1.0}}
    assert second["against"] == {**first["series"], "method": "dgd"}


def test_an_abbreviated_file_expands_to_a_valid_paper():
    about = {"key": "mine", "number": "9", "title": "t", "authors": [], "venue": "here"}
    paper = validate(Paper, complete(short(paper=about), "mine"))
    assert [len(c.variants["one"].tests) for c in list(paper.claims.values())[:1]] == [4]


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.name)
def test_completing_experiments_figures_and_tables_is_idempotent(path):
    """The complete form has the keys of a file; only ``added`` is derived from the name."""

    def without_added(file: dict) -> dict:
        sections = {key: file.get(key, {}) for key in ("experiments", "figures", "tables")}
        for figure in sections["figures"].values():
            figure.pop("added", None)
        return sections

    first = without_added(complete({"experiments": {}, **read_yaml(path)}, path.stem))
    assert without_added(complete(first, path.stem)) == first


NOTHING = object()
EXPERIMENT, FIGURE = ("experiments", "fig2"), ("figures", "fig1")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ((*EXPERIMENT, "extends"), "fig9", r"experiments.fig2.extends: found 'fig9'"),
        (("experiments", "fig1", "extends"), "fig2", r"fig1.extends: found 'fig2', expected an"),
        ((*EXPERIMENT, "runns"), 3, r"mine.experiments.fig2.runns: unknown key \(found 3\)"),
        ((*EXPERIMENT, "runs"), True, r"mine.experiments.fig2.runs: .*found True"),
        ((*EXPERIMENT, "axes"), ["delta"], r"fig2.axes: found 'delta', expected one of epsilon"),
        ((*EXPERIMENT, "unspecified_details"), ["graph"], r"unspecified_details: found 'graph'"),
        ((*EXPERIMENT, "algorithms"), {"dgd": ["x"]}, r"algorithms.dgd: found 'x', expected one"),
        ((*EXPERIMENT, "algorithms"), {"magic": []}, r"algorithms.*expected one of .*dgd"),
        (
            ("variants", "gradient_descent", "plain"),
            {"extends": "single"},
            r"variants.gradient_descent.exact.extends: found 'plain', expected a variant that",
        ),
        (("variants", "dgd", "network", "extends"), NOTHING, r"network.extends: expected a value"),
        (("variants", "dgd", "network", "and so on"), NOTHING, r"and so on: missing, expected"),
        ((*EXPERIMENT, "axes"), NOTHING, r"experiments.fig2.axes: expected a value"),
        ((*FIGURE, "caption"), "{dat}", r"figures.fig1.caption: found 'dat', expected one of data"),
        ((*FIGURE, "extends"), "fig9", r"figures.fig1.extends: found 'fig9'"),
        ((*FIGURE, "panels", 0, "curves"), "nobody", r"fig1.curves: found 'nobody', expected algo"),
        ((*FIGURE, "panels", 0, "curves"), ["dgd.x"], r"curves: found 'dgd.x', expected one of dg"),
        ((*FIGURE, "panels", 0, "log_x"), "yes", r"figures.fig1.panels.0.log_x: .*found 'yes'"),
        ((*FIGURE, "panels", 0, "curves"), [{"method": "dgd.x", "las": 1}], r"curves.0.las: unkno"),
        (("claims", "c01", "test", "kind"), "guess", r"claims.c01.test.kind: .*found 'guess'"),
        (("claims", "c01", "variants"), "nothing", r"c01.variants: found 'nothing', expected one"),
        (("claims", "c01", "series", "method"), "dgd", r"one.method: found 'dgd', expected al"),
        (("claims", "c01", "series"), {"method": "dgd.network"}, r"one.measure: missing, expected"),
        (("claims", "c02", "test", "best_at"), "no", r"claims.c02.test.best_at: .*found 'no'"),
    ],
)  # fmt: skip
def test_an_error_names_the_key_as_written_in_the_file(path, value, message):
    file = short()
    target = file
    for key in path[:-1]:
        target = target[key]
    if value is None:
        del target[path[-1]]
    else:
        target[path[-1]] = None if value is NOTHING else value
    with pytest.raises(ConfigurationError, match=message):
        complete(file, "mine")


def test_parts_of_a_paper_are_merged_and_repeated_experiments_are_refused(tmp_path):
    about = {"key": "whole", "number": "9", "title": "t", "authors": [], "venue": "here"}
    (tmp_path / "whole").mkdir()
    file = {"paper": about, "parts": ["first", "second"]}
    (tmp_path / "whole.yaml").write_text(yaml.safe_dump(file))
    (tmp_path / "whole" / "first.yaml").write_text(SHORT)
    second = {"figures": {"b": {"title": "b", "caption": "", "experiment": "fig1", "graph": True}}}
    (tmp_path / "whole" / "second.yaml").write_text(yaml.safe_dump(second))
    assert list(read_paper(tmp_path / "whole.yaml")["figures"]) == ["fig1", "fig1_extra_more", "b"]
    (tmp_path / "whole" / "second.yaml").write_text(SHORT)
    with pytest.raises(InvalidInput, match=r"whole.experiments.fig1: found 'second', expected a n"):
        read_paper(tmp_path / "whole.yaml")


def test_grid_points_are_the_cartesian_product_of_the_axes():
    assert list(points({"a": [1, 2], "b": [3]})) == [{"a": 1, "b": 3}, {"a": 2, "b": 3}]
    assert list(points({})) == [{}]


# --- Configuration files --------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(CONFIG.rglob("*.yaml")), ids=lambda path: path.name)
def test_yaml_files_have_no_anchors_aliases_merges_or_multiline_braces(path):
    """Files have no anchors, aliases or merges, and no mapping in braces spans two lines."""
    text = path.read_text()
    opened = []
    for token in yaml.scan(text):
        assert not isinstance(token, yaml.AnchorToken | yaml.AliasToken), token.start_mark
        assert not (isinstance(token, yaml.ScalarToken) and token.value == "<<"), token.start_mark
        if isinstance(token, yaml.FlowMappingStartToken):
            opened.append(token.start_mark.line)
        if isinstance(token, yaml.FlowMappingEndToken):
            assert opened.pop() == token.start_mark.line
    if path in PAPERS:
        assert max(map(len, text.splitlines())) <= WIDTH


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.name)
def test_a_paper_file_satisfies_the_schema_that_the_command_prints(path, capsys):
    assert cli.main(["schema", "paper"]) == 0
    schema = json.loads(capsys.readouterr().out)
    # Validate after a round trip through JSON, which has no tuples.
    Draft202012Validator(schema).validate(json.loads(json.dumps(read_yaml(path))))


def test_the_configuration_readme_mentions_every_key():
    page = (CONFIG / "README.md").read_text()
    keys = set(File.model_json_schema()["properties"])
    for model in File.model_json_schema()["$defs"].values():
        keys |= set(model.get("properties", ()))
    assert not {key for key in keys if f"`{key}`" not in page}


def test_a_figure_is_marked_as_added_if_and_only_if_its_name_has_the_marker():
    for path in CONFIG.glob("papers/*.yaml"):
        for name, figure in read_paper(path)["figures"].items():
            assert figure["added"] == (ADDED in name)
