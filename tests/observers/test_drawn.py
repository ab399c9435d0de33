"""Test figures of partial observers: plotted values against the formula, and the charts."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from private_consensus.common.errors import InvalidInput
from private_consensus.privacy import gaussian_epsilon, gaussian_mu
from private_consensus.reproduction import plotting
from private_consensus.reproduction.experiments.numbers import figure_numbers
from private_consensus.reproduction.experiments.plan import load
from private_consensus.reproduction.experiments.schema import FigurePanel, Views
from private_consensus.reproduction.observers.drawn import COMPUTED, view_points

ROOT = Path(__file__).parents[2]
CONFIG = {"scale": "paper", "seed": 1, "papers": ["observers"]}
N, T, DELTA = 5, 4, 1e-5
PATH = {
    "problem": {"name": "mean_estimation", "records": 10, "dim": 2, "box": 1.0},
    "network": {"name": "path", "agents": N, "weights": "metropolis"},
    "budget": {"epsilon": 4.0, "delta": DELTA},
    "horizon": T,
}
DESCENT = {"algorithm": {"name": "muffliato_gd", "eta": 0.02}}
ONCE = {"algorithm": {"name": "muffliato"}}


def panel(title: str, show: str, **view_options) -> dict:
    figure_panel = FigurePanel(title=title, privacy_loss={**PATH, "show": show, **view_options})
    return {
        **figure_panel.model_dump(mode="json"),
        "privacy_loss": figure_panel.privacy_loss.request(),
    }


def points(show: str, **view_options) -> pl.DataFrame:
    return view_points(panel("", show, **view_options)["privacy_loss"], seed=3)


def test_a_map_has_all_pairs_and_one_round_of_noise_gives_equal_loss_within_reach():
    map_points = points("map", **ONCE)
    pairs = set(zip(map_points["observer"], map_points["target_agent"], strict=True))
    assert pairs == {(v, u) for v in range(1, N + 1) for u in range(1, N + 1) if u != v}
    np.testing.assert_allclose(map_points["epsilon"], 4.0, rtol=1e-6)
    out_of_reach = points("map", **ONCE, horizon=2).filter(pl.col("distance") > 2)
    assert len(out_of_reach) == 6 and out_of_reach["epsilon"].is_null().all()


def test_graph_nodes_show_the_losses_to_one_observer_from_the_map():
    map_points = points("map", **DESCENT).filter(pl.col("observer") == 2)
    graph_points = points("graph", **DESCENT, agent=2)
    nodes = graph_points.filter(pl.col("kind") == "node").sort("node")
    assert nodes["epsilon"][1] is None
    column = dict(zip(map_points["target_agent"], map_points["epsilon"], strict=True))
    assert {u: e for u, e in zip(nodes["node"], nodes["epsilon"], strict=True) if u != 2} == column
    edges = graph_points.filter(pl.col("kind") == "edge")
    assert list(zip(edges["edge_from"], edges["edge_to"], strict=True)) == [
        (i, i + 1) for i in range(1, N)
    ]


def test_losses_by_distance_are_below_the_contraction_and_causal_bounds():
    distance_points = points("distance", **DESCENT)
    lines = {
        (name, x): y
        for name, x, y in distance_points.filter(pl.col("kind") == "line")
        .select("series", "x", "y")
        .rows()
    }
    mu = gaussian_mu(4.0, DELTA)
    for d in range(1, N):
        pairs = distance_points.filter((pl.col("kind") == "pair") & (pl.col("x") == d))["y"]
        convex, any_loss = (
            lines[name, d] for name in ("any convex smooth loss (F1)", "any loss (F0)")
        )
        assert pairs.max() <= convex * (1 + 1e-6) <= any_loss * (1 + 2e-6)
        cone = mu * np.sqrt((T - d + 1) / T)
        assert any_loss == pytest.approx(float(gaussian_epsilon(cone, DELTA)), rel=1e-6)
        assert lines["median pair", d] == pytest.approx(np.sort(pairs)[len(pairs) // 2], rel=0.5)
        assert lines["every message, the eavesdropper", d] == pytest.approx(4.0, rel=1e-6)
        server = float(gaussian_epsilon(mu / np.sqrt(N - 1), DELTA))
        assert lines["a server's sum", d] == pytest.approx(server, rel=1e-6)


def test_the_sum_of_single_losses_is_plotted_below_the_true_loss():
    lines = points("distance", **ONCE).filter(pl.col("series").str.contains("no bound"))
    far = lines.filter(pl.col("x") == N - 1)["y"].item()
    assert 0 < far < 0.5 * 4.0


def test_losses_increase_with_rounds_and_are_ordered_by_observer():
    round_points = points("rounds", **DESCENT, rounds=[1, 2, 4])
    by = {(name, x): y or 0.0 for name, x, y in round_points.select("series", "x", "y").rows()}
    names = {name for name, _ in by}
    assert {"eavesdropper", "coalition of 3", "agent, worst pair", "secure sums, median pair"} < (
        names
    )
    for name in names - {"last models", "mean of last models"}:
        assert by[name, 1] <= by[name, 2] <= by[name, 4] * (1 + 1e-9)
    for t in (1, 2, 4):
        assert by["agent, worst pair", t] <= by["eavesdropper", t] * (1 + 1e-6)
        assert by["secure sums, worst pair", t] <= by["agent, worst pair", t] * (1 + 1e-6)
    assert by["eavesdropper", 4] == pytest.approx(4.0, rel=1e-6)


def test_a_plot_over_rounds_has_a_server_guide_and_marks_the_end_of_noise():
    fresh, once = (points("rounds", **method, rounds=[1, 4]) for method in (DESCENT, ONCE))
    guide = fresh.filter(pl.col("series").str.starts_with("a server's sum")).sort("x")
    mu = gaussian_mu(guide["y"].to_numpy(), DELTA)
    np.testing.assert_allclose(mu, gaussian_mu(4.0, DELTA) * np.sqrt([1, 4]) / 4, rtol=1e-6)
    assert fresh.filter(pl.col("kind") == "mark").is_empty()
    assert once.filter(pl.col("kind") == "mark")["x"].to_list() == [2.0]
    assert once.filter(pl.col("series").str.starts_with("a server's sum")).is_empty()


def test_shared_secrets_increase_the_loss_to_an_eavesdropper():
    round_points = points("rounds", algorithm={"name": "decor", "eta": 0.02}, rounds=[4])
    by = dict(round_points.filter(pl.col("x") == 4).select("series", "y").rows())
    assert by["eavesdropper with an agent's secrets"] > 1.1 * by["eavesdropper"]
    assert by["coalition of 2"] <= by["coalition of 3"] * (1 + 1e-6)


@pytest.mark.parametrize("algorithm", ["muffliato_gd", "secure_aggregation", "decor"])
def test_the_loss_to_a_coalition_grows_with_its_members(algorithm):
    """The loss to a coalition grows with its members, in any order of joining.

    All other agents together have the same loss in every order. For a secure sum, only the noise of
    the remaining agents counts.
    """
    coalition_points = points("coalitions", algorithm={"name": algorithm, "eta": 0.02}, agent=2)
    lines = coalition_points.filter(pl.col("kind") == "line").sort("series", "x")
    ends = []
    for _, line in lines.group_by("series"):
        values = line["y"].fill_null(0.0).to_numpy()
        assert len(values) == N - 1 and (np.diff(values) >= -1e-6 * values[1:]).all()
        ends.append(values[-1])
    np.testing.assert_allclose(ends, ends[0], rtol=1e-6)
    assert coalition_points.filter(pl.col("kind") == "mark")["x"].to_list() == [2.0]
    if algorithm == "secure_aggregation":
        near = lines.filter(pl.col("series") == "nearest to it")["y"].to_numpy()
        shares = np.sqrt(N / (N - np.arange(1, N)))
        expected = gaussian_epsilon(gaussian_mu(4.0, DELTA) * shares, DELTA)
        np.testing.assert_allclose(near, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"agent": N + 1}, "agent: expected 1 to 5"),
        ({"rounds": [1]}, "rounds: required if show is rounds"),
        ({"show": "rounds"}, "rounds: required if show is rounds"),
        ({"show": "rounds", "rounds": [1, T + 1]}, "rounds: expected 1 to 4"),
        ({"algorithm": {"name": "telepathy"}}, "expected one of"),
        ({"observer": "nobody"}, "secure sums"),
    ],
)
def test_invalid_views_are_refused(changes, message):
    with pytest.raises(ValidationError, match=message):
        Views(**{**PATH, "show": "map", **DESCENT, **changes})


SMALL = {"network": {**PATH["network"], "agents": 3}, "horizon": 2}


def test_a_smaller_scale_overrides_only_the_keys_it_sets():
    paper_views = Views(**{**PATH, "show": "rounds", "rounds": [1, T], **DESCENT})
    scales = {"smoke": {**SMALL, "rounds": [2]}}
    scaled_views = Views(**{**paper_views.request(), "scales": scales})
    assert scaled_views.at("paper").request() == scaled_views.request() == paper_views.request()
    assert scaled_views.at("smoke").request() == {**paper_views.request(), **SMALL, "rounds": [2]}


@pytest.mark.parametrize(
    ("scales", "message"),
    [
        ({"smoke": {"horizon": 0}}, "greater than or equal to 1"),
        ({"smoke": {"records": 3}}, "records"),
        ({"smoke": {"horizon": 2}}, "rounds: expected 1 to 2"),
    ],
)
def test_an_invalid_smaller_scale_is_refused(scales, message):
    views = {**PATH, "show": "rounds", "rounds": [1, T], **DESCENT}
    with pytest.raises(ValidationError, match=message):
        Views(**views, scales=scales)


def test_a_plan_uses_the_views_of_its_scale_and_smoke_views_are_smaller():
    folder = ROOT / "config"
    paper_plan, smoke_plan = (
        load({**CONFIG, "scale": scale}, folder) for scale in ("paper", "smoke")
    )
    figure_names = [name for name in paper_plan.figures if paper_plan.views(name)]
    assert len(figure_names) == 4
    for name in figure_names:
        for plan in (paper_plan, smoke_plan):
            drawn = {p["title"]: p["privacy_loss"]["network"] for p in plan.drawing(name)["panels"]}
            requested = {t: p["network"] for t, p in plan.views(name)["panels"].items()}
            assert {t: n["agents"] for t, n in drawn.items()} == {
                t: n["agents"] for t, n in requested.items()
            }
            assert "scales" not in json.dumps([plan.drawing(name), plan.views(name)])
        both = paper_plan.views(name)["panels"], smoke_plan.views(name)["panels"]
        for paper_panel, smoke_panel in ((panels[title] for panels in both) for title in both[0]):
            assert smoke_panel["network"]["agents"] < paper_panel["network"]["agents"]
            assert smoke_panel["horizon"] < paper_panel["horizon"]


def test_an_unknown_scale_of_views_is_named_in_the_error(tmp_path):
    text = (ROOT / "config/papers/observers.yaml").read_text()
    at = text.index("      scales:\n        smoke:\n")
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers/observers.yaml").write_text(
        text[:at] + text[at:].replace("smoke:", "smokey:", 1)
    )
    with pytest.raises(
        InvalidInput, match=r"observers_extra_map\.privacy_loss\.scales: found 'smokey'"
    ):
        load(CONFIG, tmp_path, ROOT / "config")


def test_a_panel_of_views_refuses_keys_of_other_panels():
    views = {**PATH, "show": "map", **DESCENT}
    for extra_keys in ({"experiment": "e"}, {"graph": True}, {"x": "t"}):
        with pytest.raises(ValidationError):
            FigurePanel(title="", privacy_loss=views, **extra_keys)


def test_views_of_a_non_private_algorithm_are_refused():
    with pytest.raises(InvalidInput, match="this algorithm is not private"):
        points("map", algorithm={"name": "dgd"})


FIGURES = {
    "map": [("learned", "graph", DESCENT), ("pairs", "map", DESCENT)],
    "distance": [("fresh", "distance", DESCENT), ("once", "distance", ONCE)],
    "rounds": [("fresh", "rounds", {**DESCENT, "rounds": [1, 4]})],
    "coalitions": [("together", "coalitions", DESCENT)],
}


@pytest.mark.parametrize("kind", FIGURES)
def test_figures_contain_no_infinite_values_and_state_that_they_use_no_data(kind):
    panels = [
        {**panel(title, show, **view_options), "x_title": "x", "y_title": "y"}
        for title, show, view_options in FIGURES[kind]
    ]
    drawn_points = pl.concat(
        [view_points(p["privacy_loss"], 3).with_columns(panel=pl.lit(p["title"])) for p in panels],
        how="diagonal_relaxed",
    )
    column = "epsilon" if kind == "map" else "y"
    first = pl.int_range(pl.len()) == pl.col(column).is_not_null().arg_max()
    drawn_points = drawn_points.with_columns(
        pl.when(first).then(np.inf).otherwise(pl.col(column)).alias(column)
    )
    numbers = figure_numbers(panels, {}, source=COMPUTED, other_points=drawn_points)
    figure = {"title": "Views", "panels": panels, "columns": 2}
    chart = plotting.draw(f"observers_extra_{kind}", "observers", numbers, figure, {})
    text = json.dumps(chart, allow_nan=False)
    assert f"data: {COMPUTED}" in text
    assert all(f'"{p["title"]}"' in text for p in panels)
