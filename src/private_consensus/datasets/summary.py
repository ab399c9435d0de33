"""All data sets at a glance, for the command line."""

from __future__ import annotations

import time
from typing import Any

import polars as pl

from .acquisition import Acquisition, acquire
from .catalogue import DATA_SETS, entry


def summary(acquisition: Acquisition, *, seed: int = 0) -> list[dict[str, Any]]:
    """One row a data set: size, source, host, reason, checksum, licence, seconds.

    Parameters
    ----------
    acquisition : Acquisition
        Where to look; everything found is acquired, so that the row is true.
    seed : int
        Of surrogates.
    """
    return [_row(name, acquisition, seed) for name in DATA_SETS]


def _row(name: str, acquisition: Acquisition, seed: int) -> dict[str, Any]:
    start = time.monotonic()
    raw, provenance = acquire(name, acquisition, seed=seed)
    is_table = isinstance(raw, pl.DataFrame)
    return {
        "dataset": name,
        "title": entry(name).title,
        "rows": raw.height if is_table else sum(len(v) for k, v in raw.items() if k[0] == "x"),
        "columns": raw.width - 1 if is_table else int(raw["x_train"][0].size),
        "source": provenance.source,
        "where": provenance.where,
        "version": provenance.version,
        "because": provenance.because,
        "checksum": provenance.checksum,
        "licence": provenance.licence,
        "seconds": round(time.monotonic() - start, 2),
    }
