"""Downloads that survive: retries with backoff, resumed ranges, checked and placed whole.

``pooch`` checks and places; what it lacks, going on where a broken transfer stopped, is here.
"""

from __future__ import annotations

import logging
import os
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from private_consensus.common.secrets import redacted

from .patience import Patience, Unavailable

log = logging.getLogger(__name__)

CHUNK = 1 << 16
SLOWEST = 1024
"""Bytes a second below which a transfer counts as stalled."""

LARGEST = 1_000_000_000
"""Bytes of a file, packed or unpacked, beyond which it is none of a data set: those are smaller."""

TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})


class _Broken(Exception):
    """A transfer that may succeed when tried again."""


@dataclass(frozen=True, kw_only=True)
class Downloads:
    """A folder of downloaded files.

    Parameters
    ----------
    folder : path
        Where files and the beginnings of files are kept.
    patience : Patience
        Purse for silent hosts, stalls and pauses between tries.
    retries : int
        Tries after the first.
    backoff : float
        Seconds before the second try; doubled for each further one.
    """

    folder: Path
    patience: Patience
    retries: int = 3
    backoff: float = 0.5

    def fetch(self, url: str, name: str, *, checksum: str | None = None) -> Path:
        """Local path of a file, downloaded unless it is here already.

        Parameters
        ----------
        url : str
            http or https.
        name : str
            Name of the local file.
        checksum : str, optional
            SHA-256 of the file; without it the caller has to check the contents.

        Raises
        ------
        Unavailable
            The message says why.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder / f".{name}.lock"):
            resumed = self._part(name).exists()
            try:
                return self._retrieve(url, name, checksum)
            except Unavailable:
                # What a former call left may belong to another file: once more from the start.
                if not resumed or self._part(name).exists():
                    raise
                return self._retrieve(url, name, checksum)

    def forget(self, name: str) -> None:
        """Remove a file whose contents turned out to be wrong."""
        (self.folder / name).unlink(missing_ok=True)
        self._part(name).unlink(missing_ok=True)

    def _retrieve(self, url: str, name: str, checksum: str | None) -> Path:
        import pooch

        pooch.get_logger().setLevel("WARNING")
        if not (self.folder / name).exists():
            self.patience.check_reachable(url)
        try:
            path = pooch.retrieve(
                url,
                known_hash=checksum and f"sha256:{checksum}",
                fname=name,
                path=self.folder,
                downloader=lambda url, target, _: self._download(url, Path(target), name),
            )
        except ValueError as error:
            raise Unavailable(f"{url} has wrong contents ({_one_line(error)})") from None
        return Path(path)

    def _download(self, url: str, target: Path, name: str) -> None:
        partial_file = self._part(name)
        for attempt in range(self.retries + 1):
            try:
                self._append(url, partial_file)
                os.replace(partial_file, target)
                return
            except _Broken as error:
                reason = str(error)
                log.info("%s: try %d failed: %s", redacted(url), attempt + 1, reason)
            if self.patience.left <= 0:
                raise Unavailable(f"{url}: {reason}, and no patience is left")
            if attempt < self.retries:
                self.patience.sleep(self.backoff * 2**attempt)
        raise Unavailable(f"{url}: {reason} ({self.retries + 1} tries)")

    def _append(self, url: str, partial_file: Path) -> None:
        """Bring ``partial_file`` to its full length, going on where it ends if the host can."""
        import requests
        import urllib3

        have = partial_file.stat().st_size if partial_file.exists() else 0
        wait = max(0.1, self.patience.left)
        start = time.monotonic()
        try:
            with requests.get(
                url, headers=_headers(have), stream=True, timeout=(wait, wait)
            ) as response:
                self._write(response, partial_file, _accepted(response, have, partial_file))
        except (requests.Timeout, urllib3.exceptions.TimeoutError) as error:
            # Bytes may have come before the silence; only the silence is charged.
            self.patience.charge(min(time.monotonic() - start, wait))
            raise _Broken("no byte for too long") from error
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            raise _Broken(f"connection lost ({type(error).__name__})") from error

    def _write(self, response, partial_file: Path, have: int) -> None:
        got, start = 0, time.monotonic()
        if have + (announced := _length(response)) > LARGEST:
            self._too_large(response, partial_file, f"announces {announced:,} bytes")
        with open(partial_file, "ab" if have else "wb") as stream:
            # read1 gives what has come; read would wait until a chunk is full. Both raise where
            # the body ends before its announced length.
            while chunk := response.raw.read1(CHUNK):
                stream.write(chunk)
                got += len(chunk)
                if have + got > LARGEST:
                    self._too_large(response, partial_file, "does not end")
                elapsed = time.monotonic() - start
                if elapsed > self.patience.left and got < SLOWEST * elapsed:
                    self.patience.charge(elapsed)
                    raise _Broken(f"only {got / elapsed:.0f} bytes a second")

    @staticmethod
    def _too_large(response, partial_file: Path, how: str) -> None:
        partial_file.unlink(missing_ok=True)
        raise Unavailable(f"{response.url}: the file {how}, expected at most {LARGEST:,} bytes")

    def _part(self, name: str) -> Path:
        return self.folder / f".{name}.part"


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
    """Hold a file's lock, so that two processes do not do the same work; freed by a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # not on this system: checksums still refuse a mixture
        yield
        return
    with open(path, "w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _length(response) -> int:
    """Bytes that an answer says it has; 0 where it does not."""
    length = response.headers.get("Content-Length", "")
    return int(length) if length.isdigit() else 0


def _headers(have: int) -> dict[str, str]:
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    return headers


def _accepted(response, have: int, partial_file: Path) -> int:
    """Return the number of bytes of ``partial_file`` to keep, or raise an error."""
    status = response.status_code
    if status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
        return have
    if status == 200:
        return 0
    if status in (206, 416):
        partial_file.unlink(missing_ok=True)
        raise _Broken("the host cannot resume here")
    if status in TRANSIENT:
        raise _Broken(f"HTTP status {status}")
    raise Unavailable(f"{response.url}: HTTP status {status}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
