"""Download files with retries, time limits and checksums."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from private_consensus.common.secrets import redacted

RETRIES = 2
"""Number of repetitions after a failed transfer, which follow after 1 s and 2 s."""


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
        registry: Any = {name: checksum}  # pooch's types exclude a missing checksum
        files = pooch.Pooch(
            path=self.folder,
            base_url="",
            registry=registry,
            urls={name: url},
            retry_if_failed=RETRIES,
        )
        downloader: Any = self._download
        try:
            return Path(files.fetch(name, downloader=downloader))
        except requests.RequestException as error:
            reason = f"transfer failed ({type(error).__name__})"
            if error.response is not None:
                reason = f"HTTP status {error.response.status_code}"
            raise Unavailable(f"{url}: {reason} ({RETRIES + 1} tries)") from None
        except ValueError as error:
            raise Unavailable(f"{url} has wrong contents ({error})") from None

    def check_reachable(self, url: str) -> None:
        """Raise :class:`Unavailable` unless the host of ``url`` answers in time."""
        import requests

        try:
            requests.head(url, timeout=self.timeout_s)
        except requests.RequestException as error:
            raise _unreachable(url, error) from None

    def _download(self, url: str, target: str, files: Any) -> None:
        """Download a file; pooch repeats the call after an error, but not after ``Unavailable``."""
        import pooch
        import requests

        try:
            pooch.HTTPDownloader(timeout=self.timeout_s)(url, target, files)
        except requests.ConnectionError as error:
            raise _unreachable(url, error) from None


def _unreachable(url: str, error: Exception) -> Unavailable:
    return Unavailable(f"{urlsplit(url).hostname} cannot be reached ({type(error).__name__})")
