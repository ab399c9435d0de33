"""Download files with retries, time limits and checksums."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from private_consensus.common.secrets import redacted

if TYPE_CHECKING:
    import requests

RETRIES = 2
"""Number of repetitions after a failed transfer, which follow after 1 s and 2 s."""

CHUNK = 1024
SLOWEST = 1024
"""Smallest accepted speed of a transfer, in bytes per second."""

LARGEST = 1_000_000_000
"""Largest accepted size of a file, packed or unpacked, in bytes; all data sets are smaller."""

TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
"""HTTP status codes after which a request is repeated."""


class Unavailable(Exception):
    """Failure of one source of a data set; the next source is then tried.

    Provenance, data cards and the report quote the message, from which secrets are removed.
    """

    def __init__(self, reason: object):
        super().__init__(redacted(" ".join(str(reason).split())))


@dataclass(frozen=True, kw_only=True)
class Downloads:
    """Folder of downloaded files, with the time limit of downloads.

    Parameters
    ----------
    timeout_s : float
        Seconds to wait for a connection, and for the next bytes of a file.
    """

    folder: Path
    timeout_s: float

    def fetch(self, url: str, name: str, *, checksum: str | None = None) -> Path:
        """Return the local path of a file, and download it if it is not in the folder.

        Without a SHA-256, the caller has to check the contents. A host that does not answer,
        refuses the request, or sends other contents raises ``Unavailable``.
        """
        import pooch
        import requests

        pooch.get_logger().setLevel("WARNING")
        # pooch's types exclude a missing checksum and downloaders without the option check_only.
        registry: Any = {name: checksum}
        downloader: Any = self._download
        files = pooch.Pooch(
            path=self.folder,
            base_url="",
            registry=registry,
            urls={name: url},
            retry_if_failed=RETRIES,
        )
        try:
            return Path(files.fetch(name, downloader=downloader))
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

        # Prevents the server from compressing the transfer.
        headers = {"Accept-Encoding": "identity"}
        try:
            return requests.request(
                method, url, headers=headers, stream=True, timeout=self.timeout_s
            )
        except requests.ConnectionError as error:
            host, reason = urlsplit(url).hostname, type(error).__name__
            raise Unavailable(f"{host} cannot be reached ({reason})") from None

    def _download(self, url: str, target: str, _: object) -> None:
        """Download a file to ``target``; pooch repeats the call after a network error."""
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
    """Read a member of an archive, at most :data:`LARGEST` bytes of it."""
    with archive.open(name) as stream:
        return stream.read(LARGEST)


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold the lock of a file while the block runs; another process waits for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # Windows has no fcntl; checksums then detect concurrent writes
        yield
        return
    with open(path, "w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
