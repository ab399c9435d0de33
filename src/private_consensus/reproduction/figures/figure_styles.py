"""Assign label, colour and dash to curves, such that a method has the same style in all figures."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from private_consensus.common.errors import require
from private_consensus.common.symbols import typeset

from ..results.numbers import REFUTED, UNPROVEN

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
"""Eight colours that can be distinguished with colour-vision deficiency."""

RAMP = ("#440154", "#472D7B", "#3B528B", "#2C728E", "#21918C", "#28AE80", "#5EB83A", "#C9A500",
        "#E06A1B")  # fmt: skip
"""Colours of curves by value of an axis, from dark to bright, all legible on white."""

DASHES = ((1, 0), (6, 3), (2, 2), (9, 3, 2, 3))
"""Solid, dashed, dotted, and dash-dotted lines."""

MARKS = {REFUTED: " ‡", UNPROVEN: " †"}
"""Guarantee to the mark of curves, the worst guarantee first."""
VALUE = re.compile(r"^(.*?)([^,=]+ = [-+.\w]+)$")
"""Name of a curve that ends with the value of an axis, such as "noise, T = 10": text and value."""

Styles = Mapping[str, Mapping[str, Any]]


@dataclass
class CurveStyles:
    """Colour and dash of each curve, in the order of the legend."""

    colour: dict[str, str] = field(default_factory=dict)
    dash: dict[str, list[int]] = field(default_factory=dict)

    def add(self, name: str, colour: str, dash) -> None:
        """Set colour and dash of a curve, unless they are set already."""
        self.colour.setdefault(name, colour)
        self.dash.setdefault(name, list(dash) or [1, 0])

    def of(self, names: Collection[str]) -> CurveStyles:
        """Return the styles of some curves."""
        return CurveStyles(
            {name: colour for name, colour in self.colour.items() if name in names},
            {name: dash for name, dash in self.dash.items() if name in names},
        )


def with_names(points: pl.DataFrame, styles: Styles) -> pl.DataFrame:
    """Add the columns ``name`` and ``curve``, which is the displayed name.

    The column ``style`` becomes ``algorithm.style``. The name of a curve is its series, or else the
    label of its style. A mark shows that the guarantee is refuted or not proven at one of its
    points.
    """
    labels = {name: style["label"] for name, style in styles.items()}
    key = pl.format("{}.{}", pl.col("algorithm"), pl.col("style"))
    label = key.replace_strict(labels, default=pl.col("style"))
    name = pl.when(pl.col("series") == "").then(label).otherwise(pl.col("series"))
    name = name.map_elements(typeset, return_dtype=pl.String)
    marked = points.with_columns(style=key, name=name).with_columns(
        # The title of the panel names the budget.
        name=pl.struct("name", "panel").map_elements(
            lambda row: row["name"].removesuffix(f", {typeset(row['panel'])}"),
            return_dtype=pl.String,
        )
    )
    mark = pl.lit("")
    for guarantee, sign in reversed(MARKS.items()):
        has_guarantee = (pl.col("guarantee") == guarantee).any().over("algorithm", "name")
        mark = pl.when(has_guarantee).then(pl.lit(sign)).otherwise(mark)
    return marked.with_columns(curve=pl.col("name") + mark)


def curve_styles(points: pl.DataFrame, styles: Styles) -> CurveStyles:
    """Assign colour and dash to the curves of a figure.

    A curve with the label of its style, or the only curve of its style, has this style in every
    figure. Two curves of one style (on test and training data, or at two budgets) have its colour
    and different dashes. Curves for values of an axis have colours from dark to bright, from the
    smallest value to the largest.
    """
    curve_looks = CurveStyles()
    labels = {style: typeset(look["label"]) for style, look in styles.items()}
    pairs = points.select("style", "name", "curve", "series").unique(maintain_order=True).rows()
    names_by_style = {
        style: dict.fromkeys(name for pair_style, name, _, _ in pairs if pair_style == style)
        for style, _, _, _ in pairs
    }
    unnamed = [style for style in names_by_style if style not in styles]
    values = _ranks_along_axis({name: series for _, name, _, series in pairs if series})
    for style, name, curve, _ in pairs:
        base = styles.get(style, {})
        # A curve without a configured style has the next colour.
        next_colour = OKABE_ITO[unnamed.index(style) % len(OKABE_ITO)] if style in unnamed else None
        base_colour = base.get("colour", next_colour)
        # The curve with the label of the style comes first.
        siblings = sorted(names_by_style[style], key=lambda name: name != labels.get(style))
        if name == labels.get(style) or (len(siblings) == 1 and name not in values):
            curve_looks.add(curve, base_colour, base.get("dash", ()))
        elif name in values:
            rank, count, dash = values[name]
            curve_looks.add(curve, RAMP[round(rank * (len(RAMP) - 1) / max(count - 1, 1))], dash)
        elif len(siblings) == 2:
            curve_looks.add(curve, base_colour, DASHES[_dash_index(name, siblings)])
        else:
            index = siblings.index(name)
            require(
                index < len(OKABE_ITO), "panel.curves", len(siblings),
                f"at most {len(OKABE_ITO)} curves of one style",
            )  # fmt: skip
            colours = [base_colour, *(colour for colour in OKABE_ITO if colour != base_colour)]
            curve_looks.add(curve, colours[index], (1, 0))
    return curve_looks


def _dash_index(name: str, siblings: list[str]) -> int:
    """Return 1 for the dashed curve of two (training data, or the second), 0 for the other."""
    training = [sibling.endswith("training") for sibling in siblings]
    return int(name.endswith("training")) if any(training) else siblings.index(name)


def _ranks_along_axis(series: Mapping[str, str]) -> dict[str, tuple[int, int, tuple[int, ...]]]:
    """Return rank, number of values and dash of curves for values of an axis.

    The result is empty for fewer than three values. ``series`` maps the displayed names to the
    names in the configuration, which contain numbers such as 0.001 instead of ``10⁻³``.
    """
    matches = {name: VALUE.match(typed) for name, typed in series.items()}
    values = sorted({match[2].strip() for match in matches.values() if match}, key=_number)
    if len(values) < 3:
        return {}
    stems = list(dict.fromkeys(match[1] for match in matches.values() if match))
    return {
        name: (values.index(match[2].strip()), len(values), DASHES[stems.index(match[1]) % 4])
        for name, match in matches.items()
        if match
    }


def _number(value: str) -> float:
    """Return the number in a text such as ``q = 0.7``, or 0."""
    try:
        return float(value.rpartition("=")[2])
    except ValueError:
        return 0.0
