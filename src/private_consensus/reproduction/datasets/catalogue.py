"""Table of sources ``sources.yaml``: versions, hosts, checksums, licences and citations."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import ModuleType
from typing import Any

from private_consensus.common import yamls
from private_consensus.common.errors import arguments
from private_consensus.common.provenance import settings_hash

DATA_SETS = ("adult", "us", "brazil", "mnist", "cifar10")


@dataclass(frozen=True, kw_only=True)
class Publisher:
    """Download source of a publisher; ``key`` is the environment variable of a required key."""

    name: str
    url: str
    version: str
    licence: str
    checksum: str | None = None
    key: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class MirrorCopy:
    """Expected contents of a mirror: version, licence, files and their checksums."""

    version: str
    files: Mapping[str, Mapping[str, str]]
    checksum: str
    licence: str


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Row of the table of sources; ``needs`` describes what a reader needs for the data set."""

    name: str
    title: str
    citation: str
    mirror: MirrorCopy
    publishers: tuple[Publisher, ...]
    needs: str = ""


def entry(dataset: str) -> Entry:
    """Return the row of one data set."""
    row = dict(_table()[arguments.choice("data set", dataset, DATA_SETS)])
    licence = row.pop("licence")
    row["mirror"] = MirrorCopy(**{"licence": licence, **row["mirror"]})
    row["publishers"] = tuple(
        Publisher(**{"licence": licence, **publisher}) for publisher in row["publishers"]
    )
    return Entry(name=dataset, **row)


def module_of(dataset: str) -> ModuleType:
    """Import the module of one data set; a change of it affects no other data set."""
    arguments.choice("data set", dataset, DATA_SETS)
    return importlib.import_module(f"{__package__}.{dataset}")


def aggregates(dataset: str) -> dict[str, Any]:
    """Return the published aggregates from which the surrogate of a table is sampled."""
    return yamls.read(files(__package__).joinpath("aggregates", f"{dataset}.yaml"))


def fingerprint(dataset: str) -> str:
    """Return the hash of the YAML entries of a data set, which the hash of code does not cover."""
    path = files(__package__).joinpath("aggregates", f"{dataset}.yaml")
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return settings_hash([_table()[dataset], text])


@cache
def _table() -> dict[str, Any]:
    return yamls.read(files(__package__).joinpath("sources.yaml"))
