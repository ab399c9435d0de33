"""Encode categorical columns as integer codes or indicator columns."""

from __future__ import annotations

import numpy as np
import polars as pl

from private_consensus.common.errors import InvalidInput

from .tables import MISSING, Schema


def encode(
    table: pl.DataFrame,
    schema: Schema,
    attributes: tuple[str, ...],
    *,
    indicators: bool,
    complete: bool,
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Encode the columns of a table as features [rows, columns]; numeric columns remain unchanged.

    With ``indicators``, there is one 0/1 column ``attribute=value`` per value; otherwise one column
    of codes 0, 1, ..., in which a missing value has the code 0. Rows with missing values were
    dropped if ``complete``; otherwise ``?`` is a value of columns with missing values.
    """
    blocks, names = [], []
    for name in attributes:
        column = table[name]
        if schema.is_numeric(name):
            blocks.append(_numbers(column))
            names.append(name)
            continue
        values = domain(schema, name, complete=complete, gaps=column.has_nulls())
        codes = column.fill_null(MISSING).cast(pl.Enum(values)).to_physical().to_numpy()
        blocks.append(codes[:, None] == np.arange(len(values)) if indicators else codes)
        names += [f"{name}={value}" for value in values] if indicators else [name]
    return np.column_stack(blocks).astype(float), tuple(names)


def domain(schema: Schema, attribute: str, *, complete: bool, gaps: bool) -> tuple[str, ...]:
    """Return the values of a categorical attribute in the order of their codes.

    If ``complete``, rows with missing values were dropped, and values that occur only in such rows
    are left out. Otherwise, ``?`` is the first value if there are ``gaps``.
    """
    values = schema.categories[attribute]
    if complete:
        absent = schema.only_incomplete.get(attribute, ())
        return tuple(v for v in values if v not in absent)
    return (MISSING, *values) if gaps else values


def _numbers(column: pl.Series) -> np.ndarray:
    if column.has_nulls():
        raise InvalidInput(column.name, None, "a number in every retained row")
    return column.cast(pl.Float64).to_numpy()
