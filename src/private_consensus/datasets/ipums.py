"""Extracts from IPUMS with the user's own key; they stay in the cache and are never handed on."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import polars as pl

from .catalogue import Publisher
from .patience import Unavailable
from .routes import Access

KEY = "IPUMS_API_KEY"


def extract(access: Access, publisher: Publisher) -> pl.DataFrame:
    """Columns of an extract as IPUMS codes them, all of them integers.

    Parameters
    ----------
    access : Access
        Its patience covers reaching the host; preparing an extract takes IPUMS minutes.
    publisher : Publisher
        ``options`` name the ``collection``, the ``sample``, the ``variables``, the cases to
        ``select`` and how long to ``wait`` in seconds.
    """
    access.patience.knock(publisher.urls[0])
    options = publisher.options
    try:
        with tempfile.TemporaryDirectory() as folder:
            return _submit(publisher.urls[0], options, Path(folder))
    except Exception as error:
        # ipumspy raises many kinds, from a refused key to an extract that takes too long.
        raise Unavailable(f"{type(error).__name__}: {' '.join(str(error).split())}") from None


def _submit(url: str, options: Any, folder: Path) -> pl.DataFrame:
    from ipumspy import IpumsApiClient, MicrodataExtract, readers

    client = IpumsApiClient(os.environ[KEY], base_url=url)
    order = MicrodataExtract(
        collection=options["collection"],
        samples=[options["sample"]],
        variables=list(options["variables"]),
        description="private-consensus",
    )
    for variable, values in options.get("select", {}).items():
        order.select_cases(variable, [str(v) for v in values])
    client.submit_extract(order)
    client.wait_for_extract(order, timeout=options.get("wait", 1800))
    client.download_extract(order, download_dir=folder)
    codebook = readers.read_ipums_ddi(next(folder.glob("*.xml")))
    frames = readers.read_microdata_chunked(codebook, next(folder.glob("*.dat.gz")))
    wanted = list(options["variables"])
    return pl.concat(
        pl.DataFrame({v: frame[v].to_numpy() for v in wanted}).cast(pl.Int64) for frame in frames
    )
