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
def plan():
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
    plain = {key: compute_cell(cell_config, {}) for key, cell_config in pair.items()}
    source_result = compute_cell(pair[LENDER], {}, requests=requests_to(pair, sources, LENDER))
    assert source_result.runs.equals(plain[LENDER].runs)
    assert source_result.privacy.equals(plain[LENDER].privacy)
    monkeypatch.setattr(cells, "simulate_together", None)  # nothing is left to compute
    reusing_result = compute_cell(pair[BORROWER], {}, reused=source_result.requested)
    assert reusing_result.runs.equals(plain[BORROWER].runs)
    assert reusing_result.privacy.equals(plain[BORROWER].privacy)


def test_a_cell_computes_what_nobody_lends(pair):
    wider = copy.deepcopy(pair)
    wider[BORROWER]["settings"].append(setting(2.0))
    sources = reused_settings(wider)
    requested = compute_cell(
        wider[LENDER], {}, requests=requests_to(wider, sources, LENDER)
    ).requested
    reusing_result = compute_cell(wider[BORROWER], {}, reused=requested)
    assert reusing_result.runs.equals(compute_cell(wider[BORROWER], {}).runs)
    assert reusing_result.runs["epsilon"].n_unique() == 3


def test_only_runs_that_were_asked_for_are_measured_besides(pair):
    requested = compute_cell(
        pair[LENDER], {}, requests=requests_to(pair, reused_settings(pair), LENDER)
    ).requested
    additional_rows = requested.filter((pl.col("quantity") == "consensus") | (pl.col("t") == 1))
    # Runs are computed in blocks of two: three take two blocks.
    assert set(additional_rows["run"]) == {0, 1, 2, 3}
    assert set(additional_rows.select("t", "quantity").rows()) == {
        (1, "internal"),
        (5, "consensus"),
    }
    assert set(requested.filter(pl.col("t") == 4)["run"]) == set(range(6))


@pytest.fixture(scope="module")
def courses(pair):
    """Return the pair of cells, with one setting measured at the last iteration only."""
    changed = copy.deepcopy(pair)
    changed[BORROWER]["intermediate_measures"] = [CONSENSUS]
    changed[BORROWER]["settings"][0]["intermediate"] = False
    return changed


def test_settings_without_a_course_are_measured_at_their_end(pair, courses):
    """Measurements are unchanged, and earlier iterations are not recorded."""
    all_runs, last_runs = (
        compute_cell(cell_pair[BORROWER], {}).runs for cell_pair in (pair, courses)
    )
    at_end, consensus = pl.col("t") == 5, pl.col("quantity") == "consensus"
    assert last_runs.equals(all_runs.filter(at_end | (consensus & (pl.col("epsilon") == 5.0))))
    assert 0 < last_runs.height < all_runs.height


def test_what_has_no_course_is_borrowed_without_one(courses):
    """Settings without intermediate measurements are reused without them.

    This holds if the other cell records intermediate iterations of the setting, too.
    """
    sources = reused_settings(courses)
    requested = compute_cell(
        courses[LENDER], {}, requests=requests_to(courses, sources, LENDER)
    ).requested
    reusing_result = compute_cell(courses[BORROWER], {}, reused=requested)
    assert reusing_result.runs.equals(compute_cell(courses[BORROWER], {}).runs)
    name = identity(courses[BORROWER], courses[BORROWER]["settings"][0])
    assert set(requested.filter(pl.col("identity") == name)["t"]) == {2, 4, 5}


def test_a_lender_without_a_course_measures_that_of_a_borrower(courses):
    """Iterations 2 and 4 belong to the computing cell, 1 and 2 to the reusing cell."""
    turned = copy.deepcopy(courses)
    del turned[BORROWER]["intermediate_measures"], turned[BORROWER]["settings"][0]["intermediate"]
    for setting_config in turned[LENDER]["settings"]:
        setting_config["intermediate"] = False
    source_result = compute_cell(
        turned[LENDER], {}, requests=requests_to(turned, reused_settings(turned), LENDER)
    )
    assert set(source_result.runs["t"]) == {5}
    reusing_result = compute_cell(turned[BORROWER], {}, reused=source_result.requested)
    assert reusing_result.runs.equals(compute_cell(turned[BORROWER], {}).runs)


def test_settings_that_are_the_same_have_the_course_of_one(pair):
    cell_config = copy.deepcopy(pair[BORROWER])
    again = {**copy.deepcopy(cell_config["settings"][0]), "variant": "again", "intermediate": False}
    cell_config["settings"].insert(0, again)
    runs = compute_cell(cell_config, {}).runs
    first, second = (
        runs.filter(pl.col("variant") == name, pl.col("epsilon") == 1.0).drop("variant")
        for name in ("main", "again")
    )
    assert first.equals(second) and set(first["t"]) == {1, 2, 5}


CHANGES = {
    "data": lambda cell_config: cell_config["groups"].update(data="other"),
    "noise": lambda cell_config: cell_config["groups"].update(noise="other"),
    "sampling": lambda cell_config: cell_config["groups"].update(sampling="other"),
    "seed": lambda cell_config: cell_config.update(seed=8),
    "divergence": lambda cell_config: cell_config.update(divergence="record"),
    "averages": lambda cell_config: cell_config.update(averages=[INTERNAL]),
    "problem": lambda cell_config: cell_config["settings"][0]["problem"].update(records=4),
    "network": lambda cell_config: cell_config["settings"][0]["network"].update(agents=5),
    "budget": lambda cell_config: cell_config["settings"][0]["budget"].update(epsilon=1.25),
    "horizon": lambda cell_config: cell_config["settings"][0].update(horizon=6),
    "algorithm": lambda cell_config: cell_config["settings"][0]["algorithm"].update(decay=0.8),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_setting_with_other_streams_or_parts_is_another(pair, change):
    changed = copy.deepcopy(pair[BORROWER])
    CHANGES[change](changed)
    before, after = (
        identity(cell_config, cell_config["settings"][0])
        for cell_config in (pair[BORROWER], changed)
    )
    assert before != after


def test_defaults_may_be_written_out_and_a_graph_that_is_not_drawn_has_no_group(pair):
    cell_config = copy.deepcopy(pair[BORROWER])
    name = identity(cell_config, cell_config["settings"][0])
    cell_config["settings"][0]["algorithm"] = {"decay": 0.75, "stage_two": "repaired"}
    cell_config["groups"]["graph"] = "other"
    assert identity(cell_config, cell_config["settings"][0]) == name
    for group in ("first", "second"):
        cell_config["settings"][0]["network"] |= {"name": "random_edges", "edges": 4}
        cell_config["groups"]["graph"] = group
        assert identity(cell_config, cell_config["settings"][0]) != name
        name = identity(cell_config, cell_config["settings"][0])


def test_nobody_lends_in_a_circle_and_lenders_have_the_runs(plan):
    sources = plan.reused_settings()
    for borrower, setting_sources in sources.items():
        for name, lender in setting_sources.items():
            assert name not in sources.get(lender, {})
            assert plan.cell(*lender)["runs"] >= plan.cell(*borrower)["runs"]
    remaining = {pair: plan.source_cells(*pair) for pair in sources}
    while free := [pair for pair, needs in remaining.items() if not set(needs) & set(remaining)]:
        for pair in free:
            del remaining[pair]
    assert not remaining


@pytest.mark.parametrize(
    ("narrow", "wide"), [("ding_fig4", "ding_fig5"), ("ding_fig12", "ding_fig11")]
)
def test_figures_of_paper_004_that_lie_in_others_are_not_computed(plan, narrow, wide):
    for algorithm in plan.experiments[narrow].algorithms:
        narrow_cell, wide_cell = plan.cell(narrow, algorithm), plan.cell(wide, algorithm)
        names = {identity(narrow_cell, setting) for setting in narrow_cell["settings"]}
        assert names <= {identity(wide_cell, setting) for setting in wide_cell["settings"]}
        assert plan.reused_settings()[narrow, algorithm].keys() == names


def test_problems_side_by_side_are_each_as_alone(plan, monkeypatch):
    """D-ZOA draws its directions once for all objectives."""
    cell_config = copy.deepcopy(plan.cell("gratton_fig2", "d_zoa"))
    cell_config.update(runs=4, block=2, iterations=[])
    for setting_config in cell_config["settings"]:
        setting_config["horizon"] = 3
    together = compute_cell(cell_config, {})
    monkeypatch.setattr(cells.algorithms.load("d_zoa"), "draws_once", False)
    alone = compute_cell(cell_config, {})
    assert together.runs.equals(alone.runs) and together.privacy.equals(alone.privacy)


def test_streams_are_shared_by_the_algorithms_that_are_named(plan):
    groups = {
        pair: plan.cell(*pair)["groups"]
        for pair in (("gratton_fig2", name) for name in ("d_zoa", "exact_admm", "dp_admm"))
    }
    assert [cell_groups["noise"] for cell_groups in groups.values()] == [
        "gratton_fig3a d_zoa", "gratton_fig3a exact_admm", "gratton_fig2 dp_admm",
    ]  # fmt: skip
    assert len(plan.reused_settings()["gratton_extra_topology", "d_zoa"]) == 5
    assert len(plan.reused_settings()["gratton_fig2", "exact_admm"]) == 16
