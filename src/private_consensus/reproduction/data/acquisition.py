"""Acquire data sets from the cache, a mirror or a publisher, or sample a surrogate."""

import logging
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from private_consensus.common.errors import InvalidInput, arguments, require
from private_consensus.common.provenance import settings_hash
from private_consensus.common.readable import DAMAGE_ERRORS
from private_consensus.common.secrets import KEYS, key_in

from . import ipums
from .catalogue import DATA_SETS, Entry, Source, entry, module_of
from .downloads import Unavailable, download
from .raw import Provenance, Raw, checksum_of, read_provenance

log = logging.getLogger(__name__)

SOURCES = ("auto", "official", "surrogate")
MIRROR_KEY = "data.mirror"
CACHE_VARIABLE, MIRROR_VARIABLE = "PRIVATE_CONSENSUS_CACHE", "PRIVATE_CONSENSUS_MIRROR"


def default_cache() -> Path:
    """Return the folder in ``PRIVATE_CONSENSUS_CACHE``, or the cache folder of the user."""
    if os.environ.get(CACHE_VARIABLE):
        return Path(os.environ[CACHE_VARIABLE])
    import pooch

    return Path(pooch.os_cache("private-consensus"))


@dataclass(frozen=True, kw_only=True)
class Acquisition:
    """Settings that determine from where data sets are acquired.

    Parameters
    ----------
    source : {"auto", "official", "surrogate"}
        ``auto`` uses the first available of cache, mirror and publisher, and last a surrogate.
        ``official`` uses no surrogate, ``surrogate`` no real data.
    mirror : str, optional
        Folder; default: the value of the environment variable ``PRIVATE_CONSENSUS_MIRROR``.
    cache : path, optional
        Folder of earlier downloads; default :func:`default_cache`.
    connection_timeout_s : float
        Seconds to wait for the connection to a host, and for its next bytes.
    surrogate_rows : int, optional
        Number of records of a surrogate, for images of its training part; default: the number of
        the real data set.
    """

    source: str = "auto"
    mirror: str | None = None
    cache: Path | None = None
    connection_timeout_s: float = 5.0
    surrogate_rows: int | None = None

    def __post_init__(self):
        arguments.choice("data.source", self.source, SOURCES)
        seconds = self.connection_timeout_s
        require(seconds > 0, "data.connection_timeout_s", seconds, "a number of seconds > 0")
        rows = self.surrogate_rows
        require(rows is None or rows >= 100, "data.surrogate_rows", rows, "at least 100")
        mirror = str(self.mirror or os.environ.get(MIRROR_VARIABLE, "")) or None
        object.__setattr__(self, "mirror", mirror)

    @property
    def cache_folder(self) -> Path:
        """Folder of earlier downloads."""
        return Path(self.cache or default_cache()).expanduser()

    def check(self) -> None:
        """Raise :class:`InvalidInput` if the mirror is missing, the cache folder cannot be created,
        or a key is malformed.
        """
        cache = self.cache_folder
        try:
            cache.mkdir(parents=True, exist_ok=True)
            is_usable = os.access(cache, os.W_OK)
        except (OSError, ValueError):  # a file, a folder of another user, or an invalid name
            is_usable = False
        expected = "a folder that can be created and written to"
        require(is_usable, "data.cache", str(cache), expected)
        if self.source == "surrogate":
            return
        if self.mirror is not None:
            require_folder(self.mirror)
        for variable in KEYS:
            key_in(variable)

    def check_mirror(self, folder: Path) -> None:
        """Raise ``InvalidInput`` if existing data came from a mirror and no mirror is configured.

        Otherwise, a call without the option for the mirror would silently replace these data.
        ``folder`` has the files ``<dataset>.provenance.json`` of acquired data.
        """
        if self.source != "auto" or self.mirror is not None:
            return
        for file in sorted(folder.glob("*.provenance.json")):
            expected = (
                f"the mirror from which {file.name.partition('.')[0]} in {folder} was copied "
                "(MIRROR=folder), or data.source official or surrogate for other data"
            )
            require(read_provenance(file).source != "mirror", MIRROR_KEY, None, expected)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as plain values."""
        return {**asdict(self), "cache": str(self.cache_folder)}


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
        acquired = _from_mirror if source is about.mirror else _from_publisher
        try:
            raw, provenance = acquired(about, source, acquisition, reasons)
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


def _from_mirror(
    about: Entry, source: Source, acquisition: Acquisition, _: Sequence[str]
) -> tuple[Raw, Provenance]:
    if acquisition.mirror is None:
        raise Unavailable("no mirror is configured")
    folder = require_folder(acquisition.mirror) / source.folder
    if not folder.is_dir():
        raise Unavailable(f"the mirror has no {about.name}")
    because = "a mirror is configured, and its files have the expected checksums"
    try:
        return _read(about, source, folder, ("mirror", "mirror folder"), because)
    except Unavailable as reason:
        raise InvalidInput(MIRROR_KEY, source.folder, str(reason)) from None


def _from_publisher(
    about: Entry, source: Source, acquisition: Acquisition, reasons: Sequence[str]
) -> tuple[Raw, Provenance]:
    identity = settings_hash([source.name, source.url, source.files, source.extract])
    folder = acquisition.cache_folder / about.name / identity
    because = "; ".join(["first available source", *reasons])
    if not source.checksum:
        because = f"no checksum is published; this one is recorded; {because}"
    host = urlsplit(source.url).hostname or source.name
    try:
        if source.extract:
            ipums.download(folder, source.url, source.extract, acquisition.connection_timeout_s)
        else:
            download(folder, source.url, source.files, acquisition.connection_timeout_s)
        return _read(about, source, folder, ("publisher", host), because)
    except (Unavailable, OSError) as reason:
        raise Unavailable(f"{source.name}: {reason}") from None


def _read(
    about: Entry, source: Source, folder: Path, origin: tuple[str, str], because: str
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
    kind, where = origin
    return raw, Provenance(
        dataset=about.name,
        source=kind,
        where=where,
        version=source.version,
        checksum=checksum,
        because=because,
        licence=source.licence,
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


def require_folder(location: str) -> Path:
    """Return the folder of a mirror; raise ``InvalidInput`` if it does not exist."""
    is_folder = "\0" not in location and Path(location).is_dir()
    require(is_folder, MIRROR_KEY, location, "an existing folder")
    return Path(location)
