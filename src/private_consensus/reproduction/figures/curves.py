"""Draw figures of curves with bands, in one or several panels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from private_consensus.common.grouping import grouped
from private_consensus.common.symbols import typeset

from .axes import STRIP, Extent, common, extent
from .captions import ABOVE, BELOW, ON, coinciding, marks
from .figure_styles import Look, Styles, curve_styles, with_names
from .theme import HEIGHT, WIDTH, field, finish

MOST_POINTS = 200
"""Largest number of points per curve; longer curves are thinned evenly."""

CROWDED = 40
"""Number of points per curve above which points are not drawn."""

LETTER, SYMBOL = 5.8, 44
"""Width of a letter of the legend, and of the symbol before a name, in pixels."""

SIDE, GAP = 62, 34
"""Width of the axis of a panel, and distance between panels, in pixels."""

MAX_COLUMNS = 2
"""Largest number of panels per row."""
SINGLE_PANEL_SIZE = (2 * WIDTH + SIDE, 300)
"""Width and height of a single panel in pixels. A drawing with one panel is as wide as one with two
panels, so that text has the same size in all figures."""

Spec = Mapping[str, Any]


@dataclass(frozen=True)
class Panel:
    """Panel of curves.

    Attributes
    ----------
    x, y : Extent
        Ranges of the axes.
    """

    spec: Spec
    points: pl.DataFrame
    x: Extent
    y: Extent


def curves(numbers: pl.DataFrame, figure: Spec, styles: Styles) -> dict[str, Any]:
    """Draw all panels of a figure.

    The panels share a legend if one of them has all curves. Otherwise each has its own.
    """
    points = thinned(with_names(numbers, styles))
    panels = [_panel(points.filter(panel=spec["title"]), spec) for spec in figure["panels"]]
    columns = min(MAX_COLUMNS, len(panels))
    panels = [
        replace(panel, points=placed(panel.points, panel.y))
        for panel in _with_common_axes(panels, columns)
    ]
    looks = curve_styles(points, styles)
    size = SINGLE_PANEL_SIZE if len(panels) == 1 else (WIDTH, HEIGHT)
    names = [set(panel.points["curve"]) for panel in panels]
    is_shared = set(looks) in names
    width = (columns if is_shared else 1) * (size[0] + SIDE)
    charts = []
    for panel, curves in zip(panels, names, strict=True):
        drawn = {name: look for name, look in looks.items() if is_shared or name in curves}
        charts.append(panel_chart(panel, drawn, size, legend_of(list(drawn), width)))
    beyond = any(panel.y.above or panel.y.below for panel in panels)
    notes = figure["conditions"], coinciding(panels), marks(numbers, beyond=beyond)
    spacing = {"row": GAP, "column": GAP}
    chart: dict[str, Any] = {"concat": charts, "columns": columns, "spacing": spacing}
    if not is_shared:
        chart["resolve"] = {"scale": {"color": "independent", "strokeDash": "independent"}}
    return finish(chart, figure["title"], numbers["source"][0], *notes)


def legend_of(names: Sequence[str], width: float) -> dict[str, Any]:
    """Return a legend with as many columns as fit into the width."""
    longest = max(map(len, names)) * LETTER + SYMBOL
    return {"columns": max(1, min(len(names), int(width / longest))), "title": None}


# --- Points and axes ------------------------------------------------------------------------------


def thinned(points: pl.DataFrame) -> pl.DataFrame:
    """Reduce curves to at most :data:`MOST_POINTS` points, evenly spaced along the curve."""
    rank = pl.int_range(pl.len()).over("panel", "curve")
    stride = (pl.len().over("panel", "curve") - 1) // MOST_POINTS + 1
    return points.filter(rank % stride == 0)


def _panel(points: pl.DataFrame, spec: Spec) -> Panel:
    log = spec["log_y"]
    # A band may reach zero; a logarithmic axis covers the curves and the upper ends of bands.
    columns = ("y", "high") if log else ("y", "low", "high")
    values = [value for column in columns for value in points[column].cast(float)]
    x = extent(points["x"].cast(float), log=spec["log_x"])
    y = extent(values, log=log, ends=spec["y_domain"])
    value = points["y"].cast(float)
    beyond = replace(y, above=(value > y.high).any(), below=(value < y.low).any())
    return Panel(spec, points, x, beyond)


def _with_common_axes(panels: Sequence[Panel], columns: int) -> list[Panel]:
    """Set a common y axis for panels of one quantity, or for those in one row.

    Panels whose curves would be too small on the common axis keep their own, and so do panels whose
    range is configured.
    """
    compared = list(panels)
    automatic = [i for i, panel in enumerate(panels) if panel.spec["y_domain"] is None]
    quantities = grouped(
        automatic, key=lambda i: (panels[i].spec["y_title"], panels[i].spec["log_y"])
    )
    for indices in quantities.values():
        shared = common([panels[i].y for i in indices])
        if shared[0] is not shared[-1]:
            rows = grouped(indices, key=lambda i: i // columns).values()
            shared = [y for row in rows for y in common([panels[i].y for i in row])]
        for i, y in zip(indices, shared, strict=True):
            compared[i] = replace(panels[i], y=y)
    return compared


def placed(points: pl.DataFrame, y: Extent) -> pl.DataFrame:
    """Move values beyond the axis into its strips, and state in ``place`` which ones they are.

    Each curve has its own height in a strip. Bands end at most one axis length beyond the axis;
    points beyond the axis have none.
    """
    value = pl.col("y").cast(float)
    beyond = points.filter((value < y.low) | (value > y.high))["curve"].unique(maintain_order=True)
    heights = {name: (i + 1) / (len(beyond) + 1) for i, name in enumerate(beyond)}
    height = pl.col("curve").replace_strict(heights, default=None, return_dtype=pl.Float64)
    is_below, is_above = pl.when(value < y.low), pl.when(value > y.high)
    location = pl.coalesce(is_below.then(pl.lit(BELOW)), is_above.then(pl.lit(ABOVE)), pl.lit(ON))
    below, above = y.at(STRIP * (height - 1)), y.at(1 + STRIP * height)
    finite = pl.when(value.is_finite()).then(value)
    ends = pl.col("low", "high").cast(float).clip(y.at(-1.0), y.at(2.0))
    has_band = pl.all_horizontal((location == ON) & pl.col("low", "high").is_not_null())
    return points.with_columns(
        pl.when(has_band).then(ends),
        y=pl.coalesce(is_below.then(below), is_above.then(above), finite),
        place=location,
    )


# --- Drawing --------------------------------------------------------------------------------------


def panel_chart(
    panel: Panel, looks: Mapping[str, Look], size: tuple[int, int], legend: dict[str, Any]
) -> dict[str, Any]:
    """Build the chart of a panel: strips, bands, lines, points, values beyond the axis, title.

    ``size`` is width and height in pixels.
    """
    points, spec = panel.points, panel.spec
    x = field("x", title=typeset(spec["x_title"]), scale=panel.x.scale(),
              axis=panel.x.axis(points["x"].to_list()))  # fmt: skip
    y_scale = panel.y.scale()
    y = field("y", title=typeset(spec["y_title"]), scale=y_scale,
              axis=panel.y.axis())  # fmt: skip

    def by_curve(values: Iterable[Any]) -> dict[str, Any]:
        scale = {"domain": list(looks), "range": list(values)}
        return field("curve", "nominal", legend=legend, scale=scale)

    colours, dashes = zip(*looks.values(), strict=True)
    base = {"x": x, "color": by_curve(colours)}

    def layer(mark: dict[str, Any], **channels: Any) -> dict[str, Any]:
        return {"mark": mark, "encoding": {**base, **channels}}

    layers = [
        *_strips(panel),
        layer(
            {"type": "area", "clip": True, "opacity": 0.18},
            y=field("low", scale=y_scale), y2={"field": "high"},
        ),
        layer(
            {"type": "line", "strokeWidth": 1.8}, y=y, strokeDash=by_curve(map(list, dashes))
        ),
    ]  # fmt: skip
    if max(points["curve"].value_counts()["count"]) <= CROWDED:
        mark = {"type": "point", "filled": True, "size": 28, "opacity": 1.0}
        shapes = {"domain": [ON, BELOW, ABOVE], "range": ["circle", "triangle-down", "triangle-up"]}
        shape = field("place", "nominal", legend=None, scale=shapes)
        layers.append(layer(mark, y=field("y", scale=y_scale), shape=shape))
    return {
        "title": {"text": typeset(spec["title"]), "frame": "group"},
        "width": size[0],
        "height": size[1],
        "data": {"values": points.select("curve", "x", "y", "low", "high", "place").to_dicts()},
        "layer": layers,
    }


def _strips(panel: Panel) -> list[dict[str, Any]]:
    """Return grey rectangles for the strips beyond the ends of the axis."""
    y, (bottom, top) = panel.y, panel.y.domain
    strips = [(y.high, top)] * y.above + [(bottom, y.low)] * y.below
    return [
        {
            "data": {"values": [{"from": low, "to": high}]},
            "mark": {"type": "rect", "color": "#F0F0F0"},
            "encoding": {
                "y": field("from", scale=y.scale()), "y2": {"field": "to"},
                "x": {"value": 0}, "x2": {"value": "width"},
            },
        }
        for low, high in strips
    ]  # fmt: skip
