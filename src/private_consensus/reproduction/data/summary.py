"""Summary of all data sets, for ``private-consensus data``."""

import time
from dataclasses import asdict
from typing import Any

from .acquisition import Acquisition, acquire
from .catalogue import DATA_SETS, entry, module_of
from .preparation import PREPARATIONS


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
        **module_of(name).SCHEMA.describe(raw),
        **asdict(provenance),
        "needs": about.needs,
        "preparations": [p.name for p in PREPARATIONS.values() if p.dataset == name],
        "seconds": round(time.monotonic() - start, 2),
    }
