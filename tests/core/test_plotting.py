"""Test figures: axes, labels of surrogate data, marks of guarantees, and drawings of one kind."""

from itertools import pairwise

import altair as alt
import polars as pl
import pytest
from altair.utils.schemapi import validate_jsonschema

from private_consensus.reproduction import figures
from private_consensus.reproduction.figures.curves import MOST_POINTS
from private_consensus.reproduction.figures.observers import draw as draw_observers
from private_consensus.reproduction.figures.repairs import draw as draw_repairs
from private_consensus.reproduction.figures.theme import ALARM

STYLES = {
    "a.one": {"label": "first", "colour": "#0072B2", "dash": []},
    "a.two": {"label": "second", "colour": "#E69F00", "dash": [4, 2]},
}


def panel(**changes):
    return {"title": "", "x": "x", "x_title": "rounds", "y_title": "error", "log_x": False,
            "log_y": True, "y_domain": None, "graph": False, **changes}  # fmt: skip


def numbers(y, style="one", source="made", series="", guarantee=""):
    x = [float(i + 1) for i in range(len(y))]
    return pl.DataFrame({
        "panel": "", "algorithm": "a", "variant": "v", "style": style, "interpretation": "resolved",
        "series": series, "guarantee": guarantee,
        "x": x, "y": y, "low": [0.9 * v for v in y], "high": [1.1 * v for v in y], "runs": 5,
        "interval": "i", "source": source,
    }, strict=False)  # fmt: skip


def chart_of(frame, **changes):
    panels = [panel(**changes)]
    figure = {"title": "A figure", "panels": panels, "conditions": ""}
    return validated(figures.draw("none", "nobody", frame, figure, STYLES))


def validated(specification):
    """Validate a Vega-Lite specification against its schema and return it."""
    assert specification["$schema"] == alt.SCHEMA_URL
    validate_jsonschema(specification, alt.load_schema())
    return specification


def values_of(specification) -> list[dict]:
    """Return the plotted points of the only panel."""
    return specification["concat"][0]["data"]["values"]


def encodings(specification, channel: str) -> list[dict]:
    layers = specification.get("concat", [specification])[0]["layer"]
    return [e for layer in layers if (e := layer["encoding"].get(channel, {})).get("field")]


def domain_of(specification) -> list[float]:
    """Return the lower and upper end of the y axis, including its strips."""
    return encodings(specification, "y")[0]["scale"]["domain"]


def test_values_below_a_logarithmic_axis_are_drawn_in_a_separate_strip():
    specification = chart_of(numbers([1e-2, 0.0, 1e-3]), y_domain=[1e-5, 1.0])
    points = values_of(specification)
    assert [p["place"] for p in points] == ["on the axis", "below the axis", "on the axis"]
    assert [points[0]["y"], points[2]["y"]] == [1e-2, 1e-3]
    assert domain_of(specification)[0] < points[1]["y"] < 1e-5


@pytest.mark.parametrize(
    ("source", "loud"),
    [("adult (mirror)", False), ("adult (surrogate)", True), ("us (surrogate); made", True)],
)
def test_the_subtitle_of_a_figure_marks_surrogate_data(source, loud):
    title = chart_of(numbers([1.0, 2.0], source=source))["title"]
    assert [line.startswith("SURROGATE DATA") and source in line for line in title["subtitle"]] == (
        [True] if loud else []
    )
    assert (title["subtitleColor"] == ALARM) == loud


@pytest.mark.parametrize("series", ["", "T = 1"])
def test_a_curve_without_a_proven_guarantee_is_marked_and_explained(series):
    proven = numbers([1.0, 2.0], guarantee="proven")
    frame = pl.concat([proven, numbers([2.0, 3.0], "two", series=series, guarantee="not proven")])
    specification = chart_of(frame)
    name = series or "second"
    assert {p["curve"] for p in values_of(specification)} == {"first", f"{name} \u2020"}
    assert specification["title"]["subtitle"][-1].startswith("\u2020 no guarantee is proven")
    assert not [line for line in chart_of(proven)["title"]["subtitle"] if "\u2020" in line]


def test_long_curves_are_thinned_evenly():
    points = values_of(chart_of(numbers([1.0 + i for i in range(3 * MOST_POINTS)])))
    assert len(points) == MOST_POINTS
    gaps = {b["x"] - a["x"] for a, b in pairwise(points)}
    assert gaps == {3.0}


@pytest.mark.parametrize("domain", [None, [1e-5, 1.0]])
@pytest.mark.parametrize("log", [True, False])
def test_infinite_values_lie_in_a_strip_above_the_axis(domain, log):
    specification = chart_of(numbers([1e-2, float("inf"), 1e-3]), y_domain=domain, log_y=log)
    points = values_of(specification)
    assert [p["place"] for p in points] == ["on the axis", "above the axis", "on the axis"]
    assert [points[1][column] for column in ("low", "high")] == [None] * 2
    top = domain[1] if domain else max(p["high"] for p in points if p["high"])
    assert top < points[1]["y"] < domain_of(specification)[1]


def repairs(**changes):
    row = {"experiment": "e_fig1", "algorithm": "a", "quantity": "released", "metric": "error",
           "delta": None,
           "published": "a.literal", "value_published": 0.1, "epsilon_published": float("inf"),
           "epsilon_claimed": 1.0, "corrected": "a.repaired", "value_corrected": 0.4,
           "epsilon_corrected": 0.5}  # fmt: skip
    return pl.DataFrame([row, {**row, "epsilon_claimed": 20.0, "epsilon_corrected": 2.0} | changes])


def test_a_correction_is_one_line_at_the_claimed_epsilon_closest_to_1():
    chart = draw_repairs(repairs(), "made", {("a.literal", "a.repaired"): "A: x_s \u2192 y"})
    ((line,),) = chart["datasets"].values()
    scale = next(e["scale"] for e in encodings(chart, "x"))
    assert line["claimed"] == 1.0 and line["corrected"] == 0.5
    assert 0.5 < line["as published"] < scale["domain"][1]


def test_the_drawing_of_observers_has_a_panel_per_graph_with_all_distances():
    head = ("graph", "observer", "distance", "largest")
    rows = pl.DataFrame(
        [
            ("ring", "agent", 1, 0.9),
            ("ring", "agent", 2, 0.1),
            ("ring", "secure sums", 2, 0.05),
            ("ring", "secure sums", 3, 0.0),  # cannot be drawn on a logarithmic axis
            ("ring", "eavesdropper", None, 1.0),
            ("path", "agent", 1, 0.8),
        ],
        schema=head,
        orient="row",
    ).with_columns(algorithm=pl.lit("a"), accounted=1.0, drawn=True)
    chart = validated(draw_observers(rows, {"epsilon": 1.0, "delta": 1e-5}, horizon=20))
    (drawn,) = chart["datasets"].values()
    values = {(row["graph"], row["observer"], row["distance"], row["largest"]) for row in drawn}
    single, sums = "receives single messages", "receives secure sums"
    ring = {("ring", single, 1, 0.9), ("ring", single, 2, 0.1), ("ring", sums, 2, 0.05)}
    assert values == {*ring, ("path", single, 1, 0.8)}
    assert chart["facet"]["field"] == "graph"
