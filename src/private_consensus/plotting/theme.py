"""How every figure looks, and how it is written to files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import altair as alt

from ..provenance import atomic_write

INK, GREY, ALARM = "#222222", "#666666", "#B00020"
FONT = "Helvetica, Arial, sans-serif"
WIDTH, HEIGHT = 360, 260

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
"""Eight colours that readers with any colour vision tell apart."""

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
        "labelFontSize": 11,
        "titleFontSize": 12,
        "tickCount": 6,
    },
    "legend": {
        "labelLimit": 420,
        "labelFontSize": 11,
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
        "fontSize": 12,
        "fontWeight": "normal",
        "color": INK,
        "subtitleColor": GREY,
        "subtitleFontSize": 11,
    },
    "view": {"stroke": None},
}


def source_note(source: str) -> tuple[str, str]:
    """What the figure says of its data, in which colour: a surrogate must not be overlooked."""
    if "surrogate" in source:
        return f"SURROGATE DATA, not the real data set ({source})", ALARM
    return f"data: {source}", GREY


_ATTEMPTS = 200


def finish(chart: alt.Chart, title: str, source: str, *notes: str) -> alt.Chart:
    """Title, data source, what else has to be known of the figure, and theme."""
    note, colour = source_note(source)
    lines = [note, *filter(None, notes)]
    heading = alt.TitleParams(
        title,
        subtitle=lines if len(lines) > 1 else note,
        subtitleColor=colour,
        fontSize=14,
        fontWeight="bold",
        offset=12,
    )
    return chart.properties(title=heading).configure(**CONFIG)


def save(
    chart: alt.Chart, *, json_path: Path, svg: Path, png: Path, pdf: Path, png_scale: float = 2
) -> None:
    """Write a chart in four formats, each whole or not at all; the PNG has ``png_scale`` pixels a
    unit of the drawing."""
    import vl_convert as vlc

    specification = chart.to_dict()
    text = json.dumps(specification, indent=None, sort_keys=True, separators=(",", ":"))
    drawing = _numbered_anew(vlc.vegalite_to_svg(text))
    _write(json_path, text.encode())
    _write(svg, drawing.encode())
    _write(png, vlc.svg_to_png(drawing, scale=png_scale))
    _write(pdf, _document(drawing))


def look(styles: Mapping[str, Mapping[str, Any]], names: list[str]) -> dict[str, list]:
    """Domain and ranges of the colour and dash scales for named styles."""
    return {
        "domain": [styles[name]["label"] for name in names],
        "colour": [styles[name]["colour"] for name in names],
        "dash": [list(styles[name]["dash"]) or [1, 0] for name in names],
    }


def _numbered_anew(svg: str) -> str:
    """Clip paths numbered from 0: the renderer counts on from chart to chart in one process."""
    names = dict.fromkeys(re.findall(r'id="(clip\d+)"', svg))
    order = {name: f"clip{position}" for position, name in enumerate(names)}
    return re.sub(r"\bclip\d+\b", lambda found: order.get(found[0], found[0]), svg)


def _document(drawing: str) -> bytes:
    """PDF of an SVG, always the same.

    The renderer puts fonts and references in random order. References can be sorted; fonts are
    numbered objects, so the drawing is rendered again until they come in alphabetical order.
    """
    import vl_convert as vlc

    for _ in range(_ATTEMPTS):
        pdf = vlc.svg_to_pdf(drawing)
        fonts = re.findall(rb"/FontName /[A-Z]+\+(\S+)", pdf)
        if fonts == sorted(fonts):
            break
    references = rb"<<\n((?:\s+/\w+ \d+ \d+ R\n)+)"
    return re.sub(references, lambda found: b"<<\n" + _sorted_lines(found[1]), pdf)


def _sorted_lines(lines: bytes) -> bytes:
    return b"".join(sorted(lines.splitlines(keepends=True)))


def _write(path: Path, content: bytes) -> None:
    with atomic_write(path) as part:
        part.write_bytes(content)
