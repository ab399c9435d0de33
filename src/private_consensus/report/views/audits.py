"""Content of the page of audits."""

import json
from collections import Counter
from operator import itemgetter

from private_consensus.audits.result import (
    LEAKS,
    NO_GUARANTEE,
    NOT_CONTRADICTED,
    NOT_EXECUTED,
    REFUSED,
    UNDERSTATED,
)
from private_consensus.common.grouping import grouped
from private_consensus.privacy.verdicts import VIOLATED

from ..formats import algorithm_title, number, words
from ..reading import Results, Row
from .privacy import variant_words

ICONS = {
    LEAKS: "not", UNDERSTATED: "not", VIOLATED: "not", NO_GUARANTEE: "part", REFUSED: "open",
    NOT_EXECUTED: "open", NOT_CONTRADICTED: "open",
}  # fmt: skip


def page(results: Results) -> dict[str, object]:
    """Collect the content of the page of audits: one group of audits per method."""
    audits = results.audit.get("audits", [])
    rows = [{**row, "setting": _setting(row, results), "icon": _icon(row)} for row in audits]
    return {
        "methods": [
            {
                "name": algorithm_title(name),
                "audits": group,
                "outcomes": [
                    {"verdict": verdict, "icon": ICONS[verdict], "count": count}
                    for verdict, count in Counter(row["verdict"] for row in group).items()
                ],
            }
            for name, group in grouped(rows, itemgetter("algorithm")).items()
        ]
    }


def _setting(row: Row, results: Results) -> str:
    """Describe an audited setting: the variant, the figure and varied parameters."""
    variant = variant_words(f"{row['algorithm']}.{row['variant']}", results)
    if row["experiment"]:
        point = json.loads(row["setting"]).items()
        values = [f"{words(axis)} = {v if isinstance(v, str) else number(v)}" for axis, v in point]
        setting = [results.experiments[row["experiment"]]["title"], *values]
    else:
        setting = [row["setting"] or row["level"]]
    return "; ".join(filter(None, [variant, *setting]))


def _icon(row: Row) -> str:
    if row["copy"] == "correct":
        return ICONS[row["verdict"]]
    return "held" if row["flagged"] else "open"
