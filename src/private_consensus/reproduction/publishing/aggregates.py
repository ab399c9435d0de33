"""Check that published tables contain aggregates only, and no record of a data set."""

from __future__ import annotations

import polars as pl

from private_consensus.common.errors import InvalidInput

IDENTIFIERS = frozenset({"record", "row_id", "index", "run", "person", "feature"})
"""Columns that identify single records or single runs."""
MAX_ROWS = 100_000
"""Largest number of rows of a table of aggregates."""


def require_aggregates(name: str, frame: pl.DataFrame) -> None:
    """Raise an error if a table could contain individual records.

    Parameters
    ----------
    name : str
        Name of the table in the message.
    frame : DataFrame
        Table to publish.

    Raises
    ------
    InvalidInput
        If a column identifies single records or runs, a column has lists or bytes, or there are
        more than :data:`MAX_ROWS` rows.
    """
    identifiers = sorted(IDENTIFIERS & set(frame.columns))
    nested = [
        column for column, kind in frame.schema.items() if kind.is_nested() or kind == pl.Binary
    ]
    if identifiers or nested:
        expected = "columns of aggregates, without identifiers and nested values"
        raise InvalidInput(f"{name}: columns", ", ".join(identifiers + nested), expected)
    if frame.height > MAX_ROWS:
        raise InvalidInput(f"{name}: rows", frame.height, f"at most {MAX_ROWS} rows of aggregates")
