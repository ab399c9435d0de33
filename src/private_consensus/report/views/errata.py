"""Content of the page of errata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..formats import words
from ..names import algorithm_title
from ..reading import Results, Row

TEST = "tests/papers/test_counterexamples.py::test_the_computed_outcome_equals_the_stated_outcome"
"""Test with one case per erratum."""

SEVERITIES = {
    "breaks": "breaks a guarantee", "argument": "proof of a guarantee", "proof": "proof",
    "noise": "excess noise", "ambiguous": "ambiguous", "misprint": "misprint", "sound": "no error",
}  # fmt: skip
ICONS = {"confirmed": "held", "in part": "part", "refuted": "not"}


def page(results: Results) -> dict[str, object]:
    """Collect the content of the page: errata with the affected figures and their corrections."""
    return {
        "errata": [
            {
                **row,
                "icon": ICONS[row["outcome_computed"]],
                "figures": _figures(_split_names(row["affects"]), results.papers),
                "corrections": [
                    _correction(name, results) for name in _split_names(row["repaired"])
                ],
            }
            for row in results.audit.get("errata", [])
        ],
        "severities": SEVERITIES,
        "test": TEST,
    }


def _figures(names: Iterable[str], papers: Mapping[str, Row]) -> list[str]:
    """Return the figures with a curve of one of some algorithms or variants."""
    return [
        name
        for paper in papers.values()
        for name, figure in paper["figures"].items()
        if any(
            curve["method"] in names or f"{curve['method']}.{curve['variant']}" in names
            for panel in figure.get("panels", [])
            for curve in panel["curves"]
        )
    ]


def _correction(name: str, results: Results) -> dict[str, object]:
    """Describe a corrected variant: its verdicts, and the figures that show it."""
    algorithm, _, variant = name.partition(".")
    verdicts = dict.fromkeys(
        row["verdict"]
        for row in results.privacy
        if (row["algorithm"], row["variant"]) == (algorithm, variant)
    )
    return {
        "name": f"{algorithm_title(algorithm)}, {words(variant)}",
        "verdict": "; ".join(verdicts) or "not run at this scale",
        "figures": _figures([name], results.papers),
    }


def _split_names(text: str) -> list[str]:
    return [name for name in text.split("; ") if name]
