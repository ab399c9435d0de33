"""Drawings of Wang et al. (2022): trajectories of estimates, and errors with exact values."""

from typing import Any

import altair as alt
import polars as pl
from altair.typing import ChartType

from private_consensus.common.symbols import typeset

from ..axes import Extent, common, extent
from ..figure_styles import OKABE_ITO
from ..panels import Chart, Spec, layered, series_colour, side_by_side
from ..theme import GREY, INK, WIDTH

ZOOM = (-3.0, 3.0)
"""Range of estimates in the lower view of a trajectory, as in the figures of the paper."""

SYMLOG = [-1000, -100, -10, -1, 1, 10, 100, 1000]
"""Ticks of the upper view of a trajectory."""
EARLY = 60
"""Number of iterations in the upper view."""

AGENTS = (*OKABE_ITO[:4], OKABE_ITO[5])
EPSILONS = ("#440154", "#3B528B", "#21918C", "#3FA655", "#C9A500", "#E06A1B")
"""Colours by epsilon, darker for smaller values; all are legible on white."""

DRAWN = ("series", "x", "y", "low", "high")
"""Columns of drawn errors."""


def wang_fig2(numbers: pl.DataFrame, figure: Spec) -> dict[str, Any]:
    """Draw the trajectories of the agents' estimates, two panels per row."""
    return side_by_side(_trajectories, numbers, figure, "dashed: true value; grey: the band")


wang_fig3 = wang_fig2


def wang_extra_mse(numbers: pl.DataFrame, figure: Spec) -> dict[str, Any]:
    """Draw mean square errors: exact as lines, measured as points, and the slope of the theorem."""
    titles = [panel["title"] for panel in figure["panels"]]
    points_of_panels = [numbers.filter(pl.col("panel") == title) for title in titles]
    ends = common(
        [extent([*points["low"], *_guide(points)["y"]], log=True) for points in points_of_panels]
    )
    of_panel = dict(zip(titles, ends, strict=True))
    return side_by_side(
        lambda points, panel: _errors(points, panel, of_panel[panel["title"]]),
        numbers,
        figure,
        "lines: exact; points: mean of the runs; grey, dashed: slope of the theorem",
    )


# --- Trajectories ---------------------------------------------------------------------------------


def _trajectories(points: pl.DataFrame, panel: Spec) -> ChartType:
    """Draw the trajectories near their limit."""
    lines = points.filter(pl.col("series").str.starts_with("agent"))
    scale = alt.Scale(type="linear", domain=list(ZOOM), nice=False)
    limit = _view(_within(points), scale, alt.Axis(format=",d"), panel["y_title"], 230)
    if max(lines["y"].abs()) <= ZOOM[1]:
        return limit.properties(title=typeset(panel["title"]))
    early = points.filter(pl.col("x") <= EARLY)
    axis = alt.Axis(format=",d", values=SYMLOG, tickCount=len(SYMLOG))
    y_title = f"{panel['y_title']}, whole range"
    whole_range = _view(early, alt.Scale(type="symlog"), axis, y_title, 170)
    return alt.vconcat(whole_range.properties(title=typeset(panel["title"])), limit, spacing=8)


def _within(points: pl.DataFrame) -> pl.DataFrame:
    """Remove points outside the range of the lower view; clipping them would make PNGs slow."""
    return points.with_columns(
        pl.col("low", "high").clip(*ZOOM),
        y=pl.when(pl.col("y").is_between(*ZOOM)).then(pl.col("y")),
    )


def _view(
    points: pl.DataFrame, y_scale: alt.Scale, axis: alt.Axis, y_title: str, height: int
) -> ChartType:
    x = alt.X("x:Q").title("iteration t").scale(domain=[0, max(points["x"])], nice=False)
    y = alt.Y("y:Q").title(y_title).scale(y_scale).axis(axis)
    agents = points.filter(pl.col("series").str.starts_with("agent"))
    names = sorted(agents["series"].unique())
    colour = series_colour(dict(zip(names, AGENTS, strict=False)))
    line = Chart(agents.select("x", "y", "series", "style")).marked("line", strokeWidth=1.3)
    exact = points.filter(pl.col("interval").str.starts_with("exact"))
    band = Chart(exact.select("x", "low", "high", "style")).marked("area", color=GREY, opacity=0.22)
    truth = points.filter(pl.col("series") == "true value").group_by("style").first()
    rule = Chart(truth.sort("style").select("y")).marked(
        "rule", strokeDash=[4, 3], color=INK, strokeWidth=1.2
    )
    return alt.layer(
        band.encode(x, alt.Y("low:Q").scale(y_scale), alt.Y2("high:Q"), detail="style:N"),
        line.encode(x, y, colour.legend(columns=len(names)), alt.Detail("style:N")),
        rule.encode(alt.Y("y:Q").scale(y_scale)),
    ).properties(width=WIDTH, height=height)


# --- Error curves ---------------------------------------------------------------------------------


def _errors(points: pl.DataFrame, panel: Spec, ends: Extent) -> ChartType:
    names = points.sort("epsilon")["series"].unique(maintain_order=True).to_list()
    along = extent(points["x"], log=True)
    ticks, y_scale = along.axis(points["x"].to_list()), ends.scale()
    x = alt.X("x:Q").title(typeset(panel["x_title"])).scale(**along.scale()).axis(**ticks)
    y = alt.Y("y:Q").title(typeset(panel["y_title"])).scale(**y_scale).axis(**ends.axis())
    colour = series_colour(dict(zip(names, EPSILONS, strict=False))).legend(columns=len(names))
    exact = Chart(points.filter(pl.col("style") == "exact").select(DRAWN)).encode(x, y, colour)
    measured = Chart(points.filter(pl.col("style") != "exact").select(DRAWN)).encode(x, y, colour)
    guide = Chart(_guide(points)).marked("line", color=GREY, strokeDash=[5, 4])
    layers = [
        guide.encode(x, y),
        exact.marked("line", strokeWidth=1.5),
        measured.marked("rule", strokeWidth=1.2).encode(
            alt.Y("low:Q").scale(**y_scale), alt.Y2("high:Q")
        ),
        measured.marked("point", filled=True, size=18, opacity=1.0),
    ]
    return layered(layers, panel, WIDTH, 230)


def _guide(points: pl.DataFrame) -> pl.DataFrame:
    """Return two points of a line with slope -gamma over the last decade."""
    top = points.filter(pl.col("epsilon") == points["epsilon"].min(), pl.col("style") == "exact")
    end = top.sort("x").tail(1)
    gamma, last = end["gamma"].fill_null(1.0)[0], float(end["x"][0])
    level = 2.5 * float(end["y"][0])
    return pl.DataFrame({"x": [last / 10, last], "y": [level * 10**gamma, level]})
