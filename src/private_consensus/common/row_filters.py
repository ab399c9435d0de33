"""Conditions on named values, and on the columns of a table."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl


def matches(values: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    """Return True if each named value satisfies its condition, a value or a closed interval."""
    return all(
        where[name][0] <= value <= where[name][1]
        if isinstance(where[name], list | tuple)
        else value == where[name]
        for name, value in values.items()
        if name in where
    )


def selected(where: Mapping[str, Any]) -> Iterator[pl.Expr]:
    """Yield one condition per column: a value, or the two ends of a closed interval."""
    for name, value in where.items():
        column = pl.col(name)
        yield column.is_between(*value) if isinstance(value, list | tuple) else column == value
