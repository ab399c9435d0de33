"""Build the manifest of the reference: commit, versions, seed, data, machine, wall times."""

import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from private_consensus.common.provenance import versions
from private_consensus.report.reading import Results

CARD = (
    "dataset", "title", "preparation", "source", "where", "because", "version", "checksum",
    "licence", "citation", "rows", "dim", "splits", "label", "label_rate", "protected", "notes",
)  # fmt: skip
"""Entries of a data card in the manifest: origin, sizes and encoding, without distributions."""


def manifest(
    results: Results,
    config: Mapping[str, Any],
    *,
    seconds: Mapping[str, float],
    files: Mapping[str, str],
) -> dict[str, object]:
    """Build the content of ``manifest.json``.

    Parameters
    ----------
    seconds : mapping
        Name of each job to its wall seconds.
    files : mapping
        Path of each published file to its SHA-256.
    """
    return {
        "scale": results.scale,
        "commit": results.commit,
        "seed": config["seed"],
        "versions": versions(),
        "machine": machine(),
        "data": [{key: card.get(key, "") for key in CARD} for card in results.cards],
        "wall seconds": dict(seconds),
        "sha256": dict(sorted(files.items())),
    }


def wall_seconds(folder: Path) -> dict[str, float]:
    """Return the wall seconds of each job, by which later runs order their jobs."""
    seconds = {}
    for file in sorted(folder.glob("*.tsv")):
        titles, cells = (line.split("\t") for line in file.read_text("utf-8").splitlines())
        seconds[file.stem] = round(float(dict(zip(titles, cells, strict=True))["s"]), 2)
    return seconds


def machine() -> dict[str, object]:
    """Describe this machine: system, processor and cores, without its name."""
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": _processor(),
        "compiled for": os.environ.get("NUMBA_CPU_NAME") or "this processor",
        "cores": os.cpu_count(),
    }


def _processor() -> str:
    """Return the model of the processor; only its architecture if the system has no such file."""
    cpu = Path("/proc/cpuinfo")
    text = cpu.read_text(encoding="utf-8", errors="replace") if cpu.exists() else ""
    match = re.search(r"^model name\s*: (.*)$", text, re.M)
    return match[1].strip() if match else platform.processor() or platform.machine()
