"""Check that published numbers are aggregates and contain no record of a data set."""

from __future__ import annotations

import polars as pl

from private_consensus.common.errors import InvalidInput

INDIVIDUAL = frozenset({"record", "row_id", "index", "run", "person", "feature"})
"""Columns that tell one record, or one run, from another."""
LARGEST = 100_000
"""Rows of the largest figure's numbers that are taken for aggregates."""


def require_aggregates(name: str, frame: pl.DataFrame) -> None:
    """Raise an error if a table could contain individual records.

    Parameters
    ----------
    name : str
        Name of the table in the message.
    frame : DataFrame
        Numbers to publish.

    Raises
    ------
    InvalidInput
        If a column identifies single records or runs, a column has lists or bytes, or there are
        more than :data:`LARGEST` rows.
    """
    individual = sorted(INDIVIDUAL & set(frame.columns))
    nested = [
        column for column, kind in frame.schema.items() if kind.is_nested() or kind == pl.Binary
    ]
    if individual or nested:
        raise InvalidInput(f"{name}: columns", ", ".join(individual + nested), "aggregates only")
    if frame.height > LARGEST:
        raise InvalidInput(f"{name}: rows", frame.height, f"at most {LARGEST} rows of aggregates")
