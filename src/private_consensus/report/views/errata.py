"""Content of the page of errata, and rows of the table of audits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from private_consensus.privacy import DIFFERS, INCONCLUSIVE, NOT_PROVEN, VIOLATED
from private_consensus.privacy.verdicts import NO_TEST, NOT_CONTRADICTED

from ..formats import number, words
from ..names import algorithm_title
from ..reading import Results, Row

TEST = "tests/audits/test_counterexamples.py::test_the_computed_outcome_equals_the_stated_outcome"
"""Test with one case per erratum."""

SEVERITIES = {
    "breaks": "breaks a guarantee", "proof": "proof", "noise": "excess noise",
    "ambiguous": "ambiguous", "misprint": "misprint", "sound": "no error",
}  # fmt: skip
AUDIT_ICONS = {
    VIOLATED: "not", DIFFERS: "not", NOT_PROVEN: "part", INCONCLUSIVE: "open", NO_TEST: "open",
    NOT_CONTRADICTED: "held",
}  # fmt: skip
ICONS = {"confirmed": "held", "in part": "part", "refuted": "not"}


def page(results: Results) -> dict[str, Any]:
    """Collect the content of the page of errata."""
    errata = results.audit.get("errata", [])
    rows = table(errata, results.privacy, results.papers)
    return {"errata": rows, "severities": SEVERITIES, "test": TEST}


def table(
    errata: Iterable[Row], privacy: Iterable[Row], papers: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return one row per erratum, with the affected figures and those of its correction.

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
    return [
        {
            **row,
            "icon": ICONS[row["outcome_computed"]],
            "figures": _figures(curves, _split_names(row["affects"])),
            "corrections": _corrections(curves, settings, _split_names(row["repaired"])),
        }
        for row in errata
    ]


def audits(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return one row per audit of a correct or a faulty algorithm, with formatted numbers."""
    return [
        {
            "algorithm": algorithm_title(row["algorithm"]),
            "setting": " ".join(filter(None, (words(row["variant"]), _setting(row)))),
            "level": row["level"],
            "copy": row["copy"],
            "claimed": number(row["claimed"]),
            "bound": number(row["bound"]),
            "ceiling": number(row["ceiling"]) if row["ceiling"] == row["ceiling"] else "",
            "delta": number(row["delta"]),
            "runs": number(row["runs"]),
            "confidence": _level(row["confidence"]),
            "verdict": row["verdict"],
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
        return AUDIT_ICONS[row["verdict"]]
    return "held" if row["flagged"] else "open"


def _split_names(text: str) -> list[str]:
    return [name for name in text.split("; ") if name]


def _curves(papers: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Return figure, algorithm and ``algorithm.variant`` of every curve."""
    return [
        (name, curve["method"], f"{curve['method']}.{curve['variant']}")
        for paper in papers.values()
        for name, figure in paper["figures"].items()
        for panel in figure.get("panels", [])
        for curve in panel["curves"]
    ]


def _figures(curves: list[tuple[str, str, str]], names: list[str]) -> list[str]:
    selected = set(names)
    return list(dict.fromkeys(figure for figure, *keys in curves if selected & set(keys)))


def _corrections(curves, privacy: list[Row], names: list[str]) -> list[dict[str, Any]]:
    corrections = []
    for name in names:
        algorithm, _, variant = name.partition(".")
        rows = [r for r in privacy if (r["algorithm"], r["variant"]) == (algorithm, variant)]
        verdicts = dict.fromkeys(r["verdict"] for r in rows)
        corrections.append(
            {
                "name": f"{algorithm_title(algorithm)}, {words(variant)}",
                "verdict": "; ".join(verdicts) or "not run at this scale",
                "figures": _figures(curves, [name]),
            }
        )
    return corrections
