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
TITLE = "Utility at the true epsilon; hollow, at the right end: no finite epsilon"


def draw(rows: pl.DataFrame, source: str) -> alt.Chart:
    """A panel an experiment and pair; an arrow a setting, from as printed to as repaired.

    Where an accountant finds no finite epsilon the point lies on the right end and is hollow.
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
        axis=alt.Axis(format="~g"),
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
    finite = np.array([e for e in seen if e is not None and np.isfinite(e) and e > 0] or [1.0])
    low, high = float(finite.min()) / 2, float(finite.max()) * 4

    def placed(epsilon: float | None) -> float:
        return float(np.clip(high if epsilon is None else epsilon, low, high))

    points = [_point(row, side, placed) for row in rows for side in SIDES]
    lines = [
        {"epsilon": placed(row["epsilon_printed"]), "value": row["value_printed"],
         "epsilon_after": placed(row["epsilon_repaired"]), "value_after": row["value_repaired"]}
        for row in rows
    ]  # fmt: skip
    return pl.DataFrame(points, infer_schema_length=None), pl.DataFrame(lines), (low, high)


def _point(row: dict[str, Any], side: str, placed) -> dict[str, Any]:
    epsilon = row[f"epsilon_{side}"]
    exact = epsilon if epsilon is not None and np.isfinite(epsilon) else None
    return {
        "side": SIDES[side][0], "name": row[side], "claimed": row["epsilon_claimed"],
        "exact": exact, "epsilon": placed(epsilon), "value": row[f"value_{side}"],
    }  # fmt: skip
