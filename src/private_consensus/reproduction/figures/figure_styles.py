"""Assign label, colour and dash to curves, such that a method has the same style in all figures."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from private_consensus.common.symbols import typeset

from ..results.numbers import REFUTED, UNPROVEN

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
"""Eight colours that can be distinguished with colour-vision deficiency."""

RAMP = ("#440154", "#472D7B", "#3B528B", "#2C728E", "#21918C", "#28AE80", "#5EB83A", "#C9A500",
        "#E06A1B")  # fmt: skip
"""Colours of curves by value of an axis, from dark to bright, all legible on white."""

SOLID = (1, 0)
DASHES = (SOLID, (6, 3), (2, 2), (9, 3, 2, 3))
"""Solid, dashed, dotted, and dash-dotted lines."""

MARKS = {
    UNPROVEN: ("†", "no guarantee is proven at the claimed ε"),
    REFUTED: ("‡", "the claimed ε is refuted"),
}
"""Guarantee to the mark of curves and its meaning, the worst guarantee last."""
VALUE = re.compile(r"^(.*?)[^,=]+ = ([-+]?[\d.]+(?:e[-+]?\d+)?)$")
"""Name of a curve that ends with the number of an axis, such as "noise, T = 10": text, number."""

Styles = Mapping[str, Mapping[str, Any]]
Look = tuple[str, Sequence[int]]
"""Colour and dash of a curve."""


def with_names(points: pl.DataFrame, styles: Styles) -> pl.DataFrame:
    """Add the columns ``name`` and ``curve``, which is the displayed name.

    The column ``style`` becomes ``algorithm.style``. The name of a curve is its series, or else the
    label of its style, without the title of the panel at its end. A mark shows that the guarantee
    is refuted or not proven at one of its points.
    """
    labels = {name: style["label"] for name, style in styles.items()}
    style = pl.format("{}.{}", pl.col("algorithm"), pl.col("style"))
    label = style.replace_strict(labels, default=pl.col("style"))
    name = pl.when(pl.col("series") == "").then(label).otherwise(pl.col("series"))
    name, panel = (text.map_elements(typeset, pl.String) for text in (name, pl.col("panel")))
    renamed = points.with_columns(style=style, name=name.str.strip_suffix(pl.format(", {}", panel)))
    mark = pl.lit("")
    for guarantee, (sign, _) in MARKS.items():
        has_guarantee = (pl.col("guarantee") == guarantee).any().over("algorithm", "name")
        mark = pl.when(has_guarantee).then(pl.lit(f" {sign}")).otherwise(mark)
    return renamed.with_columns(curve=pl.col("name") + mark)


def curve_styles(points: pl.DataFrame, styles: Styles) -> dict[str, Look]:
    """Assign colour and dash to the curves of a figure, in the order of the legend.

    A curve with the label of its style, or the only curve of its style, has this style in every
    figure. Two curves of one style have its colour and different dashes; more than two have
    different colours. Curves for values of an axis have colours from dark to bright.
    """
    looks: dict[str, Look] = {}
    curves = points.select("style", "name", "curve", "series").unique(maintain_order=True)
    next_colours = iter(OKABE_ITO * len(curves))
    bases: dict[str, Mapping[str, Any]] = {
        style: styles.get(style) or {"label": "", "colour": next(next_colours)}
        for style in curves["style"].unique(maintain_order=True)
    }
    on_axis = _looks_along_axis(
        dict(curves.filter(pl.col("series") != "")["name", "series"].rows())
    )
    for style, name, curve, _ in curves.rows():
        base = bases[style]
        label = typeset(base["label"])
        # The curve with the label of the style comes first.
        names = curves.filter(style=style)["name"].unique(maintain_order=True)
        siblings = sorted(names, key=lambda sibling: sibling != label)
        if name in on_axis and name != label:
            look = on_axis[name]
        elif name == label or len(siblings) == 1:
            look = base["colour"], base.get("dash") or SOLID
        elif len(siblings) == 2:
            look = base["colour"], DASHES[siblings.index(name)]
        else:
            colours = [base["colour"], *(c for c in OKABE_ITO if c != base["colour"])]
            look = colours[siblings.index(name)], SOLID
        looks.setdefault(curve, look)
    return looks


def _looks_along_axis(series: Mapping[str, str]) -> dict[str, Look]:
    """Return the looks of curves for values of an axis; none for fewer than three values.

    ``series`` maps the displayed names to the names in the configuration, which contain numbers
    such as 0.001 instead of ``10⁻³``.
    """
    matches = {name: m for name, typed in series.items() if (m := VALUE.match(typed))}
    values = sorted({float(match[2]) for match in matches.values()})
    if len(values) < 3:
        return {}
    stems = list(dict.fromkeys(match[1] for match in matches.values()))
    colours = [RAMP[round(i * (len(RAMP) - 1) / (len(values) - 1))] for i in range(len(values))]
    return {
        name: (colours[values.index(float(match[2]))], DASHES[stems.index(match[1]) % 4])
        for name, match in matches.items()
    }
