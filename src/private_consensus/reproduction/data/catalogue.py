"""Entries of ``sources.yaml``: versions, hosts, checksums, licences and citations of data sets."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from private_consensus.common import yamls
from private_consensus.common.errors import arguments
from private_consensus.common.provenance import settings_hash

FOLDER = Path(__file__).parent
DATA_SETS = ("adult", "us", "brazil", "mnist", "cifar10")


@dataclass(frozen=True, kw_only=True)
class Publisher:
    """Download source of a data set.

    Attributes
    ----------
    version, licence : str
        Version of the data set, and terms of use.
    checksum : str, optional
        SHA-256 of the canonical contents, if they are fixed.
    key : str, optional
        Environment variable with the key that the publisher requires.
    options : mapping
        Further parameters of the download.
    """

    name: str
    url: str
    version: str
    licence: str
    checksum: str | None = None
    key: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class MirrorCopy:
    """Expected copy of a data set in a mirror.

    Attributes
    ----------
    version, licence : str
        Version of the data set, and terms of use.
    folder : str
        Name of the folder in the mirror with the files of the data set.
    checksum : str
        SHA-256 of the canonical contents.
    """

    version: str
    folder: str
    checksum: str
    licence: str


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Entry of a data set in ``sources.yaml``.

    Attributes
    ----------
    publishers : tuple of Publisher
        Download sources, in the order in which they are tried.
    needs : str
        Key or account that a user needs for the download; empty if none.
    """

    name: str
    title: str
    citation: str
    mirror: MirrorCopy
    publishers: tuple[Publisher, ...]
    needs: str = ""


def entry(dataset: str) -> Entry:
    """Return the entry of a data set in ``sources.yaml``."""
    row = dict(_table()[arguments.choice("data set", dataset, DATA_SETS)])
    licence = row.pop("licence")
    row["mirror"] = MirrorCopy(**{"licence": licence, **row["mirror"]})
    row["publishers"] = tuple(
        Publisher(**{"licence": licence, **publisher}) for publisher in row["publishers"]
    )
    return Entry(name=dataset, **row)


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
    return settings_hash([_table()[dataset], text])


@cache
def _table() -> dict[str, Any]:
    return yamls.read(FOLDER / "sources.yaml")
