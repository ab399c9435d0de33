"""Texts below the title of a figure: conditions and the explanation of the marks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from private_consensus.common.symbols import typeset

from ..results.numbers import REFUTED, UNPROVEN

NOTES = {
    UNPROVEN: "† no guarantee is proven at the claimed ε",
    REFUTED: "‡ the claimed ε is refuted",
}


def facts(figure: Mapping[str, Any]) -> str:
    """Describe data, budget, agents, runs and bands of a figure in one line."""
    return typeset(figure.get("conditions", ""))


def marks(numbers: pl.DataFrame, *, beyond: bool) -> str:
    """Explain the marks of a figure; ``beyond`` states that values lie beyond an axis."""
    guarantees = set(numbers["guarantee"])
    notes = [note for guarantee, note in NOTES.items() if guarantee in guarantees]
    return "; ".join([*notes, *(["▲ ▼ values beyond the axis"] * beyond)])
