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
    return {"cards": [card(found) for found in results.cards]}


def card(found: Mapping[str, Any]) -> dict[str, Any]:
    """Format a data card for the page."""
    return {
        **found,
        "surrogate": found["source"] == "surrogate",
        "needs": entry(found["dataset"]).needs if found["dataset"] in DATA_SETS else "",
        "label_rate": share(found["label_rate"]),
        "rows": number(found["rows"]),
        "splits": ", ".join(f"{name} {number(rows)}" for name, rows in found["splits"].items()),
        "marginals": [marginal(name, m) for name, m in sorted(found["marginals"].items())],
        "pictures": [picture(name, rows) for name, rows in found["pictures"].items() if rows],
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


def marginal(name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bars of one column's histogram, with a tooltip for each.

    Parameters
    ----------
    name : str
        Name of the column.
    found : mapping
        Histogram: ``counts`` with either ``values`` or ``edges``.

    Returns
    -------
    dict
        Sizes in pixels, labels and alternative text.
    """
    counts = found["counts"]
    top = max(counts, default=0) or 1
    labels = found.get("values") or _bins(found.get("edges", []))
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
        "low": number(found["edges"][0]) if found.get("edges") else "",
        "high": number(found["edges"][-1]) if found.get("edges") else "",
        "numeric": "edges" in found,
        "alt": f"{words(name)}: {len(counts)} bars, largest {largest}",
        "largest": largest,
    }


def _bins(edges: list[float]) -> list[str]:
    return [f"{number(a)} to {number(b)}" for a, b in pairwise(edges)]
