"""Write figures for print as PDF: in the width of a column or a page, with 8-point text."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from textwrap import wrap
from typing import Any

from .drawings import pdf_of
from .theme import FONT

POINTS_PER_INCH = 72
TEXT = 8
"""Size of text in points."""
WIDTHS = {"column": 3.3, "page": 6.8}
"""Width of the drawings in inches."""
LINE = 10
"""Distance of lines of text in points."""
HEIGHT = 0.62
"""Smallest height of a panel, as a fraction of its width."""
LETTER, SYMBOL, AXIS = 4.7, 22, 45
"""Width of a letter of the legend, of the symbol before a name, and of the axis left of a panel, in
points."""
GRADIENT = 0.8
"""Length of a colour gradient in the legend, as a fraction of the available width."""
MARKS = ("†", "‡")
MAX_HEIGHT = 9.0
"""Largest height of a drawing that is written, in inches."""
CORRECTIONS = 5
"""Number of corrections of the panel width. Labels have a fixed size, so that the width of the
drawing is not proportional to that of its panels."""
_WIDTH = re.compile(r'width="([\d.]+)"')
_HEIGHT = re.compile(r'height="([\d.]+)"')


def sized(specification: dict[str, Any], inches: float) -> dict[str, Any]:
    """Return a chart with a given width, without title and data source.

    Parameters
    ----------
    specification : dict
        Vega-Lite specification that :func:`.drawings.save` wrote as JSON.
    """
    target = inches * POINTS_PER_INCH
    spec = deepcopy(specification)
    heading = spec.pop("title", {})
    spec["config"] = _config(spec.get("config", {}))
    columns = _in_columns(spec, inches)
    units = [view for view in _views(spec) if _has_size(view)]
    ratios = [unit["height"] / unit["width"] for unit in units]
    width = target / columns - AXIS
    _titles(spec, width)
    spec |= _explained_marks(heading, target)
    available_width = target - AXIS if _one_legend(spec) else width
    for _ in range(CORRECTIONS):
        for unit, ratio in zip(units, ratios, strict=True):
            unit["width"] = round(width, 1)
            unit["height"] = round(width * max(min(ratio, 1.0), HEIGHT), 1)
        _texts(spec, target, available_width)
        excess = width_of(spec) - target
        if abs(excess) < 1.0:
            break
        width = max(width - excess / columns, 60.0)
    return spec


def _explained_marks(heading: dict[str, Any], target: float) -> dict[str, Any]:
    """Return the explanations of marks (†, ‡) in a heading as a title below the drawing."""
    notes = [line for line in heading.get("subtitle", []) if line.startswith(MARKS)]
    if not notes:
        return {}
    text = [line for note in notes for line in _lines(note, target)]
    look = {"orient": "bottom", "anchor": "start", "fontWeight": "normal", "fontSize": TEXT}
    return {"title": {"text": text, **look}}


def width_of(specification: dict[str, Any]) -> float:
    """Return the width of a drawing in points."""
    return float(_WIDTH.findall(_svg(specification))[0])


def height_of(specification: dict[str, Any]) -> float:
    """Return the height of a drawing in inches."""
    return float(_HEIGHT.findall(_svg(specification))[0]) / POINTS_PER_INCH


def _svg(specification: dict[str, Any]) -> str:
    import vl_convert as vlc

    return vlc.vegalite_to_svg(json.dumps(specification))


def _config(config: dict[str, Any]) -> dict[str, Any]:
    print_config = {**config, "font": FONT, "padding": 2}
    for element, sizes in {
        "axis": ("labelFontSize", "titleFontSize"), "legend": ("labelFontSize", "titleFontSize"),
        "title": ("fontSize", "subtitleFontSize"),
    }.items():  # fmt: skip
        print_config[element] = {**print_config.get(element, {}), **dict.fromkeys(sizes, TEXT)}
    print_config["legend"] |= {"symbolSize": 100, "symbolStrokeWidth": 1.6}
    return print_config


def _in_columns(spec: dict[str, Any], inches: float) -> int:
    """Arrange panels in one column, or on a page in up to three; return the number of columns."""
    for several in ("concat", "hconcat"):
        if several in spec:
            spec["concat"] = spec.pop(several)
            max_columns = 1 if inches < 5 else 3
            spec["columns"] = min(spec.get("columns", len(spec["concat"])), max_columns)
            spec["spacing"] = 14
            return spec["columns"]
    return 1


def _views(view: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a chart and all charts inside it."""
    yield view
    for several in ("concat", "hconcat", "vconcat"):
        for inner in view.get(several, ()):
            yield from _views(inner)


def _has_size(view: dict[str, Any]) -> bool:
    """Return True if a chart has a width and a height in pixels."""
    return all(isinstance(view.get(key), int | float) for key in ("width", "height"))


def _field(layer: dict[str, Any], channel: str) -> str | None:
    """Return the column that a channel of a layer encodes, or None."""
    return layer.get("encoding", {}).get(channel, {}).get("field")


def _one_legend(spec: dict[str, Any]) -> bool:
    """Return True if all panels share one legend."""
    return spec.get("resolve", {}).get("scale", {}).get("color") != "independent"


def _texts(element: Any, target: float, available_width: float) -> None:
    """Set the text size to eight points, and arrange legends in as many columns as fit."""
    if isinstance(element, list):
        for child in element:
            _texts(child, target, available_width)
    elif isinstance(element, dict):
        if element.get("type") == "text":
            element |= {"fontSize": TEXT, "limit": round(target)}
        names = (
            element.get("scale", {}).get("domain", ()) if element.get("type") == "nominal" else ()
        )
        if names and isinstance(element.get("legend"), dict):
            lines = {name: _lines(name, available_width - SYMBOL) for name in names}
            longest = max(len(line) for name_lines in lines.values() for line in name_lines)
            columns = max(1, int(available_width / (LETTER * longest + SYMBOL)))
            element["legend"] |= {
                "columns": columns,
                "labelExpr": f"{json.dumps(lines, ensure_ascii=False)}[datum.label]",
            }
        if "gradientLength" in element:
            element |= {
                "gradientLength": round(GRADIENT * available_width),
                "titleLimit": round(available_width),
            }
        for key in set(element) - {"datasets", "data"}:
            _texts(element[key], target, available_width)


def _titles(spec: dict[str, Any], available_width: float) -> None:
    """Wrap the titles of panels to the width of a panel."""
    for panel in spec.get("concat", ()):
        for layer in panel.get("layer", ()):
            if _field(layer, "text") == "title":
                (row,) = spec["datasets"][layer["data"]["name"]]
                lines = _lines(row["title"], available_width)
                row["title"] = "\n".join(lines)
                layer["mark"]["dy"] -= LINE * (len(lines) - 1)
                layer["mark"]["lineBreak"] = "\n"
    for view in _views(spec):
        if view.get("title"):
            view["title"] = _lines(view["title"], available_width)


def _lines(text: str, available_width: float) -> list[str]:
    return wrap(text, max(int(available_width / LETTER), 8))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``python -m private_consensus.reproduction.plotting.printing FIGURES OUT``."""
    parser = argparse.ArgumentParser(description="Figures as PDF, 3.3 and 6.8 inches wide.")
    parser.add_argument("figures", type=Path, help="folder with the specifications, *.json")
    parser.add_argument("out", type=Path, help="folder for the PDFs")
    parser.add_argument("names", nargs="*", help="only these figures")
    options = parser.parse_args(arguments)
    files = sorted(options.figures.glob("*.json"))
    for file in [f for f in files if not options.names or f.stem in options.names]:
        specification = json.loads(file.read_text(encoding="utf-8"))
        for name, inches in WIDTHS.items():
            target = options.out / f"{file.stem}-{name}.pdf"
            drawing = sized(specification, inches)
            if (height := height_of(drawing)) > MAX_HEIGHT:
                reason = f"its height of {height:.1f} inches is above {MAX_HEIGHT:g}"
                print(f"{target.name}: not written, because {reason}", file=sys.stderr)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(pdf_of(_svg(drawing)))
            print(target)


if __name__ == "__main__":
    main()
