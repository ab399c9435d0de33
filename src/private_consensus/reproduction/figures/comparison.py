"""Drawing of loss against epsilon of the best methods and the baselines."""

from __future__ import annotations

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
WIDTH, HEIGHT = 190, 130
DASHES = ([1, 2], [8, 2, 2, 2], [6, 3], [4, 2], [2, 1], [1, 4])


def draw(means: pl.DataFrame, source: str) -> dict[str, Any]:
    """Draw one row of panels per problem, one panel per number of records."""
    charts = []
    for (metric,), ranked in ranking(means).group_by("metric", maintain_order=True):
        is_private = pl.col("kind") != KINDS[2]
        best = ranked.filter(is_private)["method"].head(SHOWN).to_list()
        baselines = ranked.filter(~is_private)["method"].sort().to_list()
        points = means.filter(pl.col("method").is_in([*best, *baselines]), metric=metric)
        points = points.filter(agents=AGENTS).with_columns(pl.col("loss").clip(LOWEST))
        colours = [*OKABE_ITO[: len(best)], *[GREY] * len(baselines)]
        dashes = [*[[1, 0]] * len(best), *DASHES[: len(baselines)]]
        curves = (
            alt.Color("method:N")
            .scale(domain=[*best, *baselines], range=colours)
            .legend(columns=4),
            alt.StrokeDash("method:N").scale(domain=[*best, *baselines], range=dashes),
        )
        rows = [
            _row(of_problem, *curves)
            for of_problem in points.partition_by("problem", maintain_order=True)
        ]
        charts.append(alt.vconcat(*rows))
    chart = alt.vconcat(*charts).resolve_scale(color="independent", strokeDash="independent")
    return finish(chart, TITLE, source, NOTE)


def _row(points: pl.DataFrame, *curves: alt.Color | alt.StrokeDash) -> alt.HConcatChart:
    """Draw the panels of a problem."""
    epsilons = points["epsilon"].unique().sort().to_list()
    panels = [
        Chart(panel.select("epsilon", "loss", "method"))
        .marked("line")
        .encode(
            alt.X("epsilon:Q").scale(type="log", nice=False).axis(values=epsilons).title("epsilon"),
            alt.Y("loss:Q").scale(type="log").axis(tickCount=4).title("loss"),
            *curves,
        )
        .properties(
            width=WIDTH, height=HEIGHT, title=f"{panel['problem'][0]}, {panel['records'][0]:,} each"
        )
        for panel in points.sort("records", "epsilon").partition_by("records", maintain_order=True)
    ]
    return alt.hconcat(*panels).resolve_scale(y="shared")
