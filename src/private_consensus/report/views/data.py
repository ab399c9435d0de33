"""Content of the page of data sets: one data card per preparation."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from typing import Any

import numpy as np
from PIL import Image

from private_consensus.reproduction.data.catalogue import DATA_SETS, entry

from ..formats import number, words
from ..reading import Results, Row

BAR, GAP, HEIGHT = 10, 2, 48
"""Width, gap and largest height of the bars of a histogram, in units of its drawing."""


def page(results: Results) -> dict[str, object]:
    """Collect the data cards of the page; equal distributions are shown on the first card only."""
    cards = [card(content) for content in results.cards]
    first: dict[str, str] = {}
    for view in cards:
        view["shown_on"] = first.setdefault(str(view["marginals"]), view["preparation"])
    return {"cards": cards}


def card(content: Row) -> dict[str, Any]:
    """Format a data card for the page; the cards of the reference have no distributions."""
    return {
        "title": content["dataset"],
        **content,
        "surrogate": content["source"] == "surrogate",
        "needs": entry(content["dataset"]).needs if content["dataset"] in DATA_SETS else "",
        "splits": ", ".join(
            f"{name} {number(rows)}" for name, rows in content.get("splits", {}).items()
        ),
        "marginals": [
            marginal(name, m) for name, m in sorted(content.get("marginals", {}).items())
        ],
        "pictures": {
            name: pixels for name, pixels in content.get("pictures", {}).items() if pixels
        },
    }


def data_uri(pixels: Sequence) -> str:
    """Encode an image as a ``data:`` address in PNG format.

    ``pixels`` contains grey values [height, width] or RGB values [height, width, 3] from 0 to 255.
    The image is not compressed, so that its bytes do not depend on the compression library.
    """
    content = BytesIO()
    Image.fromarray(np.asarray(pixels, np.uint8)).save(content, "PNG", compress_level=0)
    return f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"


def marginal(name: str, histogram: Row) -> dict[str, object]:
    """Return the bars of one column's histogram, with sizes in units of the drawing and tooltips.

    The histogram has numbers of rows ``counts``, and the ``values`` or the bin ``edges``.
    """
    counts = histogram["counts"]
    largest_count = max(counts, default=0) or 1
    labels = histogram.get("values") or _bins(histogram.get("edges", []))
    bars = [
        {"x": i * (BAR + GAP), "height": (h := round(max(1.0, HEIGHT * count / largest_count), 1)),
         "y": round(HEIGHT - h, 1), "title": f"{label}: {number(count)}"}
        for i, (label, count) in enumerate(zip(labels, counts, strict=True))
    ]  # fmt: skip
    most_frequent = labels[counts.index(max(counts))] if counts else ""
    return {
        "name": words(name),
        "bars": bars,
        "width": len(bars) * (BAR + GAP),
        "bar": BAR,
        "height": HEIGHT,
        "edges": histogram.get("edges", []),
        "alt": f"{words(name)}: {len(counts)} bars, most frequent: {most_frequent}",
        "most_frequent": most_frequent,
    }


def _bins(edges: list[float]) -> list[str]:
    return [f"{number(a)} to {number(b)}" for a, b in pairwise(edges)]
