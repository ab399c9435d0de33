"""Draw the cost of corrections: proven epsilon as published and as corrected, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf, isfinite, log10
from typing import Any

import altair as alt
import polars as pl

from private_consensus.common.symbols import typeset

from .axes import STRIP, Extent, extent, format_number
from .panels import Chart
from .theme import ALARM, GREY, INK, finish

WIDE, ROW = 420, 30
SIDES = {"published": ("as published", ALARM), "corrected": ("corrected", "#0072B2")}
TITLE = "Cost of corrections: proven epsilon and utility, as published and as corrected"
NOTE = "bar: claimed ε; ∞: no finite bound is proven"


def draw(rows: pl.DataFrame, source: str, names: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """Draw one line per pair, from the proven upper bound as published to that as corrected.

    The setting of each pair is the one whose claimed epsilon is closest to 1, if possible with
    finite means. A label states the means before and after the correction. ``rows`` has one row per
    setting of each pair.
    """
    if not rows.height:
        nothing = Chart(
            pl.DataFrame({"said": ["no method ran both as published and as corrected"]})
        )
        return finish(nothing.marked("text").encode(text="said:N"), TITLE, source)
    pairs: list[dict[str, Any]] = [
        {**_setting(settings), "name": typeset(names[pair])}
        for pair, settings in rows.group_by("published", "corrected", maintain_order=True)
    ]
    epsilons = [row[f"epsilon_{side}"] for row in pairs for side in (*SIDES, "claimed")]
    x = extent([e for e in epsilons if e and e > 0], log=True)
    x = Extent(low=x.low, high=x.high, log=True, above=any(e == inf for e in epsilons))
    ends = pl.DataFrame([end for row in pairs for end in _ends(row, x)])
    lines = pl.DataFrame([_line(row, x) for row in pairs])
    scale, axis = x.scale(), x.axis(strip_labels=("∞", ""))
    y = alt.Y("name:N", sort=None).title(None).axis(labelLimit=400, domain=False, ticks=False)
    true = alt.X("epsilon:Q").title("proven upper bound on ε").scale(**scale).axis(**axis)
    side = alt.Color("side:N").scale(
        domain=[name for name, _ in SIDES.values()], range=[colour for _, colour in SIDES.values()]
    ).legend(columns=2, symbolType="circle", symbolSize=60, title=None)  # fmt: skip
    base = Chart(lines).encode(y)
    layers = [
        base.marked("rule", color=GREY).encode(alt.X("start:Q").scale(**scale), alt.X2("end:Q")),
        base.marked("tick", color=INK, thickness=2, size=16).encode(
            alt.X("claimed:Q").scale(**scale)
        ),
        Chart(ends).marked("point", filled=True, size=60, opacity=1.0).encode(true, y, side),
        base.marked("text", align="left", dx=12, fontSize=10, color=INK).encode(
            x=alt.value("width"), text="said:N"
        ),
    ]
    chart = alt.layer(*layers).properties(width=WIDE, height=ROW * len(pairs))
    return finish(chart, TITLE, source, NOTE)


def _setting(settings: pl.DataFrame) -> dict[str, Any]:
    rows = settings.to_dicts()
    finite = [row for row in rows if all(isfinite(row[f"value_{side}"]) for side in SIDES)]
    first = [
        row for row in finite or rows if row["experiment"] == (finite or rows)[0]["experiment"]
    ]
    return min(first, key=lambda row: abs(log10(row["epsilon_claimed"] or 1.0)))


def _ends(row: Mapping[str, Any], x: Extent) -> Iterable[dict[str, Any]]:
    for side, (label, _) in SIDES.items():
        epsilon = row[f"epsilon_{side}"]
        yield {
            "name": row["name"], "side": label, "epsilon": _position(epsilon, x),
        }  # fmt: skip


def _line(row: Mapping[str, Any], x: Extent) -> dict[str, Any]:
    start, end = (_position(row[f"epsilon_{side}"], x) for side in SIDES)
    return {
        "name": row["name"], "claimed": row["epsilon_claimed"], "start": start, "end": end,
        "said": _utility(row),
    }  # fmt: skip


def _position(epsilon: float, x: Extent) -> float:
    """Return the position of an epsilon: infinity in the strip, small values at the axis' end."""
    return max(epsilon, x.low) if isfinite(epsilon) else x.at(1 + STRIP / 2)


def _utility(row: Mapping[str, Any]) -> str:
    metric = row["metric"].removeprefix("own_").replace("_", " ")
    before, after = (_number(row[f"value_{side}"]) for side in SIDES)
    delta = f", δ = {_number(row['delta'])}" if row["delta"] else ""
    return f"{metric} {before} → {after}, claimed ε = {_number(row['epsilon_claimed'])}{delta}"


def _number(value: float) -> str:
    return format_number(float(f"{value:.3g}")) if isfinite(value) else "∞"
