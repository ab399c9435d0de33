"""Test figures: logarithmic axes, labels of surrogate data, and byte-identical output."""

import json
import re
from io import BytesIO
from itertools import pairwise

import altair as alt
import numpy as np
import polars as pl
import pytest
import vl_convert
from altair.utils.schemapi import validate_jsonschema
from PIL import Image

from private_consensus.reproduction import plotting
from private_consensus.reproduction.experiments.numbers import graph_points
from private_consensus.reproduction.plotting.curves import CROWDED, MOST_POINTS, arranged
from private_consensus.reproduction.plotting.drawings import (
    HIDDEN,
    pdf_of,
    png_of,
    rounded,
    save,
    svg_of,
)
from private_consensus.reproduction.plotting.observers import draw as draw_observers
from private_consensus.reproduction.plotting.repairs import draw as draw_repairs
from private_consensus.reproduction.plotting.specifications import named_data
from private_consensus.reproduction.plotting.theme import ALARM

STYLES = {
    "a.one": {"label": "first", "colour": "#0072B2", "dash": []},
    "a.two": {"label": "second", "colour": "#E69F00", "dash": [4, 2]},
}


def panel(**changes):
    return {"title": "", "x": "x", "x_title": "rounds", "y_title": "error", "log_x": False,
            "log_y": True, "y_domain": None, "graph": False, **changes}  # fmt: skip


def numbers(y, variant="one", source="made", series="", guarantee=""):
    x = [float(i + 1) for i in range(len(y))]
    return pl.DataFrame({
        "panel": "", "algorithm": "a", "variant": variant, "interpretation": "resolved",
        "series": series, "guarantee": guarantee,
        "x": x, "y": y, "low": [0.9 * v for v in y], "high": [1.1 * v for v in y], "runs": 5,
        "interval": "i", "source": source,
    }, strict=False)  # fmt: skip


def chart_of(frame, **changes):
    figure = {"title": "A figure", "panels": [panel(**changes)]}
    return validated(plotting.draw("none", "nobody", frame, figure, STYLES))


def validated(specification):
    """Validate a Vega-Lite specification against its schema and return it."""
    assert specification["$schema"] == alt.SCHEMA_URL
    validate_jsonschema(specification, alt.load_schema())
    return specification


def values_of(specification) -> list[dict]:
    """Return the plotted points: the largest data set of the specification."""
    return max(specification["datasets"].values(), key=len)


def encodings(specification, channel: str) -> list[dict]:
    layers = specification.get("layer", [])
    return [e for layer in layers if (e := layer["encoding"].get(channel, {})).get("field")]


def domain_of(specification) -> list[float]:
    """Return the lower and upper end of the y axis, including its strips."""
    return encodings(specification, "y")[0]["scale"]["domain"]


def test_values_below_a_logarithmic_axis_are_drawn_in_a_separate_strip():
    specification = chart_of(numbers([1e-2, 0.0, 1e-3]), y_domain=[1e-5, 1.0])
    points = values_of(specification)
    assert [p["dot"] for p in points] == [1e-2, None, 1e-3]
    assert [p["place"] for p in points] == ["on the axis", "below the axis", "on the axis"]
    assert domain_of(specification)[0] < points[1]["beyond"] < 1e-5
    assert points[1]["y"] == points[1]["beyond"]  # The line ends at the mark.
    assert '"0"' in next(
        e["axis"]["labelExpr"] for e in encodings(specification, "y") if e.get("axis")
    )


def test_a_curve_without_positive_values_is_drawn_below_a_logarithmic_axis():
    points = values_of(chart_of(numbers([0.0, -1.0])))
    assert {p["place"] for p in points} == {"below the axis"}


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


def test_a_figure_does_not_depend_on_figures_drawn_earlier(tmp_path):
    """The renderer numbers clip paths and gradients consecutively within a process."""
    mark, values = {"type": "rect", "clip": True}, [{"a": i, "b": 0.1 * i} for i in range(9)]
    encoding = {"x": {"field": "a"}, "color": {"field": "b", "type": "quantitative"}}
    chart = {"data": {"values": values}, "mark": mark, "encoding": encoding}
    outputs = []
    for name in ("first", "second"):
        files = {kind: tmp_path / f"{name}.{kind}" for kind in ("svg", "png", "pdf")}
        save(chart, **files, png_scale=0.5)
        outputs.append({kind: file.read_bytes() for kind, file in files.items()})
    assert outputs[0] == outputs[1]
    assert b"url(#gradient_0)" in outputs[0]["svg"] and b"url(#clip0)" in outputs[0]["svg"]


def test_each_curve_has_the_label_colour_and_dash_of_its_style():
    frame = pl.concat([numbers([1.0, 2.0]), numbers([2.0, 3.0], "two")])
    text = json.dumps(chart_of(frame))
    for expected in ('"domain": ["first", "second"]', "#0072B2", "#E69F00", "[4, 2]"):
        assert expected in text


@pytest.mark.parametrize("series", ["", "T = 1"])
def test_a_curve_without_a_proven_guarantee_is_marked_and_explained(series):
    proven = numbers([1.0, 2.0], guarantee="proven")
    frame = pl.concat([proven, numbers([2.0, 3.0], "two", series=series, guarantee="not proven")])
    specification = chart_of(frame)
    name = series or "second"
    assert {p["curve"] for p in values_of(specification)} == {"first", f"{name} \u2020"}
    assert specification["title"]["subtitle"][-1].startswith("\u2020 no guarantee is proven")
    assert not [line for line in chart_of(proven)["title"]["subtitle"] if "\u2020" in line]


def test_the_note_of_a_figure_is_part_of_its_subtitle():
    figure = {
        "title": "A figure", "note": "of 2,000 images", "conditions": "Adult; mean of 5 runs",
        "panels": [panel()],
    }  # fmt: skip
    specification = plotting.draw("none", "nobody", numbers([1.0, 2.0]), figure, STYLES)
    assert specification["title"]["subtitle"] == [
        "Adult; mean of 5 runs",
        "of 2,000 images",
    ]


def test_long_curves_are_thinned_evenly():
    points = values_of(chart_of(numbers([1.0 + i for i in range(3 * MOST_POINTS)])))
    assert len(points) == MOST_POINTS
    gaps = {b["x"] - a["x"] for a, b in pairwise(points)}
    assert gaps == {3.0}


def test_curves_of_different_parameter_values_have_separate_legend_entries():
    frame = pl.concat([numbers([1.0, 2.0], series="T = 1"), numbers([2.0, 3.0], series="T = 2")])
    assert '"domain": ["T = 1", "T = 2"]' in json.dumps(chart_of(frame))


def test_repeated_figures_are_byte_identical(tmp_path):
    frame = pl.concat([numbers([1.0, 2.0]), numbers([2.0, 3.0], "two")])
    figure = {"title": "A figure", "panels": [panel()]}
    outputs = []
    for name in ("first", "second"):
        chart = plotting.draw("none", "nobody", frame, figure, STYLES)
        files = {k: tmp_path / f"{name}.{k}" for k in ("svg", "png", "pdf")}
        save(chart, **files)
        outputs.append([file.read_bytes() for file in files.values()])
    assert outputs[0] == outputs[1]
    assert all(outputs[0])


def test_pictures_omit_invisible_elements_and_keep_visible_ones(tmp_path):
    svg = (
        '<g><path d="M0,0" fill="red" opacity="0"/><text x="1" opacity="0">hidden</text>'
        '<path d="M1,1" opacity="0.5"/><path d="M2,2"/><text opacity="1">seen</text></g>'
    )
    assert HIDDEN.sub("", svg) == (
        '<g><path d="M1,1" opacity="0.5"/><path d="M2,2"/><text opacity="1">seen</text></g>'
    )
    frame = numbers([1.0 + i for i in range(CROWDED + 1)])
    chart = plotting.draw("none", "nobody", frame, {"title": "A", "panels": [panel()]}, STYLES)
    files = {kind: tmp_path / f"a.{kind}" for kind in ("svg", "png", "pdf")}
    save(chart, **files, png_scale=0.5)
    drawn_ = files["svg"].read_text()
    assert 'opacity="0"' not in drawn_ and "role=" not in drawn_
    assert "mark-line" in drawn_ and "mark-area" in drawn_ and ">first<" in drawn_


def test_pdf_output_is_reproducible():
    drawing = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20">'
        '<rect width="9" height="9" fill="#0072b2" fill-opacity="0.5"/>'
        '<g font-family="Liberation Sans, DejaVu Sans, sans-serif">'
        '<text y="9">a</text><text y="9" font-weight="bold">bc</text>'
        '<text y="19" font-style="italic">def</text></g></svg>'
    )
    pdfs = {pdf_of(drawing) for _ in range(5)}
    assert len(pdfs) == 1 and b"CreationDate" not in pdfs.pop()


def test_plotted_numbers_are_rounded_to_six_digits_and_integers_are_not():
    row = {"x": 0.123456789, "runs": 123456789, "curve": "0.123456789", "y": None}
    chart = rounded({"datasets": {"a": [row]}, "width": 1.23456789})
    assert chart == {"datasets": {"a": [{**row, "x": 0.123457}]}, "width": 1.23456789}


def test_a_pdf_with_bands_has_less_than_one_kilobyte_per_point(tmp_path):
    frame = pl.concat([numbers([1.0 + i for i in range(40)]), numbers([2.0] * 40, "two")])
    chart = plotting.draw("none", "nobody", frame, {"title": "A", "panels": [panel()]}, STYLES)
    files = {kind: tmp_path / f"a.{kind}" for kind in ("svg", "png", "pdf")}
    save(chart, **files)
    svg = files["svg"].read_text()
    assert 'fill-opacity="0.18"' in svg and ' opacity="' not in svg
    assert files["pdf"].stat().st_size < 80_000


@pytest.mark.parametrize(("count", "dotted"), [(40, True), (41, False)])
def test_curves_of_more_than_40_points_have_no_dots(count, dotted):
    layers = chart_of(numbers([1.0 + i for i in range(count)]))["layer"]
    assert any(layer["mark"]["type"] == "point" for layer in layers) == dotted


@pytest.mark.parametrize("domain", [None, [1e-5, 1.0]])
@pytest.mark.parametrize("log", [True, False])
def test_infinite_values_lie_in_a_strip_above_the_axis(domain, log):
    specification = chart_of(numbers([1e-2, float("inf"), 1e-3]), y_domain=domain, log_y=log)
    points = values_of(specification)
    assert [p["place"] for p in points] == ["on the axis", "above the axis", "on the axis"]
    assert [points[1][column] for column in ("low", "high")] == [None] * 2
    top = domain[1] if domain else max(p["high"] for p in points if p["high"])
    assert top < points[1]["beyond"] < domain_of(specification)[1]
    axis = next(e["axis"] for e in encodings(specification, "y") if e.get("axis"))
    assert "\u221e" in axis["labelExpr"] and top < max(axis["values"]) < domain_of(specification)[1]


def test_a_curve_of_infinite_values_is_drawn_in_the_strip_above_the_axis():
    points = values_of(chart_of(numbers([float("inf")] * 3)))
    assert {p["place"] for p in points} == {"above the axis"}


def test_marks_are_not_clipped_and_curves_beyond_the_axis_use_separate_lines():
    y = [1e-2, float("inf"), 1e-3]
    points = values_of(specification := chart_of(pl.concat([numbers(y), numbers(y, "two")])))
    low, high = domain_of(specification)
    assert all(low < value < high for p in points if (value := p["dot"] or p["beyond"]))
    assert len({p["beyond"] for p in points} - {None}) == 2
    marks = [layer["mark"] for layer in specification["layer"] if layer["mark"]["type"] == "point"]
    assert marks and not any(mark.get("clip") for mark in marks)


@pytest.mark.parametrize("marks", [["point"], ["point", "line"]])
def test_a_shared_table_is_stored_once_under_a_name_derived_from_its_content(marks):
    table, other_table = (
        pl.DataFrame({"x": [1.0, value], "y": ["a", None]}) for value in (2.0, 3.0)
    )

    def specification_of(table):
        return named_data({"layer": [{"data": table, "mark": mark} for mark in marks]})

    first = specification_of(table)
    [(name, rows)] = first["datasets"].items()
    assert rows == [{"x": 1.0, "y": "a"}, {"x": 2.0, "y": None}]
    assert [layer["data"] for layer in first["layer"]] == [{"name": name}] * len(marks)
    assert specification_of(table.clone()) == first
    assert not specification_of(other_table)["datasets"].keys() & first["datasets"].keys()


@pytest.mark.parametrize(("columns", "expected"), [(1, 1), (2, 2), (5, 5), (9, 5)])
def test_panels_are_arranged_in_the_requested_number_of_columns(columns, expected):
    chart = arranged([{"mark": "point", "width": i} for i in range(5)], columns)
    assert (len(chart["concat"]), chart["columns"]) == (5, expected)


def test_each_panel_of_graphs_shows_its_own_graph():
    graphs = {"ring": {"name": "ring", "agents": 4}, "path": {"name": "path", "agents": 3}}
    panels = [{"title": title, "graph": True} for title in graphs]
    frames = [
        graph_points(network, 0).with_columns(panel=pl.lit(title), source=pl.lit("none"))
        for title, network in graphs.items()
    ]
    figure = {"title": "Graphs", "panels": panels}
    drawing = validated(plotting.draw("none", "nobody", pl.concat(frames), figure, {}))
    numbers_of_rows = {
        panel["title"]: [
            len(drawing["datasets"][layer["data"]["name"]]) for layer in panel["layer"][:2]
        ]
        for panel in drawing["hconcat"]
    }
    assert numbers_of_rows == {"ring": [4, 4], "path": [2, 3]}


def two_panels(second, **changes):
    frames = [numbers([1.0, 2.0, 4.0]), numbers(second)]
    combined = pl.concat(
        [f.with_columns(panel=pl.lit(t)) for f, t in zip(frames, "ab", strict=True)]
    )
    figure = {"title": "A figure", "panels": [panel(title=t, **changes) for t in "ab"]}
    return validated(plotting.draw("none", "nobody", combined, figure, STYLES))["concat"]


def test_panels_share_an_axis_unless_their_ranges_are_far_apart():
    similar_panels, distant_panels = (
        two_panels([1.5, 3.0, 5.0]),
        two_panels([1000.0, 1500.0, 2000.0]),
    )
    assert domain_of(similar_panels[0]) == domain_of(similar_panels[1])
    assert domain_of(distant_panels[0])[1] < domain_of(distant_panels[1])[0]


def named_figure(names, titles, **changes) -> dict:
    """Draw a figure with one curve per name in each panel."""
    frames = [
        numbers([1.0 + i, 2.0 + i], series=name).with_columns(panel=pl.lit(title))
        for title in titles
        for i, name in enumerate(names(title))
    ]
    figure = {"title": "A figure", "panels": [panel(title=title) for title in titles], **changes}
    return validated(plotting.draw("none", "nobody", pl.concat(frames), figure, {}))


def test_panels_with_different_curves_have_their_own_legends():
    shared = named_figure(lambda title: ["one", "two"], "ab")
    own = named_figure(lambda title: [title], "ab")
    assert "resolve" not in shared and own["resolve"]["scale"]["color"] == "independent"
    names = [encodings(chart, "color")[0]["scale"]["domain"] for chart in own["concat"]]
    assert names == [["a"], ["b"]]


def test_a_budget_in_the_title_of_a_panel_is_not_part_of_the_names_of_curves():
    names = ["epsilon = 1", "epsilon = 2"]
    chart = named_figure(lambda title: [f"method, {title}"], names)
    assert {row["curve"] for rows in chart["datasets"].values() for row in rows if "curve" in row
            } == {"method"}  # fmt: skip


def test_panel_titles_have_one_height_for_any_axis_labels():
    for chart in two_panels([1000.0, 1500.0, 2000.0]):
        title = next(la for la in chart["layer"] if la["encoding"].get("text", {}).get("field"))
        assert "title" not in chart
        assert title["encoding"]["y"] == {"value": 0} and title["mark"]["dy"] < 0


def repairs(**changes):
    row = {"experiment": "e_fig1", "algorithm": "a", "quantity": "released", "metric": "error",
           "published": "a.literal", "value_published": 0.1, "epsilon_published": float("inf"),
           "epsilon_claimed": 1.0, "corrected": "a.repaired", "value_corrected": 0.4,
           "epsilon_corrected": 0.5}  # fmt: skip
    return pl.DataFrame([row, {**row, "epsilon_claimed": 20.0, "epsilon_corrected": 2.0} | changes])


def repaired(frame) -> tuple[list[dict], list[dict], dict]:
    """Return the drawn ends and arrows, and the scale."""
    chart = draw_repairs(frame, "made", {("a.literal", "a.repaired"): "A: x_s \u2192 y"})
    sets = list(chart["datasets"].values())
    ends = next(rows for rows in sets if "side" in rows[0])
    arrows = next(rows for rows in sets if "head" in rows[0])
    return ends, arrows, next(e["scale"] for e in encodings(chart, "x"))


def test_a_correction_is_one_arrow_at_the_claimed_epsilon_closest_to_1():
    ends, arrows, scale = repaired(repairs())
    assert [e["side"] for e in ends] == ["as published", "corrected"]
    assert ends[0]["epsilon"] > ends[1]["epsilon"] == 0.5
    assert len(arrows) == 1 and arrows[0]["claimed"] == 1.0
    assert 0.5 < arrows[0]["head"] < arrows[0]["start"] < scale["domain"][1]
    assert arrows[0]["name"] == "A: x\u209b \u2192 y"
    assert arrows[0]["said"] == "error 0.1 \u2192 0.4, claimed \u03b5 = 1"


def test_a_setting_without_a_finite_corrected_mean_is_replaced_by_another():
    frame = repairs().with_columns(
        value_corrected=pl.when(pl.col("epsilon_claimed") == 1.0).then(float("inf")).otherwise(0.4)
    )
    ends, arrows, _ = repaired(frame)
    assert arrows[0]["claimed"] == 20.0 and ends[1]["epsilon"] == 2.0


def test_a_png_with_a_palette_keeps_the_colours_and_is_smaller():
    drawing = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20">'
        '<rect width="10" height="20" fill="#0072b2"/>'
        '<rect x="20" y="5" width="10" height="10" fill="#000000" fill-opacity="0.5"/></svg>'
    )
    full_png = vl_convert.svg_to_png(drawing, scale=4)
    small = png_of(drawing, 4)
    picture = Image.open(BytesIO(small))
    assert picture.mode == "P" and picture.size == (160, 80) and len(small) < len(full_png)
    colours = np.asarray(picture.convert("RGB"), int)
    for (row, column), expected_colour in {
        (0, 0): (0, 0x72, 0xB2),
        (40, 100): 127,
        (0, 60): 255,
    }.items():
        assert np.abs(colours[row, column] - expected_colour).max() <= 1


def test_figures_with_one_two_or_three_panels_are_equally_wide():
    """Figures that are scaled to the column width then have text of equal size."""
    drawings = [svg_of(json.dumps(named_figure(lambda title: ["one", "two"], titles)))
                for titles in ("a", "ab", "abc")]  # fmt: skip
    widths = [float(re.search(r'width="([\d.]+)"', drawing)[1]) for drawing in drawings]
    assert max(widths) - min(widths) < 0.03 * max(widths)


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
    drawn = [
        {
            (row["observer"], row["distance"], row["largest"])
            for row in chart["datasets"][panel["layer"][1]["data"]["name"]]
        }
        for panel in chart["hconcat"]
    ]
    single, sums = "receives single messages", "receives secure sums"
    assert drawn == [{(single, 1, 0.9), (single, 2, 0.1), (sums, 2, 0.05)}, {(single, 1, 0.8)}]
