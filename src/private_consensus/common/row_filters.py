"""Conditions on the columns of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl


def selected(where: Mapping[str, Any]) -> Iterator[pl.Expr]:
    """Yield one condition per column: a value, or the two ends of a closed interval."""
    for name, value in where.items():
        column = pl.col(name)
        yield column.is_between(*value) if isinstance(value, list | tuple) else column == value
