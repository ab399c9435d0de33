"""Drawing of the privacy loss against the distance between target and observing agent."""

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
    names = list(SERIES.values())
    lines = Chart().encode(
        alt.X("distance:O").title("edges between the agents").axis(labelAngle=0),
        alt.Y("largest:Q").title("largest epsilon").scale(type="log"),
        alt.Color("observer:N").scale(domain=names, range=OKABE_ITO[:2]).title("the agent"),
    )
    accounted = Chart().marked("rule", color=GREY).encode(alt.Y("accounted:Q"))
    data = drawn.with_columns(pl.col("observer").replace(SERIES))
    panel = alt.layer(accounted, lines.marked("line", point=True), data=data)
    graphs = rows["graph"].unique(maintain_order=True).to_list()
    facet = alt.Facet("graph:N", title=None, sort=graphs)
    chart = panel.properties(width=220, height=HEIGHT).facet(facet, columns=3)
    note = (
        f"{drawn['algorithm'][0]}, {horizon} iterations of mean estimation; noise for epsilon = "
        f"{budget['epsilon']:g} at delta = {budget['delta']:g} against the eavesdropper (grey line)"
    )
    return finish(chart.resolve_scale(x="independent"), TITLE, "none, all is computed", note)
