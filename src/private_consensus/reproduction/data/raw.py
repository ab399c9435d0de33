"""Contents of acquired data sets, their checksums, and their provenance.

Checksums do not depend on the file format: that of a table covers the names and values of its
columns, not the program or the library version that wrote the file.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import polars as pl

from private_consensus.common.errors import require
from private_consensus.common.provenance import atomic_write, write_json
from private_consensus.common.readable import DAMAGED, EXPECTED, arrays_of, read_json, readable

Raw = pl.DataFrame | Mapping[str, np.ndarray]
"""Canonical contents of a data set: a table, or named arrays of images and labels."""

MISSING_INTEGER = np.iinfo(np.int64).min
MISSING_TEXT = "\x00"


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Source, version, checksum and licence of an acquired data set.

    Parameters
    ----------
    source : {"publisher", "mirror", "surrogate"}
        Kind of the source.
    where : str
        Host of the publisher, ``mirror folder``, or ``generated here``.
    version : str
        Edition of the data set, or name of an excerpt.
    checksum : str
        SHA-256 of the canonical contents (:func:`checksum_of`).
    because : str
        Reason for the use of this source: the errors of the sources that were tried before.
    licence : str
        Terms of use.
    """

    dataset: str
    source: str
    where: str
    version: str
    checksum: str
    because: str
    licence: str

    @property
    def is_surrogate(self) -> bool:
        """True if the data are a surrogate, which figures and tables have to state."""
        return self.source == "surrogate"


def checksum_of(raw: Raw) -> str:
    """Compute the SHA-256 of canonical contents.

    That of a table covers column names in order, and values as 64-bit integers or UTF-8; that of
    arrays covers names, types, shapes and values.
    """
    digest = hashlib.sha256()
    if isinstance(raw, pl.DataFrame):
        for column in raw.iter_columns():
            digest.update(f"{column.name}\0{column.len()}\0".encode())
            digest.update(_bytes_of(column))
    else:
        for name, array in sorted(raw.items()):
            digest.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()


def _bytes_of(column: pl.Series) -> bytes:
    if column.dtype == pl.String:
        return "\n".join(column.fill_null(MISSING_TEXT)).encode()
    return column.cast(pl.Int64).fill_null(MISSING_INTEGER).to_numpy().astype("<i8").tobytes()


def write_raw(path: str | Path, raw: Raw) -> None:
    """Write the canonical contents of a data set atomically: a table as Parquet, arrays as NPZ."""
    with atomic_write(path) as temporary:
        if isinstance(raw, pl.DataFrame):
            raw.write_parquet(temporary)
        else:
            with open(temporary, "wb") as stream:
                np.savez(stream, allow_pickle=True, **raw)


def read_raw(path: str | Path) -> Raw:
    """Read canonical contents; raise :class:`InvalidInput` for a missing or damaged file."""
    if Path(path).suffix == ".parquet":
        with readable(path):
            return pl.read_parquet(path, glob=False)
    with arrays_of(path) as arrays:
        return {name: arrays[name] for name in arrays.files}


def read_provenance(path: str | Path) -> Provenance:
    """Read a ``.provenance.json`` file; raise :class:`InvalidInput` if it is missing or damaged."""
    with readable(path):
        return Provenance(**read_json(path))


def read_acquired(raw: str | Path, provenance: str | Path) -> tuple[Raw, Provenance]:
    """Read canonical contents and their provenance, and check that the checksums agree.

    A file that does not exist, is damaged, or has another checksum raises ``InvalidInput``.
    """
    contents, about = read_raw(raw), read_provenance(provenance)
    with readable(raw):
        require(checksum_of(contents) == about.checksum, str(raw), DAMAGED, EXPECTED)
    return contents, about


def write_provenance(path: str | Path, provenance: Provenance) -> None:
    """Write a ``.provenance.json`` file atomically."""
    write_json(path, asdict(provenance))
