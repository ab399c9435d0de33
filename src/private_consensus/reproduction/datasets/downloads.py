"""Downloads with retries, time limits and checksums; pooch stores the files."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from private_consensus.common.secrets import redacted

if TYPE_CHECKING:
    import requests

RETRIES = 2
"""Repetitions of a broken transfer, after 1 s and 2 s."""

CHUNK = 1024
SLOWEST = 1024
"""Smallest accepted speed of a transfer, in bytes per second."""

LARGEST = 1_000_000_000
"""Largest accepted size of a file, packed or unpacked, in bytes; all data sets are smaller."""

TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
"""HTTP status codes after which a request is repeated."""


class Unavailable(Exception):
    """Error of one download source, with the reason; the next source may be available.

    The reason is part of provenance, data cards and the report. It contains no secrets.
    """

    def __init__(self, reason: object):
        super().__init__(redacted(" ".join(str(reason).split())))


@dataclass(frozen=True, kw_only=True)
class Downloads:
    """A folder of downloaded files.

    Parameters
    ----------
    folder : path
        Folder of the files.
    timeout_s : float
        Seconds to wait for a connection, and for the next bytes of a file.
    """

    folder: Path
    timeout_s: float

    def fetch(self, url: str, name: str, *, checksum: str | None = None) -> Path:
        """Return the local path of a file, which is downloaded if it is not in the folder.

        Parameters
        ----------
        url : str
            http or https.
        name : str
            Name of the local file.
        checksum : str, optional
            SHA-256 of the file; without it the caller has to check the contents.

        Returns
        -------
        Path

        Raises
        ------
        Unavailable
            If the host does not answer, refuses the request, or sends other contents.
        """
        import pooch
        import requests

        pooch.get_logger().setLevel("WARNING")
        files = pooch.Pooch(
            path=self.folder,
            base_url="",
            registry={name: checksum},
            urls={name: url},
            retry_if_failed=RETRIES,
        )
        try:
            return Path(files.fetch(name, downloader=self._download))
        except requests.RequestException as error:
            tries = f"{RETRIES + 1} tries"
            raise Unavailable(f"{url}: {_reason(error)} ({tries})") from None
        except ValueError as error:
            raise Unavailable(f"{url} has wrong contents ({error})") from None

    def check_reachable(self, url: str) -> None:
        """Raise :class:`Unavailable` unless the host of ``url`` answers in time."""
        import requests

        try:
            self._request("HEAD", url).close()
        except requests.RequestException as error:
            raise Unavailable(f"{url}: {_reason(error)}") from None

    def _request(self, method: str, url: str) -> requests.Response:
        import requests

        # A file that is stored compressed arrives as it is stored.
        headers = {"Accept-Encoding": "identity"}
        try:
            return requests.request(
                method, url, headers=headers, stream=True, timeout=self.timeout_s
            )
        except requests.ConnectionError as error:
            host, reason = urlsplit(url).hostname, type(error).__name__
            raise Unavailable(f"{host} cannot be reached ({reason})") from None

    def _download(self, url: str, target: str, _: object) -> None:
        """Write a file; pooch repeats the call after an error of requests."""
        import requests

        begin, size = time.monotonic(), 0
        with self._request("GET", url) as response, open(target, "wb") as stream:
            if response.status_code in TRANSIENT:
                response.raise_for_status()
            if response.status_code != 200:
                raise Unavailable(f"{url}: HTTP status {response.status_code}")
            for chunk in response.iter_content(CHUNK):
                stream.write(chunk)
                size += len(chunk)
                if size > LARGEST:
                    raise Unavailable(f"{url}: the file has more than {LARGEST:,} bytes")
                seconds = time.monotonic() - begin
                if seconds > self.timeout_s and size < SLOWEST * seconds:
                    raise requests.Timeout(f"only {size / seconds:.0f} bytes per second")


def _reason(error: requests.RequestException) -> str:
    if error.response is not None:
        return f"HTTP status {error.response.status_code}"
    return f"transfer failed ({type(error).__name__})"


def unzipped(archive: zipfile.ZipFile, name: str) -> bytes:
    """Read a member of an archive, truncated to :data:`LARGEST` bytes.

    Parameters
    ----------
    archive : zipfile.ZipFile
        Archive that is open for reading.
    name : str
        Name of the member.

    Returns
    -------
    bytes
        Uncompressed contents.
    """
    with archive.open(name) as stream:
        return stream.read(LARGEST)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, so that two processes do not do the same work."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # not on this system: checksums still refuse a mixture
        yield
        return
    with open(path, "w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
