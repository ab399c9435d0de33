"""Communication graphs, and functions for panels of Altair charts of several papers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

import altair as alt
import polars as pl
from altair.typing import ChartType

from private_consensus.common.symbols import typeset

from .figure_styles import OKABE_ITO
from .theme import GREY, finish

Spec = Mapping[str, Any]
DrawPanel = Callable[[pl.DataFrame, Spec], ChartType]
"""Function that draws a panel from its points and its specification."""
GAPS = {"row": 24, "column": 36}


class Chart(alt.Chart):
    """Chart whose mark is set by a method that has a type for its result, unlike Altair's."""

    def marked(self, kind: str, **options: Any) -> Self:
        """Return the chart with a mark of a Vega-Lite type."""
        return self.properties(mark={"type": kind, **options})


def graph(numbers: pl.DataFrame, figure: Spec) -> dict[str, Any]:
    """Draw communication graphs, one per panel, from positions of nodes and ends of edges."""
    return side_by_side(_graph, numbers, figure)


def _graph(points: pl.DataFrame, panel: Spec) -> ChartType:
    position: dict[str, Any] = {
        "x": alt.X("x:Q").axis(None).scale(domain=[-1.25, 1.25]),
        "y": alt.Y("y:Q").axis(None).scale(domain=[-1.15, 1.25]),
    }
    nodes = Chart(points.filter(kind="node").select("x", "y", "node")).encode(**position)
    edges = Chart(points.filter(kind="edge").select("x", "y", "x_end", "y_end"))
    edges = edges.encode(**position, x2="x_end:Q", y2="y_end:Q")
    layers = [
        edges.marked("rule", strokeWidth=2, color=GREY),
        nodes.marked("circle", size=900, color=OKABE_ITO[0], opacity=1.0),
        nodes.marked("text", color="white", fontSize=15, fontWeight="bold").encode(text="node:Q"),
    ]
    # The title of the panel contains "assumed" if the paper does not describe the graph.
    return layered(layers, panel, 260, 250)


def side_by_side(
    draw: DrawPanel,
    numbers: pl.DataFrame,
    figure: Spec,
    *notes: str,
    columns: int = 2,
    colours: Literal["shared", "independent"] = "shared",
) -> dict[str, Any]:
    """Draw the panels of a figure in rows, with title, notes, data source and conditions."""
    panels = [draw(numbers.filter(panel=panel["title"]), panel) for panel in figure["panels"]]
    chart = alt.concat(*panels, columns=columns, spacing=GAPS).resolve_scale(color=colours)
    return finish(chart, figure["title"], numbers["source"][0], figure["conditions"], *notes)


def layered(layers: Sequence[alt.Chart], panel: Spec, width: float, height: float) -> ChartType:
    """Combine charts to the layers of a panel, with the title of the panel."""
    return alt.layer(*layers).properties(width=width, height=height, title=typeset(panel["title"]))


def series_colour(colours: Mapping[str, str]) -> alt.Color:
    """Return the colour channel of the column ``series``."""
    return alt.Color("series:N").scale(domain=list(colours), range=list(colours.values()))
