"""Prepared data sets: arrays of features and labels with their data card, as one NPZ file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from private_consensus.common.errors import require
from private_consensus.common.provenance import atomic_write
from private_consensus.common.readable import arrays_of


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """A prepared data set.

    Parameters
    ----------
    features : ndarray, shape (rows, dim)
        float64; float32 for images.
    labels : ndarray of int8, shape (rows,)
        -1 and +1; for images the class 0..9.
    columns : tuple of str
        Feature names; a one-hot column is ``attribute=value``.
    protected : mapping of str to ndarray of int8, shape (rows,)
        Binary protected attributes; the card states the meaning of 1.
    splits : mapping of str to ndarray of int
        Row indices of each split by the publisher, for example ``train`` and ``test``.
    card : dict
        Data card, a JSON object without records: fields of the provenance, ``title`` and
        ``citation`` of the data set, name of the ``preparation``, shape (``rows``, ``dim``), names
        of ``columns``, meaning of the ``label`` and rate of +1 or of the most frequent class
        (``label_rate``), sizes of ``splits``, meaning of 1 of each ``protected`` attribute, and
        ``notes`` on the preparation and its effect on privacy.
    """

    features: np.ndarray
    labels: np.ndarray
    columns: tuple[str, ...]
    protected: Mapping[str, np.ndarray]
    splits: Mapping[str, np.ndarray]
    card: dict[str, Any]

    def __post_init__(self):
        is_finite = bool(np.isfinite(self.features).all())
        name = self.card.get("preparation", "data")
        require(is_finite, f"prepared.{name}.features", "nan or inf", "finite numbers")

    def columns_of(self, *attributes: str) -> np.ndarray:
        """Return the indices of the feature columns that encode some attributes."""
        return np.array(
            [i for i, c in enumerate(self.columns) if c.partition("=")[0] in attributes], dtype=int
        )

    def save(self, path: str | Path) -> None:
        """Write the data set to one ``.npz`` file atomically."""
        arrays = {
            "features": self.features,
            "labels": self.labels,
            "columns": np.array(self.columns),
            "card": np.array(json.dumps(self.card, sort_keys=True)),
            **{f"protected/{name}": values for name, values in self.protected.items()},
            **{f"split/{name}": rows for name, rows in self.splits.items()},
        }
        with atomic_write(path) as temporary, open(temporary, "wb") as stream:
            np.savez(stream, allow_pickle=True, **arrays)

    @classmethod
    def load(cls, path: str | Path) -> Prepared:
        """Read a data set that :meth:`save` has written; refuse a missing or damaged file."""
        with arrays_of(path) as arrays:
            return cls(
                features=arrays["features"],
                labels=arrays["labels"],
                columns=tuple(arrays["columns"].tolist()),
                protected=_under("protected/", arrays),
                splits=_under("split/", arrays),
                card=json.loads(str(arrays["card"])),
            )


def _under(prefix: str, arrays: np.lib.npyio.NpzFile) -> dict[str, np.ndarray]:
    return {n.removeprefix(prefix): arrays[n] for n in arrays.files if n.startswith(prefix)}
