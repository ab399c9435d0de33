"""Drawing of the privacy loss against the distance between target and observing agent."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from .figure_styles import OKABE_ITO
from .panels import Chart
from .theme import GREY, HEIGHT, finish

TITLE = "Privacy loss to one agent against its distance, with and without secure sums"
SERIES = {"agent": "receives single messages", "secure sums": "receives secure sums"}


def draw(rows: pl.DataFrame, budget: dict[str, float], horizon: int) -> dict[str, Any]:
    """Draw the largest epsilon of all pairs by distance, one panel per graph."""
    drawn = rows.filter("drawn", pl.col("observer").is_in(list(SERIES)), pl.col("largest") > 0)
    drawn = drawn.with_columns(pl.col("observer").replace(SERIES))
    names = list(SERIES.values())
    panels = []
    for graph in rows["graph"].unique(maintain_order=True):
        points = Chart(drawn.filter(graph=graph)).encode(
            alt.X("distance:O").title("edges between the agents").axis(labelAngle=0),
            alt.Y("largest:Q").title("largest epsilon").scale(type="log"),
            alt.Color("observer:N").scale(domain=names, range=OKABE_ITO[:2]).title("the agent"),
        )
        accounted = Chart(drawn.filter(graph=graph).head(1)).marked("rule", color=GREY)
        panel = alt.layer(
            accounted.encode(alt.Y("accounted:Q")), points.marked("line", point=True)
        ).properties(title=graph, width=220, height=HEIGHT)
        panels.append(panel)
    algorithm = drawn["algorithm"][0]
    note = (
        f"{algorithm}, {horizon} iterations of mean estimation; noise for epsilon = "
        f"{budget['epsilon']:g} at delta = {budget['delta']:g} against the eavesdropper (grey line)"
    )
    chart = alt.hconcat(*panels).resolve_scale(y="shared")
    return finish(chart, TITLE, "none, all is computed", note)
