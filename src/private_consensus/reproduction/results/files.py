"""Write and read results; each file is written atomically and contains its provenance."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from private_consensus.common.errors import InvalidInput, require
from private_consensus.common.provenance import (
    atomic_write,
    changed,
    checksums,
    files_hash,
    settings_hash,
)
from private_consensus.common.readable import DAMAGED, EXPECTED, readable

DRAWN = "synthetic data, sampled as described"
"""Source of experiments that need no data set."""
UNKNOWN = "sha256:" + "0" * 64
"""Text in the place of a result's own checksum when the checksum is computed."""


def stamp(
    settings: Any, code: str, source: str, prepared: Iterable[str | Path] = ()
) -> dict[str, str]:
    """Return the provenance of a result: hashes of settings and code, source, and data.

    ``data`` is the checksum of the files of prepared data from which the result was computed.
    """
    hashes = {"settings": settings_hash(settings), "code": code, "source": source}
    return {**hashes, "data": files_hash(prepared)}


def write(
    frame: pl.DataFrame,
    path: str | Path,
    provenance: Mapping[str, str],
    companions: Iterable[str] = (),
) -> None:
    """Write a result as Parquet, with its provenance and the checksums of this and other files.

    ``companions`` are further files of the result that the same job has written, such as the
    drawing of a figure. Levels of Zstandard are at most 22; a high one is slow.
    """
    files = json.dumps(checksums(companions, Path(path).parent))
    with atomic_write(path) as temporary:
        metadata = {**provenance, "files": files, "checksum": UNKNOWN}
        frame.write_parquet(temporary, metadata=metadata)
        before, _, after = temporary.read_bytes().rpartition(UNKNOWN.encode())
        temporary.write_bytes(before + _checksum(before, after) + after)


def damaged(path: str | Path) -> list[str]:
    """Return the damaged files of a result: the file itself and its companions.

    A file is damaged if it cannot be read, or if its content differs from its checksum.
    """
    try:
        with readable(path):
            if not _is_whole(Path(path)):
                return [str(path)]
            files = pl.read_parquet_metadata(path).get("files", "{}")
            return changed(json.loads(files), Path(path).parent)
    except InvalidInput:
        return [str(path)]


def rows_of(path: str | Path) -> pl.DataFrame:
    """Read the rows of a result; raise ``InvalidInput`` if the file is missing or damaged.

    The checksum is needed because a damaged Parquet file may still be readable.
    """
    with readable(path):
        require(_is_whole(Path(path)), str(path), DAMAGED, EXPECTED)
        return pl.read_parquet(path, glob=False)


def _is_whole(path: Path) -> bool:
    """Return True if a result has its checksum, before the damaged file is parsed."""
    content = path.read_bytes()
    written = list(re.finditer(rb"sha256:[0-9a-f]{64}", content))
    if not written:
        return False
    start, end = written[-1].span()
    return content[start:end] == _checksum(content[:start], content[end:])


def _checksum(before: bytes, after: bytes) -> bytes:
    """Compute the checksum of a file from the bytes before and after its own checksum."""
    digest = hashlib.sha256(before + UNKNOWN.encode() + after).hexdigest()
    return f"sha256:{digest}".encode()


def read(path: str | Path) -> pl.DataFrame:
    """Read the rows of a result, with the source of the data in the column ``source``."""
    frame, source = rows_of(path), pl.lit(provenance_of(path)["source"])
    return frame if "source" in frame.columns else frame.with_columns(source=source)


def provenance_of(path: str | Path) -> dict[str, str]:
    """Return the provenance of a result, as :func:`stamp` defines it."""
    with readable(path):
        metadata = pl.read_parquet_metadata(path)
    return {key: metadata.get(key, "") for key in ("settings", "code", "source", "data")}


def read_all(paths: Iterable[str | Path]) -> pl.DataFrame:
    """Read the rows of several results; a column that a result lacks is null in its rows."""
    return pl.concat([pl.DataFrame(), *map(read, paths)], how="diagonal_relaxed")


def source_of(prepared: Iterable[Any]) -> str:
    """Describe the data sets of a result and their sources, such as ``adult (mirror)``."""
    origins = [f"{p.card['dataset']} ({p.card['source']})" for p in prepared]
    return "; ".join(dict.fromkeys(origins)) or DRAWN


def sources(paths: Iterable[str | Path]) -> str:
    """Return the distinct data sources of several results, joined by semicolons."""
    origins = [provenance_of(path)["source"] for path in paths]
    distinct = dict.fromkeys(origin for source in origins for origin in source.split("; "))
    return "; ".join(distinct)
