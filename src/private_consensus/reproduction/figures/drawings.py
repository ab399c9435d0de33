"""Write a Vega-Lite chart as SVG, PNG and PDF."""

import json
import re
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from private_consensus.common.provenance import atomic_write

PIXELS, MIN_SCALE = 1600, 1.5
"""Smallest width of a PNG in pixels, and smallest number of pixels per unit of the drawing."""
COLOURS = 256
"""Number of colours of a PNG; a chart has few."""
PAGE = """#set document(date: none)
#set page(width: auto, height: auto, margin: 0pt)
#image("drawing.svg")"""
"""Typst document without a date, whose page has the size of the drawing."""

WIDTH = re.compile(r'width="([\d.]+)"')
HIDDEN = re.compile(r'<(path|rect|line|text|circle)\b[^>]*? opacity="0"[^>]*?(?:/>|>[^<]*</\1>)')
"""Invisible elements, such as labels that would overlap others."""
FOR_SCREEN_READERS = re.compile(r' (?:role|aria-[a-z]+|pointer-events)="[^"]*"')
"""Accessibility attributes of single marks. Pages have one alternative text per figure instead."""
POSITIONS = re.compile(r' (?:d|transform)="[^"]*"')
LONG = re.compile(r"-?\d+\.\d{2,}")
OPAQUE = ' opacity="1"'
OPACITY = re.compile(r'(<(?:path|rect|line|text|circle)\b[^>]*?) opacity="([\d.]+)"')


def save(
    chart: Mapping[str, Any], *, svg: Path, png: Path, pdf: Path, png_scale: float | None = None
) -> None:
    """Write a finished Vega-Lite chart in three formats; each file is written atomically.

    The PNG has ``png_scale`` pixels per unit of the drawing. By default, it is at least ``PIXELS``
    wide.
    """
    specification = json.dumps(chart, sort_keys=True, separators=(",", ":"))
    drawing = svg_of(specification)
    scale = png_scale or max(MIN_SCALE, PIXELS / float(WIDTH.findall(drawing)[0]))
    for path, content in (
        (svg, drawing.encode()),
        (png, png_of(drawing, scale)),
        (pdf, pdf_of(drawing)),
    ):
        with atomic_write(path) as temporary:
            temporary.write_bytes(content)


def svg_of(specification: str) -> str:
    """Convert a Vega-Lite specification to SVG without invisible marks."""
    import vl_convert

    svg = HIDDEN.sub("", vl_convert.vegalite_to_svg(specification))
    # The attribute ``opacity`` would create a separate group for each mark of the PDF.
    transparent = r'\1 fill-opacity="\2" stroke-opacity="\2"'
    return small_svg(OPACITY.sub(transparent, svg.replace(OPAQUE, "")))


def small_svg(svg: str) -> str:
    """Round positions to a tenth of a pixel, and remove accessibility attributes of marks."""
    placed = POSITIONS.sub(
        lambda attribute: (
            attribute[0] if "scale" in attribute[0] else LONG.sub(_tenths, attribute[0])
        ),
        svg,
    )
    return FOR_SCREEN_READERS.sub("", placed)


def _tenths(number: re.Match[str]) -> str:
    return f"{float(number[0]):.1f}"


def png_of(svg: str, scale: float) -> bytes:
    """Convert an SVG to a PNG with a white background and a colour palette."""
    import vl_convert
    from PIL import Image

    pixels = Image.open(BytesIO(vl_convert.svg_to_png(svg, scale=scale)))
    picture = Image.new("RGB", pixels.size, "white")
    picture.paste(pixels, mask=pixels.getchannel("A"))
    palette = picture.quantize(COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    content = BytesIO()
    palette.save(content, "PNG", optimize=True)
    return content.getvalue()


def pdf_of(svg: str) -> bytes:
    """Convert an SVG to a PDF of the same size; the output is reproducible byte by byte."""
    import typst

    with TemporaryDirectory() as folder:
        Path(folder, "drawing.svg").write_text(svg, encoding="utf-8")
        Path(folder, "page.typ").write_text(PAGE, encoding="utf-8")
        return typst.compile(str(Path(folder, "page.typ")), root=folder)
