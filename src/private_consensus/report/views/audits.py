"""Content of the page of audits."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from private_consensus.audits.result import (
    LEAKS,
    NO_GUARANTEE,
    NOT_CONTRADICTED,
    NOT_EXECUTED,
    REFUSED,
    UNDERSTATED,
)
from private_consensus.privacy import VIOLATED

from ..formats import number, words
from ..reading import Results, Row

ICONS = {
    LEAKS: "not", UNDERSTATED: "not", VIOLATED: "not", NO_GUARANTEE: "part", REFUSED: "open",
    NOT_EXECUTED: "open", NOT_CONTRADICTED: "held",
}  # fmt: skip


def page(results: Results) -> dict[str, object]:
    """Collect the content of the page of audits."""
    rows = table(results.audit.get("audits", []))
    replayed = [row for row in rows if row["bound"] is None]
    return {
        "replayed": replayed,
        "statistical": [row for row in rows if row["bound"] is not None],
        "outcomes": [
            {"verdict": verdict, "icon": ICONS[verdict], "count": count}
            for verdict, count in Counter(row["verdict"] for row in replayed).most_common()
        ],
    }


def table(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return one row per audit, with a description of its setting and an icon."""
    return [
        {
            **row,
            "setting": " ".join(filter(None, (words(row["variant"]), _setting(row)))),
            "icon": _icon(row),
        }
        for row in rows
    ]


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
