"""Drawing of loss against epsilon of the best methods and the baselines."""

from typing import Any

import altair as alt
import polars as pl

from ..comparison import KINDS, ranking
from .figure_styles import OKABE_ITO
from .panels import Chart
from .theme import GREY, finish

TITLE = "Loss against epsilon at equal true privacy: the best six methods and the baselines"
NOTE = (
    "Logistic regression: excess loss per record. Mean: normalised squared error, at least 1e-7. "
    "10 agents. Grey: methods that use no private record, and the non-private method."
)
SHOWN, AGENTS, LOWEST = 6, 10, 1e-7
"""Number of drawn methods per kind of problem, number of agents, and smallest drawn loss."""
DASHES = ([1, 2], [8, 2, 2, 2], [6, 3], [4, 2], [2, 1], [1, 4])


def draw(means: pl.DataFrame, source: str) -> dict[str, Any]:
    """Draw one row of panels per problem, one panel per number of records."""
    charts = []
    for (metric,), ranked in ranking(means).group_by("metric", maintain_order=True):
        is_private = pl.col("kind") != KINDS[2]
        best = ranked.filter(is_private)["method"].head(SHOWN).to_list()
        baselines = ranked.filter(~is_private)["method"].sort().to_list()
        points = means.filter(pl.col("method").is_in([*best, *baselines]), metric=metric)
        points = points.filter(agents=AGENTS).sort("problem", "records", "epsilon")
        records = pl.col("records").map_elements("{:,}".format)
        points = points.select(
            "epsilon", "method",
            loss=pl.col("loss").clip(LOWEST), panel=pl.format("{}, {} each", "problem", records),
        )  # fmt: skip
        colours = [*OKABE_ITO[: len(best)], *[GREY] * len(baselines)]
        dashes = [*[[1, 0]] * len(best), *DASHES[: len(baselines)]]
        epsilons = points["epsilon"].unique().sort().to_list()
        panels = points["panel"].unique(maintain_order=True).to_list()
        chart = Chart(points).marked("line").encode(
            alt.X("epsilon:Q").scale(type="log", nice=False).axis(values=epsilons).title("epsilon"),
            alt.Y("loss:Q").scale(type="log").axis(tickCount=4).title("loss"),
            alt.Color("method:N").scale(domain=[*best, *baselines], range=colours)
            .legend(columns=4),
            alt.StrokeDash("method:N").scale(domain=[*best, *baselines], range=dashes),
        )  # fmt: skip
        facet = alt.Facet("panel:N", title=None, sort=panels)
        charts.append(chart.properties(width=230, height=150).facet(facet, columns=3))
    chart = alt.vconcat(*charts).resolve_scale(color="independent", strokeDash="independent")
    return finish(chart, TITLE, source, NOTE)
