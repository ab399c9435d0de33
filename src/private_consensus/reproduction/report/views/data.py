"""Data cards."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from ...datasets.catalogue import DATA_SETS, entry
from ..formats import number, share, words
from ..pictures import data_uri
from ..reading import Results

BAR, GAP, HEIGHT = 10, 2, 48
"""Width, gap and height of the bars of a histogram, in units of its drawing."""


def page(results: Results) -> dict[str, Any]:
    """Collect the content of the page of data cards."""
    return {"cards": [card(content) for content in results.cards]}


def card(content: Mapping[str, Any]) -> dict[str, Any]:
    """Format a data card for the page."""
    return {
        **content,
        "surrogate": content["source"] == "surrogate",
        "needs": entry(content["dataset"]).needs if content["dataset"] in DATA_SETS else "",
        "label_rate": share(content["label_rate"]),
        "rows": number(content["rows"]),
        "splits": ", ".join(f"{name} {number(rows)}" for name, rows in content["splits"].items()),
        "marginals": [marginal(name, m) for name, m in sorted(content["marginals"].items())],
        "pictures": [picture(name, rows) for name, rows in content["pictures"].items() if rows],
    }


def picture(name: str, rows: list[Any]) -> dict[str, Any]:
    """Return the mean image of a class for the page.

    Parameters
    ----------
    name : str
        Name of the class.
    rows : list of lists
        Pixels of the image, row by row.

    Returns
    -------
    dict
        Address, size and alternative text of the image.
    """
    return {
        "name": words(name),
        "src": data_uri(rows),
        "width": len(rows[0]),
        "height": len(rows),
        "alt": f"Mean of the class {words(name)}",
    }


def marginal(name: str, histogram: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bars of one column's histogram, with a tooltip for each.

    Parameters
    ----------
    name : str
        Name of the column.
    histogram : mapping
        Histogram: ``counts`` with either ``values`` or ``edges``.

    Returns
    -------
    dict
        Sizes in pixels, labels and alternative text.
    """
    counts = histogram["counts"]
    top = max(counts, default=0) or 1
    labels = histogram.get("values") or _bins(histogram.get("edges", []))
    bars = [
        {"x": i * (BAR + GAP), "height": (h := round(max(1.0, HEIGHT * count / top), 1)),
         "y": round(HEIGHT - h, 1), "title": f"{label}: {number(count)}"}
        for i, (label, count) in enumerate(zip(labels, counts, strict=True))
    ]  # fmt: skip
    largest = labels[counts.index(max(counts))] if counts else ""
    return {
        "name": words(name),
        "bars": bars,
        "width": len(bars) * (BAR + GAP),
        "bar": BAR,
        "height": HEIGHT,
        "low": number(histogram["edges"][0]) if histogram.get("edges") else "",
        "high": number(histogram["edges"][-1]) if histogram.get("edges") else "",
        "numeric": "edges" in histogram,
        "alt": f"{words(name)}: {len(counts)} bars, largest {largest}",
        "largest": largest,
    }


def _bins(edges: list[float]) -> list[str]:
    return [f"{number(a)} to {number(b)}" for a, b in pairwise(edges)]
