"""Order and read extracts of census data from IPUMS, with the key of the user."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from private_consensus.common.secrets import key_in

from .catalogue import Publisher
from .downloads import Downloads, Unavailable

if TYPE_CHECKING:
    from ipumspy import MicrodataExtract

KEY = "IPUMS_API_KEY"


def extract(downloads: Downloads, publisher: Publisher) -> pl.DataFrame:
    """Order an extract from IPUMS, unless it was downloaded before, and return its integer codes.

    Missing values are null. The publisher has the options ``collection``, ``sample``, ``variables``
    to order, ``columns`` to read (detailed codes come with their general variable), cases to
    ``select``, and the longest ``wait`` in seconds; IPUMS needs minutes. The message of
    ``Unavailable`` contains the reason without the key, which HTTP libraries would repeat.
    """
    from ipumspy import IpumsApiClient

    options = publisher.options
    if downloads.folder.is_dir():
        return read(downloads.folder, options["columns"])
    downloads.check_reachable(publisher.url)
    try:
        client = IpumsApiClient(key_in(KEY) or "", base_url=publisher.url)
        submitted = client.submit_extract(order(options))
        client.wait_for_extract(submitted, timeout=options["wait"])
        with tempfile.TemporaryDirectory() as folder:
            client.download_extract(submitted, download_dir=Path(folder))
            shutil.copytree(folder, downloads.folder)
        return read(downloads.folder, options["columns"])
    except Exception as error:
        # ipumspy raises errors of many types, from a refused key to an extract that takes too long.
        raise Unavailable(f"{type(error).__name__}: {error}") from None


def order(options: Mapping[str, Any]) -> MicrodataExtract:
    """Build the request for an extract from the options of a publisher."""
    from ipumspy import MicrodataExtract

    extract = MicrodataExtract(
        collection=options["collection"],
        samples=[options["sample"]],
        variables=list(options["variables"]),
        description="private-consensus",
    )
    for variable, values in options.get("select", {}).items():
        extract.select_cases(variable, [str(v) for v in values])
    return extract


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
