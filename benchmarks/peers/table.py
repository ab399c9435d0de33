"""The table of the measured libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from private_consensus.common.spreadsheets import markdown_table

from .. import measuring

KEPT = measuring.ROOT / "benchmarks" / "measured" / "peers.jsonl"
PARTS = ("local_problems", "clipping", "normals", "accounting")
SEPARATE = "separate"
"""Part of the stored rows that no module of this package measures."""
REASONS = {"decent-bench": " (it requires Python 3.13)"}
"""Reasons why a library cannot be installed."""
HEAD = ("task", "library", "private-consensus", "time of library", "ratio", "results", "")


def table(stored: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of the stored measurements in Markdown, with machines and versions."""
    parts = {part["part"]: part for part in stored}
    ordered = [parts[name] for name in (*PARTS, SEPARATE) if name in parts]
    missing = {name + REASONS.get(name, "") for part in ordered for name in part["missing"]}
    return "\n".join(
        [
            *dict.fromkeys(map(_origin, ordered)),
            f"Not installed, and so not measured: {', '.join(sorted(missing))}." if missing else "",
            "",
            markdown_table(HEAD, [_row(line) for part in ordered for line in part["lines"]]),
        ]
    )


def _origin(part: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in part["versions"].items())
    begin = "Rows that were measured separately: " if part["part"] == SEPARATE else ""
    return f"{begin}{part['day']}, one core of {part['machine']}; {versions}."


def _row(line: Mapping[str, Any]) -> list[str]:
    ratio = f"{line['ratio']:.2g}" if line["ratio"] < 100 else f"{line['ratio']:,.0f}"
    least = "> " if line.get("longer") else ""
    ours, theirs = (spelled(line[key]) for key in ("ours", "theirs"))
    what = [line["what"], line["peer"], ours, least + theirs, least + ratio]
    return [*what, line["same"], line["note"]]


def spelled(seconds: float) -> str:
    """A time with its unit."""
    units = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
    unit, size = next((pair for pair in units if seconds >= pair[1]), units[-1])
    return f"{seconds / size:.3g} {unit}"
