"""Acquiring a data set: cache, mirror, publisher, and last, never in silence, a surrogate."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import polars as pl

from private_consensus.common.errors import InvalidInput, require
from private_consensus.common.provenance import atomic_write, settings_hash, write_json
from private_consensus.common.readable import DAMAGED, EXPECTED, arrays_of, read_json, readable
from private_consensus.common.secrets import KEYS, key_in, mirror_location, redacted

from . import checksums
from .catalogue import DATA_SETS, Entry, entry, module_of
from .downloads import Downloads, locked
from .mirror import Mirror, check_location
from .origin import Provenance
from .patience import Patience, Unavailable
from .routes import Access, Raw, Route

log = logging.getLogger(__name__)

SOURCES = ("auto", "official", "surrogate")
CACHE_VARIABLE = "PRIVATE_CONSENSUS_CACHE"


def default_cache() -> Path:
    """The user's cache folder, unless ``PRIVATE_CONSENSUS_CACHE`` names another."""
    if os.environ.get(CACHE_VARIABLE):
        return Path(os.environ[CACHE_VARIABLE])
    import pooch

    return Path(pooch.os_cache("private-consensus"))


@dataclass(frozen=True, kw_only=True)
class Acquisition:
    """Sources of data sets and their order.

    Parameters
    ----------
    source : {"auto", "official", "surrogate"}
        ``official`` accepts mirror and publisher only; ``surrogate`` generates at once.
    mirror : str, optional
        Folder path or http(s)/file URL; else the variable ``PRIVATE_CONSENSUS_MIRROR``, which
        alone may hold a URL with credentials.
    cache : path, optional
        Folder of what was downloaded before; default :func:`default_cache`.
    patience : float
        Seconds in all that unreachable hosts may cost.
    surrogate_rows : int, optional
        Rows of a surrogate (images: of its training part); default the size of the real one.
    """

    source: str = "auto"
    mirror: str | None = None
    cache: Path | None = None
    patience: float = 10.0
    surrogate_rows: int | None = None

    def __post_init__(self):
        require(self.source in SOURCES, "data.source", self.source, f"one of {', '.join(SOURCES)}")
        require(self.patience >= 0, "data.patience", self.patience, "a number of seconds >= 0")
        rows = self.surrogate_rows
        require(rows is None or rows >= 100, "data.surrogate_rows", rows, "at least 100")
        mirror = None if self.mirror is None else str(self.mirror)
        object.__setattr__(self, "mirror", mirror_location(mirror))
        object.__setattr__(self, "cache", Path(self.cache or default_cache()).expanduser())

    def check(self) -> None:
        """Raise :class:`InvalidInput` for a mirror that does not exist, a cache that could be no
        folder, or a key that is none."""
        _require_folder(self.cache)
        if self.source == "surrogate":
            return
        if self.mirror is not None:
            check_location(self.mirror)
        for variable in KEYS:
            key_in(variable)

    def check_kept(self, folder: Path) -> None:
        """Refuse to replace data of a mirror by others only because none is named any more.

        Parameters
        ----------
        folder : Path
            With ``<dataset>.provenance.json`` of data that are there.

        Raises
        ------
        InvalidInput
            With key ``data.mirror``.
        """
        if self.source != "auto" or self.mirror is not None:
            return
        for file in sorted(folder.glob("*.provenance.json")):
            expected = (
                f"the mirror that {file.name.partition('.')[0]} in {folder} came from "
                "(MIRROR=folder), or data.source official or surrogate for others"
            )
            require(read_provenance(file).source != "mirror", "data.mirror", None, expected)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with the mirror that the environment names; the arguments again.

        Credentials in a mirror's URL are left out: who makes an acquisition of these values has
        them in its environment.
        """
        return {
            "source": self.source,
            "mirror": None if self.mirror is None else redacted(self.mirror),
            "cache": str(self.cache),
            "patience": self.patience,
            "surrogate_rows": self.surrogate_rows,
        }


def acquire(dataset: str, acquisition: Acquisition, *, seed: int = 0) -> tuple[Raw, Provenance]:
    """Contents of a data set in their canonical form, and where they came from.

    Parameters
    ----------
    dataset : str
        One of ``DATA_SETS``.
    acquisition : Acquisition
        Where to look.
    seed : int
        Of the surrogate; real data do not depend on it.

    Returns
    -------
    raw : polars.DataFrame or dict of ndarray
        Table in the canonical schema, or images and labels.
    provenance : Provenance
        Its ``because`` tells what was tried.

    Raises
    ------
    InvalidInput
        If a mirror that was named is missing or wrong, or with ``official`` no source is left.
    """
    about = entry(dataset)
    if acquisition.source == "surrogate":
        return _surrogate(about, acquisition, seed, "data.source is surrogate")
    tried: list[str] = []
    for attempt in _sources(about, acquisition):
        try:
            raw, provenance = attempt(tried)
        except Unavailable as reason:
            log.info("%s: %s", dataset, reason)
            tried.append(str(reason))
        else:
            log.info("%s: %s, %s", dataset, provenance.where, provenance.because)
            return raw, provenance
    because = "; ".join(tried)
    if acquisition.source == "official":
        raise InvalidInput(
            "data.source",
            f"official for {dataset}",
            f"a reachable source, or data.source auto for a surrogate ({because})",
        )
    log.warning("%s: a SURROGATE stands in for the real data, because %s", dataset, because)
    return _surrogate(about, acquisition, seed, because)


def _sources(about: Entry, acquisition: Acquisition) -> Iterator[Any]:
    """Attempts in order; each takes the reasons so far and returns or raises ``Unavailable``."""
    access = _access(acquisition)
    if acquisition.mirror is None:
        yield _unavailable("no mirror is named")
    else:
        mirror = Mirror(
            location=acquisition.mirror, files=about.mirror.files, downloads=access.downloads
        )
        check_location(acquisition.mirror)
        if about.mirror.checksum:
            yield lambda tried: _cached(about, acquisition, about.mirror.checksum)
        yield lambda tried: _from_mirror(about, mirror)
    for route in module_of(about.name).routes(about):
        if not route.has_key:
            yield _unavailable(f"{route.publisher.name} needs a key in {route.key}")
            continue
        yield lambda tried, route=route: _from_publisher(about, route, access, acquisition, tried)


def _access(acquisition: Acquisition) -> Access:
    patience = Patience(acquisition.patience, acquisition.cache / "unreachable.json")
    return Access(
        patience=patience,
        downloads=Downloads(folder=acquisition.cache / "downloads", patience=patience),
    )


def _unavailable(reason: str) -> Any:
    def attempt(tried: list[str]):
        raise Unavailable(reason)

    return attempt


def _from_mirror(about: Entry, mirror: Mirror) -> tuple[Raw, Provenance]:
    if not mirror.has():
        raise Unavailable(f"the mirror has no {about.name}")
    raw = module_of(about.name).from_mirror(mirror)
    return raw, Provenance(
        dataset=about.name,
        source="mirror",
        where=mirror.where,
        version=about.mirror.version,
        checksum=checksums.of_raw(raw),
        because="a mirror is named, and every file in it has the checksum expected",
        licence=about.mirror.licence,
    )


def _from_publisher(
    about: Entry, route: Route, access: Access, acquisition: Acquisition, tried: list[str]
) -> tuple[Raw, Provenance]:
    identity = settings_hash([about.name, route.publisher.name, route.publisher.urls])
    cached = _cache_folder(about, acquisition, route.publisher.checksum or identity)
    downloads = replace(access.downloads, folder=access.downloads.folder / identity)
    # Whoever comes second waits, and then finds the cache filled.
    with locked(access.downloads.folder / f"{identity}.lock"):
        with suppress(Unavailable):
            return _read_cache(cached, about.name, route.publisher.checksum)
        fetched = _fetched(about, route, replace(access, downloads=downloads), tried)
        _write_cache(cached, *fetched)
        return fetched


def _fetched(
    about: Entry, route: Route, access: Access, tried: list[str]
) -> tuple[Raw, Provenance]:
    publisher = route.publisher
    try:
        raw = route.fetch(access, publisher)
    except (Unavailable, InvalidInput, pl.exceptions.PolarsError) as reason:
        raise Unavailable(f"{publisher.name}: {reason}") from None
    # Right or wrong, the files have served: the cache keeps the canonical contents.
    shutil.rmtree(access.downloads.folder, ignore_errors=True)
    checksum = checksums.of_raw(raw)
    if publisher.checksum and checksum != publisher.checksum:
        raise Unavailable(
            f"{publisher.name}: contents have checksum {checksum}, expected {publisher.checksum}"
        )
    first = "" if publisher.checksum else "no checksum is published, so the first one is noted; "
    return raw, Provenance(
        dataset=about.name,
        source="publisher",
        where=urlsplit(publisher.urls[0]).hostname or publisher.name,
        version=publisher.version,
        checksum=checksum,
        because=first + "; ".join(["first open way", *tried]),
        licence=publisher.licence,
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
        checksum=checksums.of_raw(raw),
        because=because,
        licence="made from aggregates; contains no record",
    )


def _cache_folder(about: Entry, acquisition: Acquisition, identity: str) -> Path:
    return acquisition.cache / about.name / identity[:16]


def _cached(about: Entry, acquisition: Acquisition, checksum: str) -> tuple[Raw, Provenance]:
    return _read_cache(_cache_folder(about, acquisition, checksum), about.name, checksum)


def _read_cache(folder: Path, dataset: str, pinned: str | None) -> tuple[Raw, Provenance]:
    """Read a cached data set if it is unchanged and agrees with the pinned checksum.

    What lies in a cache agrees with its own provenance as soon as both were replaced together.
    """
    try:
        provenance = read_provenance(folder / "provenance.json")
        raw = read_raw(next(folder.glob("raw.*")))
    except (OSError, StopIteration, InvalidInput):
        raise Unavailable("not in the cache") from None
    checksum = checksums.of_raw(raw)
    expected = {provenance.checksum, pinned or provenance.checksum}
    if provenance.dataset != dataset or expected != {checksum}:
        log.warning("%s: the cached copy is damaged and is fetched again", dataset)
        raise Unavailable("the cached copy is damaged")
    return raw, provenance


def _write_cache(folder: Path, raw: Raw, provenance: Provenance) -> None:
    write_raw(folder / f"raw.{suffix_of(raw)}", raw)
    write_json(folder / "provenance.json", provenance.to_dict())


def _require_folder(path: Path) -> None:
    """Refuse a place where no folder can be made or written to."""
    expected = "a folder that can be made, and written to"
    require("\0" not in str(path), "data.cache", str(path), expected)
    try:
        existing = next(folder for folder in (path, *path.absolute().parents) if _is_there(folder))
        usable = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    except OSError:
        usable = False
    require(usable, "data.cache", str(path), expected)


def _is_there(folder: Path) -> bool:
    try:
        folder.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def suffix_of(raw: Raw) -> str:
    """File suffix of canonical contents: tables are Parquet, images NPZ."""
    return "parquet" if isinstance(raw, pl.DataFrame) else "npz"


def write_raw(path: str | Path, raw: Raw) -> None:
    """Write the canonical contents of a data set atomically.

    Parameters
    ----------
    path : str or Path
        Target: ``.parquet`` for a table, ``.npz`` for arrays.
    raw : polars.DataFrame or mapping of str to ndarray
        Canonical contents; a data frame is written as Parquet, arrays as NPZ.
    """
    with atomic_write(path) as temporary:
        if isinstance(raw, pl.DataFrame):
            raw.write_parquet(temporary)
        else:
            with open(temporary, "wb") as stream:
                np.savez(stream, **raw)


def read_raw(path: str | Path) -> Raw:
    """Read what :func:`write_raw` wrote.

    Raises
    ------
    InvalidInput
        Names a file that is not there, or damaged.
    """
    if Path(path).suffix == ".parquet":
        with readable(path):
            return pl.read_parquet(path)
    with arrays_of(path) as arrays:
        return {name: arrays[name] for name in arrays.files}


def read_provenance(path: str | Path) -> Provenance:
    """Read a ``.provenance.json``; InvalidInput where it is none."""
    with readable(path):
        return Provenance.from_dict(read_json(path))


def read_acquired(raw: str | Path, provenance: str | Path) -> tuple[Raw, Provenance]:
    """Read canonical contents and their provenance, and check that the two belong together.

    Parameters
    ----------
    raw : str or Path
        Parquet or NPZ file with the contents.
    provenance : str or Path
        The ``.provenance.json`` file, which states the checksum of the contents.

    Returns
    -------
    contents : polars.DataFrame or dict of str to ndarray
    provenance : Provenance

    Raises
    ------
    InvalidInput
        Names a file that does not exist, is damaged, or has another checksum.
    """
    contents, about = read_raw(raw), read_provenance(provenance)
    with readable(raw):
        require(checksums.of_raw(contents) == about.checksum, str(raw), DAMAGED, EXPECTED)
    return contents, about


def write_provenance(path: str | Path, provenance: Provenance) -> None:
    """Write a ``.provenance.json`` file atomically.

    Parameters
    ----------
    path : str or Path
        Target file.
    provenance : Provenance
        Source, version and checksum of the contents.
    """
    write_json(path, provenance.to_dict())
