"""Texts below the title of a figure: data source, conditions, explanation of the marks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from private_consensus.common.symbols import typeset

from ..datasets.catalogue import DATA_SETS, entry
from ..experiments.numbers import REFUTED, UNPROVEN

NOTES = {
    UNPROVEN: "† no guarantee is proven at the claimed ε",
    REFUTED: "‡ the claimed ε is refuted",
}


def facts(figure: Mapping[str, Any]) -> str:
    """Describe data, budget, agents, runs and bands of a figure in one line."""
    return typeset(figure.get("conditions", ""))


def marks(numbers: pl.DataFrame) -> str:
    """Return the explanations of the marks that curves of the figure have."""
    guarantees = set(numbers["guarantee"])
    return "; ".join(note for guarantee, note in NOTES.items() if guarantee in guarantees)


def data_of(source: str) -> str:
    """Describe the data sets of a figure with their versions and sources."""
    return "; ".join(_data(origin) for origin in source.split("; "))


def _data(origin: str) -> str:
    name, _, kind = origin.partition(" (")
    if name not in DATA_SETS or not kind.startswith("mirror"):
        return origin
    return f"{entry(name).mirror.version} ({kind}"
