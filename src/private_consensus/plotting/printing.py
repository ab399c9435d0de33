"""Figures for print: as wide as a column or a page, with text of eight points, without heading."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from .theme import FONT

POINTS_PER_INCH = 72
TEXT = 8
"""Points."""
WIDTHS = {"column": 3.3, "page": 6.8}
"""Inches."""
HEIGHT = 0.62
"""Of a panel, as a share of its width."""
LETTER, SYMBOL = 5.1, 22
"""Points of a letter of the legend, and of what stands before a name."""
ROUNDS = 5
"""Times that panels are made to fit; each comes closer, since labels keep their size."""
_WIDTH = re.compile(r'width="([\d.]+)"')


def sized(specification: dict[str, Any], inches: float) -> dict[str, Any]:
    """A Vega-Lite specification that is drawn so wide, without what a caption says.

    Parameters
    ----------
    specification : dict
        As :func:`.theme.save` writes it.
    inches : float
        Width of the whole drawing; more where the longest name of a legend is wider.
    """
    target = inches * POINTS_PER_INCH
    spec = deepcopy(specification)
    spec.pop("title", None)
    spec["config"] = _config(spec.get("config", {}))
    columns = _in_columns(spec, inches)
    units = list(_units(spec))
    ratios = [unit["height"] / unit["width"] for unit in units]
    width = target / columns - 45
    for _ in range(ROUNDS):
        for unit, ratio in zip(units, ratios, strict=True):
            unit["width"] = round(width, 1)
            unit["height"] = round(width * max(min(ratio, 1.0), HEIGHT), 1)
        _texts(spec, target)
        excess = measured(spec) - target
        if abs(excess) < 1.0:
            break
        width = max(width - excess / columns, 60.0)
    return spec


def measured(specification: dict[str, Any]) -> float:
    """Points across a drawing."""
    return float(_WIDTH.search(_svg(specification))[1])


def _svg(specification: dict[str, Any]) -> str:
    import vl_convert as vlc

    return vlc.vegalite_to_svg(json.dumps(specification))


def _pdf(specification: dict[str, Any]) -> bytes:
    import vl_convert as vlc

    return vlc.svg_to_pdf(_svg(specification))


def _config(config: dict[str, Any]) -> dict[str, Any]:
    found = {**config, "font": FONT, "padding": 2}
    for part, sizes in {
        "axis": ("labelFontSize", "titleFontSize"), "legend": ("labelFontSize", "titleFontSize"),
        "title": ("fontSize", "subtitleFontSize"),
    }.items():  # fmt: skip
        found[part] = {**found.get(part, {}), **dict.fromkeys(sizes, TEXT)}
    found["legend"] |= {"symbolSize": 100, "symbolStrokeWidth": 1.6}
    return found


def _in_columns(spec: dict[str, Any], inches: float) -> int:
    """Panels beside each other: one in a column, two or three on a page."""
    for several in ("concat", "hconcat"):
        if several in spec:
            spec["concat"] = spec.pop(several)
            most = 1 if inches < 5 else 3
            spec["columns"] = min(spec.get("columns", len(spec["concat"])), most)
            spec["spacing"] = 14
            return spec["columns"]
    return 1


def _units(view: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Views that have a size of their own."""
    if isinstance(view.get("width"), int | float) and isinstance(view.get("height"), int | float):
        yield view
    for several in ("concat", "hconcat", "vconcat"):
        for inner in view.get(several, ()):
            yield from _units(inner)


def _texts(part: Any, target: float) -> None:
    """Text of eight points; as many columns of a legend as there is room for."""
    if isinstance(part, list):
        for each in part:
            _texts(each, target)
    elif isinstance(part, dict):
        if part.get("type") == "text":
            part |= {"fontSize": TEXT, "limit": round(target)}
        if isinstance(part.get("legend"), dict) and "domain" in part.get("scale", {}):
            names = [str(name) for name in part["scale"]["domain"]]
            longest = LETTER * max(map(len, names), default=1) + SYMBOL
            part["legend"]["columns"] = max(1, int(target / longest))
        for key in set(part) - {"datasets", "data"}:
            _texts(part[key], target)


def main(arguments: Sequence[str] | None = None) -> None:
    """``python -m private_consensus.plotting.printing FIGURES OUT``"""
    parser = argparse.ArgumentParser(description="Figures as PDF, 3.3 and 6.8 inches wide.")
    parser.add_argument("figures", type=Path, help="folder with the specifications, *.json")
    parser.add_argument("out", type=Path, help="folder for the PDFs")
    parser.add_argument("names", nargs="*", help="only these figures")
    chosen = parser.parse_args(arguments)
    files = sorted(chosen.figures.glob("*.json"))
    for file in [f for f in files if not chosen.names or f.stem in chosen.names]:
        specification = json.loads(file.read_text(encoding="utf-8"))
        for name, inches in WIDTHS.items():
            target = chosen.out / f"{file.stem}-{name}.pdf"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_pdf(sized(specification, inches)))
            print(target)


if __name__ == "__main__":
    main()
