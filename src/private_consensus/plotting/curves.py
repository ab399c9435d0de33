"""Curves with bands, a panel beside a panel: what most figures are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import polars as pl

from ..errors import require
from ..experiments.numbers import UNPROVEN
from .theme import HEIGHT, OKABE_ITO, WIDTH, finish, look

POINT_ROOM = 6
"""Pixels between the first or last point and the frame."""

MOST_POINTS = 200
"""Points a curve that are drawn; longer curves are thinned evenly in their order."""

MARK = " \u2020"
UNPROVEN_NOTE = "\u2020 no guarantee is proven at the epsilon that is claimed"

CROWDED = 40
"""Points a curve from which on they are felt by the pointer but not drawn."""


def curves(
    numbers: pl.DataFrame, figure: Mapping[str, Any], styles: Mapping[str, Mapping[str, Any]]
) -> alt.Chart:
    """All panels of a figure side by side, with hover and a legend that switches curves off."""
    panels = [
        panel_chart(numbers.filter(pl.col("panel") == panel["title"]), panel, styles, position)
        for position, panel in enumerate(figure["panels"])
    ]
    chart = arranged(panels, figure.get("columns"))
    marked = UNPROVEN_NOTE if (numbers["guarantee"] == UNPROVEN).any() else ""
    notes = (figure.get("note", ""), marked)
    return finish(chart, figure["title"], numbers["source"][0], *notes)


def arranged(panels: list[alt.LayerChart], columns: int | None = None) -> alt.Chart:
    """Panels side by side, in rows of so many; each with scales and legend of its own."""
    if len(panels) == 1:
        return panels[0]
    columns = columns or len(panels)
    parts = [panels[i : i + columns] for i in range(0, len(panels), columns)]
    own = {"color": "independent", "strokeDash": "independent"}
    rows = [alt.hconcat(*part, spacing=36).resolve_scale(**own) for part in parts]
    return rows[0] if len(rows) == 1 else alt.vconcat(*rows, spacing=28).resolve_scale(**own)


def panel_chart(
    points: pl.DataFrame,
    panel: Mapping[str, Any],
    styles: Mapping[str, Mapping[str, Any]],
    position: int = 0,
) -> alt.LayerChart:
    """One panel: bands, lines, points."""
    shown, floor = _on_axis(_named(points, styles), panel)
    scales = _look_of(shown, panel, styles)
    # A field of its own for each panel: legends of one field answer to each other's clicks.
    curve = f"curve_{position}"
    shown = shown.rename({"curve": curve})
    switch = alt.selection_point(
        name=f"shown_{position}", fields=[curve], bind="legend", toggle="true"
    )
    colour = alt.Color(f"{curve}:N").scale(domain=scales["domain"], range=scales["colour"])
    dash = alt.StrokeDash(f"{curve}:N").scale(domain=scales["domain"], range=scales["dash"])
    x = alt.X("x:Q").title(panel["x_title"]).scale(_scale(panel["log_x"], shown["x"]))
    y_scale = _scale(panel["log_y"], None, panel["y_domain"] or floor)
    axis = alt.Axis(format="~e" if panel["log_y"] else ".6~g")
    y = alt.Y("y:Q").title(panel["y_title"]).scale(y_scale).axis(axis)
    opacity = alt.when(switch)
    base = alt.Chart(shown).encode(x=x, color=colour)
    band = base.mark_area(clip=True).encode(
        alt.Y("low:Q").scale(y_scale),
        alt.Y2("high:Q"),
        opacity=opacity.then(alt.value(0.18)).otherwise(alt.value(0.0)),
    )
    line = base.mark_line(clip=True, strokeWidth=1.8).encode(
        y, strokeDash=dash, opacity=opacity.then(alt.value(1.0)).otherwise(alt.value(0.08))
    )
    tooltip = [
        alt.Tooltip(f"{curve}:N", title="curve"),
        alt.Tooltip("x:Q", title=panel["x_title"], format=".4~g"),
        alt.Tooltip("exact:Q", title=panel["y_title"], format=".4~g"),
        alt.Tooltip("low:Q", format=".4~g"),
        alt.Tooltip("high:Q", format=".4~g"),
        alt.Tooltip("runs:Q"),
    ]
    if "diverged" in shown.columns:
        tooltip.append(alt.Tooltip("diverged:Q", title="runs without a finite value"))
    dots = base.mark_point(filled=True, size=26, clip=True).encode(
        y,
        tooltip=tooltip,
        shape=alt.Shape("place:N")
        .scale(
            domain=["on the axis", "below the axis", "above the axis"],
            range=["circle", "triangle-down", "triangle-up"],
        )
        .legend(None),
        opacity=opacity.then(alt.value(1.0)).otherwise(alt.value(0.08))
        if _dotted(shown, curve)
        else alt.value(0.0),
    )
    return (
        alt.layer(band, line, dots)
        .add_params(switch)
        .properties(width=WIDTH, height=HEIGHT, title=panel["title"])
    )


def _dotted(shown: pl.DataFrame, curve: str) -> bool:
    """Whether points are drawn: few of them, or some that lie on an end of the axis."""
    few = shown.group_by(curve).len()["len"].max() <= CROWDED
    return few or (shown["place"] != "on the axis").any()


def _named(points: pl.DataFrame, styles) -> pl.DataFrame:
    """A readable name for each curve, marked where its guarantee is not proven; curves along an
    axis are called by its value."""
    labels = {name: style["label"] for name, style in styles.items()}
    key = pl.format("{}.{}", pl.col("algorithm"), pl.col("variant"))
    label = key.replace_strict(labels, default=pl.col("variant"))
    name = pl.when(pl.col("series") == "").then(label).otherwise(pl.col("series"))
    # One curve has one name: what fails at some of its points is marked at all of them.
    unproven = (pl.col("guarantee") == UNPROVEN).any().over(name)
    mark = pl.when(unproven).then(pl.lit(MARK)).otherwise(pl.lit(""))
    return points.with_columns(style=key, curve=name + mark)


def _look_of(shown: pl.DataFrame, panel, styles) -> dict[str, list]:
    if (shown["series"] != "").any():
        names = shown["curve"].unique(maintain_order=True).to_list()
        require(
            len(names) <= len(OKABE_ITO),
            "panel.curves",
            len(names),
            f"at most {len(OKABE_ITO)} curves along an axis",
        )
        return {
            "domain": names,
            "colour": list(OKABE_ITO[: len(names)]),
            "dash": [[1, 0]] * len(names),
        }
    pairs = shown.select("style", "curve").unique(maintain_order=True)
    return {**look(styles, pairs["style"].to_list()), "domain": pairs["curve"].to_list()}


def _on_axis(points: pl.DataFrame, panel) -> tuple[pl.DataFrame, tuple[float, float] | None]:
    """Points as they can be drawn: what a logarithmic axis cannot show lies on its ends.

    Values of zero or below the axis lie on its lower end, infinite ones and those above on its
    upper end.
    """
    points = _thinned(points).with_columns(exact=_finite("y"), place=pl.lit("on the axis"))
    if not panel["log_y"]:
        return points.with_columns(_finite(end).alias(end) for end in ("y", "low", "high")), None
    if panel["y_domain"]:
        floor = panel["y_domain"][0]
    else:
        positive = points.filter(pl.col("y") > 0)["y"]
        require(len(positive) > 0, "panel.log_y", True, "values > 0 on a logarithmic axis")
        finite = positive.cast(float).filter(positive.cast(float).is_finite())
        # Where nothing is finite, all points lie on the upper end of an axis of any range.
        floor = float(finite.min() if len(finite) else 1.0) / 2
    ceiling = panel["y_domain"][1] if panel["y_domain"] else _ceiling(points, floor)
    y = pl.col("y")
    place = pl.when(y < floor).then(pl.lit("below the axis"))
    drawn = points.with_columns(
        place=place.when(y > ceiling).then(pl.lit("above the axis")).otherwise(pl.col("place")),
        y=y.clip(floor, ceiling),
        # A point that is off the axis has no band there.
        low=pl.when(y > ceiling).then(ceiling).otherwise(pl.col("low").clip(floor, ceiling)),
        high=pl.col("high").clip(floor, ceiling),
    )
    return drawn, (floor, ceiling)


def _finite(column: str) -> pl.Expr:
    """The column where it is finite, else nothing: a specification cannot hold infinity."""
    value = pl.col(column).cast(float)
    return pl.when(value.is_finite()).then(value)


def _ceiling(points: pl.DataFrame, floor: float) -> float:
    """Above all that is finite."""
    ends = pl.concat([points["y"], points["high"]]).cast(float).drop_nulls()
    return max(float(ends.filter(ends.is_finite()).max() or 0.0), floor) * 1.2


def _thinned(points: pl.DataFrame) -> pl.DataFrame:
    rank = pl.int_range(pl.len()).over("curve")
    every = ((pl.len().over("curve") - 1) // MOST_POINTS + 1).clip(lower_bound=1)
    return points.filter(rank % every == 0)


def _scale(log: bool, values: pl.Series | None, domain=None) -> alt.Scale:
    options: dict[str, Any] = {"type": "log" if log else "linear"}
    if domain is not None:
        options["domain"] = list(domain)
        options["nice"] = False
    elif values is not None:
        options["domain"] = [float(values.min()), float(values.max())]
        options["nice"] = False
    if not log:
        options["zero"] = False
    if values is not None:
        options["padding"] = POINT_ROOM
    return alt.Scale(**options)
