"""Theme of all figures: colours, fonts, sizes and headings.

Curves are dictionaries. Altair's objects, which other drawings use, copy their content at each
change, which takes longer than the drawing itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from private_consensus.common.symbols import typeset

if TYPE_CHECKING:
    import altair as alt

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.4.1.json"
INK, GREY, ALARM = "#222222", "#666666", "#B00020"
FONT = "DejaVu Sans, Verdana, Arial, sans-serif"
"""Fonts in order of preference. The first contains sub- and superscripts."""
WIDTH, HEIGHT = 360, 220
"""Size of a panel in pixels."""
LINE, TITLE_LINE = 110, 98
"""Number of letters in a line below the title, and in a line of the title."""

CONFIG = {
    "aria": False,
    "background": "white",
    "font": FONT,
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "gridColor": "#EDEDED",
        "titleFontWeight": "normal",
        "domainColor": GREY,
        "tickColor": GREY,
        "labelFontSize": 10,
        "labelLimit": 0,
        "titleFontSize": 11,
    },
    "legend": {
        "labelLimit": 0,
        "labelFontSize": 10,
        "title": None,
        "orient": "bottom",
        "columns": 1,
        "symbolType": "stroke",
        "symbolOpacity": 1.0,
        "symbolStrokeWidth": 2.5,
        "symbolSize": 400,
    },
    "title": {
        "anchor": "start",
        "fontSize": 11,
        "fontWeight": "normal",
        "color": INK,
        "subtitleColor": GREY,
        "subtitleFontSize": 10,
    },
    "header": {"labelAnchor": "start", "labelFontSize": 11, "labelColor": INK},
    "view": {"stroke": None, "continuousWidth": 300, "continuousHeight": 300},
}


def finish(
    chart: alt.TopLevelMixin | Mapping[str, Any], title: str, source: str, *notes: str
) -> dict[str, Any]:
    """Add title, notes and theme to a chart.

    Altair charts are validated against the Vega-Lite schema. Notes are lines of the subtitle; long
    lines are wrapped. The subtitle is red and starts with the data source if it is a surrogate.
    """
    is_surrogate = "surrogate" in source
    alarm = f"SURROGATE DATA, not the real data set ({source})" if is_surrogate else ""
    heading = {
        "text": wrap(typeset(title), TITLE_LINE),
        "subtitle": [line for text in (alarm, *notes) for line in wrap(typeset(text), LINE)],
        "subtitleColor": ALARM if is_surrogate else GREY,
        "fontSize": 13,
        "fontWeight": "bold",
        "offset": 12,
    }
    specification = chart if isinstance(chart, Mapping) else chart.to_dict()
    return {"$schema": SCHEMA, **specification, "title": heading, "config": CONFIG}


def field(name: str, kind: str = "quantitative", **options: Any) -> dict[str, Any]:
    """Return a Vega-Lite channel that encodes a column."""
    return {"field": name, "type": kind, **options}
