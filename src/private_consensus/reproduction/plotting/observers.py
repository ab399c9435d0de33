"""Drawings of the privacy loss to observers.

They show the loss on the graph and for all pairs of agents, by distance, by number of rounds, and
by size of a coalition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import polars as pl
from altair.typing import ChartType

from .axes import Extent, extent
from .figure_styles import OKABE_ITO
from .panels import Chart, DrawPanel, Spec, axes, layered, series_colour, side_by_side
from .theme import GREY, HEIGHT, INK

SIDE = 260
SIZE = (SIDE + 60, HEIGHT)
"""Width and height of a panel of lines."""
EPSILON = alt.Tooltip("y:Q", title="ε", format=".3~g")
FLOOR = 1e-3
"""Epsilon below which a map has one colour, and an axis ends."""
NO_BOUND = "sum of single messages, no bound"
EAVESDROPPER = "every message, the eavesdropper"
DASHED = {NO_BOUND: [5, 4], EAVESDROPPER: [5, 4]}
COLOURS = {
    "pairs": "#BBBBBB",
    "median pair": OKABE_ITO[0],
    EAVESDROPPER: OKABE_ITO[7],
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
"""Colours of the drawn kinds of observers and of the reference line. Other kinds are only in the
numbers of the figure."""
DASHES = {"a server's sum: mu as the root of T": [2, 3]}
COALITIONS = {
    "nearest to it": OKABE_ITO[5],
    "random, the median": OKABE_ITO[0],
    "farthest from it": OKABE_ITO[2],
}


def observers_extra_map(numbers: pl.DataFrame, figure: Spec) -> dict[str, Any]:
    """Draw the privacy loss to one agent on the graph, and the map of all pairs, per algorithm.

    Parameters
    ----------
    numbers : polars.DataFrame
        Privacy losses of ordered pairs of agents.
    figure : mapping
        Specification of the figure.

    Returns
    -------
    dict
        Vega-Lite specification.
    """
    top = max(panel["privacy_loss"]["budget"]["epsilon"] for panel in figure["panels"])
    colour = alt.Color("shown:Q").title("ε").scale(
        type="log", scheme="blues", domain=[FLOOR, top], clamp=True
    ).legend(orient="right", format="~g")  # fmt: skip
    drawings = {"graph": _circle, "map": _map}

    def draw(points: pl.DataFrame, panel: Spec) -> ChartType:
        return drawings[panel["privacy_loss"]["show"]](_drawable(points), panel, colour)

    note = f"grey: the agent itself; white: epsilon below {FLOOR:g}"
    return side_by_side(draw, numbers, figure, note, columns=figure["columns"] or 3, spacing=28)


def observers_extra_distance(numbers: pl.DataFrame, figure: Spec) -> dict[str, Any]:
    """Draw the privacy loss of pairs of agents against their distance, with median and 80 % band.

    Parameters
    ----------
    numbers : polars.DataFrame
        Privacy losses of ordered pairs of agents.
    figure : mapping
        Specification of the figure.

    Returns
    -------
    dict
        Vega-Lite specification.
    """
    return _lines(_distances, numbers, figure, FLOOR)


def observers_extra_rounds(numbers: pl.DataFrame, figure: Spec) -> dict[str, Any]:
    """Draw the privacy loss to each kind of observer against the number of rounds.

    Parameters
    ----------
    numbers : polars.DataFrame
        Privacy losses by kind of observer and number of rounds.
    figure : mapping
        Specification of the figure.

    Returns
    -------
    dict
        Vega-Lite specification.
    """
    return _lines(_rounds, numbers, figure, 10 * FLOOR)


def observers_extra_coalitions(numbers: pl.DataFrame, figure: Spec) -> dict[str, Any]:
    """Draw the privacy loss to nearest, random and farthest coalitions against their size.

    Parameters
    ----------
    numbers : polars.DataFrame
        Privacy losses by coalition size.
    figure : mapping
        Specification of the figure.

    Returns
    -------
    dict
        Vega-Lite specification.
    """
    return _lines(_coalitions, numbers, figure, 10 * FLOOR)


def _lines(draw: DrawPanel, numbers: pl.DataFrame, figure: Spec, floor: float) -> dict[str, Any]:
    note = f"values below {floor:g} are not drawn"
    return side_by_side(draw, numbers, figure, note, columns=figure["columns"] or 2, spacing=28)


def _drawable(points: pl.DataFrame) -> pl.DataFrame:
    """Add the column ``shown``: epsilon clipped to the colour range, and 10^6 for infinity."""
    epsilon = pl.col("epsilon")
    clipped = pl.when(epsilon.is_finite()).then(epsilon.clip(FLOOR)).otherwise(
        pl.when(epsilon.is_not_null()).then(1e6)
    )  # fmt: skip
    return points.with_columns(shown=clipped, epsilon=pl.when(epsilon.is_finite()).then(epsilon))


def _map(points: pl.DataFrame, panel: Spec, colour: alt.Color) -> ChartType:
    agents = panel["privacy_loss"]["network"]["agents"]
    order = list(range(1, agents + 1))
    ticks = [1, *range(4, agents + 1, 4)]
    axis = alt.Axis(values=ticks, labelAngle=0, grid=False)
    scale = alt.Scale(domain=order)
    x, y = axes(panel, ("observer:O", scale, axis), ("target_agent:O", scale, axis))
    pairs = points.select("observer", "target_agent", "distance", "epsilon", "shown", "label")
    diagonal_pairs = pl.DataFrame({"observer": order, "target_agent": order})
    tooltip = [
        alt.Tooltip("target_agent:O", title="data of agent"),
        alt.Tooltip("observer:O", title="to agent"),
        alt.Tooltip("distance:Q", title="edges between them"),
        alt.Tooltip("epsilon:Q", format=".3~g"),
        alt.Tooltip("label:N", title="holds"),
    ]
    arrived = pairs.filter(pl.col("shown") > FLOOR)
    cells = Chart(arrived).marked("rect").encode(x, y, color=colour, tooltip=tooltip)
    diagonal = Chart(diagonal_pairs).marked("rect", color=GREY, opacity=0.5).encode(x, y)
    return layered([cells, diagonal], panel, SIDE, SIDE)


def _circle(points: pl.DataFrame, panel: Spec, colour: alt.Color) -> ChartType:
    scale = alt.Scale(domain=[-1.15, 1.15])
    x, y = (alt.X("x:Q").scale(scale).axis(None), alt.Y("y:Q").scale(scale).axis(None))
    edges = points.filter(pl.col("kind") == "edge").select("x", "y", "x_end", "y_end")
    nodes = points.filter(pl.col("kind") == "node").select(
        "x", "y", "node", "distance", "epsilon", "shown"
    )
    observing_agent = nodes.filter(pl.col("node") == panel["privacy_loss"]["agent"])
    edge_lines = Chart(edges).marked("rule", color="#AAAAAA").encode(x, y, x2="x_end", y2="y_end")
    tooltip = [
        alt.Tooltip("node:O", title="agent"),
        alt.Tooltip("distance:Q", title="edges to the observing agent"),
        alt.Tooltip("epsilon:Q", format=".3~g"),
    ]
    dots = Chart(nodes).marked("point", filled=True, size=210, opacity=1, stroke=INK).encode(
        x, y, color=colour, tooltip=tooltip
    )  # fmt: skip
    square = Chart(observing_agent).marked(
        "point", filled=True, size=260, opacity=1, color=OKABE_ITO[5], shape="square"
    ).encode(x, y, tooltip=tooltip)  # fmt: skip
    names = Chart(nodes).marked("text", fontSize=9).encode(
        alt.X("label_x:Q").scale(scale).axis(None), alt.Y("label_y:Q").scale(scale).axis(None),
        text="node:O",
    ).transform_calculate(label_x="datum.x * 1.11", label_y="datum.y * 1.11")  # fmt: skip
    return layered([edge_lines, dots, square, names], panel, SIDE, SIDE)


def _distances(points: pl.DataFrame, panel: Spec) -> ChartType:
    ends = Extent(low=FLOOR, high=1.2 * _largest(points), log=True)
    x, y = axes(panel, _counts(points), ("y:Q", ends.scale(), ends.axis()))
    visible = points.filter(pl.col("y").is_finite() & (pl.col("y") >= FLOOR))
    pairs = visible.filter(pl.col("kind") == "pair").select(
        "x", "y", "series", "observer", "target_agent"
    )
    lines = visible.filter(pl.col("kind") == "line").select("x", "y", "low", "high", "series")
    colour, dash = series_colour(_present(COLOURS, visible), DASHED)
    dots = Chart(pairs).marked("point", filled=True, size=14, opacity=0.6).encode(
        x, y, color=colour, tooltip=["target_agent:O", "observer:O", EPSILON]
    )  # fmt: skip
    line = _line(lines, 18).encode(
        x, y, color=colour, strokeDash=dash, tooltip=["series:N", EPSILON]
    )
    band = _band(lines, alt.datum.series == "median pair", x, ends.scale(), colour)
    return layered([dots, band, line], panel, *SIZE)


def _rounds(points: pl.DataFrame, panel: Spec) -> ChartType:
    points = points.filter(pl.col("series").is_in(list(KINDS)) | (pl.col("kind") == "mark"))
    above_floor = pl.col("y").is_finite() & (pl.col("y") >= 10 * FLOOR)
    visible = points.filter(above_floor).select("x", "y", "series")
    colour, dash = series_colour(_present(KINDS, visible), DASHES)
    ends = Extent(low=10 * FLOOR, high=1.2 * _largest(points), log=True)
    along = extent(visible["x"].cast(float), log=True)
    ticks = along.axis(sorted(set(visible["x"].to_list())))
    x, y = axes(panel, ("x:Q", along.scale(), ticks), ("y:Q", ends.scale(), ends.axis()))
    line = _line(visible, 22).encode(
        x, y, color=colour.legend(columns=2), strokeDash=dash, tooltip=["series:N", "x:Q", EPSILON]
    )
    return layered([line, *_mark(points, x)], panel, *SIZE)


def _coalitions(points: pl.DataFrame, panel: Spec) -> ChartType:
    lines = points.filter((pl.col("kind") == "line") & pl.col("y").is_finite()).select(
        "x", "y", "low", "high", "series"
    )
    scale = alt.Scale(type="log", domain=[10 * FLOOR, 1.2 * _largest(points)], clamp=True)
    x, y = axes(panel, _counts(lines), ("y:Q", scale, alt.Axis(format="~g")))
    colour = series_colour(COALITIONS)
    median = alt.FieldOneOfPredicate("series", list(COALITIONS)[1:2])
    line = _line(lines, 22).encode(x, y, color=colour, tooltip=["series:N", "x:Q", EPSILON])
    return layered([_band(lines, median, x, scale, colour), line, *_mark(points, x)], panel, *SIZE)


def _line(points: pl.DataFrame, size: int) -> alt.Chart:
    return Chart(points).marked("line", strokeWidth=1.8, point={"size": size})


def _band(points: pl.DataFrame, series: Any, x: alt.X, scale: Any, colour: alt.Color) -> alt.Chart:
    """Draw the band with the central 80 % of one series."""
    area = Chart(points).transform_filter(series).marked("area", opacity=0.15)
    return area.encode(x, alt.Y("low:Q").scale(scale), alt.Y2("high:Q"), color=colour)


def _counts(points: pl.DataFrame) -> tuple[str, alt.Scale, alt.Axis]:
    """Return column, scale and ticks of an axis with whole numbers from 1."""
    largest = int(max(points["x"]))
    scale = alt.Scale(domain=[0.7, largest + 0.3], nice=False)
    return "x:Q", scale, alt.Axis(values=list(range(1, largest + 1)), format="d")


def _present(colours: Mapping[str, str], points: pl.DataFrame) -> dict[str, str]:
    names = set(points["series"])
    return {name: colour for name, colour in colours.items() if name in names}


def _mark(points: pl.DataFrame, x: alt.X) -> list[alt.Chart]:
    """Draw the vertical lines with labels of a panel; empty if there are none."""
    marks = points.filter(pl.col("kind") == "mark").select("x", "series")
    if marks.is_empty():
        return []
    rule = Chart(marks).marked("rule", color=GREY, strokeDash=[3, 3]).encode(x)
    text = Chart(marks).marked("text", align="left", dx=4, dy=-9, color=GREY).encode(
        x, y=alt.value(HEIGHT), text="series:N"
    )  # fmt: skip
    return [rule, text]


def _largest(points: pl.DataFrame) -> float:
    return float(max(points.filter(pl.col("y").is_finite())["y"], default=0.0) or 1.0)
