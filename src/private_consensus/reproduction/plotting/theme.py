"""Appearance of all figures, and their output to files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from private_consensus.common.provenance import atomic_write
from private_consensus.common.symbols import typeset

from .captions import data_of
from .documents import settled
from .rasters import compact
from .specifications import Specification
from .vectors import rounded, small_svg, still, without_groups, without_hidden, without_idle_clips

if TYPE_CHECKING:
    import altair as alt

INK, GREY, ALARM = "#222222", "#666666", "#B00020"
FONT = "DejaVu Sans, Verdana, Arial, sans-serif"
"""Has sub- and superscripts; a renderer that misses one sets the whole line in another font."""
WIDTH, HEIGHT = 360, 220
LINE, TITLE_LINE = 110, 98
"""Letters of a line below a title, and of a title."""
PIXELS, LEAST_SCALE = 1600, 1.5
"""Width of a picture, and pixels for each of its units."""

CONFIG = {
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
        "titleFontSize": 11,
    },
    "legend": {
        "labelLimit": 420,
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
    "view": {"stroke": None, "continuousWidth": 300, "continuousHeight": 300},
}


def source_note(source: str) -> tuple[str, str]:
    """Return text and colour of the note on the data source; surrogates stand out."""
    if "surrogate" in source:
        return f"SURROGATE DATA, not the real data set ({source})", ALARM
    return f"data: {data_of(source)}", GREY


_WIDTH = re.compile(r'width="([\d.]+)"')


def finish(
    chart: alt.TopLevelMixin | Mapping[str, Any], title: str, source: str, *notes: str
) -> Specification:
    """Add title, data source, notes and theme to a chart.

    Charts of the drawing library are validated against the Vega-Lite schema here.

    Parameters
    ----------
    chart : Altair chart or mapping
        Chart without a title.
    title : str
        Title of the figure.
    source : str
        Data source, for the first line of the subtitle.
    *notes : str
        Further lines of the subtitle; long lines are wrapped.

    Returns
    -------
    Specification
    """
    note, colour = source_note(source)
    heading = {
        "text": _lines(typeset(title), TITLE_LINE),
        "subtitle": [
            *wrap(note, LINE),
            *(typeset(line) for text in notes for line in wrap(text, LINE)),
        ],
        "subtitleColor": colour,
        "fontSize": 13,
        "fontWeight": "bold",
        "offset": 12,
    }
    made = chart if isinstance(chart, Mapping) else chart.to_dict()
    return Specification({**made, "title": heading, "config": CONFIG})


def _lines(text: str, letters: int) -> str | list[str]:
    """Return a text that fits into a line, or its lines."""
    lines = wrap(text, letters)
    return lines if len(lines) > 1 else text


def save(
    chart: Specification, *, json_path: Path, svg: Path, png: Path, pdf: Path, png_scale: float = 2
) -> None:
    """Write a chart in four formats, each of them atomically.

    Parameters
    ----------
    chart : Specification
        Finished chart.
    json_path : Path
        Target of the Vega-Lite specification.
    svg : Path
        Target of the SVG.
    png : Path
        Target of the PNG.
    pdf : Path
        Target of the PDF.
    png_scale : float, default 2
        Pixels per unit if less than ``LEAST_SCALE``; else the PNG is ``PIXELS`` wide or wider.
    """
    import vl_convert as vlc

    specification = rounded(chart.to_dict())
    drawn = vlc.vegalite_to_svg(_text(still(specification)))
    drawing = without_groups(without_hidden(_numbered_anew(drawn)))
    _write(json_path, _text(specification).encode())
    _write(svg, small_svg(drawing).encode())
    width = float(_WIDTH.search(drawing)[1])
    # A picture to be looked at has so many pixels at least; a smaller scale is one for tests.
    scale = png_scale if png_scale < LEAST_SCALE else max(LEAST_SCALE, PIXELS / width)
    _write(png, compact(vlc.svg_to_png(without_idle_clips(drawing), scale=scale)))
    _write(pdf, settled(vlc.svg_to_pdf(drawing)))


def _text(specification: Mapping[str, Any]) -> str:
    return json.dumps(specification, indent=None, sort_keys=True, separators=(",", ":"))


def _numbered_anew(svg: str) -> str:
    """Clip paths and gradients numbered from 0: the renderer counts on from chart to chart in one
    process."""
    order: dict[str, str] = {}
    for kind in ("clip", "gradient_"):
        names = dict.fromkeys(re.findall(rf'id="({kind}\d+)"', svg))
        order |= {name: f"{kind}{position}" for position, name in enumerate(names)}
    return re.sub(r"\b(?:clip|gradient_)\d+\b", lambda name: order.get(name[0], name[0]), svg)


def _write(path: Path, content: bytes) -> None:
    with atomic_write(path) as part:
        part.write_bytes(content)
