"""Texts below the title of a figure: data source, conditions, explanation of the dagger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from private_consensus.common.symbols import typeset

from ..datasets.catalogue import DATA_SETS, entry
from ..experiments.numbers import UNPROVEN

UNPROVEN_NOTE = "† no guarantee is proven at the claimed ε"


def facts(figure: Mapping[str, Any]) -> str:
    """Describe data, budget, agents, runs and bands of a figure in one line.

    Parameters
    ----------
    figure : mapping
        Specification of the figure, with optional ``conditions``.

    Returns
    -------
    str
        Parts separated by semicolons.
    """
    return typeset(figure.get("conditions", ""))


def marks(numbers: pl.DataFrame) -> str:
    """Return the explanation of the dagger if a curve of the figure has it; else an empty text."""
    return UNPROVEN_NOTE if (numbers["guarantee"] == UNPROVEN).any() else ""


def data_of(source: str) -> str:
    """Describe the data sets of a figure with their versions and sources."""
    return "; ".join(_data(origin) for origin in source.split("; "))


def _data(origin: str) -> str:
    name, _, kind = origin.partition(" (")
    if name not in DATA_SETS or not kind.startswith("mirror"):
        return origin
    return f"{entry(name).mirror.version} ({kind}"
