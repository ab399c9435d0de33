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
    """Encode the columns of a table as features; numeric columns remain unchanged.

    Parameters
    ----------
    schema : Schema
        Schema of the table, with the values of each categorical column in the order of their codes.
    indicators : bool
        True for one 0/1 column per value; False for one column of codes 0, 1, ..., in which a
        missing value has the code 0.
    complete : bool
        True if rows with missing values were dropped; otherwise ``?`` is a value of columns with
        missing values.

    Returns
    -------
    features : ndarray [rows, columns]
    names : tuple of str
        Column names: ``attribute``, or ``attribute=value`` for an indicator.
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

    Parameters
    ----------
    complete : bool
        True if rows with missing values were dropped. Values that occur only in such rows are
        then left out.
    gaps : bool
        True if ``?`` is the first value; ignored if ``complete``.
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
