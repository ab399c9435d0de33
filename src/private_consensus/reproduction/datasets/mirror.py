"""Read data sets from a mirror: a folder with the files that ``sources.yaml`` lists.

If a configured mirror does not exist or has a file with a wrong checksum, an error is raised and no
other source is tried. A mirror need not contain every data set.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from private_consensus.common.errors import InvalidInput, require

KEY = "data.mirror"


def require_folder(location: str) -> Path:
    """Return the folder of a mirror; raise ``InvalidInput`` if it does not exist."""
    require("\0" not in location and Path(location).is_dir(), KEY, location, "an existing folder")
    return Path(location)


@dataclass(frozen=True, kw_only=True)
class Mirror:
    """Files of one data set in a mirror.

    Parameters
    ----------
    files : mapping
        Relative path to ``{"file": sha256}`` or, for gzip files, ``{"contents": sha256}``.
    """

    folder: Path
    files: Mapping[str, Mapping[str, str]]

    def has(self) -> bool:
        """Return True if the mirror contains at least a part of the data set."""
        return any((self.folder / name).parent.is_dir() for name in self.files)

    def file(self, name: str) -> Path:
        """Return the path of a file; refuse a missing or changed file."""
        path = self.folder / name
        if not path.is_file():
            raise InvalidInput(KEY, f"no file {name}", "all files of datasets/sources.yaml")
        ((kind, expected),) = self.files[name].items()
        checksum = _checksum(path, kind)
        difference = f"{name} with {kind} checksum {checksum}"
        require(checksum == expected, KEY, difference, f"checksum {expected} (SHA-256)")
        return path


def _checksum(path: Path, kind: str) -> str:
    """Compute the SHA-256 of a file, or of the contents of a gzip file."""
    try:
        with (gzip.open if kind == "contents" else open)(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, EOFError) as error:
        return f"unreadable ({error})"
