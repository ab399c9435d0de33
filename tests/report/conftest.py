"""Small synthetic reproduction: two papers with a claim of each verdict."""

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from private_consensus.report.reading import Results
from private_consensus.reproduction.results.files import stamp, write

DRAWN, MADE_UP = "drawn as the paper describes", "adult (surrogate)"
VERDICTS = ("held", "held in part", "did not hold", "undecided", "cannot be tested")


def write_result(frame: pl.DataFrame, path: Path) -> None:
    """Write a result without provenance."""
    write(frame, path, stamp({}, code="", source=""))


def variant(interpretation: str = "resolved") -> dict[str, Any]:
    return {"interpretation": interpretation, "because": "a reason", "set": {}}


def paper(key: str, number: str, figures: int = 2) -> dict[str, Any]:
    """Return a paper in the format of the validated configuration."""
    names = [f"{key}_fig{i + 1}" for i in range(figures)]
    curve = {
        "experiment": names[0], "method": "descent", "variant": "repaired", "style": "released",
        "by": None,
    }  # fmt: skip
    panel = {
        "experiment": names[0], "x": "epsilon", "x_title": "epsilon", "y_title": "error",
        "curves": [curve, {**curve, "by": "delta_power", "style": "printed"}],
    }  # fmt: skip
    experiment = {
        "title": "Error against epsilon",
        "location": "Figure 1",
        "axes": {"epsilon": {"set": "budget.epsilon", "because": ""}},
        "algorithms": {"descent": {"repaired": variant(), "literal": variant("literal")}},
        "unspecified_details": {
            "noise": {"literal": "a < b & c", "resolved": "c", "because": "<b>why</b>"}
        },
        "smoke": {"runs": 3, "axes": {"epsilon": [0.1, 1.0]}, "set": {}},
    }
    test = {"kind": "below", "tolerance": 0.0}
    return {
        "paper": {"key": key, "number": number, "title": f"On {key}", "authors": ["A", "B"],
                  "venue": "somewhere", "summary": "In short.", "methods": ["descent"]},
        "experiments": {names[0]: experiment},
        "figures": {
            name: {"title": f"Figure {i + 1}: error", "caption": "What is seen.",
                   "added": i > 0, "panels": [{**panel, "title": "left"}, {**panel, "title": ""}]}
            for i, name in enumerate(names)
        },
        "claims": {f"{key}_c0{i + 1}": {"variants": {"released": [test], "printed": [test]}}
                   for i in range(len(VERDICTS))},
    }  # fmt: skip


def claim(key: str, position: int, verdict: str, **changes: Any) -> dict[str, Any]:
    """Return a row of ``claims.parquet``."""
    return {
        "id": f"{key}_c0{position + 1}", "paper": key, "figure": f"{key}_fig{position % 2 + 1}",
        "claim": f"Claim {position + 1}: x < y", "location": "section 2", "variant": "released",
        "quotation": "We see that x < y.", "addition": False, "verdict_unadjusted": verdict,
        "is_primary": True, "interpretation": "resolved", "verdict": verdict, "kind": "below",
        "statistic": "epsilon 1",
        "value": math.log(0.5), "low": math.log(0.25), "high": 0.0, "accept_low": -math.inf,
        "accept_high": 0.0, "tolerance": 0.0, "parts": 2, "confirmed": 1, "contradicted": 0,
        "tied": 0,
        "runs_needed": 300.0 if verdict == "undecided" else None,
        "error": 0.3, "skewness": 0.2, "level_divisor": 2, "untestable_because": "by construction",
        "because": "an ordering", "runs": 20, "source": DRAWN, "setting": "", **changes,
    }  # fmt: skip


def privacy_row(key: str, name: str, epsilon: float, accounted: float, **changes: Any) -> dict:
    """Return a row of ``privacy.parquet``."""
    return {
        "experiment": f"{key}_fig1", "algorithm": "descent", "variant": name,
        "interpretation": "resolved", "delta": 1e-5, "epsilon_claimed": epsilon,
        "epsilon_formula": epsilon, "epsilon_accountant": accounted, "accountant": "gaussian",
        "proven": True, "relation": "replace one record",
        "unaccounted_data_use": "",
        "verdict": "holds" if accounted <= epsilon else "violated", "source": DRAWN,
        "epsilon": epsilon, "delta_power": None, **changes,
    }  # fmt: skip


def card(source: str = "mirror") -> dict[str, Any]:
    return {
        "dataset": "adult", "title": "UCI Adult", "preparation": "adult-onehot104", "rows": 45222,
        "dim": 104, "label": "+1: income >50K", "label_rate": 0.2478, "splits": {"train": 30162},
        "protected": {"sex": "1 = male"}, "source": source, "where": "mirror folder",
        "because": "as asked", "version": "1996", "checksum": "ab" * 32, "licence": "CC BY 4.0",
        "citation": "B. Becker, R. Kohavi, 1996", "notes": ["rows <= 1"],
    }  # fmt: skip


def results_of(papers: dict[str, dict[str, Any]], **changes: Any) -> Results:
    """Return all results of the specified papers."""
    facts = {
        name: {"source": DRAWN, "runs": (20, 20), "width": 800.0, "height": 400.0}
        for paper_config in papers.values() for name in paper_config["figures"]
    }  # fmt: skip
    claims = [claim(key, i, verdict) for key in papers for i, verdict in enumerate(VERDICTS)]
    claims += [
        claim(key, 0, "did not hold", variant="printed", is_primary=False, interpretation="literal")
        for key in papers
    ]
    fields = {
        "scale": "smoke",
        "papers": papers,
        "claims": claims,
        "privacy": [
            row
            for key in papers
            for row in (
                privacy_row(key, "repaired", 1.0, 0.8),
                privacy_row(key, "repaired", 4.0, 3.0),
                privacy_row(
                    key, "literal", 4.0, math.inf, interpretation="literal", accountant="none"
                ),
            )
        ],
        "facts": facts,
        "cards": [card()],
        "labels": {"descent.released": "descent, as released"},
        "commit": "v1-2-gabc",
        "versions": {"python": "3.11"},
    }
    return Results(**{**fields, **changes})


@pytest.fixture
def results() -> Results:
    return results_of({"first": paper("first", "000"), "second": paper("second", "001")})


DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" width="800" height="400"></svg>'


@pytest.fixture
def run_folder(results: Results, tmp_path: Path) -> Path:
    """Write the figures and numbers that the workflow would write for ``results``."""
    folder = tmp_path / "made"
    (folder / "figures").mkdir(parents=True)
    contents = {"svg": DRAWING.encode(), "png": b"png", "pdf": b"pdf"}
    y = [0.5, 0.25]
    numbers = pl.DataFrame({"x": [1.0, 2.0], "y": y, "low": y, "high": y, "runs": [20, 20],
                            "interval": ["mean +- standard error"] * 2})  # fmt: skip
    for name, fact in results.facts.items():
        for kind, content in contents.items():
            (folder / "figures" / f"{name}.{kind}").write_bytes(content)
        write(numbers, folder / "data" / f"{name}.parquet", stamp({}, "code", fact["source"]))
    return folder
