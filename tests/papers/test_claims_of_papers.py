"""Test quotations of claims, against the texts of the papers if available, and their slopes."""

import os
import re
import unicodedata
from pathlib import Path

import polars as pl
import pytest

from private_consensus.common.row_filters import selected
from private_consensus.core import algorithms, problems
from private_consensus.core.algorithms.base import Analysis
from private_consensus.reproduction.claims.differences import LABELS
from private_consensus.reproduction.claims.schema import PRIVATE
from private_consensus.reproduction.claims.words import HELD, NOT_HELD
from private_consensus.reproduction.results.files import rows_of

REFERENCE = Path(__file__).parents[2] / "results" / "reference"

FORMULA = re.compile(r"\S*(?:[^\x00-\x7f]|[=_^\\/<>+])\S*")
"""Word of a quotation with a symbol. Texts of papers encode formulas in different ways."""


@pytest.fixture(scope="module")
def papers(plan):
    return plan.papers


@pytest.fixture(scope="module")
def texts(papers):
    """Return the letters and digits of each paper."""
    folder = os.environ.get("PRIVATE_CONSENSUS_PAPERS")
    if not folder:
        pytest.skip("PRIVATE_CONSENSUS_PAPERS names no folder with the texts of the papers")
    numbers = {key: paper.paper.number for key, paper in papers.items() if paper.paper.number}
    return {key: letters(next(Path(folder).glob(f"{number}*.txt")).read_text(encoding="utf-8"))
            for key, number in numbers.items()}  # fmt: skip


def letters(text: str) -> str:
    """Reduce a text to letters and digits: no case, ligatures, hyphens, line breaks, symbols."""
    return re.sub("[^a-z0-9]", "", unicodedata.normalize("NFKD", text).casefold())


def pattern(quotation: str) -> str:
    """Return the regular expression of a quotation.

    An ellipsis is a passage of any length, and a formula one of at most 400 letters.
    """
    passages = [
        ".{0,400}?".join(filter(None, map(letters, FORMULA.split(passage))))
        for passage in quotation.split("...")
    ]
    return ".*?".join(passages)


def test_quotations_are_short_and_have_a_page_or_section(papers):
    claims = [claim for paper in papers.values() for claim in paper.claims.values()]
    quoted = [claim for claim in claims if claim.quotation]
    assert quoted
    for claim in quoted:
        assert len(claim.quotation.split()) <= 40
        assert re.search("page|section|abstract|Appendix", claim.location), claim.claim


def test_no_total_counts_claims_without_a_quotation_and_claims_of_other_papers(plan, papers):
    for key, paper in papers.items():
        for name, claim in plan.claims(key).items():
            assert claim.addition == (not claim.quotation or paper.paper.number == ""), name
    assert all(claim.quotation for claim in papers["others"].claims.values())


def test_a_sentence_of_a_paper_counts_once(papers):
    for key, paper in papers.items():
        quoted = {
            name: list(filter(None, map(letters, claim.quotation.split("..."))))
            for name, claim in paper.claims.items()
            if claim.quotation
        }
        for name, passages in quoted.items():
            others = ["".join(other) for copy, other in quoted.items() if copy != name]
            assert not any(all(p in other for p in passages) for other in others), (key, name)


def test_no_claim_holds_or_fails_against_an_interpretation_of_its_sentence():
    """Interpretations with other verdicts have to be parts of the primary variant."""
    rows = rows_of(REFERENCE / "claims.parquet")
    others = rows.filter(~pl.col("is_primary"), pl.col("interpretation") != "ablation")
    for row in rows.filter("is_primary", ~pl.col("addition"), theorems="").to_dicts():
        verdicts = set(others.filter(id=row["id"], claim=row["claim"])["verdict"])
        if row["verdict"] == HELD:
            assert verdicts <= {HELD}, row["id"]
        if row["verdict"] == NOT_HELD:
            assert HELD not in verdicts, row["id"]


def test_each_quotation_is_in_the_text_of_its_paper(papers, texts):
    missing = [
        name
        for key, text in texts.items()
        for name, claim in papers[key].claims.items()
        if not re.search(pattern(claim.quotation), text)
    ]
    assert not missing


def test_a_quotation_ignores_line_breaks_and_formulas_but_no_word():
    text = letters(
        "Effi-\ncient e\ufb03cient error is $O(\\frac{1}{\\epsilon})$. It falls. It rises."
    )
    assert re.search(pattern("efficient EFFICIENT error is O(1/ε). It ... It rises"), text)
    assert not re.search(pattern("It rises ... falls"), text)
    assert not re.search(pattern("error is small"), text)


def test_a_testable_slope_has_at_least_four_points(papers):
    for paper in papers.values():
        for name, claim in paper.claims.items():
            is_tested = not (claim.untestable or claim.untested)
            for test in claim.variants[claim.primary_variant].tests if is_tested else []:
                axes = paper.experiments[test.series.experiment].axes
                if test.kind in ("slope", "trend", "steady") and test.x in axes:
                    selected = test.series.where.get(test.x, (-float("inf"), float("inf")))
                    low, high = selected if isinstance(selected, list | tuple) else (selected,) * 2
                    assert sum(low <= x <= high for x in axes[test.x].values) >= 4, name


def values_of(plan, series, path):
    """Return the values of a parameter in the settings of a series, or the default of its class."""
    section, _, key = path.partition(".")
    for setting in plan.cell(series.experiment, series.method)["settings"]:
        row = pl.DataFrame([setting["columns"] or {"t": 0}])
        where = {k: v for k, v in series.where.items() if k in setting["columns"]}
        if setting["variant"] == series.variant and row.filter(*selected(where)).height:
            problem = problems.class_of(setting["problem"]["name"])
            owner = {"algorithm": algorithms.load(series.method), "problem": problem}.get(section)
            default = getattr(owner, key, None) if key else None
            yield setting[section].get(key, default) if key else setting[section]


def test_a_claim_names_each_parameter_without_a_test_at_the_value_of_the_paper(plan):
    claims = {name: claim for key in plan.papers for name, claim in plan.claims(key).items()}
    for name, claim in claims.items():
        tests = claim.variants[claim.primary_variant].tests
        expected = set()
        for side in (0, 1):
            sides = [test.all_series[side] for test in tests if side < len(test.all_series)]
            tables = [plan.experiments[series.experiment].paper_values for series in sides]
            for path, stated in {pair for t in tables for pair in t.items() if pair[1] is not None}:
                users = [s for s, t in zip(sides, tables, strict=True) if t.get(path) == stated]
                values = {v for s in users for v in values_of(plan, s, path)} - {None}
                if values and stated not in values:
                    expected.add(LABELS.get(path, path.rpartition(".")[2]))
        found = claim.differences.split("; ")
        assert {label for label in expected for f in found if f.startswith(label)} == expected, name


def test_the_setting_states_the_runs_of_a_claim_that_its_figure_does_not_show(plan):
    claims = {name: claim for key in plan.papers for name, claim in plan.claims(key).items()}
    for name, claim in claims.items():
        tests = claim.variants[claim.primary_variant].tests
        shown = {experiment for experiment, _ in plan.cells_of(claim.figure)}
        decisive, _, _ = claim.setting.partition("the figure shows")
        stated = re.findall(r"([\d,]+|one) runs? of (\w+)", decisive)
        private = set(re.findall(r"the privacy of (\w+)", decisive))
        expected = {True: set(), False: set()}
        for test in tests:
            expected[test.kind == PRIVATE] |= {(s.experiment, s.method) for s in test.all_series}
        experiments = {experiment for experiment, _ in expected[True] | expected[False]}
        if experiments <= shown or claim.untested or claim.untestable:
            assert not stated and not private, name
            continue
        assert private == {experiment for experiment, _ in expected[True]}, name
        random = [c for c in expected[False] if not issubclass(algorithms.load(c[1]), Analysis)]
        runs = {experiment: f"{plan.cell(experiment, m)['runs']:,}" for experiment, m in random}
        assert dict(map(reversed, stated)) == {e: "one" for e, _ in expected[False]} | runs, name
