"""A check that published numbers are aggregates and hold no record of a data set."""

from __future__ import annotations

import polars as pl

from ..errors import InvalidInput

INDIVIDUAL = frozenset({"record", "row_id", "index", "run", "person", "feature"})
"""Columns that tell one record, or one run, from another."""
LARGEST = 100_000
"""Rows of the largest figure's numbers that are taken for aggregates."""


def require_aggregates(name: str, frame: pl.DataFrame) -> None:
    """Refuse numbers that could hold records.

    Raises
    ------
    InvalidInput
        There is a column that names single records or runs, a column of lists or bytes, or there
        are more rows than any figure has points.
    """
    named = sorted(INDIVIDUAL & set(frame.columns))
    nested = [
        column for column, kind in frame.schema.items() if kind.is_nested() or kind == pl.Binary
    ]
    if named or nested:
        raise InvalidInput(f"{name}: columns", ", ".join(named + nested), "aggregates only")
    if frame.height > LARGEST:
        raise InvalidInput(f"{name}: rows", frame.height, f"at most {LARGEST}, as aggregates have")
