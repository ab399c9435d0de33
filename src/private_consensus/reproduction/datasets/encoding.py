"""Categories to numbers: integer codes or indicator columns, in the order of the code book."""

from __future__ import annotations

import numpy as np
import polars as pl

from private_consensus.common.errors import InvalidInput

from .tables import MISSING, Schema


def ordinal(
    table: pl.DataFrame, schema: Schema, attributes: tuple[str, ...], *, complete: bool
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Encode each attribute as one column of ranks; a missing value has the lowest rank.

    Parameters
    ----------
    table : polars.DataFrame, schema : Schema
        Canonical table.
    attributes : tuple of str
        Columns to encode, in this order.
    complete : bool
        Whether rows with missing values were dropped; otherwise ``?`` is a category.
    """
    blocks = [
        _numbers(table[a]) if schema.is_numeric(a) else _codes(table[a], schema, complete)
        for a in attributes
    ]
    return np.column_stack(blocks).astype(float), attributes


def onehot(
    table: pl.DataFrame, schema: Schema, attributes: tuple[str, ...], *, complete: bool
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Encode each category as a 0/1 column and keep numbers unchanged.

    Parameters
    ----------
    table : polars.DataFrame
        Canonical table.
    schema : Schema
        States which columns are numeric, and the values of the others.
    attributes : tuple of str
        Columns to encode, in this order.
    complete : bool
        True if rows with missing values were dropped; otherwise ``?`` is a category of columns
        with missing values.

    Returns
    -------
    features : ndarray [rows, columns]
    names : tuple of str
        Column names: ``attribute`` for numbers, ``attribute=value`` for categories.
    """
    blocks, names = [], []
    for a in attributes:
        if schema.is_numeric(a):
            blocks.append(_numbers(table[a])[:, None])
            names.append(a)
        else:
            values = domain(schema, a, complete=complete, gaps=table[a].has_nulls())
            codes = _codes(table[a], schema, complete, gaps=table[a].has_nulls())
            blocks.append(codes[:, None] == np.arange(len(values)))
            names += [f"{a}={value}" for value in values]
    return np.hstack(blocks).astype(float), tuple(names)


def domain(schema: Schema, attribute: str, *, complete: bool, gaps: bool = True) -> tuple[str, ...]:
    """Return the values of a categorical attribute in the order of their codes.

    Parameters
    ----------
    schema : Schema
        States the values of each categorical attribute.
    attribute : str
        Name of the attribute.
    complete : bool
        True if rows with missing values were dropped. Values that occur only in such rows are
        then left out.
    gaps : bool, default True
        True if ``?`` is the first value; ignored if ``complete``.

    Returns
    -------
    tuple of str
    """
    values = schema.categories[attribute]
    if complete:
        absent = schema.only_incomplete.get(attribute, ())
        return tuple(v for v in values if v not in absent)
    return (MISSING, *values) if gaps else values


def _codes(
    column: pl.Series, schema: Schema, complete: bool, *, gaps: bool | None = None
) -> np.ndarray:
    gaps = column.has_nulls() if gaps is None else gaps
    values = domain(schema, column.name, complete=complete, gaps=gaps)
    ranks = {value: i for i, value in enumerate(values)}
    codes = column.fill_null(MISSING).replace_strict(ranks, default=-1, return_dtype=pl.Int64)
    if (codes < 0).any():
        strange = column.filter(codes < 0)[0]
        raise InvalidInput(column.name, strange, f"one of {', '.join(values)}")
    return codes.to_numpy()


def _numbers(column: pl.Series) -> np.ndarray:
    if column.has_nulls():
        raise InvalidInput(column.name, None, "a number in every row that is kept")
    return column.cast(pl.Float64).to_numpy()
