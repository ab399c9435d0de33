"""Utility at the true epsilon, as printed against as repaired: all pairs in one figure."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from .curves import arranged
from .theme import ALARM, GREY, INK, finish

COLUMNS, WIDE, HIGH = 3, 250, 170
WIDE_RANGE = 30.0
"""Ratio of values from which on an axis is logarithmic."""

SIDES = {"printed": ("as printed", ALARM), "repaired": ("repaired", "#0072B2")}
COLOUR = alt.Color(
    "side:N",
    scale=alt.Scale(
        domain=[name for name, _ in SIDES.values()], range=[colour for _, colour in SIDES.values()]
    ),
)
TITLE = "Utility at the true epsilon; hollow: no finite epsilon (right end) or value (top)"


def draw(rows: pl.DataFrame, source: str) -> alt.Chart:
    """A panel an experiment and pair; an arrow a setting, from as printed to as repaired.

    Where an accountant finds no finite epsilon the point lies on the right end, where a mean is
    infinite at the top, and is hollow.
    """
    keys = ["experiment", "printed", "repaired", "metric"]
    panels = [_panel(part) for _, part in rows.group_by(keys, maintain_order=True)]
    if not panels:
        nothing = alt.Chart(
            pl.DataFrame({"said": ["nothing here ran both as printed and repaired"]})
        )
        return finish(nothing.mark_text().encode(text="said:N"), TITLE, source)
    return finish(arranged(panels, COLUMNS), TITLE, source)


def _panel(part: pl.DataFrame) -> alt.LayerChart:
    first = part.row(0, named=True)
    points, lines, ends = _drawable(part)
    values = points["value"]
    logarithmic = values.min() > 0 and values.max() / values.min() > WIDE_RANGE
    x = alt.X(
        "epsilon:Q", title="true epsilon, by the accountant",
        scale=alt.Scale(type="log", domain=list(ends), nice=False),
        axis=alt.Axis(format="~g", tickCount=4),
    )  # fmt: skip
    y = alt.Y(
        "value:Q", title=first["metric"].replace("_", " "),
        scale=alt.Scale(type="log" if logarithmic else "linear", zero=False),
        # Where all means are infinite, none of the axis' numbers was computed.
        axis=alt.Axis(format="~g", labels=any(points["finite"]), ticks=any(points["finite"])),
    )  # fmt: skip
    marks = [
        alt.Chart(points.filter(pl.col("exact").is_null() == nowhere))
        .mark_point(size=45, opacity=1.0, filled=not nowhere)
        .encode(x, y, color=COLOUR, tooltip=["name:N", "claimed:Q", "exact:Q", "value:Q"])
        for nowhere in (False, True)
    ]
    moves = alt.Chart(lines).mark_rule(color=GREY, strokeWidth=0.8).encode(
        x, y, x2="epsilon_after:Q", y2="value_after:Q"
    )  # fmt: skip
    title = [first["experiment"].replace("_", " "), f"{first['printed']} to {first['repaired']}"]
    return alt.layer(moves, *marks).properties(
        width=WIDE, height=HIGH, title=alt.TitleParams(title, fontSize=11, color=INK)
    )


def _drawable(part: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, tuple[float, float]]:
    """Points, arrows, and the ends of the axis of epsilon."""
    rows = part.to_dicts()
    seen = [row[f"epsilon_{side}"] for row in rows for side in SIDES]
    seen += [row["epsilon_claimed"] for row in rows]
    finite = np.array([e for e in seen if _finite(e) and e > 0] or [1.0])
    low, high = float(finite.min()) / 2, float(finite.max()) * 4

    def placed(epsilon: float | None) -> float:
        return float(np.clip(epsilon if _finite(epsilon) else high, low, high))

    values = [row[f"value_{side}"] for row in rows for side in SIDES]
    top = 2.0 * max((abs(v) for v in values if _finite(v)), default=1.0)
    points = [_point(row, side, placed, top) for row in rows for side in SIDES]
    lines = [
        {"epsilon": before["epsilon"], "value": before["value"],
         "epsilon_after": after["epsilon"], "value_after": after["value"]}
        for before, after in zip(points[::2], points[1::2], strict=True)
    ]  # fmt: skip
    return pl.DataFrame(points, infer_schema_length=None), pl.DataFrame(lines), (low, high)


def _point(row: dict[str, Any], side: str, placed, top: float) -> dict[str, Any]:
    epsilon, value = row[f"epsilon_{side}"], row[f"value_{side}"]
    exact = epsilon if _finite(epsilon) and _finite(value) else None
    return {
        "side": SIDES[side][0], "name": row[side], "exact": exact, "epsilon": placed(epsilon),
        "claimed": row["epsilon_claimed"] if _finite(row["epsilon_claimed"]) else None,
        "value": value if _finite(value) else top, "finite": _finite(value),
    }  # fmt: skip


def _finite(number: float | None) -> bool:
    return number is not None and bool(np.isfinite(number))
