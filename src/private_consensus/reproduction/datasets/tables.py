"""Schemas of canonical tables: numeric and categorical columns, and a binary label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from private_consensus.common.errors import InvalidInput, arguments

MISSING = "?"


@dataclass(frozen=True, kw_only=True)
class Protected:
    """Binary protected attribute: 1 if ``column`` is one of ``ones`` or at least ``above``, else 0.

    ``meaning`` describes the value 1.
    """

    column: str
    meaning: str
    ones: tuple[str | int, ...] = ()
    above: float | None = None

    def of(self, table: pl.DataFrame) -> pl.Series:
        """Return the attribute of every row as 0 or 1; a missing value gives 0."""
        column = pl.col(self.column)
        is_protected = column.is_in(list(self.ones)) if self.above is None else column >= self.above
        return table.select(is_protected.fill_null(False).cast(pl.Int8)).to_series()


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
