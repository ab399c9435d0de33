"""Download the files of a publisher with retries, time limits and checksums."""

from collections.abc import Mapping
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


def download(folder: Path, url: str, files: Mapping[str, str | None], timeout_s: float) -> None:
    """Download the files of a publisher that are not in the folder.

    The checksum of a file without a SHA-256 has to be checked by the caller. A host that does not
    answer, refuses the request, or sends other contents raises ``Unavailable``.

    Parameters
    ----------
    url : str
        URL to which the names of the files are appended.
    files : mapping
        File name to SHA-256 or None.
    timeout_s : float
        Seconds to wait for a connection, and for the next bytes of a file.
    """
    import pooch
    import requests

    if not all((folder / name).is_file() for name in files):
        require_reachable(url, timeout_s)
    pooch.get_logger().setLevel("WARNING")
    registry: Any = dict(files)  # pooch's types exclude a missing checksum
    server = pooch.create(folder, f"{url}/", registry=registry, retry_if_failed=RETRIES)
    for name in files:
        try:
            server.fetch(name, downloader=pooch.HTTPDownloader(timeout=timeout_s))
        except requests.RequestException as error:
            reason = f"transfer failed ({type(error).__name__})"
            if error.response is not None:
                reason = f"HTTP status {error.response.status_code}"
            raise Unavailable(f"{url}/{name}: {reason} ({RETRIES + 1} tries)") from None
        except ValueError as error:
            raise Unavailable(f"{url}/{name} has wrong contents ({error})") from None


def require_reachable(url: str, timeout_s: float) -> None:
    """Raise :class:`Unavailable` unless the host of ``url`` answers in time."""
    import requests

    try:
        requests.head(url, timeout=timeout_s)
    except requests.RequestException as error:
        host = urlsplit(url).hostname
        raise Unavailable(f"{host} cannot be reached ({type(error).__name__})") from None
