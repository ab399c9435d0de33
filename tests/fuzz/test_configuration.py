"""Fuzz configurations: every file gives a plan or messages that name the errors."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from limits import cases, soon

from private_consensus.common.errors import InvalidInput
from private_consensus.reproduction.experiments.plan import load

CONFIG = {"scale": "paper", "seed": 1, "papers": ["mine"], "data": {"source": "auto"}}
MAIN = "gradient_descent.main"
ERROR = "internal.normalised_error"
PAPER = {
    "paper": {"key": "mine", "number": "", "title": "t", "authors": ["a"], "venue": "here"},
    "scales": ["tiny"],
    "titles": {"epsilon": "e"},
    "defaults": {
        "experiment": {
            "problem": {"name": "mean_estimation", "records": 10, "dim": 2, "box": 1.0},
            "network": {"name": "ring", "agents": 4, "weights": "metropolis"},
            "budget": {"epsilon": 1.0, "delta": 1.0e-5},
            "scales": {"tiny": {"runs": 1, "set": {"horizon": 2}}},
        },
        "panel": {"log_x": False},
    },
    "axes": {"epsilon": {"set": "budget.epsilon", "values": [0.5, 1.0], "because": "b"}},
    "unspecified_details": {"a": {"literal": "l", "resolved": "r", "because": "b"}},
    "variants": {"gradient_descent": {
        "base": {"because": "b"},
        "main": {"extends": "base", "interpretation": "resolved",
                 "set": {"algorithm.decay": 0.5}}}},
    "curves": {"all": [{"method": MAIN, "style": "v", "grid": {"epsilon": [0.5]}}]},
    "claim_variants": {"both": {"one": {"where": {"epsilon": [0.5, 1.0]}}, "two": {}}},
    "experiments": {
        "mine_fig1": {
            "title": "t",
            "location": "here",
            "horizon": 5,
            "runs": 2,
            "axes": ["epsilon"],
            "algorithms": {"gradient_descent": ["main"]},
            "measures": [ERROR],
            "iterations": [{"from": 1, "to": 2}],
            "unspecified_details": ["a"],
            "scales": {"tiny": {"axes": {"epsilon": [1.0]}}},
        },
        "mine_fig2": {"extends": "mine_fig1", "title": "t", "location": "p", "problem": {"dim": 3}},
    },
    "figures": {
        "mine_fig1": {
            "title": "t",
            "caption": "c",
            "grid": {"epsilon": [0.5, 1.0]},
            "panel_title": "{title}, {epsilon}",
            "measure": ERROR,
            "panels": [{"title": "p", "x": "epsilon", "goals": [0.1], "where": {"t": 5},
                        "curves": ["all", {"method": MAIN, "style": "v"}]}],
        },
        "mine_fig2": {"extends": "mine_fig1", "title": "t", "caption": "c"},
    },
    "tables": {"mine_table": {
        "title": "t", "caption": "c", "row_axis": "epsilon", "row_title": "e", "measure": ERROR,
        "row_values": [0.5],
        "blocks": [{"label": "b", "experiment": "mine_fig1", "methods": [
            {"label": "m", "method": MAIN, "published": [[0.5, 1.0, 0.1]]}]}]}},
    "claims": {"mine_c01": {
        "claim": "c", "location": "p", "because": "b", "figure": "mine_fig1",
        "primary_variant": "one",
        "test": {"kind": "decreasing", "x": "epsilon", "tolerance": 0.1},
        "series": {"method": [MAIN], "measure": ERROR},
        "tests": [{"experiment": "mine_fig1"}],
        "variants": {"both": None, "more": {
            "for_each_variant_of": "both", "interpretation": "literal"}}}},
}  # fmt: skip
STYLES = {"gradient_descent.v": {"label": "l", "colour": "#112233"}}
VALUES = st.one_of(
    st.none(), st.booleans(), st.sampled_from([0, -1, 3, 10**9, 10**30, 2.5, 1e12]),
    st.sampled_from([float("inf"), float("-inf"), float("nan")]),
    st.text("ab_./\0é \n-=", max_size=8),
    st.sampled_from(["epsilon", "budget.epsilon", "network", "all", "../x", "mine_fig1"]),
    st.just([]), st.just({}), st.lists(st.integers(-2, 9), max_size=3),
    st.dictionaries(st.sampled_from(["set", "name", "epsilon", "x"]), st.integers(), max_size=2),
)  # fmt: skip


def places(tree, path=()):
    """Yield the paths to all nodes of a nested configuration."""
    yield path
    if not isinstance(tree, dict | list):
        return
    for key, subtree in tree.items() if isinstance(tree, dict) else enumerate(tree):
        yield from places(subtree, (*path, key))


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


PLACES = [path for path in places(PAPER) if path]
MAPPINGS = [path for path in places(PAPER) if isinstance(at(PAPER, path), dict)]
OWN = [path for path in places(CONFIG) if path]


@pytest.fixture(scope="module")
def errors_of(tmp_path_factory):
    """Return a function that lists the errors of a paper and a configuration; empty if valid."""
    folder = tmp_path_factory.mktemp("config")
    (folder / "papers").mkdir()
    (folder / "styles.yaml").write_text(yaml.safe_dump(STYLES))

    def tell(paper=PAPER, config=CONFIG) -> list[str]:
        Path(folder, "papers", "mine.yaml").write_text(yaml.safe_dump(paper))
        with soon():
            try:
                plan = load(config, folder)
                assert [len(plan.cell(*cell)["settings"]) for cell in plan.cells()]
                return []
            except InvalidInput as error:
                return str(error).splitlines()

    assert tell() == []
    return tell


def test_a_paper_with_arbitrary_values_is_planned_or_refused(errors_of):
    @cases(40)
    @given(st.lists(st.tuples(st.sampled_from(PLACES), VALUES), min_size=1, max_size=2))
    def try_out(changes):
        paper = copy.deepcopy(PAPER)
        for (*parents, last), value in changes:
            try:
                at(paper, parents)[last] = value
            except (KeyError, IndexError, TypeError):  # the first change removed this node
                continue
        assert all(errors_of(paper) or ["planned"])

    try_out()


def test_a_configuration_with_arbitrary_values_is_used_or_refused(errors_of):
    @cases(10)
    @given(st.sampled_from(OWN), VALUES)
    def try_out(path, value):
        config = copy.deepcopy(CONFIG)
        at(config, path[:-1])[path[-1]] = value
        assert all(errors_of(config=config) or ["planned"])

    try_out()


@pytest.mark.parametrize("path", MAPPINGS, ids=lambda path: ".".join(map(str, path)) or "paper")
def test_an_unknown_key_is_reported_in_every_mapping(errors_of, path):
    paper = copy.deepcopy(PAPER)
    at(paper, path)["unheard_of"] = 1
    assert any("unheard_of" in line for line in errors_of(paper))
