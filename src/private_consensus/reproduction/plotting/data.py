"""Drawing of data partitions: the records that each agent holds."""

from __future__ import annotations

from functools import partial
from typing import Any

import altair as alt
import polars as pl
from altair.typing import ChartType

from .figure_styles import OKABE_ITO
from .panels import Chart, Spec, layered, series_colour, side_by_side
from .theme import HEIGHT, INK

WIDTH = 300


def data_extra_partitions(numbers: pl.DataFrame, figure: Spec) -> dict[str, Any]:
    """Draw the records of each agent as bars by label, with the fraction of the last label.

    Parameters
    ----------
    numbers : polars.DataFrame
        Number of records per panel, agent and label.
    """
    top = 1.12 * max(numbers["size"].cast(float))
    names = numbers.sort("label")["series"].unique(maintain_order=True).to_list()
    draw = partial(_holdings, names=names, top=top)
    return side_by_side(draw, numbers, figure, spacing={"row": 28, "column": 36})


def _holdings(points: pl.DataFrame, panel: Spec, names: list[str], top: float) -> ChartType:
    bars_of_labels = points.select("agent", "label", "series", "y", "size", "share")
    last = bars_of_labels.filter(pl.col("label") == bars_of_labels["label"].max())
    scale = alt.Scale(domain=[0, top], nice=False)
    x = alt.X("agent:O").title(panel["x_title"]).axis(labelAngle=0)
    colour = series_colour(dict(zip(names, OKABE_ITO, strict=False)))
    percent = alt.Tooltip("share:Q", format=".1%")
    bars = (
        Chart(bars_of_labels.to_pandas())
        .marked("bar")
        .encode(
            x,
            alt.Y("y:Q").title(panel["y_title"]).scale(scale).stack("zero"),
            colour.legend(columns=len(names), symbolType="square"),
            order="label:Q",
            tooltip=["agent:O", "series:N", alt.Tooltip("y:Q", title="records"), percent],
        )
    )
    text = (
        Chart(last.to_pandas())
        .marked("text", dy=-7, fontSize=10, color=INK)
        .encode(x, alt.Y("size:Q").scale(scale), text=alt.Text("share:Q", format=".0%"))
    )
    return layered([bars, text], panel, WIDTH, 0.7 * HEIGHT)
