"""Plots of stored measurements."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl
import vl_convert as vlc

from private_consensus.reproduction.figures.theme import CONFIG, GREY

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
DASHES = ((1, 0), (6, 3), (1.5, 1.5), (8, 2, 1.5, 2))
LOOKS = [(colour, dash) for dash in DASHES for colour in COLOURS]
PANELS = {"seconds": "CPU seconds per iteration", "mb": "megabytes without libraries"}


def growth_plot(lines: Sequence[Mapping[str, Any]]) -> alt.HConcatChart:
    """Plot time and memory against agents, both logarithmic; dotted: proportional to agents."""
    lines = [line for line in lines if line["kind"] == "exponents" and line["size"] == "agents"]
    panels = (_grown(lines, key, title) for key, title in PANELS.items())
    return alt.hconcat(*panels).configure(**CONFIG)


def _grown(lines: Sequence[Mapping[str, Any]], key: str, title: str) -> alt.LayerChart:
    points = pl.DataFrame(
        [
            {"algorithm": line["name"], "agents": agents, "y": measured}
            for line in lines
            for agents, measured in zip(line["values"], line[key], strict=True)
        ]
    )
    names = list(dict.fromkeys(points["algorithm"]))
    run = alt.Axis(values=points["agents"].unique().sort().to_list())
    agents = alt.X("agents:Q", scale=alt.Scale(type="log", nice=False), title="agents N", axis=run)
    powers = alt.Axis(values=[10.0**power for power in range(-9, 6)], format=".0e")
    y = alt.Y("y:Q", scale=alt.Scale(type="log"), title=title, axis=powers)
    looks = {
        "color": alt.Color(
            "algorithm:N",
            scale=alt.Scale(domain=names, range=[colour for colour, _ in LOOKS[: len(names)]]),
            legend=alt.Legend(columns=2),
        ),
        "strokeDash": alt.StrokeDash(
            "algorithm:N",
            scale=alt.Scale(domain=names, range=[dash for _, dash in LOOKS[: len(names)]]),
        ),
    }
    curves = alt.Chart(points).mark_line(point={"size": 25}).encode(agents, y, **looks)
    first, last = points["agents"].min(), points["agents"].max()
    lowest = points.filter(pl.col("agents") == first)["y"].min()
    slope = pl.DataFrame({"agents": [first, last], "y": [lowest / 2, lowest / 2 * last / first]})
    linear = alt.Chart(slope).mark_line(color=GREY, strokeDash=[1, 5]).encode(agents, y)
    return (linear + curves).properties(width=300, height=240)


def svg(chart: alt.TopLevelMixin) -> str:
    """Return a chart as SVG."""
    return vlc.vegalite_to_svg(json.dumps(chart.to_dict()))
