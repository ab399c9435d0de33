"""Test that cells share results of equal settings without a change of any number."""

import copy
from pathlib import Path

import polars as pl
import pytest

from private_consensus.reproduction.experiments import cells
from private_consensus.reproduction.experiments import plan as planning
from private_consensus.reproduction.experiments.cells import compute_cell
from private_consensus.reproduction.experiments.schema import read_yaml
from private_consensus.reproduction.experiments.sharing import (
    identity,
    requests_to,
    reused_settings,
)

CONFIG = Path(__file__).parents[2] / "config"
ALGORITHM = "gradient_descent"
LENDER, BORROWER = ("wide", ALGORITHM), ("narrow", ALGORITHM)


@pytest.fixture(scope="module")
def whole():
    return planning.load(read_yaml(CONFIG / "config.yaml"), CONFIG)


def setting(epsilon: float, **algorithm) -> dict:
    return {
        "columns": {"epsilon": epsilon},
        "variant": "main",
        "interpretation": "resolved",
        "problem": {"name": "mean_estimation", "dim": 2, "records": 3, "box": 5.0},
        "network": {"name": "ring", "agents": 4, "weights": "metropolis"},
        "budget": {"epsilon": epsilon, "delta": 1e-4},
        "horizon": 5,
        "algorithm": algorithm,
    }


def cell(name: str, epsilons, *, runs: int, iterations, measures, **algorithm) -> dict:
    groups = dict.fromkeys(("data", "noise", "sampling"), "together") | {"graph": name}
    return {
        "experiment": name, "algorithm": ALGORITHM, "seed": 7, "runs": runs, "runs_per_batch": 2,
        "measures": measures, "iterations": iterations, "groups": groups,
        "settings": [setting(epsilon, **algorithm) for epsilon in epsilons],
    }  # fmt: skip


INTERNAL = ["internal", "normalised_error"]
CONSENSUS = ["consensus", "normalised_error"]


@pytest.fixture(scope="module")
def pair():
    """Return two cells; the second computes more runs, fewer metrics and other iterations."""
    return {
        BORROWER: cell(
            "narrow", (1.0, 5.0), runs=3, iterations=[1, 2], measures=[CONSENSUS, INTERNAL]
        ),
        LENDER: cell("wide", (0.5, 1, 5.0), runs=6, iterations=[2, 4], measures=[INTERNAL]),
    }


def test_what_is_borrowed_is_what_would_be_computed(pair, monkeypatch):
    sources = reused_settings(pair)
    assert set(sources[BORROWER].values()) == {LENDER}
    assert len(sources[BORROWER]) == len(pair[BORROWER]["settings"])
    plain = {key: compute_cell(one, {}) for key, one in pair.items()}
    lent = compute_cell(pair[LENDER], {}, requests=requests_to(pair, sources, LENDER))
    assert lent.runs.equals(plain[LENDER].runs)
    assert lent.privacy.equals(plain[LENDER].privacy)
    monkeypatch.setattr(cells, "simulate_together", None)  # nothing is left to compute
    found = compute_cell(pair[BORROWER], {}, reused=lent.requested)
    assert found.runs.equals(plain[BORROWER].runs)
    assert found.privacy.equals(plain[BORROWER].privacy)


def test_a_cell_computes_what_nobody_lends(pair):
    wider = copy.deepcopy(pair)
    wider[BORROWER]["settings"].append(setting(2.0))
    sources = reused_settings(wider)
    lent = compute_cell(wider[LENDER], {}, requests=requests_to(wider, sources, LENDER)).requested
    found = compute_cell(wider[BORROWER], {}, reused=lent)
    assert found.runs.equals(compute_cell(wider[BORROWER], {}).runs)
    assert found.runs["epsilon"].n_unique() == 3


def test_only_runs_that_were_asked_for_are_measured_besides(pair):
    lent = compute_cell(
        pair[LENDER], {}, requests=requests_to(pair, reused_settings(pair), LENDER)
    ).requested
    besides = lent.filter((pl.col("quantity") == "consensus") | (pl.col("t") == 1))
    # Runs are computed in blocks of two: three take two blocks.
    assert set(besides["run"]) == {0, 1, 2, 3}
    assert set(besides.select("t", "quantity").rows()) == {(1, "internal"), (5, "consensus")}
    assert set(lent.filter(pl.col("t") == 4)["run"]) == set(range(6))


@pytest.fixture(scope="module")
def courses(pair):
    """Return the pair of cells, with one setting measured at the last iteration only."""
    changed = copy.deepcopy(pair)
    changed[BORROWER]["intermediate_measures"] = [CONSENSUS]
    changed[BORROWER]["settings"][0]["intermediate"] = False
    return changed


def test_settings_without_a_course_are_measured_at_their_end(pair, courses):
    """Measurements are unchanged, and earlier iterations are not recorded."""
    every, found = (compute_cell(one[BORROWER], {}).runs for one in (pair, courses))
    at_end, consensus = pl.col("t") == 5, pl.col("quantity") == "consensus"
    assert found.equals(every.filter(at_end | (consensus & (pl.col("epsilon") == 5.0))))
    assert 0 < found.height < every.height


def test_what_has_no_course_is_borrowed_without_one(courses):
    """Settings without intermediate measurements are reused without them.

    This holds if the other cell records intermediate iterations of the setting, too.
    """
    sources = reused_settings(courses)
    lent = compute_cell(
        courses[LENDER], {}, requests=requests_to(courses, sources, LENDER)
    ).requested
    found = compute_cell(courses[BORROWER], {}, reused=lent)
    assert found.runs.equals(compute_cell(courses[BORROWER], {}).runs)
    name = identity(courses[BORROWER], courses[BORROWER]["settings"][0])
    assert set(lent.filter(pl.col("identity") == name)["t"]) == {2, 4, 5}


def test_a_lender_without_a_course_measures_that_of_a_borrower(courses):
    """Iterations 2 and 4 belong to the computing cell, 1 and 2 to the reusing cell."""
    turned = copy.deepcopy(courses)
    del turned[BORROWER]["intermediate_measures"], turned[BORROWER]["settings"][0]["intermediate"]
    for one in turned[LENDER]["settings"]:
        one["intermediate"] = False
    lent = compute_cell(
        turned[LENDER], {}, requests=requests_to(turned, reused_settings(turned), LENDER)
    )
    assert set(lent.runs["t"]) == {5}
    found = compute_cell(turned[BORROWER], {}, reused=lent.requested)
    assert found.runs.equals(compute_cell(turned[BORROWER], {}).runs)


def test_settings_that_are_the_same_have_the_course_of_one(pair):
    one = copy.deepcopy(pair[BORROWER])
    again = {**copy.deepcopy(one["settings"][0]), "variant": "again", "intermediate": False}
    one["settings"].insert(0, again)
    found = compute_cell(one, {}).runs
    first, second = (
        found.filter(pl.col("variant") == name, pl.col("epsilon") == 1.0).drop("variant")
        for name in ("main", "again")
    )
    assert first.equals(second) and set(first["t"]) == {1, 2, 5}


CHANGES = {
    "data": lambda one: one["groups"].update(data="other"),
    "noise": lambda one: one["groups"].update(noise="other"),
    "sampling": lambda one: one["groups"].update(sampling="other"),
    "seed": lambda one: one.update(seed=8),
    "divergence": lambda one: one.update(divergence="record"),
    "averages": lambda one: one.update(averages=[INTERNAL]),
    "problem": lambda one: one["settings"][0]["problem"].update(records=4),
    "network": lambda one: one["settings"][0]["network"].update(agents=5),
    "budget": lambda one: one["settings"][0]["budget"].update(epsilon=1.25),
    "horizon": lambda one: one["settings"][0].update(horizon=6),
    "algorithm": lambda one: one["settings"][0]["algorithm"].update(decay=0.8),
}


@pytest.mark.parametrize("part", CHANGES)
def test_a_setting_with_other_streams_or_parts_is_another(pair, part):
    changed = copy.deepcopy(pair[BORROWER])
    CHANGES[part](changed)
    before, after = (identity(one, one["settings"][0]) for one in (pair[BORROWER], changed))
    assert before != after


def test_defaults_may_be_written_out_and_a_graph_that_is_not_drawn_has_no_group(pair):
    one = copy.deepcopy(pair[BORROWER])
    name = identity(one, one["settings"][0])
    one["settings"][0]["algorithm"] = {"decay": 0.75, "stage_two": "repaired"}
    one["groups"]["graph"] = "other"
    assert identity(one, one["settings"][0]) == name
    for group in ("first", "second"):
        one["settings"][0]["network"] |= {"name": "random_edges", "edges": 4}
        one["groups"]["graph"] = group
        assert identity(one, one["settings"][0]) != name
        name = identity(one, one["settings"][0])


def test_nobody_lends_in_a_circle_and_lenders_have_the_runs(whole):
    sources = whole.reused_settings()
    for borrower, found in sources.items():
        for name, lender in found.items():
            assert name not in sources.get(lender, {})
            assert whole.cell(*lender)["runs"] >= whole.cell(*borrower)["runs"]
    left = {pair: whole.source_cells(*pair) for pair in sources}
    while free := [pair for pair, needs in left.items() if not set(needs) & set(left)]:
        for pair in free:
            del left[pair]
    assert not left


@pytest.mark.parametrize(
    ("narrow", "wide"), [("ding_fig4", "ding_fig5"), ("ding_fig12", "ding_fig11")]
)
def test_figures_of_paper_004_that_lie_in_others_are_not_computed(whole, narrow, wide):
    for algorithm in whole.experiments[narrow].algorithms:
        one, other = whole.cell(narrow, algorithm), whole.cell(wide, algorithm)
        names = {identity(one, setting) for setting in one["settings"]}
        assert names <= {identity(other, setting) for setting in other["settings"]}
        assert whole.reused_settings()[narrow, algorithm].keys() == names


def test_problems_side_by_side_are_each_as_alone(whole, monkeypatch):
    """D-ZOA draws its directions once for all objectives."""
    found = copy.deepcopy(whole.cell("gratton_fig2", "d_zoa"))
    found.update(runs=4, block=2, iterations=[])
    for one in found["settings"]:
        one["horizon"] = 3
    together = compute_cell(found, {})
    monkeypatch.setattr(cells.algorithms.load("d_zoa"), "draws_once", False)
    alone = compute_cell(found, {})
    assert together.runs.equals(alone.runs) and together.privacy.equals(alone.privacy)


def test_streams_are_shared_by_the_algorithms_that_are_named(whole):
    groups = {
        pair: whole.cell(*pair)["groups"]
        for pair in (("gratton_fig2", name) for name in ("d_zoa", "exact_admm", "dp_admm"))
    }
    assert [own["noise"] for own in groups.values()] == [
        "gratton_fig3a d_zoa", "gratton_fig3a exact_admm", "gratton_fig2 dp_admm",
    ]  # fmt: skip
    assert len(whole.reused_settings()["gratton_extra_topology", "d_zoa"]) == 5
    assert len(whole.reused_settings()["gratton_fig2", "exact_admm"]) == 16
