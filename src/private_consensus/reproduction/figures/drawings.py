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


def save(
    chart: Mapping[str, Any], *, svg: Path, png: Path, pdf: Path, png_scale: float | None = None
) -> None:
    """Write a finished Vega-Lite chart in three formats; each file is written atomically.

    The PNG has ``png_scale`` pixels per unit of the drawing. By default, it is at least ``PIXELS``
    wide.
    """
    import vl_convert

    drawing = vl_convert.vegalite_to_svg(json.dumps(chart))
    scale = png_scale or max(MIN_SCALE, PIXELS / float(WIDTH.findall(drawing)[0]))
    for path, content in (
        (svg, drawing.encode()),
        (png, png_of(drawing, scale)),
        (pdf, pdf_of(drawing)),
    ):
        with atomic_write(path) as temporary:
            temporary.write_bytes(content)


def png_of(svg: str, scale: float) -> bytes:
    """Convert an SVG to a PNG with a white background and a colour palette."""
    import vl_convert
    from PIL import Image

    pixels = Image.open(BytesIO(vl_convert.svg_to_png(svg, scale=scale)))
    picture = Image.new("RGB", pixels.size, "white")
    picture.paste(pixels, mask=pixels.getchannel("A"))
    palette = picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
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
