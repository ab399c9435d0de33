"""Draw the cost of corrections: proven epsilon as published and as corrected, row by row."""

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from typing import Any

import altair as alt
import polars as pl

from private_consensus.common.symbols import typeset

from .axes import STRIP, Extent, extent
from .panels import Chart
from .theme import ALARM, GREY, INK, finish

WIDE, ROW = 420, 30
SIDES = {"published": "as published", "corrected": "corrected"}
COLOURS = ALARM, "#0072B2"
TITLE = "Cost of corrections: proven epsilon and utility, as published and as corrected"
NOTE = "bar: claimed ε; points beyond the axis: no finite bound is proven"


def draw(rows: pl.DataFrame, source: str, names: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """Draw one line per pair, from the proven upper bound as published to that as corrected.

    The setting of each pair is the one whose claimed epsilon is closest to 1, if possible with
    finite means. A label states the means before and after the correction. ``rows`` has one row per
    setting of each pair.
    """
    if rows.is_empty():
        nothing = pl.DataFrame({"text": ["no method ran both as published and as corrected"]})
        return finish(Chart(nothing).marked("text").encode(text="text:N"), TITLE, source)
    settings = {
        pair: _setting(of_pair)
        for pair, of_pair in rows.group_by("published", "corrected", maintain_order=True)
    }
    epsilons = [row[f"epsilon_{side}"] for row in settings.values() for side in (*SIDES, "claimed")]
    x = replace(extent(epsilons, log=True), above=not all(map(isfinite, epsilons)))
    pairs = pl.DataFrame(
        [
            {"name": typeset(names[pair]), "claimed": row["epsilon_claimed"], "text": _utility(row)}
            | {label: _position(row[f"epsilon_{side}"], x) for side, label in SIDES.items()}
            for pair, row in settings.items()
        ]
    )
    axis = alt.Axis(**x.axis())
    scale, (before, after) = alt.Scale(**x.scale()), SIDES.values()
    side = alt.Color("side:N").scale(domain=[before, after], range=COLOURS)
    base = Chart(pairs).encode(
        alt.Y("name:N", sort=None).title(None).axis(labelLimit=400, domain=False, ticks=False)
    )
    layers = [
        base.marked("rule", color=GREY).encode(alt.X(f"{before}:Q", scale=scale), alt.X2(after)),
        base.marked("tick", color=INK, thickness=2, size=16).encode(
            alt.X("claimed:Q", scale=scale)
        ),
        base.transform_fold([before, after], as_=["side", "epsilon"])
        .marked("point", filled=True, size=60, opacity=1.0)
        .encode(
            alt.X("epsilon:Q", scale=scale, axis=axis, title="proven upper bound on ε"),
            side.legend(columns=2, symbolType="circle", symbolSize=60),
        ),
        base.marked("text", align="left", dx=12, fontSize=10, color=INK).encode(
            x=alt.value("width"), text="text:N"
        ),
    ]
    chart = alt.layer(*layers).properties(width=WIDE, height=ROW * len(pairs))
    return finish(chart, TITLE, source, NOTE)


def _setting(settings: pl.DataFrame) -> dict[str, Any]:
    """Return the setting of a pair that is drawn."""
    is_finite = pl.all_horizontal(pl.col(f"value_{side}").is_finite() for side in SIDES)
    distance = pl.col("epsilon_claimed").log10().abs()
    return settings.sort(~is_finite, distance, maintain_order=True).row(0, named=True)


def _position(epsilon: float, x: Extent) -> float:
    """Return the position of an epsilon: infinity in the strip, small values at the axis' end."""
    return max(epsilon, x.low) if isfinite(epsilon) else x.at(1 + STRIP / 2)


def _utility(row: Mapping[str, Any]) -> str:
    metric = row["metric"].removeprefix("own_").replace("_", " ")
    before, after = (_number(row[f"value_{side}"]) for side in SIDES)
    delta = f", δ = {_number(row['delta'])}" if row["delta"] else ""
    return f"{metric} {before} → {after}, claimed ε = {_number(row['epsilon_claimed'])}{delta}"


def _number(value: float) -> str:
    return typeset(f"{value:.3g}") if isfinite(value) else "∞"
