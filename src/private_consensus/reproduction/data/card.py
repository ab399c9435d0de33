"""Data cards: descriptions of prepared data sets, without records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter

from .raw import Provenance


@dataclass(frozen=True, kw_only=True)
class Card:
    """Description of a prepared data set.

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
