"""Content of the page of data sets: one data card per preparation."""

from __future__ import annotations

from typing import Any

from private_consensus.reproduction.data.catalogue import DATA_SETS, entry

from ..formats import number
from ..reading import Results, Row


def page(results: Results) -> dict[str, object]:
    """Collect the data cards of the page."""
    return {"cards": [card(content) for content in results.cards]}


def card(content: Row) -> dict[str, Any]:
    """Format a data card for the page."""
    return {
        "title": content["dataset"],
        **content,
        "surrogate": content["source"] == "surrogate",
        "needs": entry(content["dataset"]).needs if content["dataset"] in DATA_SETS else "",
        "splits": ", ".join(
            f"{name} {number(rows)}" for name, rows in content.get("splits", {}).items()
        ),
    }
