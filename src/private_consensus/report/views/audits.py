"""Content of the page of audits."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from private_consensus.privacy import DIFFERS, INCONCLUSIVE, NOT_PROVEN, VIOLATED
from private_consensus.privacy.verdicts import NO_TEST, NOT_CONTRADICTED

from ..formats import number, words
from ..reading import Results, Row

ICONS = {
    VIOLATED: "not", DIFFERS: "not", NOT_PROVEN: "part", INCONCLUSIVE: "open", NO_TEST: "open",
    NOT_CONTRADICTED: "held",
}  # fmt: skip


def page(results: Results) -> dict[str, object]:
    """Collect the content of the page of audits."""
    rows = table(results.audit.get("audits", []))
    outcomes = Counter((row["verdict"], row["icon"]) for row in rows if row["copy"] == "correct")
    claims = {(r["algorithm"], r["level"]): r["claimed"] for r in rows if r["copy"] == "correct"}
    less_noise = [
        {**row, "full": claims[key]}
        for row in rows
        if row["copy"] != "correct" and (key := (row["algorithm"], row["level"])) in claims
    ]
    return {
        "audits": rows,
        "above_limit": sum(row["claimed"] > row["ceiling"] for row in rows),
        "less_noise": less_noise,
        "less_noise_detected": sum(row["bound"] > row["full"] for row in less_noise),
        "outcomes": [
            {"verdict": verdict, "icon": icon, "count": count}
            for (verdict, icon), count in outcomes.most_common()
        ],
    }


def table(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return one row per audit of a correct or a faulty algorithm, with setting and findings."""
    return [
        {
            **row,
            "setting": " ".join(filter(None, (words(row["variant"]), _setting(row)))),
            "confidence": _level(row["confidence"]),
            "icon": _icon(row),
            "texts": _texts(row),
        }
        for row in rows
    ]


def _texts(row: Row) -> list[str]:
    """Return findings, notes, and decisive parts that were not tested."""
    columns = {"": "findings", "note: ": "notes", "not tested: ": "untested"}
    return [f"{label}{row[key]}" for label, key in columns.items() if row.get(key)]


def _level(confidence: float) -> str:
    """Format a confidence level in percent; level 1 marks a bound without random error."""
    return "computed" if confidence == 1.0 else f"{100 * confidence:.6g} %"


def _setting(row: Row) -> str:
    """Describe an audited setting of a figure by its experiment and varied parameters."""
    if not row["experiment"]:
        return row["setting"]
    point = json.loads(row["setting"]).items()
    values = [f"{words(axis)} = {v if isinstance(v, str) else number(v)}" for axis, v in point]
    return ", ".join([words(row["experiment"]), *values])


def _icon(row: Row) -> str:
    if row["copy"] == "correct":
        return ICONS[row["verdict"]]
    return "held" if row["flagged"] else "open"
