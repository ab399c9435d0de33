"""The errata, one row per item, and the table of audits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from private_consensus.privacy import DIFFERS, INCONCLUSIVE, NOT_PROVEN, VIOLATED
from private_consensus.privacy.verdicts import NO_TEST, NOT_CONTRADICTED

from ...experiments.citations import cited
from ..formats import number, words
from ..names import called
from ..reading import Results

Row = Mapping[str, Any]

TEST = "tests/audits/test_counterexamples.py::test_the_outcome_is_as_written_down"
"""Test with one case per item."""

SEVERITIES = {
    "breaks": "breaks a guarantee", "proof": "proof", "noise": "excess noise",
    "ambiguous": "ambiguous", "misprint": "misprint", "sound": "sound",
}  # fmt: skip
AUDIT_LOOKS = {
    VIOLATED: "not", DIFFERS: "not", NOT_PROVEN: "part", INCONCLUSIVE: "open", NO_TEST: "open",
    NOT_CONTRADICTED: "held", "flagged": "not", "not flagged": "held",
}  # fmt: skip
NUMBERED = re.compile(r"\b[Pp]aper (\d{3})\b")
LOOKS = {"confirmed": "held", "in part": "part", "refuted": "not"}


def page(results: Results) -> dict[str, Any]:
    """Collect the content of the page of errata."""
    errata = results.audit.get("errata", [])
    return {"errata": table(errata, results.privacy, results.papers)}


def table(
    errata: Iterable[Row], privacy: Iterable[Row], papers: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return one row per erratum, with the figures that it affects and that show its correction.

    Parameters
    ----------
    errata : iterable of rows
        Errata with claimed and computed values.
    privacy : iterable of rows
        One row per setting.
    papers : mapping
        Key to paper, with its figures.

    Returns
    -------
    list of dict
    """
    curves = _curves(papers)
    settings = list(privacy)
    names = {paper["paper"]["number"]: cited(paper["paper"]) for paper in papers.values()}
    return [
        {
            **{key: row[key] for key in ("id", "statement", "why", "repair", "effect")},
            "location": _cited(row["location"], names),
            "anchor": f"erratum-{row['id'].replace('.', '-')}",
            "breaks": row["severity"] == "breaks",
            "severity": SEVERITIES[row["severity"]],
            "outcome": row["outcome_computed"],
            "look": LOOKS[row["outcome_computed"]],
            "agrees": row["outcome"] == row["outcome_computed"],
            "quantity": row["quantity"],
            "claimed": number(row["claimed"]),
            "computed": number(row["computed"]),
            "description": row["description"].replace("\n", " "),
            "command": f"private-consensus counterexample {row['id']}",
            "test": f'pytest "{TEST}[{row["id"]}]"',
            "affects": [words(name) for name in _names(row["affects"])],
            "figures": _figures(curves, _names(row["affects"])),
            "repairs": _repairs(curves, settings, _names(row["repaired"])),
        }
        for row in errata
    ]


def _cited(location: str, names: Mapping[str, str]) -> str:
    """Replace the number of a paper, such as "Paper 003", by its citation."""
    return NUMBERED.sub(lambda match: names.get(match[1], match[0]), location)


def audits(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the audits of correct and of broken copies."""
    return [
        {
            "algorithm": called(row["algorithm"]),
            "setting": " ".join(filter(None, (words(row["variant"]), _setting(row)))),
            "level": row["level"],
            "copy": row["copy"],
            "claimed": number(row["claimed"]),
            "bound": number(row["bound"]),
            "ceiling": number(row["ceiling"]) if row["ceiling"] == row["ceiling"] else "",
            "delta": number(row["delta"]),
            "runs": number(row["runs"]),
            "confidence": _level(row["confidence"]),
            "word": _outcome(row),
            "look": _look(row),
            "texts": _texts(row),
        }
        for row in rows
    ]


def _outcome(row: Row) -> str:
    """Verdict of the audit; a claim above what so many runs can show is not tested."""
    if row.get("verdict"):
        return row["verdict"]
    if row["flagged"]:
        return "flagged"
    return NO_TEST if row["claimed"] > row["ceiling"] else "not flagged"


def _texts(row: Row) -> list[str]:
    """Findings, notes, and decisive parts that were not tested."""
    columns = {"": "findings", "note: ": "notes", "not tested: ": "untested"}
    return [f"{before}{row[key]}" for before, key in columns.items() if row.get(key)]


def _level(confidence: float) -> str:
    """Format a confidence level in percent; a computed bound has no error level."""
    return "computed" if confidence == 1.0 else f"{100 * confidence:.6g} %"


def _setting(row: Row) -> str:
    """Return experiment and axis values of a setting that a figure shows."""
    if not row["experiment"]:
        return row["setting"]
    point = json.loads(row["setting"]).items()
    values = [f"{words(axis)} {v if isinstance(v, str) else number(v)}" for axis, v in point]
    return ", ".join([words(row["experiment"]), *values])


def _look(row: Row) -> str:
    if row["copy"] == "correct":
        return AUDIT_LOOKS[_outcome(row)]
    return "held" if row["flagged"] else "open"


def _names(text: str) -> list[str]:
    return [name for name in text.split("; ") if name]


def _curves(papers: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """(figure, algorithm, algorithm.run) of every curve."""
    return [
        (name, curve["method"], f"{curve['method']}.{curve['variant']}")
        for paper in papers.values()
        for name, figure in paper["figures"].items()
        for panel in figure.get("panels", [])
        for curve in panel["curves"]
    ]


def _figures(curves: list[tuple[str, str, str]], names: list[str]) -> list[str]:
    selected = set(names)
    return list(dict.fromkeys(figure for figure, *both in curves if selected & set(both)))


def _repairs(curves, privacy: list[Row], names: list[str]) -> list[dict[str, Any]]:
    corrections = []
    for name in names:
        algorithm, _, variant = name.partition(".")
        rows = [r for r in privacy if (r["algorithm"], r["variant"]) == (algorithm, variant)]
        verdicts = dict.fromkeys(r["verdict"] for r in rows)
        corrections.append(
            {
                "name": f"{called(algorithm)}, {words(variant)}",
                "verdict": "; ".join(verdicts) or "not run at this scale",
                "figures": _figures(curves, [name]),
            }
        )
    return corrections
