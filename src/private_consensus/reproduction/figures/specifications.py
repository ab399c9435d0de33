"""Functions for Vega-Lite specifications as dictionaries, which most figures use.

Altair's objects copy their content at each change, which takes longer than the drawing itself.
Drawings of single papers use them if the code is shorter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import polars as pl

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.4.1.json"


def field(name: str, kind: str = "quantitative", **options: Any) -> dict[str, Any]:
    """Return a Vega-Lite channel that encodes a column."""
    return {"field": name, "type": kind, **options}


def named_data(chart: Mapping[str, Any]) -> dict[str, Any]:
    """Replace each data frame in a chart by a reference; store its rows once, by their hash."""
    names_by_table: dict[int, tuple[pl.DataFrame, str]] = {}
    datasets: dict[str, list[dict[str, Any]]] = {}

    def name(table: pl.DataFrame) -> str:
        if id(table) not in names_by_table:
            rows = table.to_dicts()
            text = json.dumps(rows, sort_keys=True)
            names_by_table[id(table)] = table, f"data-{sha256(text.encode()).hexdigest()[:32]}"
            datasets[names_by_table[id(table)][1]] = rows
        return names_by_table[id(table)][1]

    def with_references(element: Any) -> Any:
        if isinstance(element, pl.DataFrame):
            return {"name": name(element)}
        if isinstance(element, Mapping):
            return {key: with_references(value) for key, value in element.items()}
        return (
            [with_references(value) for value in element] if isinstance(element, list) else element
        )

    return {**with_references(chart), "datasets": datasets, "$schema": SCHEMA}
