"""How results are written and read: whole or not at all, each with what made it."""

from __future__ import annotations

import importlib.metadata
import json
import logging
import platform
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from ..errors import InvalidInput
from ..provenance import atomic_write, files_hash, settings_hash

DRAWN = "drawn as the paper describes"
"""Source of experiments that need no data set."""

WATCHED = ("numpy", "scipy", "polars", "altair", "snakemake", "dp-accounting")


def stamp(
    settings: Any, code: str, source: str, prepared: Iterable[str | Path] = ()
) -> dict[str, str]:
    """What a result carries so that it can be told whether it is current, and what data made it.

    Parameters
    ----------
    prepared : iterable of paths
        Files of prepared data that it was made from; the stamp has their checksum.
    """
    found = {"settings": settings_hash(settings), "code": code, "source": source}
    return {**found, "data": files_hash(prepared)}


def write(frame: pl.DataFrame, path: str | Path, mark: Mapping[str, str]) -> None:
    """Write Parquet with a stamp."""
    with atomic_write(path) as part:
        frame.write_parquet(part, metadata=dict(mark))


def read(path: str | Path) -> pl.DataFrame:
    """The rows of a result, each with the source of its data."""
    with _readable(path):
        frame = pl.read_parquet(path)
    if "source" in frame.columns:
        return frame
    return frame.with_columns(source=pl.lit(mark_of(path)["source"]))


def mark_of(path: str | Path) -> dict[str, str]:
    """The stamp of a result."""
    with _readable(path):
        found = pl.read_parquet_metadata(path)
    return {key: found.get(key, "") for key in ("settings", "code", "source", "data")}


def read_all(paths: Iterable[str | Path]) -> pl.DataFrame:
    """Rows of many results; columns that only some have are empty in the others."""
    return pl.concat([read(path) for path in paths], how="diagonal_relaxed")


def source_of(prepared: Iterable[Any]) -> str:
    """What prepared data sets say of their origin, in words for a figure."""
    found = [f"{p.provenance.dataset} ({p.provenance.source})" for p in prepared]
    return "; ".join(dict.fromkeys(found)) or DRAWN


def sources(paths: Iterable[str | Path]) -> str:
    """All sources of several results, each once."""
    found = [mark_of(path)["source"] for path in paths]
    parts = dict.fromkeys(part for source in found for part in source.split("; "))
    return "; ".join(parts)


@contextmanager
def _readable(path: str | Path) -> Iterator[None]:
    try:
        yield
    except pl.exceptions.ComputeError:
        raise InvalidInput(
            str(path), "a damaged file", "a result of this workflow: delete it and call again"
        ) from None


@contextmanager
def logged(path: str | Path, settings: Any) -> Iterator[None]:
    """Log to a file: settings and versions first, wall time last, an error in full."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(
        filename=path,
        filemode="w",
        level=logging.INFO,
        force=True,
        format="%(asctime)s %(levelname)s %(message)s",
    )
    logging.info("settings %s", json.dumps(settings, sort_keys=True, default=str))
    logging.info("versions %s", versions())
    begin = time.perf_counter()
    try:
        yield
    except Exception:
        logging.exception("failed")
        raise
    logging.info("done in %.2f s", time.perf_counter() - begin)


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that numbers depend on."""
    return {
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in WATCHED},
    }
