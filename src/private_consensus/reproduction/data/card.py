"""Data cards: description and summary statistics of prepared data sets, without records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl
from pydantic import TypeAdapter

from .raw import Provenance
from .tables import MISSING, Schema

MAX_HISTOGRAMS = 6
"""Largest number of features with a histogram on the card."""

MAX_BARS = 12
"""Largest number of bars of a histogram."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """Description and summary statistics of a prepared data set.

    Parameters
    ----------
    rows, dim : int
        Shape of the features.
    columns : tuple of str
        Names of the features; for images one name for all.
    label : str
        Meaning of +1, or the classes.
    label_rate : float
        Fraction of +1; for images of the most frequent class.
    provenance : Provenance
        Source, host, checksum and licence of the data, and the reason for this source.
    citation : str
        How to cite the data.
    notes : tuple of str
        Steps of the preparation and their effect on privacy.
    protected : mapping
        Name of a protected attribute to the meaning of 1.
    marginals : mapping
        Column to ``{"values": [...], "counts": [...]}`` or ``{"edges": [...], "counts": [...]}``.
    pictures : mapping
        Class to its mean image: rows of grey or RGB values from 0 to 255.
    """

    dataset: str
    title: str
    preparation: str
    rows: int
    dim: int
    columns: tuple[str, ...]
    label: str
    label_rate: float
    splits: Mapping[str, int]
    provenance: Provenance
    citation: str
    notes: tuple[str, ...]
    protected: Mapping[str, str] = field(default_factory=dict)
    marginals: Mapping[str, Mapping[str, list[Any]]] = field(default_factory=dict)
    pictures: Mapping[str, list[Any]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; those of the provenance are also keys of the top level."""
        values = asdict(self)
        origin = values["provenance"]
        return {
            **values,
            "host": origin["where"],
            **{key: origin[key] for key in ("source", "because", "checksum", "licence", "version")},
            "publishable": self.provenance.publishable,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Card:
        """Build a card from the values of :meth:`to_dict`."""
        return TypeAdapter(cls).validate_python(values)


def marginals_of(table: pl.DataFrame, schema: Schema) -> dict[str, dict[str, list[Any]]]:
    """Compute histograms of the label and of the first few features, the label first."""
    columns = [schema.label, *[c for c in schema.features if c in table.columns]][
        : MAX_HISTOGRAMS + 1
    ]
    return {
        name: _bars(table[name]) if schema.is_numeric(name) else _counts(table[name])
        for name in columns
    }


def _bars(column: pl.Series) -> dict[str, list[Any]]:
    values = column.drop_nulls().to_numpy()
    counts, edges = np.histogram(values, MAX_BARS)
    return {"edges": [round(float(e), 3) for e in edges], "counts": [int(c) for c in counts]}


def _counts(column: pl.Series) -> dict[str, list[Any]]:
    counts = (
        column.fill_null(MISSING)
        .value_counts()
        .sort(["count", column.name], descending=[True, False])
    )
    largest = counts.head(MAX_BARS)
    remainder = int(counts[MAX_BARS:]["count"].sum())
    values, numbers = largest[column.name].to_list(), largest["count"].to_list()
    if remainder:
        values, numbers = [*values, "other"], [*numbers, remainder]
    return {"values": values, "counts": numbers}
