"""Download files of publishers with retries, time limits and checksums; extracts from IPUMS."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import polars as pl

from private_consensus.common.provenance import atomic_write
from private_consensus.common.secrets import IPUMS_KEY, ipums_key, redacted

RETRIES = 2
"""Number of repetitions after a failed transfer, which follow after 1 s and 2 s."""
EXTRACT = "ipums.parquet"
"""File with the columns of an extract from IPUMS."""


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


def download_extract(folder: Path, url: str, request: Mapping[str, Any], timeout_s: float) -> None:
    """Download an extract from IPUMS to a Parquet file, unless the folder has it.

    The message of ``Unavailable`` contains the reason without the key, which HTTP libraries would
    repeat.

    Parameters
    ----------
    request : mapping
        ``collection``, ``sample``, ``variables``, and the longest ``wait`` in seconds; IPUMS needs
        minutes.
    timeout_s : float
        Seconds to wait for a connection.
    """
    from ipumspy import IpumsApiClient, MicrodataExtract

    key = ipums_key()
    if key is None:
        raise Unavailable(f"a key in {IPUMS_KEY} is required")
    if (folder / EXTRACT).is_file():
        return
    require_reachable(url, timeout_s)
    try:
        client = IpumsApiClient(key, base_url=url)
        extract = MicrodataExtract(
            collection=request["collection"],
            samples=[request["sample"]],
            variables=request["variables"],
            description="private-consensus",
        )
        submitted = client.submit_extract(extract)
        client.wait_for_extract(submitted, timeout=request["wait"])
        with tempfile.TemporaryDirectory() as temporary, atomic_write(folder / EXTRACT) as path:
            client.download_extract(submitted, download_dir=Path(temporary))
            read_extract(Path(temporary), request["variables"]).write_parquet(path)
    except Exception as error:
        # ipumspy raises errors of many types, from a refused key to an extract that takes too long.
        raise Unavailable(f"{type(error).__name__}: {error}") from None


def read_extract(folder: Path, columns: Sequence[str]) -> pl.DataFrame:
    """Read columns of a downloaded extract, in blocks of 100,000 rows to limit memory.

    The folder has the code book (``.xml``) and the data (``.dat.gz``). Missing values are null.
    """
    from ipumspy import readers

    codebook = readers.read_ipums_ddi(next(folder.glob("*.xml")))
    frames = readers.read_microdata_chunked(
        codebook, next(folder.glob("*.dat.gz")), subset=list(columns), chunksize=100_000
    )
    return pl.concat(
        pl.DataFrame(
            {c: frame[c].to_numpy(dtype="float64", na_value=np.nan) for c in columns},
            nan_to_null=True,
        ).cast(pl.Int64)
        for frame in frames
    )
