"""Drawings made small: what no reader sees is left out of an SVG, and of the data behind it."""

from __future__ import annotations

import re
from typing import Any

DIGITS = 6
"""Significant digits of numbers that are drawn."""
PLACES = re.compile(r' (?:d|transform)="[^"]*"')
LONG = re.compile(r"-?\d+\.\d{2,}")
MEANT_FOR_OTHERS = re.compile(r' (?:role|aria-[a-z]+|pointer-events)="[^"]*"')
"""What a screen reader and a pointer are told of each mark; a drawing that is shown as a picture
has one text instead."""
HIDDEN = re.compile(r'<(path|rect|line|text|circle)\b[^>]*? opacity="0"[^>]*?(?:/>|>[^<]*</\1>)')
OPAQUE = re.compile(r'(<(?:path|rect|line|text|circle)\b[^>]*?) opacity="([\d.]+)"')


def small_svg(svg: str) -> str:
    """The figure with places to a tenth of a pixel, and without what marks tell a screen reader."""
    shorter = lambda number: f"{float(number[0]):.1f}"  # noqa: E731
    placed = PLACES.sub(
        lambda part: part[0] if "scale" in part[0] else LONG.sub(shorter, part[0]), svg
    )
    return MEANT_FOR_OTHERS.sub("", placed)


def without_hidden(svg: str) -> str:
    """The same drawing, without marks that are there for a pointer alone: the points of long curves
    are two thirds of it, and of its PDF."""
    return HIDDEN.sub("", svg)


def without_groups(svg: str) -> str:
    """The same drawing, with the opacity of a mark as that of its fill and its stroke.

    A mark that is transparent as a whole becomes a group of its own in a PDF, which takes a
    kilobyte; these marks are either filled or stroked, so that nothing changes.
    """

    def told(found: re.Match[str]) -> str:
        opacity = found[2]
        if float(opacity) == 1.0:
            return found[1]
        return f'{found[1]} fill-opacity="{opacity}" stroke-opacity="{opacity}"'

    return OPAQUE.sub(told, svg)


def rounded(specification: dict[str, Any]) -> dict[str, Any]:
    """A Vega-Lite specification whose data have six significant digits."""
    data = {
        name: [{key: _rounded(value) for key, value in row.items()} for row in rows]
        for name, rows in specification.get("datasets", {}).items()
    }
    return {**specification, "datasets": data} if data else specification


def _rounded(value: Any) -> Any:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
