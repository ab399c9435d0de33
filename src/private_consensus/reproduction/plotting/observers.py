"""Drawings of what observers learn: maps beside the graph, pairs by distance, kinds by rounds,
coalitions by size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import altair as alt
import polars as pl

from private_consensus.common.symbols import typeset

from .axes import Extent, extent
from .captions import facts
from .figure_styles import OKABE_ITO
from .theme import GREY, HEIGHT, INK, finish

Spec = Mapping[str, Any]
SIDE = 260
FLOOR = 1e-3
"""Epsilon below which a map has one colour, and an axis ends."""
NO_BOUND = "sum of single messages, no bound"
EVERYTHING = "every message, the eavesdropper"
DASHED = (NO_BOUND, EVERYTHING)
COLOURS = {
    "pairs": "#BBBBBB",
    "median pair": OKABE_ITO[0],
    EVERYTHING: OKABE_ITO[7],
    "a server's sum": OKABE_ITO[2],
    "any convex smooth loss (F1)": OKABE_ITO[1],
    "any loss (F0)": OKABE_ITO[5],
    NO_BOUND: GREY,
}
KINDS = {
    "eavesdropper": OKABE_ITO[0],
    "coalition of 3": OKABE_ITO[1],
    "agent, worst pair": OKABE_ITO[2],
    "agent, median pair": OKABE_ITO[3],
    "secure sums, worst pair": OKABE_ITO[4],
    "last models": OKABE_ITO[6],
    "a server's sum: mu as the root of T": GREY,
}
"""Colours of the drawn observers, and of the reference line; others are in the numbers only."""
DASHES = {"a server's sum: mu as the root of T": [2, 3]}
TOGETHER = {
    "nearest to it": OKABE_ITO[5],
    "random, the median": OKABE_ITO[0],
    "farthest from it": OKABE_ITO[2],
}


def observers_extra_map(numbers: pl.DataFrame, figure: Spec, styles: Spec) -> dict[str, Any]:
    """Draw, per algorithm, the graph with one agent's view and the map of all pairs.

    Parameters
    ----------
    numbers : polars.DataFrame
        Privacy losses of ordered pairs of agents.
    figure : mapping
        Specification of the figure.
    styles : mapping
        Unused; every drawing function takes it.

    Returns
    -------
    dict
        Vega-Lite specification.
    """
    top = _budget(figure)
    colour = alt.Color("shown:Q").title("ε").scale(
        type="log", scheme="blues", domain=[FLOOR, top], clamp=True
    ).legend(orient="right", format="~g")  # fmt: skip
    parts = {"graph": _circle, "map": _map}
    panels = [
        parts[panel["views"]["show"]](_points(numbers, panel), panel, colour)
        for panel in figure["panels"]
    ]
    chart = alt.concat(*panels, columns=figure["columns"] or 3, spacing=28)
    note = f"grey: the agent itself; white: epsilon below {FLOOR:g}"
    return finish(chart, figure["title"], numbers["source"][0], facts(figure), note)


def observers_extra_distance(numbers: pl.DataFrame, figure: Spec, styles: Spec) -> dict[str, Any]:
    """Draw pairs as dots over their distance, with the median and the central 80 %.

    Parameters
    ----------
    numbers : polars.DataFrame
        Privacy losses of ordered pairs of agents.
    figure : mapping
        Specification of the figure.
    styles : mapping
        Unused; every drawing function takes it.

    Returns
    -------
    dict
        Vega-Lite specification.
    """
    return _side_by_side(_distances, numbers, figure, FLOOR)


def observers_extra_rounds(numbers: pl.DataFrame, figure: Spec, styles: Spec) -> dict[str, Any]:
    """Draw one line per kind of observer over the number of rounds.

    Parameters
    ----------
    numbers : polars.DataFrame
        Privacy losses by kind of observer and number of rounds.
    figure : mapping
        Specification of the figure.
    styles : mapping
        Unused; every drawing function takes it.

    Returns
    -------
    dict
        Vega-Lite specification.
    """
    return _side_by_side(_rounds, numbers, figure, 10 * FLOOR)


def observers_extra_coalitions(numbers: pl.DataFrame, figure: Spec, styles: Spec) -> dict[str, Any]:
    """Draw one line per way to choose a coalition, over its size.

    Parameters
    ----------
    numbers : polars.DataFrame
        Privacy losses by coalition size.
    figure : mapping
        Specification of the figure.
    styles : mapping
        Unused; every drawing function takes it.

    Returns
    -------
    dict
        Vega-Lite specification.
    """
    return _side_by_side(_together, numbers, figure, 10 * FLOOR)


def _side_by_side(
    drawn: Callable[[pl.DataFrame, Spec], alt.Chart],
    numbers: pl.DataFrame,
    figure: Spec,
    floor: float,
) -> dict[str, Any]:
    """The panels of a figure, in which nothing is drawn below ``floor``."""
    panels = [drawn(_points(numbers, panel), panel) for panel in figure["panels"]]
    chart = alt.concat(*panels, columns=figure["columns"] or 2, spacing=28)
    note = f"values below {floor:g} are not drawn"
    return finish(chart, figure["title"], numbers["source"][0], facts(figure), note)


def _budget(figure: Spec) -> float:
    return max(panel["views"]["budget"]["epsilon"] for panel in figure["panels"])


def _points(numbers: pl.DataFrame, panel: Spec) -> pl.DataFrame:
    """Rows of a panel; ``shown`` is epsilon where a drawing can hold it."""
    epsilon = pl.col("epsilon")
    shown = pl.when(epsilon.is_finite()).then(epsilon.clip(FLOOR)).otherwise(
        pl.when(epsilon.is_not_null()).then(1e6)
    )  # fmt: skip
    finite = pl.when(epsilon.is_finite()).then(epsilon)
    return numbers.filter(pl.col("panel") == panel["title"]).with_columns(
        shown=shown, epsilon=finite
    )


def _map(points: pl.DataFrame, panel: Spec, colour: alt.Color) -> alt.LayerChart:
    agents = panel["views"]["network"]["agents"]
    order = list(range(1, agents + 1))
    ticks = [1, *range(4, agents + 1, 4)]
    axis = alt.Axis(values=ticks, labelAngle=0, grid=False)
    x = alt.X("observer:O").title(typeset(panel["x_title"])).scale(domain=order).axis(axis)
    y = alt.Y("victim:O").title(typeset(panel["y_title"])).scale(domain=order).axis(axis)
    kept = points.select("observer", "victim", "distance", "epsilon", "shown", "label")
    size = {"width": SIDE, "height": SIDE, "title": typeset(panel["title"])}
    own = pl.DataFrame({"observer": order, "victim": order})
    tooltip = [
        alt.Tooltip("victim:O", title="data of agent"),
        alt.Tooltip("observer:O", title="to agent"),
        alt.Tooltip("distance:Q", title="links between them"),
        alt.Tooltip("epsilon:Q", format=".3~g"),
        alt.Tooltip("label:N", title="holds"),
    ]
    arrived = kept.filter(pl.col("shown") > FLOOR)
    cells = alt.Chart(arrived).mark_rect().encode(x, y, color=colour, tooltip=tooltip)
    diagonal = alt.Chart(own).mark_rect(color=GREY, opacity=0.5).encode(x, y)
    return alt.layer(cells, diagonal).properties(**size)


def _circle(points: pl.DataFrame, panel: Spec, colour: alt.Color) -> alt.LayerChart:
    whole = alt.Scale(domain=[-1.15, 1.15])
    x, y = (alt.X("x:Q").scale(whole).axis(None), alt.Y("y:Q").scale(whole).axis(None))
    edges = points.filter(pl.col("kind") == "edge").select("x", "y", "x_end", "y_end")
    nodes = points.filter(pl.col("kind") == "node").select(
        "x", "y", "node", "distance", "epsilon", "shown"
    )
    watcher = nodes.filter(pl.col("node") == panel["views"]["watcher"])
    links = alt.Chart(edges).mark_rule(color="#AAAAAA").encode(x, y, x2="x_end", y2="y_end")
    tooltip = [
        alt.Tooltip("node:O", title="agent"),
        alt.Tooltip("distance:Q", title="links to the one who watches"),
        alt.Tooltip("epsilon:Q", format=".3~g"),
    ]
    dots = alt.Chart(nodes).mark_point(filled=True, size=210, opacity=1, stroke=INK).encode(
        x, y, color=colour, tooltip=tooltip
    )  # fmt: skip
    marked = alt.Chart(watcher).mark_point(
        filled=True, size=260, opacity=1, color=OKABE_ITO[5], shape="square"
    ).encode(x, y, tooltip=tooltip)  # fmt: skip
    names = alt.Chart(nodes).mark_text(fontSize=9).encode(
        alt.X("label_x:Q").scale(whole).axis(None), alt.Y("label_y:Q").scale(whole).axis(None),
        text="node:O",
    ).transform_calculate(label_x="datum.x * 1.11", label_y="datum.y * 1.11")  # fmt: skip
    return alt.layer(links, dots, marked, names).properties(
        width=SIDE, height=SIDE, title=typeset(panel["title"])
    )


def _distances(points: pl.DataFrame, panel: Spec) -> alt.LayerChart:
    top = 1.2 * _largest(points)
    ends = Extent(low=FLOOR, high=top, log=True)
    scale = ends.scale()
    farthest = int(points["x"].max())
    apart = alt.Scale(domain=[0.7, farthest + 0.3], nice=False)
    axis = alt.Axis(values=list(range(1, farthest + 1)), format="d")
    x = alt.X("x:Q").title(typeset(panel["x_title"])).scale(apart).axis(axis)
    y = alt.Y("y:Q").title(typeset(panel["y_title"])).scale(scale).axis(ends.axis())
    shown = points.filter(pl.col("y").is_finite() & (pl.col("y") >= FLOOR))
    pairs = shown.filter(pl.col("kind") == "pair").select("x", "y", "series", "observer", "victim")
    lines = shown.filter(pl.col("kind") == "line").select("x", "y", "low", "high", "series")
    names = [name for name in COLOURS if name in set(shown["series"])]
    colour = alt.Color("series:N").scale(domain=names, range=[COLOURS[name] for name in names])
    dashes = [[5, 4] if name in DASHED else [1, 0] for name in names]
    dash = alt.StrokeDash("series:N").scale(domain=names, range=dashes)
    ends = {"title": typeset(panel["title"]), "width": SIDE + 60, "height": HEIGHT}
    dots = alt.Chart(pairs).mark_point(filled=True, size=14, opacity=0.6).encode(
        x, y, color=colour,
        tooltip=["victim:O", "observer:O", alt.Tooltip("y:Q", title="ε", format=".3~g")],
    )  # fmt: skip
    base = alt.Chart(lines)
    band = base.transform_filter(alt.datum.series == "median pair").mark_area(opacity=0.15).encode(
        x, alt.Y("low:Q").scale(scale), alt.Y2("high:Q"), color=colour
    )  # fmt: skip
    line = base.mark_line(strokeWidth=1.8, point={"size": 18}).encode(
        x, y, color=colour, strokeDash=dash,
        tooltip=["series:N", alt.Tooltip("y:Q", title="ε", format=".3~g")],
    )  # fmt: skip
    return alt.layer(dots, band, line).properties(**ends)


def _rounds(points: pl.DataFrame, panel: Spec) -> alt.LayerChart:
    points = points.filter(pl.col("series").is_in(list(KINDS)) | (pl.col("kind") == "mark"))
    above_floor = pl.col("y").is_finite() & (pl.col("y") >= 10 * FLOOR)
    shown = points.filter(above_floor).select("x", "y", "series")
    names = [name for name in KINDS if name in set(shown["series"])]
    colour = alt.Color("series:N").scale(domain=names, range=[KINDS[name] for name in names])
    dashes = [DASHES.get(name, [1, 0]) for name in names]
    dash = alt.StrokeDash("series:N").scale(domain=names, range=dashes)
    ends = Extent(low=10 * FLOOR, high=1.2 * _largest(points), log=True)
    along = extent(shown["x"].cast(float), log=True)
    x = alt.X("x:Q").title(typeset(panel["x_title"])).scale(along.scale())
    x = x.axis(along.axis(sorted(set(shown["x"].to_list()))))
    y = alt.Y("y:Q").title(typeset(panel["y_title"])).scale(ends.scale()).axis(ends.axis())
    line = alt.Chart(shown).mark_line(strokeWidth=1.8, point={"size": 22}).encode(
        x, y, color=colour.legend(columns=2), strokeDash=dash,
        tooltip=["series:N", "x:Q", alt.Tooltip("y:Q", title="ε", format=".3~g")],
    )  # fmt: skip
    layers = alt.layer(line, *_mark(points, x))
    return layers.properties(title=typeset(panel["title"]), width=SIDE + 60, height=HEIGHT)


def _mark(points: pl.DataFrame, x: alt.X) -> list[alt.Chart]:
    """A vertical line with what it says, where there is one."""
    marks = points.filter(pl.col("kind") == "mark").select("x", "series")
    if marks.is_empty():
        return []
    rule = alt.Chart(marks).mark_rule(color=GREY, strokeDash=[3, 3]).encode(x)
    text = alt.Chart(marks).mark_text(align="left", dx=4, dy=-9, color=GREY).encode(
        x, y=alt.value(HEIGHT), text="series:N"
    )  # fmt: skip
    return [rule, text]


def _together(points: pl.DataFrame, panel: Spec) -> alt.LayerChart:
    lines = points.filter((pl.col("kind") == "line") & pl.col("y").is_finite()).select(
        "x", "y", "low", "high", "series"
    )
    most = int(lines["x"].max())
    domain = alt.Scale(domain=[0.7, most + 0.3], nice=False)
    scale = alt.Scale(type="log", domain=[10 * FLOOR, 1.2 * _largest(points)], clamp=True)
    axis = alt.Axis(values=list(range(1, most + 1)), format="d")
    x = alt.X("x:Q").title(typeset(panel["x_title"])).scale(domain).axis(axis)
    y = alt.Y("y:Q").title(typeset(panel["y_title"])).scale(scale).axis(format="~g")
    names = list(TOGETHER)
    colour = alt.Color("series:N").scale(domain=names, range=list(TOGETHER.values()))
    base = alt.Chart(lines)
    band = base.transform_filter(alt.FieldOneOfPredicate("series", names[1:2])).mark_area(
        opacity=0.15
    ).encode(x, alt.Y("low:Q").scale(scale), alt.Y2("high:Q"), color=colour)  # fmt: skip
    line = base.mark_line(strokeWidth=1.8, point={"size": 22}).encode(
        x, y, color=colour,
        tooltip=["series:N", "x:Q", alt.Tooltip("y:Q", title="ε", format=".3~g")],
    )  # fmt: skip
    layers = alt.layer(band, line, *_mark(points, x))
    return layers.properties(title=typeset(panel["title"]), width=SIDE + 60, height=HEIGHT)


def _largest(points: pl.DataFrame) -> float:
    finite = points.filter(pl.col("y").is_finite())["y"]
    return float(finite.max() or 1.0)
