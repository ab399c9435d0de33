"""Request extracts of census data from IPUMS, with the key of the user."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from private_consensus.common.provenance import atomic_write
from private_consensus.common.secrets import key_in

from .downloads import Unavailable, require_reachable

KEY = "IPUMS_API_KEY"
FILE = "ipums.parquet"
"""File with the columns of a downloaded extract."""


def download(folder: Path, url: str, request: Mapping[str, Any], timeout_s: float) -> None:
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

    key = key_in(KEY)
    if key is None:
        raise Unavailable(f"a key in {KEY} is required")
    if (folder / FILE).is_file():
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
        with tempfile.TemporaryDirectory() as temporary, atomic_write(folder / FILE) as path:
            client.download_extract(submitted, download_dir=Path(temporary))
            read(Path(temporary), request["variables"]).write_parquet(path)
    except Exception as error:
        # ipumspy raises errors of many types, from a refused key to an extract that takes too long.
        raise Unavailable(f"{type(error).__name__}: {error}") from None


def read(folder: Path, columns: Sequence[str]) -> pl.DataFrame:
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
