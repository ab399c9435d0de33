"""Figures: what a logarithmic axis cannot show, what a surrogate says, bytes."""

import json
from itertools import pairwise

import altair as alt
import polars as pl
import pytest

from private_consensus import plotting
from private_consensus.errors import InvalidInput
from private_consensus.plotting.curves import MOST_POINTS, arranged
from private_consensus.plotting.repairs import draw as draw_repairs
from private_consensus.plotting.theme import ALARM, save

STYLES = {
    "a.one": {"label": "first", "colour": "#0072B2", "dash": []},
    "a.two": {"label": "second", "colour": "#E69F00", "dash": [4, 2]},
}


def panel(**changes):
    return {"title": "", "x": "x", "x_title": "rounds", "y_title": "error", "log_x": False,
            "log_y": True, "y_domain": None, **changes}  # fmt: skip


def numbers(y, variant="one", source="made", series="", guarantee=""):
    x = [float(i + 1) for i in range(len(y))]
    return pl.DataFrame({
        "panel": "", "algorithm": "a", "variant": variant, "reading": "resolved", "series": series,
        "guarantee": guarantee,
        "x": x, "y": y, "low": [0.9 * v for v in y], "high": [1.1 * v for v in y], "runs": 5,
        "interval": "i", "source": source,
    }, strict=False)  # fmt: skip


def drawn(frame, **changes):
    figure = {"title": "A figure", "panels": [panel(**changes)]}
    return plotting.draw("none", "nobody", frame, figure, STYLES).to_dict()


def values_of(specification) -> list[dict]:
    return next(iter(specification["datasets"].values()))


def test_values_below_a_logarithmic_axis_lie_on_its_end_and_say_so():
    points = values_of(drawn(numbers([1e-2, 0.0, 1e-3]), y_domain=[1e-5, 1.0]))
    assert [p["y"] for p in points] == [1e-2, 1e-5, 1e-3]
    assert [p["exact"] for p in points] == [1e-2, 0.0, 1e-3]
    assert [p["place"] for p in points] == ["on the axis", "below the axis", "on the axis"]
    assert min(p["low"] for p in points) >= 1e-5


def test_nothing_positive_cannot_be_shown_on_a_logarithmic_axis():
    with pytest.raises(InvalidInput, match="values > 0 on a logarithmic axis"):
        drawn(numbers([0.0, -1.0]))


@pytest.mark.parametrize(
    ("source", "loud"),
    [("adult (mirror)", False), ("adult (surrogate)", True), ("us (surrogate); made", True)],
)
def test_surrogate_data_is_said_on_the_figure_itself(source, loud):
    title = drawn(numbers([1.0, 2.0], source=source))["title"]
    assert source in title["subtitle"]
    assert title["subtitle"].startswith("SURROGATE DATA") == loud
    assert (title["subtitleColor"] == ALARM) == loud


def test_a_curve_has_its_own_label_colour_and_dash():
    frame = pl.concat([numbers([1.0, 2.0]), numbers([2.0, 3.0], "two")])
    text = json.dumps(drawn(frame))
    for expected in ('"domain": ["first", "second"]', "#0072B2", "#E69F00", "[4, 2]"):
        assert expected in text


@pytest.mark.parametrize("series", ["", "T = 1"])
def test_a_curve_without_a_proven_guarantee_is_marked_and_explained(series):
    proven = numbers([1.0, 2.0], guarantee="proven")
    frame = pl.concat([proven, numbers([2.0, 3.0], "two", series=series, guarantee="not proven")])
    made = drawn(frame)
    name = series or "second"
    assert {p["curve_0"] for p in values_of(made)} == {"first", f"{name} \u2020"}
    assert made["title"]["subtitle"][-1].startswith("\u2020 no guarantee is proven")
    assert drawn(proven)["title"]["subtitle"] == "data: made"


def test_a_note_on_the_data_stands_below_the_title():
    figure = {"title": "A figure", "note": "of 2,000 images", "panels": [panel()]}
    made = plotting.draw("none", "nobody", numbers([1.0, 2.0]), figure, STYLES).to_dict()
    assert made["title"]["subtitle"] == ["data: made", "of 2,000 images"]


def test_long_curves_are_thinned_evenly():
    points = values_of(drawn(numbers([1.0 + i for i in range(3 * MOST_POINTS)])))
    assert len(points) == MOST_POINTS
    gaps = {b["x"] - a["x"] for a, b in pairwise(points)}
    assert gaps == {3.0}


def test_curves_along_an_axis_are_told_apart():
    frame = pl.concat([numbers([1.0, 2.0], series="T = 1"), numbers([2.0, 3.0], series="T = 2")])
    assert '"domain": ["T = 1", "T = 2"]' in json.dumps(drawn(frame))


def test_figures_are_the_same_bytes_when_repeated(tmp_path):
    frame = pl.concat([numbers([1.0, 2.0]), numbers([2.0, 3.0], "two")])
    figure = {"title": "A figure", "panels": [panel()]}
    made = []
    for name in ("first", "second"):
        chart = plotting.draw("none", "nobody", frame, figure, STYLES)
        files = {k: tmp_path / f"{name}.{k}" for k in ("svg", "png", "pdf")}
        save(chart, json_path=tmp_path / f"{name}.json", **files)
        made.append(
            [(tmp_path / f"{name}.{k}").read_bytes() for k in ("json", "svg", "png", "pdf")]
        )
    assert made[0] == made[1]
    assert all(made[0])


@pytest.mark.parametrize(("count", "dotted"), [(40, True), (41, False)])
def test_many_points_are_a_line_without_dots(count, dotted):
    layers = drawn(numbers([1.0 + i for i in range(count)]))["layer"]
    opacity = layers[-1]["encoding"]["opacity"]
    assert (opacity != {"value": 0.0}) == dotted


@pytest.mark.parametrize("domain", [None, [1e-5, 1.0]])
def test_infinite_values_lie_on_the_upper_end_and_say_so(domain):
    points = values_of(drawn(numbers([1e-2, float("inf"), 1e-3]), y_domain=domain))
    assert [p["place"] for p in points] == ["on the axis", "above the axis", "on the axis"]
    assert points[1]["exact"] is None
    top = domain[1] if domain else 1.2 * 1.1e-2
    assert points[1]["y"] == pytest.approx(top)


def test_a_curve_without_any_finite_value_is_drawn_on_the_upper_end():
    points = values_of(drawn(numbers([float("inf")] * 3)))
    assert {p["place"] for p in points} == {"above the axis"}
    assert all(abs(p["y"]) < float("inf") and p["exact"] is None for p in points)


@pytest.mark.parametrize(
    ("columns", "rows"), [(None, [5]), (1, [1] * 5), (2, [2, 2, 1]), (5, [5]), (9, [5])]
)
def test_panels_stand_in_rows_of_so_many_columns(columns, rows):
    panels = [alt.layer(alt.Chart(pl.DataFrame({"x": [1]})).mark_point()) for _ in range(5)]
    chart = arranged(panels, columns).to_dict()
    stacked = chart.get("vconcat", [chart])
    assert [len(row["hconcat"]) for row in stacked] == rows
    assert all(row["resolve"]["scale"]["color"] == "independent" for row in stacked)


def repairs(**changes):
    row = {"experiment": "e_fig1", "algorithm": "a", "quantity": "released", "metric": "error",
           "printed": "a.literal", "value_printed": 0.1, "epsilon_printed": float("inf"),
           "epsilon_claimed": 1.0, "repaired": "a.repaired", "value_repaired": 0.4,
           "epsilon_repaired": 0.5}  # fmt: skip
    return pl.DataFrame([row, {**row, "epsilon_claimed": 2.0, "epsilon_repaired": 2.0} | changes])


def test_a_repair_is_an_arrow_from_where_it_was_to_its_true_epsilon():
    layers = draw_repairs(repairs(), "data").to_dict()["layer"]
    moves, solid, hollow = layers
    ends = moves["encoding"]["x"]["scale"]["domain"]
    chart = draw_repairs(repairs(), "data").to_dict()
    rows = {layer["data"]["name"]: chart["datasets"][layer["data"]["name"]] for layer in layers}
    assert [r["epsilon"] for r in rows[moves["data"]["name"]]] == [ends[1]] * 2
    assert [r["epsilon_after"] for r in rows[moves["data"]["name"]]] == [0.5, 2.0]
    assert [r["name"] for r in rows[solid["data"]["name"]]] == ["a.repaired"] * 2
    assert [r["name"] for r in rows[hollow["data"]["name"]]] == ["a.literal"] * 2
    assert solid["mark"]["filled"] and not hollow["mark"]["filled"]


def test_a_panel_of_repairs_is_one_experiment_and_none_says_so():
    other = draw_repairs(repairs(experiment="e_fig2"), "data").to_dict()
    assert len(other["hconcat"]) == 2
    empty = draw_repairs(repairs().clear(), "data").to_dict()
    assert "nothing" in str(empty["datasets"])


def test_an_infinite_mean_of_a_repair_lies_at_the_top_and_is_hollow():
    chart = draw_repairs(repairs(value_repaired=float("inf")), "data").to_dict()
    hollow = chart["datasets"][chart["layer"][2]["data"]["name"]]
    assert json.dumps(chart, allow_nan=False)
    assert {(row["name"], row["value"]) for row in hollow} == {
        ("a.literal", 0.1),
        ("a.repaired", 0.8),
    }
