"""Read data sets from mirrors: folders or http(s) URLs with the files that ``sources.yaml`` lists.

If a configured mirror does not exist or has a file with a wrong checksum, an error is raised and no
other source is tried. A mirror need not contain every data set.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from private_consensus.common.errors import InvalidInput, require
from private_consensus.common.secrets import redacted

from .downloads import Downloads, Unavailable

KEY = "data.mirror"


def folder_of(location: str) -> Path | None:
    """Return the folder of a mirror, or None if its location is an http(s) URL.

    Any other location raises ``InvalidInput``.
    """
    with suppress(ValueError):  # a malformed URL
        address = urlsplit(location)
        if address.scheme in ("http", "https") and address.hostname:
            return None
        folder = Path(unquote(address.path)) if address.scheme == "file" else Path(location)
        if folder.is_dir():
            return folder
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
        Folder for the files of a mirror behind a URL.
    """

    location: str
    files: Mapping[str, Mapping[str, str]]
    downloads: Downloads

    @property
    def where(self) -> str:
        """Host of the mirror's URL, or ``mirror folder``; it contains no credentials."""
        return "mirror folder" if self.folder else str(urlsplit(self.location).hostname)

    @property
    def folder(self) -> Path | None:
        """Folder of the mirror; None if it is a URL."""
        return folder_of(self.location)

    def has(self) -> bool:
        """Return True if the mirror contains at least a part of the data set."""
        if self.folder is None:
            return self._path(next(iter(self.files))) is not None
        return any((self.folder / name).parent.is_dir() for name in self.files)

    def file(self, name: str) -> Path:
        """Return the local path of a file; refuse a missing or changed file."""
        path = self._path(name)
        if path is None or not path.is_file():
            raise InvalidInput(KEY, f"no file {name}", "all files of datasets/sources.yaml")
        ((kind, expected),) = self.files[name].items()
        checksum = _checksum(path, kind)
        if checksum != expected and self.folder is None:
            path.unlink()  # so that the next call downloads it again
        difference = f"{name} with {kind} checksum {checksum}"
        require(checksum == expected, KEY, difference, f"checksum {expected} (SHA-256)")
        return path

    def _path(self, name: str) -> Path | None:
        if self.folder is not None:
            return self.folder / name
        local_name = "mirror-" + name.replace("/", "-")
        try:
            return self.downloads.fetch(f"{self.location.rstrip('/')}/{name}", local_name)
        except Unavailable as error:
            if "HTTP status 404" in str(error):
                return None
            expected = f"a mirror from which files can be downloaded ({error})"
            raise InvalidInput(KEY, redacted(self.location), expected) from None


def _checksum(path: Path, kind: str) -> str:
    """Compute the SHA-256 of a file, or of the contents of a gzip file."""
    try:
        with (gzip.open if kind == "contents" else open)(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, EOFError) as error:
        return f"unreadable ({error})"
