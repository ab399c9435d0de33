"""A mirror: a folder, or one behind http(s), with the files that ``sources.yaml`` lists.

Whoever names a mirror means it: if it is missing, or a file in it is wrong, that is an error and
never a reason to look elsewhere. A mirror may lack a whole data set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from private_consensus.common.errors import InvalidInput
from private_consensus.common.provenance import file_hash
from private_consensus.common.secrets import redacted

from . import checksums
from .downloads import Downloads
from .patience import Unavailable

KEY = "data.mirror"


def folder_of(location: str) -> Path | None:
    """The folder that a location names; none for an http(s) URL.

    Raises
    ------
    InvalidInput
        If it can be neither.
    """
    try:
        address = urlsplit(location)
    except ValueError:
        address = None
    if (
        address is None
        or "\0" in location
        or (address.scheme[:4] == "http" and not address.hostname)
    ):
        raise InvalidInput(KEY, redacted(location), "an existing folder or an http(s) URL")
    if address.scheme in ("http", "https"):
        return None
    return Path(unquote(address.path)) if address.scheme == "file" else Path(location)


def check_location(location: str) -> None:
    """Raise :class:`InvalidInput` for a folder that does not exist."""
    folder = folder_of(location)
    if folder is not None and not folder.is_dir():
        raise InvalidInput(KEY, redacted(location), "an existing folder or an http(s) URL")


@dataclass(frozen=True, kw_only=True)
class Mirror:
    """Files of one data set in a mirror.

    Parameters
    ----------
    location : str
        Folder path or http, https or file URL.
    files : mapping
        Relative path to ``{"file": sha256}`` or, for gzip files, ``{"contents": sha256}``.
    downloads : Downloads
        Where files of a mirror behind a URL are put.
    """

    location: str
    files: Mapping[str, Mapping[str, str]]
    downloads: Downloads

    @property
    def where(self) -> str:
        """Describe the mirror without secrets: the host of a URL, or the word for a folder."""
        return "mirror folder" if self.folder else urlsplit(self.location).hostname or "mirror"

    @property
    def folder(self) -> Path | None:
        """The folder, if the mirror is one."""
        return folder_of(self.location)

    def has(self) -> bool:
        """Return True if the mirror has at least a part of this data set."""
        if self.folder is None:
            return self._fetch(next(iter(self.files))) is not None
        return any((self.folder / name).parent.is_dir() for name in self.files)

    def file(self, name: str) -> Path:
        """Verified local path of a file.

        Raises
        ------
        InvalidInput
            If the file is missing or not what it should be.
        """
        path = self._fetch(name) if self.folder is None else self.folder / name
        if path is None or not path.is_file():
            raise InvalidInput(KEY, f"no file {name}", "the files listed in datasets/sources.yaml")
        kind, expected = next(iter(self.files[name].items()))
        checksum = _checksum(path, kind)
        if checksum != expected:
            if self.folder is None:
                self.downloads.forget(path.name)
            raise InvalidInput(
                KEY, f"{name} with {kind} checksum {checksum}", f"checksum {expected} (SHA-256)"
            )
        return path

    def _fetch(self, name: str) -> Path | None:
        local = "mirror-" + name.replace("/", "-")
        try:
            return self.downloads.fetch(f"{self.location.rstrip('/')}/{name}", local)
        except Unavailable as error:
            if "HTTP status 404" in str(error):
                return None
            raise InvalidInput(
                KEY, redacted(self.location), f"a mirror that answers: {error}"
            ) from None


def _checksum(path: Path, kind: str) -> str:
    if kind == "file":
        return file_hash(path)
    try:
        return checksums.of_unzipped(path)
    except (OSError, EOFError) as error:
        return f"unreadable ({error})"
