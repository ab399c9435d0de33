"""Entries of ``data_sets.yaml``: titles, licences, citations and sources of data sets."""

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

from private_consensus.common import yamls
from private_consensus.common.errors import arguments
from private_consensus.common.fields import Strict, validate
from private_consensus.common.provenance import settings_hash

FOLDER = Path(__file__).parent
ENTRIES: dict[str, dict[str, Any]] = yamls.read(FOLDER / "data_sets.yaml")
DATA_SETS = tuple(ENTRIES)


class Source(Strict):
    """Mirror or publisher of a data set."""

    version: str
    """Version of the data set."""
    checksum: str = ""
    """SHA-256 of the canonical contents; empty if they are not fixed."""
    folder: str = ""
    """Name of the folder in a mirror."""
    name: str = ""
    """Name of a publisher."""
    url: str = ""
    """URL to which the names of the files are appended."""
    files: dict[str, str | None] = {}
    """Name of each file to its SHA-256, or to None if hosts compress the file differently."""
    extract: dict[str, Any] = {}
    """Extract to request from IPUMS, see :func:`.downloads.download_extract`."""


class Entry(Strict):
    """Entry of a data set in ``data_sets.yaml``."""

    name: str
    title: str
    licence: str
    """Terms of use."""
    citation: str
    needs: str = ""
    """Key or account that a user needs for the download; empty if none."""
    mirror: Source
    publishers: tuple[Source, ...]
    """Download sources, in the order in which they are tried."""
    preparations: dict[str, dict[str, Any]]
    """Keys of :class:`.Preparation` by name."""


def entry(dataset: str) -> Entry:
    """Return the entry of a data set in ``data_sets.yaml``."""
    content = ENTRIES[arguments.choice("data set", dataset, DATA_SETS)]
    return validate(Entry, {"name": dataset, **content}, f"data_sets.yaml: {dataset}.")


def module_of(dataset: str) -> ModuleType:
    """Import the module of a data set, such as ``data.adult``."""
    arguments.choice("data set", dataset, DATA_SETS)
    return importlib.import_module(f"{__package__}.{dataset}")


def aggregates(dataset: str) -> dict[str, Any]:
    """Return the published aggregates from which the surrogate of a table is sampled."""
    return yamls.read(FOLDER / "aggregates" / f"{dataset}.yaml")


def fingerprint(dataset: str) -> str:
    """Return the hash of the YAML entries of a data set, which the hash of the code excludes."""
    path = FOLDER / "aggregates" / f"{dataset}.yaml"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return settings_hash([ENTRIES[dataset], text])
