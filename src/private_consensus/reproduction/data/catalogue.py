"""Entries of ``data_sets.yaml``: titles, licences, citations and sources of data sets."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from private_consensus.common import yamls
from private_consensus.common.errors import arguments
from private_consensus.common.provenance import settings_hash

FOLDER = Path(__file__).parent
ENTRIES: dict[str, dict[str, Any]] = yamls.read(FOLDER / "data_sets.yaml")
DATA_SETS = tuple(ENTRIES)


@dataclass(frozen=True, kw_only=True)
class Source:
    """Mirror or publisher of a data set.

    Attributes
    ----------
    version : str
        Version of the data set.
    checksum : str
        SHA-256 of the canonical contents; empty if they are not fixed.
    folder : str
        Name of the folder in a mirror.
    name, url : str
        Name of a publisher, and URL to which the names of its files are appended.
    files : mapping
        Name of each file of a publisher to its SHA-256, or to None if hosts compress the file
        differently.
    extract : mapping
        Extract to request from IPUMS, see :func:`.downloads.download_extract`.
    """

    version: str
    checksum: str = ""
    folder: str = ""
    name: str = ""
    url: str = ""
    files: Mapping[str, str | None] = field(default_factory=dict)
    extract: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Entry of a data set in ``data_sets.yaml``.

    Attributes
    ----------
    licence : str
        Terms of use.
    needs : str
        Key or account that a user needs for the download; empty if none.
    publishers : tuple of Source
        Download sources, in the order in which they are tried.
    """

    name: str
    title: str
    licence: str
    citation: str
    needs: str
    mirror: Source
    publishers: tuple[Source, ...]


def entry(dataset: str) -> Entry:
    """Return the entry of a data set in ``data_sets.yaml``."""
    content = ENTRIES[arguments.choice("data set", dataset, DATA_SETS)]
    return Entry(
        name=dataset,
        **{key: content[key] for key in ("title", "licence", "citation")},
        needs=content.get("needs", ""),
        mirror=Source(**content["mirror"]),
        publishers=tuple(Source(**publisher) for publisher in content["publishers"]),
    )


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
