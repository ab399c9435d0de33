"""Schemas of canonical tables, with a binary label, and the encoding of their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from private_consensus.common.errors import InvalidInput, arguments

MISSING = "?"


@dataclass(frozen=True, kw_only=True)
class Protected:
    """Binary protected attribute: 1 if ``column`` is in ``values`` or at least ``above``, else 0.

    ``meaning`` describes the value 1.
    """

    column: str
    meaning: str
    values: tuple[str | int, ...] = ()
    above: float | None = None

    def of(self, table: pl.DataFrame) -> pl.Series:
        """Return the attribute of every row as 0 or 1; a missing value gives 0."""
        column = pl.col(self.column)
        is_protected = (
            column.is_in(list(self.values)) if self.above is None else column >= self.above
        )
        return table.select(is_protected.fill_null(False).cast(pl.Int8)).to_series()


SEX_RACE_AGE = {
    "sex": Protected(column="sex", values=("Male",), meaning="1 = male"),
    "race": Protected(column="race", values=("White",), meaning="1 = white"),
    "age": Protected(column="age", above=40, meaning="1 = 40 years or older"),
}
"""Protected attributes of several data sets."""


@dataclass(frozen=True, kw_only=True)
class Schema:
    """Columns of a canonical table, in order.

    Parameters
    ----------
    columns : tuple of str
        All columns, including the label.
    categories : mapping
        Categorical column to its values in the order of their codes. The values are those of the
        publisher's code book, so that the encoding does not depend on the records.
    label, positive : str
        Label column, and the value for the label +1, or the threshold above which it is +1.
    only_incomplete : mapping
        Categorical column to the values that occur only in rows with missing values.
    protected : mapping
        Name of each protected attribute to its definition.
    train : int, optional
        Number of rows of the publisher's training split, which come first.
    """

    columns: tuple[str, ...]
    categories: Mapping[str, tuple[str, ...]]
    label: str
    positive: str | float
    only_incomplete: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    protected: Mapping[str, Protected] = field(default_factory=dict)
    train: int | None = None

    @property
    def features(self) -> tuple[str, ...]:
        """All columns except the label."""
        return tuple(c for c in self.columns if c != self.label)

    def is_numeric(self, column: str) -> bool:
        """Return True if a column contains numbers."""
        return column not in self.categories

    @property
    def positive_label(self) -> str:
        """Description of the label +1, such as ``income > 25,000``."""
        above = self.positive if isinstance(self.positive, str) else f"> {self.positive:,}"
        return f"{self.label} {above}"

    def positives(self, table: pl.DataFrame) -> np.ndarray:
        """Return True for each row with the label +1."""
        column = pl.col(self.label)
        is_class = isinstance(self.positive, str)
        positive = column == self.positive if is_class else column > self.positive
        return table.select(positive).to_series().to_numpy()

    def check(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return the table with canonical types and column order.

        Missing columns, and values outside the code book, raise :class:`InvalidInput`.
        """
        absent = [c for c in self.columns if c not in table.columns]
        if absent:
            raise InvalidInput(
                "columns", ", ".join(table.columns), f"also the columns {', '.join(absent)}"
            )
        table = table.select(
            pl.col(c).cast(pl.Int64 if self.is_numeric(c) else pl.String) for c in self.columns
        )
        for column, allowed in self.categories.items():
            for value in table[column].drop_nulls().unique().sort():
                arguments.choice(column, value, allowed)
        return table


def decoded(
    codes: str | pl.Expr,
    values: Sequence[str] | Mapping[int, str],
    *,
    first: int = 1,
    default: str | None = None,
) -> pl.Expr:
    """Replace the integer codes of a column by values; other codes become ``default``.

    A sequence has the values of the codes ``first``, ``first`` + 1, ...
    """
    codes = pl.col(codes) if isinstance(codes, str) else codes
    value_of_code = values if isinstance(values, Mapping) else dict(enumerate(values, first))
    return codes.replace_strict(value_of_code, default=default, return_dtype=pl.String)


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
