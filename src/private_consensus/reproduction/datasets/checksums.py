"""Checksums of the contents of data sets, independent of the file format.

The checksum of a table covers the names and values of its columns. It does not depend on the
program or the library version that wrote the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
import polars as pl

Raw = pl.DataFrame | Mapping[str, np.ndarray]
"""Canonical contents of a data set: a table, or named arrays of images and labels."""

MISSING_INTEGER = np.iinfo(np.int64).min
MISSING_TEXT = "\x00"


def of_raw(raw: Raw) -> str:
    """Compute the SHA-256 of a canonical table or of named arrays."""
    return of_table(raw) if isinstance(raw, pl.DataFrame) else of_arrays(raw)


def of_table(table: pl.DataFrame) -> str:
    """Compute the SHA-256 of a table: column names in order, values as 64-bit numbers or UTF-8."""
    digest = hashlib.sha256()
    for column in table.iter_columns():
        digest.update(f"{column.name}\0{column.len()}\0".encode())
        digest.update(_bytes_of(column))
    return digest.hexdigest()


def of_arrays(arrays: Mapping[str, np.ndarray]) -> str:
    """Compute the SHA-256 of named arrays: name, type, shape and little-endian values."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        digest.update(array.data)
    return digest.hexdigest()


def _bytes_of(column: pl.Series) -> bytes:
    if column.dtype == pl.String:
        return "\n".join(column.fill_null(MISSING_TEXT).to_list()).encode()
    if column.dtype.is_integer():
        values = column.cast(pl.Int64).fill_null(MISSING_INTEGER)
        return values.to_numpy().astype("<i8").tobytes()
    return column.cast(pl.Float64).fill_null(np.nan).to_numpy().astype("<f8").tobytes()
