"""Acquire data sets from the cache, a mirror or a publisher, or sample a surrogate."""

import logging
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import numpy as np
from pydantic import Field

from private_consensus.common.errors import InvalidInput, require
from private_consensus.common.fields import Number, Strict, Whole
from private_consensus.common.provenance import checksums, settings_hash
from private_consensus.common.readable import DAMAGE_ERRORS
from private_consensus.common.secrets import ipums_key

from .catalogue import DATA_SETS, Entry, Source, entry, module_of
from .downloads import Unavailable, download, download_extract
from .raw import Provenance, Raw, checksum_of, read_provenance

log = logging.getLogger(__name__)

MIRROR_VARIABLE = "PRIVATE_CONSENSUS_MIRROR"


class Acquisition(Strict):
    """Sources of the data sets."""

    source: Literal["auto", "official", "surrogate"] = "auto"
    """auto: the first available of cache, mirror, publisher and surrogate; official: the same, but
    no surrogate; surrogate: synthetic records sampled from published marginals, not downloaded."""
    mirror: str | None = None
    """Folder with copies of the publishers' files; default: ``PRIVATE_CONSENSUS_MIRROR``."""
    cache: str = Field(default=".cache/private-consensus", min_length=1)
    """Folder for downloaded files."""
    connection_timeout_s: Number = Field(default=5.0, gt=0, le=86400)
    """Seconds to wait for a host to connect, and for its next bytes."""
    surrogate_rows: Whole | None = Field(default=None, ge=1000, le=10_000_000)
    """Number of records of a surrogate, for images of its training part; default: as many as the
    data set has."""

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, with the mirror of the environment."""
        return self.model_dump() | {
            "mirror": self.mirror or os.environ.get(MIRROR_VARIABLE) or None
        }

    @property
    def cache_folder(self) -> Path:
        """Folder of earlier downloads."""
        return Path(self.cache).expanduser()

    def mirror_folder(self) -> Path | None:
        """Return the folder of the mirror, or None if none is configured.

        A folder that does not exist raises :class:`InvalidInput`.
        """
        location = self.to_dict()["mirror"]
        if location is None:
            return None
        require(Path(location).is_dir(), "data.mirror", location, "an existing folder")
        return Path(location)

    def mirror_checksums(self, dataset: str) -> dict[str, str]:
        """Return the SHA-256 checksums of the files of a data set in the mirror, by path."""
        mirror = None if self.source == "surrogate" else self.mirror_folder()
        if mirror is None:
            return {}
        folder = mirror / entry(dataset).mirror.folder
        return checksums(filter(Path.is_file, folder.rglob("*")), folder)

    def check(self) -> None:
        """Raise :class:`InvalidInput` if the mirror is missing, the cache folder cannot be created,
        or the key of IPUMS is malformed.
        """
        cache = self.cache_folder
        try:
            cache.mkdir(parents=True, exist_ok=True)
            is_usable = os.access(cache, os.W_OK)
        except (OSError, ValueError):  # a file, a folder of another user, or an invalid name
            is_usable = False
        expected = "a folder that can be created and written to"
        require(is_usable, "data.cache", str(cache), expected)
        if self.source != "surrogate":
            self.mirror_folder()
            ipums_key()

    def check_mirror(self, folder: Path) -> None:
        """Raise ``InvalidInput`` if existing data came from a mirror and no mirror is configured.

        Otherwise, a call without the option for the mirror would silently replace these data.
        ``folder`` has the files ``<dataset>.provenance.json`` of acquired data.
        """
        if self.source != "auto" or self.mirror_folder() is not None:
            return
        for file in sorted(folder.glob("*.provenance.json")):
            expected = (
                f"the mirror from which {file.name.partition('.')[0]} in {folder} was copied "
                "(MIRROR=folder), or data.source official or surrogate for other data"
            )
            require(read_provenance(file).source != "mirror", "data.mirror", None, expected)


def acquire(dataset: str, acquisition: Acquisition, *, seed: int = 0) -> tuple[Raw, Provenance]:
    """Return the contents of a data set in canonical form, and their provenance.

    They are a table in the canonical schema, or images and labels. Real data do not depend on the
    seed of a surrogate. The provenance lists, in ``because``, the sources that were not available.
    A configured mirror that is missing or has wrong files, and an ``official`` source without an
    available source raise ``InvalidInput``.
    """
    about = entry(dataset)
    if acquisition.source == "surrogate":
        return _surrogate(about, acquisition, seed, "data.source is surrogate")
    reasons: list[str] = []
    for source in (about.mirror, *about.publishers):
        try:
            if source is about.mirror:
                raw, provenance = _from_mirror(about, acquisition)
            else:
                raw, provenance = _from_publisher(about, source, acquisition, reasons)
        except Unavailable as reason:
            log.info("%s: %s", dataset, reason)
            reasons.append(str(reason))
        else:
            log.info("%s: %s, %s", dataset, provenance.where, provenance.because)
            return raw, provenance
    because = "; ".join(reasons)
    if acquisition.source == "official":
        raise InvalidInput(
            "data.source",
            f"official for {dataset}",
            f"a reachable source, or data.source auto to allow a surrogate ({because})",
        )
    log.warning("%s: a SURROGATE replaces the real data, because %s", dataset, because)
    return _surrogate(about, acquisition, seed, because)


def _from_mirror(about: Entry, acquisition: Acquisition) -> tuple[Raw, Provenance]:
    source, mirror = about.mirror, acquisition.mirror_folder()
    if mirror is None:
        raise Unavailable("no mirror is configured")
    if not (mirror / source.folder).is_dir():
        raise Unavailable(f"the mirror has no {about.name}")
    because = "a mirror is configured"
    if source.checksum:
        because += ", and its files have the expected checksums"
    try:
        return _read(about, source, mirror / source.folder, "mirror", "mirror folder", because)
    except Unavailable as reason:
        raise InvalidInput("data.mirror", source.folder, str(reason)) from None


def _from_publisher(
    about: Entry, source: Source, acquisition: Acquisition, reasons: list[str]
) -> tuple[Raw, Provenance]:
    identity = settings_hash([source.name, source.url, source.files, source.extract])
    folder = acquisition.cache_folder / about.name / identity
    timeout_s = acquisition.connection_timeout_s
    because = "; ".join(["first available source", *reasons])
    if not source.checksum:
        because = f"no checksum is published; this one is recorded; {because}"
    try:
        if source.extract:
            download_extract(folder, source.url, source.extract, timeout_s)
        else:
            download(folder, source.url, source.files, timeout_s)
        host = str(urlsplit(source.url).hostname)
        return _read(about, source, folder, "publisher", host, because)
    except (Unavailable, OSError) as reason:
        raise Unavailable(f"{source.name}: {reason}") from None


def _read(
    about: Entry, source: Source, folder: Path, kind: str, where: str, because: str
) -> tuple[Raw, Provenance]:
    """Read the files of a source; raise ``Unavailable`` for damaged or unexpected contents."""
    try:
        raw = module_of(about.name).read(folder)
    except DAMAGE_ERRORS as error:
        reason = f"complete files of {about.name} ({type(error).__name__}: {error})"
        raise Unavailable(reason) from None
    checksum = checksum_of(raw)
    if source.checksum not in ("", checksum):
        raise Unavailable(f"contents with checksum {source.checksum}, not {checksum} (SHA-256)")
    return raw, Provenance(
        dataset=about.name,
        source=kind,
        where=where,
        version=source.version,
        checksum=checksum,
        because=because,
        licence=about.licence,
    )


def _surrogate(
    about: Entry, acquisition: Acquisition, seed: int, because: str
) -> tuple[Raw, Provenance]:
    key = (DATA_SETS.index(about.name), 0x5E)
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
    raw = module_of(about.name).surrogate(acquisition.surrogate_rows, generator)
    return raw, Provenance(
        dataset=about.name,
        source="surrogate",
        where="generated here",
        version=f"surrogate, seed {seed}",
        checksum=checksum_of(raw),
        because=because,
        licence="made from aggregates; contains no record",
    )


def summary(acquisition: Acquisition) -> list[dict[str, Any]]:
    """Acquire all data sets and describe each of them in a row.

    It has size, label and its rate, source and reason, checksum, licence, requirements and
    preparations.
    """
    rows = []
    for name in DATA_SETS:
        about = entry(name)
        raw, provenance = acquire(name, acquisition)
        rows.append(
            {
                "title": about.title,
                **module_of(name).SCHEMA.describe(raw),
                **asdict(provenance),
                "needs": about.needs,
                "preparations": list(about.preparations),
            }
        )
    return rows
