"""Drawings made small: what no reader sees is left out of an SVG, and of the data behind it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

DIGITS = 6
"""Significant digits of numbers that are drawn."""
PLACES = re.compile(r' (?:d|transform)="[^"]*"')
LONG = re.compile(r"-?\d+\.\d{2,}")
MEANT_FOR_OTHERS = re.compile(r' (?:role|aria-[a-z]+|pointer-events)="[^"]*"')
"""What a screen reader and a pointer are told of each mark; a drawing that is shown as a picture
has one text instead."""
CLIPPED = re.compile(
    r'<g class="mark-(?:area|line) [^"]*"( clip-path="url\(#(\w+)\)")[^>]*>(?:<path[^>]*>)*</g>'
)
MARK = re.compile(r"<path[^>]*>")
FRAME = re.compile(
    r'<clipPath id="(\w+)"><rect x="([\d.-]+)" y="([\d.-]+)" width="([\d.]+)" height="([\d.]+)"'
)
STRAIGHT = re.compile(r' d="([MLZ\d,.e-]*)"')
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
STROKE = re.compile(r' stroke-width="([\d.]+)"')
MITRE = 10
"""How far a corner may reach, in halves of the line's width: as Vega has it drawn."""
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


def without_idle_clips(svg: str) -> str:
    """The same drawing, without clip paths where nothing reaches them: in a picture each is a
    layer of its own, which takes longer than what is drawn in it.

    What is filled ends at its points; what is stroked goes beyond them by as much as a mitre may.
    """
    frames = {name: [float(side) for side in sides] for name, *sides in FRAME.findall(svg)}

    def told(found: re.Match[str]) -> str:
        frame = frames.get(found[2])
        if frame is None or not all(_inside(mark, frame) for mark in MARK.findall(found[0])):
            return found[0]
        return found[0].replace(found[1], "", 1)

    return CLIPPED.sub(told, svg)


def _inside(mark: str, frame: Sequence[float]) -> bool:
    """Return True if a path of straight lines lies completely in a frame."""
    path, width = STRAIGHT.search(mark), STROKE.search(mark)
    if path is None:
        return False
    reach = float(width[1]) / 2 * MITRE if width else 0.0
    x, y, wide, high = frame
    numbers = [float(number) for number in NUMBER.findall(path[1])]
    return all(
        low + reach <= min(places) and max(places) <= low + size - reach
        for places, low, size in ((numbers[::2], x, wide), (numbers[1::2], y, high))
        if places
    )


def still(specification: Mapping[str, Any]) -> dict[str, Any]:
    """The specification of the same drawing as a picture: without what only a pointer finds, what
    only a screen reader is told, and limits of labels, for which each is measured more than once.
    Together they are a third of the drawing's time.
    """

    def told(part: Any) -> Any:
        if isinstance(part, Mapping):
            return {key: told(value) for key, value in part.items() if key != "tooltip"}
        return [told(value) for value in part] if isinstance(part, list) else part

    kept = {key: told(value) for key, value in specification.items() if key != "datasets"}
    data = {key: specification[key] for key in specification.keys() & {"datasets"}}
    config = kept.get("config", {})
    endless = {part: {**config.get(part, {}), "labelLimit": 0} for part in ("axis", "legend")}
    return {**kept, **data, "config": {**config, **endless, "aria": False}}


def rounded(specification: dict[str, Any]) -> dict[str, Any]:
    """A Vega-Lite specification whose data have six significant digits."""
    data = {
        name: [{key: _rounded(value) for key, value in row.items()} for row in rows]
        for name, rows in specification.get("datasets", {}).items()
    }
    return {**specification, "datasets": data} if data else specification


def _rounded(value: Any) -> Any:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
