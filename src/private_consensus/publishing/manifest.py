"""Build the manifest of the reference: commit, versions, seed, data and machine."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from private_consensus.common.provenance import versions
from private_consensus.report.reading import Results
from private_consensus.reproduction.results.freshness import actual_hashes

CARD = (
    "dataset", "title", "preparation", "source", "where", "because", "version", "checksum",
    "licence", "citation", "rows", "dim", "splits", "label", "label_rate", "protected", "notes",
)  # fmt: skip
"""Entries of a data card in the manifest: origin, sizes and encoding, without distributions."""
STAMP = ("settings", "code", "data")
"""Entries of a result's provenance in the manifest."""


def manifest(
    results: Results,
    config: Mapping[str, Any],
    *,
    missing: Iterable[str],
    stamped: Iterable[str],
    files: Mapping[str, str],
) -> dict[str, object]:
    """Build the content of ``manifest.json``.

    Parameters
    ----------
    missing : iterable of str
        Papers that are intentionally absent.
    stamped : iterable of str
        Paths of the results whose provenance is listed.
    files : mapping
        Path of each published file to its SHA-256.
    """
    stamps = {str(path): actual_hashes(path) for path in stamped}
    return {
        "scale": results.scale,
        "commit": results.commit,
        "seed": config["seed"],
        "papers": list(config["papers"]),
        "missing papers": sorted(missing),
        "versions": versions(),
        "machine": machine(),
        "data": [{key: card.get(key, "") for key in CARD} for card in results.cards],
        "stamps": {
            path: {key: stamp[key] for key in STAMP if key in stamp}
            for path, stamp in sorted(stamps.items())
        },
        "sha256": dict(sorted(files.items())),
    }


FEATURES = ("avx", "avx2", "fma", "avx512f", "avx512bw", "avx512vl", "amx_tile", "asimd", "sve")
"""Processor features that determine the kernels of linear algebra and of compiled loops."""


def features() -> list[str]:
    """Return the features of :data:`FEATURES` that the processor has."""
    processor_features = (_cpu_info("flags") or _cpu_info("Features")).split()
    return [name for name in FEATURES if name in processor_features]


def kernels() -> dict[str, str]:
    """Map the loaded linear algebra libraries to the architecture of their kernels."""
    import numpy.linalg  # noqa: F401
    import scipy.linalg  # noqa: F401

    pools = threadpool_info()
    return {
        f"{info.get('internal_api')} {info.get('version')}": str(info.get("architecture"))
        for info in pools
        if info.get("user_api") == "blas"
    }


def _cpu_info(key: str) -> str:
    """Return an entry of ``/proc/cpuinfo`` for the first processor; empty on other systems."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    match = re.search(rf"^{key}\s*: (.*)$", text, re.M)
    return match[1].strip() if match else ""


def machine() -> dict[str, object]:
    """Describe this machine: system, processor, kernels, cores and memory, without its name."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": _cpu_info("model name") or platform.processor() or platform.machine(),
        "features": features(),
        "compiled for": os.environ.get("NUMBA_CPU_NAME") or "this processor",
        "kernels": kernels(),
        "cores": os.cpu_count(),
        "memory_gb": round(pages / 2**30),
    }
