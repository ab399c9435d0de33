"""What stands below a figure's title: data, budget, agents, runs, what line and band are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import polars as pl

from ..datasets.catalogue import DATA_SETS, entry
from ..experiments.numbers import INTERVAL, QUARTILES, RANGE, SPREAD, UNPROVEN
from .axes import short
from .symbols import typeset

UNPROVEN_NOTE = "† no guarantee is proven at the ε that is claimed"
BANDS = {
    INTERVAL: "mean, band: its standard error",
    SPREAD: "mean, band: standard deviation of the runs",
    QUARTILES: "median, band: quartiles",
    RANGE: "mean, band: least and largest run",
}
PARTS = {"epsilon": "ε", "delta": "δ", "agents": "N"}
MOST = 4
"""Values of a setting that are listed."""


def facts(numbers: pl.DataFrame, figure: Mapping[str, Any]) -> str:
    """Describe budget, agents, runs, lines and bands in one line, if all curves share them.

    Parameters
    ----------
    numbers : polars.DataFrame
        Points of all curves.
    figure : mapping
        Specification of the figure, with optional ``settings``.

    Returns
    -------
    str
        Parts separated by semicolons.
    """
    settings = [_setting(part, numbers, figure.get("settings", ())) for part in PARTS]
    kinds = [BANDS.get(kind, kind) for kind in numbers["interval"].unique(maintain_order=True)]
    bands = [typeset(kind) for kind in dict.fromkeys(kinds) if kind]
    return "; ".join(filter(None, [", ".join(filter(None, settings)), _runs(numbers), *bands]))


def marks(numbers: pl.DataFrame) -> str:
    """Explain the dagger, if the figure has one."""
    return UNPROVEN_NOTE if (numbers["guarantee"] == UNPROVEN).any() else ""


def data_of(source: str) -> str:
    """Data sets with their versions, and where they came from."""
    return "; ".join(_data(part) for part in source.split("; "))


def _data(part: str) -> str:
    name, _, kind = part.partition(" (")
    if name not in DATA_SETS or not kind.startswith("mirror"):
        return part
    return f"{entry(name).mirror.version} ({kind}"


def _setting(part: str, numbers: pl.DataFrame, settings: Sequence[Mapping[str, Any]]) -> str:
    values: set[float] = set()
    for setting in settings:
        found = setting[part]
        if isinstance(found, str):
            column = numbers[found].drop_nulls().to_list() if found in numbers.columns else []
            values |= set(column)
        else:
            values.add(found)
    values = {v for v in values if isfinite(v) and v > 0}
    if not 0 < len(values) <= MOST or (part == "agents" and values == {1}):
        return ""
    return f"{PARTS[part]} = {', '.join(short(v) for v in sorted(values))}"


def _runs(numbers: pl.DataFrame) -> str:
    counts = numbers["runs"].drop_nulls()
    low, high = (int(counts.min() or 0), int(counts.max() or 0)) if len(counts) else (0, 0)
    if high < 2:
        return ""
    return f"{high:,} runs" if low == high else f"{max(low, 1):,} to {high:,} runs"
