"""Tables with a binary label: their schema, their codes, and the encoding of their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs

from private_consensus.common.errors import InvalidInput, arguments, require

from .prepared import Prepared

if TYPE_CHECKING:
    from .preparation import Preparation

MISSING = "?"


class Protected(NamedTuple):
    """Binary protected attribute: 1 in the rows that satisfy a condition, else 0.

    ``meaning`` describes the value 1.
    """

    meaning: str
    condition: pl.Expr

    def of(self, table: pl.DataFrame) -> pl.Series:
        """Return the attribute of every row as 0 or 1; a missing value gives 0."""
        return table.select(self.condition.fill_null(False).cast(pl.Int8)).to_series()


SEX_RACE_AGE = {
    "sex": Protected("1 = male", pl.col("sex") == "Male"),
    "race": Protected("1 = white", pl.col("race") == "White"),
    "age": Protected("1 = 40 years or older", pl.col("age") >= 40),
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
    def positive_label(self) -> str:
        """Description of the label +1, such as ``income > 25,000``."""
        above = self.positive if isinstance(self.positive, str) else f"> {self.positive:,}"
        return f"{self.label} {above}"

    def positives(self, table: pl.DataFrame) -> np.ndarray:
        """Return True for each row with the label +1."""
        label, positive = table[self.label], self.positive
        return (label == positive if isinstance(positive, str) else label > positive).to_numpy()

    def check(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return the table with canonical types and column order.

        Missing columns and labels, fractions, and values outside the code book raise
        :class:`InvalidInput`.
        """
        absent = [c for c in self.columns if c not in table.columns]
        if absent:
            raise InvalidInput(
                "columns", ", ".join(table.columns), f"also the columns {', '.join(absent)}"
            )
        for column in table.select(cs.float() & cs.by_name(*self.columns)).iter_columns():
            fractions = column.filter(column % 1 != 0).to_list()  # a conversion would truncate them
            require(not fractions, column.name, fractions[:1], "whole numbers")
        table = table.select(
            pl.col(c).cast(pl.String if c in self.categories else pl.Int64) for c in self.columns
        )
        is_complete = table.height > 0 and not table[self.label].has_nulls()
        require(is_complete, self.label, None, "a label in each row, and at least one row")
        for column, allowed in self.categories.items():
            for value in table[column].drop_nulls().unique().sort():
                arguments.choice(column, value, allowed)
        return table

    def describe(self, table: pl.DataFrame) -> dict[str, Any]:
        """Return the numbers of rows and columns, and the label with its rate."""
        return {
            "rows": table.height,
            "columns": table.width - 1,
            "label": self.positive_label,
            "label_rate": float(self.positives(table).mean()),
        }

    def encode(self, spec: Preparation, table: pl.DataFrame) -> Prepared:
        """Encode a table as features before scaling, and labels -1 and +1.

        Numeric columns remain unchanged. A category becomes one 0/1 column ``attribute=value`` per
        value, or one column of codes 0, 1, .... If rows with missing values are retained, ``?`` is
        the first value of a column with missing values.
        """
        features = [c for c in self.columns if c != self.label]
        unknown = {*spec.attributes, *spec.exclude} - set(features)
        if unknown:
            expected = f"columns of {spec.dataset}"
            raise InvalidInput(f"{spec.name}.attributes", sorted(unknown)[0], expected)
        table = table.with_row_index("row")
        if spec.drop_missing:
            table = table.drop_nulls()
        blocks = {}
        for name in spec.attributes or features:
            if name not in spec.exclude:
                blocks |= self._encoded(table[name], spec)
        splits = {"all": np.arange(table.height)}
        if self.train is not None:
            is_train = (table["row"] < self.train).to_numpy()
            splits = {"train": np.flatnonzero(is_train), "test": np.flatnonzero(~is_train)}
        positive = self.positives(table)
        missing = "dropped" if spec.drop_missing else "kept; '?' is a category"
        return Prepared(
            features=np.column_stack(list(blocks.values())).astype(float),
            labels=np.where(positive, 1, -1).astype(np.int8),
            columns=tuple(blocks),
            protected={name: p.of(table).to_numpy() for name, p in self.protected.items()},
            splits=splits,
            card={
                "label": f"+1: {self.positive_label}",
                "label_rate": round(float(positive.mean()), 6),
                "protected": {name: p.meaning for name, p in self.protected.items()},
                "notes": [f"Rows with missing values are {missing}."],
            },
        )

    def _encoded(self, column: pl.Series, spec: Preparation) -> dict[str, np.ndarray]:
        """Return the features that encode a column, by name."""
        name = column.name
        if name not in self.categories:
            return {name: column.to_numpy()}
        values = self.categories[name]
        if spec.drop_missing:
            absent = self.only_incomplete.get(name, ())
            values = tuple(value for value in values if value not in absent)
        elif column.has_nulls():
            values = (MISSING, *values)
        codes = column.fill_null(MISSING).cast(pl.Enum(values)).to_physical().to_numpy()
        if spec.encoding == "ordinal":
            return {name: codes}
        return {f"{name}={value}": codes == code for code, value in enumerate(values)}


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
