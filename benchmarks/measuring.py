"""Measurements that are stored as lines of JSON."""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from private_consensus.common.provenance import atomic_write

ROOT = Path(__file__).parents[1]


def here() -> dict[str, str]:
    """The day and the machine."""
    return {"day": str(datetime.date.today()), "machine": _processor()}


def _processor() -> str:
    lines = (
        Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []
    )
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "a processor without a name"


def read(path: Path) -> list[dict[str, Any]]:
    """All lines of a file, none of one that is not there."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def keep(path: Path, line: dict[str, Any], named_by: Iterable[str]) -> None:
    """Put a measurement in the place of the earlier one with the same values of ``named_by``."""
    named_by = list(named_by)
    others = [
        old for old in read(path) if [old[k] for k in named_by] != [line[k] for k in named_by]
    ]
    with atomic_write(path) as temporary:
        temporary.write_text("".join(json.dumps(each) + "\n" for each in [*others, line]), "utf-8")
