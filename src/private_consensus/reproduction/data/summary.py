"""Summary of all data sets, for ``private-consensus data``."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl

from .acquisition import Acquisition, acquire
from .catalogue import DATA_SETS, entry, module_of
from .preparation import PREPARATIONS
from .raw import Raw
from .tables import Schema


def summary(acquisition: Acquisition, *, seed: int = 0) -> list[dict[str, Any]]:
    """Acquire all data sets and describe each of them in a row.

    It has size, label and its rate, source and reason, checksum, licence, requirements,
    preparations and seconds.
    """
    return [_row(name, acquisition, seed) for name in DATA_SETS]


def _row(name: str, acquisition: Acquisition, seed: int) -> dict[str, Any]:
    start = time.monotonic()
    raw, provenance = acquire(name, acquisition, seed=seed)
    about = entry(name)
    return {
        "title": about.title,
        **_size(name, raw),
        **asdict(provenance),
        "needs": about.needs,
        "preparations": [p.name for p in PREPARATIONS.values() if p.dataset == name],
        "seconds": round(time.monotonic() - start, 2),
    }


def _size(name: str, raw: Raw) -> dict[str, Any]:
    """Return the numbers of rows and columns, and the label with its rate."""
    if isinstance(raw, pl.DataFrame):
        schema: Schema = module_of(name).SCHEMA
        return {
            "rows": raw.height,
            "columns": raw.width - 1,
            "label": schema.positive_label,
            "label_rate": float(schema.positives(raw).mean()),
        }
    counts = np.bincount(np.concatenate([v for k, v in raw.items() if k.startswith("y")]))
    return {
        "rows": int(counts.sum()),
        "columns": int(raw["x_train"][0].size),
        "label": f"the most frequent of {len(counts)} classes",
        "label_rate": float(counts.max() / counts.sum()),
    }
