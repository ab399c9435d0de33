"""What made a reference: commit, versions, seed, data, machine, wall times."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from typing import Any

from ..experiments.results import versions

CARD = ("dataset", "preparation", "source", "host", "version", "checksum", "licence", "citation")
"""What of a data card is kept: where data came from, nothing of what is in them."""


def manifest(
    *,
    scale: str,
    commit: str,
    config: Mapping[str, Any],
    missing: Iterable[str],
    cards: Iterable[Mapping[str, Any]],
    stamps: Mapping[str, Mapping[str, str]],
    timings: Iterable[Mapping[str, Any]],
    files: Mapping[str, str],
) -> dict[str, Any]:
    """The content of ``manifest.json``; papers that are missing on purpose are named."""
    seconds = {row["job"]: round(row["seconds"], 2) for row in timings}
    return {
        "scale": scale,
        "commit": commit,
        "seed": config["seed"],
        "papers": list(config["papers"]),
        "missing papers": sorted(missing),
        "versions": versions(),
        "machine": machine(),
        "data": [{key: card.get(key, "") for key in CARD} for card in cards],
        "stamps": {path: dict(stamp) for path, stamp in sorted(stamps.items())},
        "wall seconds": dict(sorted(seconds.items())),
        "wall seconds in all": round(sum(seconds.values()), 1),
        "sha256": dict(sorted(files.items())),
    }


def machine() -> dict[str, Any]:
    """The kind of machine, not which one."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(pages / 2**30),
    }
