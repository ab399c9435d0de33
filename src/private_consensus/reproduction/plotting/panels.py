"""Functions for panels of Altair charts, which the drawings of several papers use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from private_consensus.common.symbols import typeset

from .captions import facts
from .theme import finish

Spec = Mapping[str, Any]
GAPS = {"row": 24, "column": 36}


def side_by_side(
    draw: Callable[[pl.DataFrame, Spec], alt.TopLevelMixin], numbers: pl.DataFrame, figure: Spec,
    *notes: str, columns: int = 2, spacing: Any = GAPS,
) -> dict[str, Any]:  # fmt: skip
    """Draw the panels of a figure in rows, with title, data source and conditions.

    Parameters
    ----------
    draw : callable
        Draws a panel from its points and its specification.
    numbers : polars.DataFrame
        Points of all panels.
    figure : mapping
        Specification of the figure.
    *notes : str
        Further lines below the title.
    columns : int, default 2
        Panels per row.
    spacing : int or dict
        Gaps between panels in pixels; a dictionary has the keys ``row`` and ``column``.

    Returns
    -------
    dict
        Vega-Lite specification.
    """
    panels = [
        draw(numbers.filter(pl.col("panel") == panel["title"]), panel) for panel in figure["panels"]
    ]
    chart = alt.concat(*panels, columns=columns, spacing=spacing)
    return finish(chart, figure["title"], numbers["source"][0], facts(figure), *notes)


def axes(
    panel: Spec, x: tuple[str, Any, Any], y: tuple[str, Any, Any], *, title: str | None = None
) -> tuple[alt.X, alt.Y]:
    """Return the x axis and the y axis of a panel, with their titles.

    Parameters
    ----------
    panel : mapping
        Specification of the panel, with the titles of its axes.
    x, y : tuple
        Column with its type, scale, and ticks of the axis.
    title : str, optional
        Title of the y axis; default: that of the specification.

    Returns
    -------
    tuple of altair.X and altair.Y
    """
    (x_column, x_scale, x_ticks), (y_column, y_scale, y_ticks) = x, y
    return (
        alt.X(x_column).title(typeset(panel["x_title"])).scale(x_scale).axis(x_ticks),
        alt.Y(y_column).title(typeset(title or panel["y_title"])).scale(y_scale).axis(y_ticks),
    )


def layered(
    layers: Sequence[alt.Chart], panel: Spec, width: float, height: float
) -> alt.LayerChart:
    """Combine charts to the layers of a panel, with the title of the panel.

    Parameters
    ----------
    layers : sequence of altair.Chart
        Charts, the bottom layer first.
    panel : mapping
        Specification of the panel.
    width, height : float
        Size in pixels.

    Returns
    -------
    altair.LayerChart
    """
    return alt.layer(*layers).properties(width=width, height=height, title=typeset(panel["title"]))


def series_colour(colours: Mapping[str, str], dashes: Mapping[str, list[int]] | None = None) -> Any:
    """Return the colour channel of the column ``series``, or the channels for colour and dash.

    Parameters
    ----------
    colours : mapping
        Colour of each series, in the order of the legend.
    dashes : mapping, optional
        Dashes of series; other series are solid lines.

    Returns
    -------
    altair.Color, or tuple of altair.Color and altair.StrokeDash
    """
    names = list(colours)
    colour = alt.Color("series:N").scale(domain=names, range=list(colours.values()))
    if dashes is None:
        return colour
    lengths = [dashes.get(name, [1, 0]) for name in names]
    return colour, alt.StrokeDash("series:N").scale(domain=names, range=lengths)


def table(points: pl.DataFrame, *columns: str) -> alt.Chart:
    """Return a chart whose data are some columns of the points, except columns without values.

    Parameters
    ----------
    points : polars.DataFrame
        Points of a panel.
    *columns : str
        Names of columns.

    Returns
    -------
    altair.Chart
    """
    names = [n for n in columns if n in points.columns and points[n].null_count() < points.height]
    return alt.Chart(points.select(names).to_pandas())
