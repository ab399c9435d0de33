"""Drawings of paper 001: Figure 1 as heat maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import polars as pl

from .symbols import typeset
from .theme import GREY, finish

SIDE = (250, 230)
SHARES = "format(datum.value, '.1f')"
THOUSANDTHS = "datum.value == 0 ? '0' : format(1000 * datum.value, '.0f') + '×10⁻³'"
"""How the numbers of a colour's legend are written."""


def xiao_fig1(
    numbers: pl.DataFrame, figure: Mapping[str, Any], styles: Mapping[str, Mapping[str, Any]]
) -> alt.Chart:
    """Bound and expectation on one colour scale, their difference on one with zero in white."""
    shared = _range(numbers.filter(pl.col("variant") != "excess"))
    maps = []
    for panel in figure["panels"]:
        points = numbers.filter(pl.col("panel") == panel["title"])
        if points["variant"][0] == "excess":
            largest = float(points["y"].abs().max())
            scale = alt.Scale(scheme="purpleorange", domain=[-largest, largest], domainMid=0)
            maps.append(_heat_map(points, panel, scale, THOUSANDTHS))
        else:
            maps.append(
                _heat_map(points, panel, alt.Scale(scheme="viridis", domain=shared), SHARES)
            )
    chart = alt.hconcat(*maps, spacing=24).resolve_scale(color="independent")
    return finish(chart, figure["title"], numbers["source"][0])


def _heat_map(points: pl.DataFrame, panel, scale: alt.Scale, label: str) -> alt.Chart:
    cells = points.with_columns(
        left=pl.col("x") - _step(points["x"]) / 2,
        right=pl.col("x") + _step(points["x"]) / 2,
        bottom=pl.col("beta") - _step(points["beta"]) / 2,
        top=pl.col("beta") + _step(points["beta"]) / 2,
    ).select("left", "right", "bottom", "top", "x", "beta", "y")
    return (
        alt.Chart(cells.to_pandas())
        .mark_rect()
        .encode(
            alt.X("left:Q").title(typeset(panel["x_title"])).scale(_tight(cells, "left", "right")),
            alt.X2("right:Q"),
            alt.Y("bottom:Q")
            .title(typeset(panel["y_title"]))
            .scale(_tight(cells, "bottom", "top")),
            alt.Y2("top:Q"),
            alt.Color("y:Q")
            .scale(scale)
            .legend(
                orient="bottom",
                direction="horizontal",
                labelExpr=label,
                gradientLength=SIDE[0],
                labelColor=GREY,
                tickCount=5,
            ),
            tooltip=[
                alt.Tooltip("x:Q", title="omega"),
                alt.Tooltip("beta:Q"),
                alt.Tooltip("y:Q", title=panel["title"], format=".6f"),
            ],
        )
        .properties(width=SIDE[0], height=SIDE[1], title=panel["title"])
    )


def _step(values: pl.Series) -> float:
    """Distance of neighbouring values of a regular grid."""
    return float(values.unique().sort().diff().min() or 1.0)


def _range(points: pl.DataFrame) -> list[float]:
    return [float(points["y"].min()), float(points["y"].max())]


def _tight(cells: pl.DataFrame, low: str, high: str) -> alt.Scale:
    return alt.Scale(
        domain=[float(cells[low].min()), float(cells[high].max())], nice=False, zero=False
    )
