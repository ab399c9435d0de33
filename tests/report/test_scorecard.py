"""Test the scorecard and the table of delivered privacy."""

import csv
import io
import math
import re
from dataclasses import replace

import pytest

from private_consensus.report.page import pages, paper_view
from private_consensus.report.views import answer, privacy, scorecard, verdicts

from . import conftest
from .conftest import privacy_row


def with_addition(results):
    """Replace the first claim by an addition of this project."""
    first, *others = results.claims
    return replace(results, claims=[{**first, "quotation": "", "addition": True}, *others])


def test_additions_are_listed_last_and_counted_nowhere(results):
    extended = replace(with_addition(results), scale="paper")
    rows = scorecard.scored(extended)
    assert [row["addition"] for row in rows] == [False] * 9 + [True]
    assert [item["count"] for item in verdicts.counts(rows)] == [1, 2, 2, 0, 2, 0, 2]
    assert answer.summary(extended).startswith("9 claims that the papers make: 1 held,")
    assert paper_view("first", extended)["claims"][-1]["id"] == "first_c01"
    before, after = scorecard.files(rows)["scorecard.md"].split("## Claims that no total counts")
    assert "first_c01" in after and "first_c01" not in before
    texts = pages(extended)
    for name in ("scorecard.html", "papers/first.html"):
        assert texts[name].count("Addition of this project") == 1


def test_csv_and_markdown_files_list_the_same_claims(results):
    file_texts = scorecard.files(scorecard.scored(results))
    rows = list(csv.DictReader(file_texts["scorecard.csv"].splitlines()))
    assert [row["id"] for row in rows] == [row["id"] for row in scorecard.scored(results)]
    assert list(rows[0]) == list(scorecard.COLUMNS)
    assert float(rows[0]["value"]) == pytest.approx(0.5)
    assert file_texts["scorecard.md"].count("\n| `") == 10


@pytest.mark.parametrize(
    "rows, expected",
    [
        ([("a", "resolved", 0.8, "holds")], [("", "held", "at most 0.8")]),
        ([("a", "resolved", 0.8, "holds"), ("b", "literal", math.inf, "violated")],
         [(", as published", "not", "∞"), ("", "held", "at most 0.8")]),
        ([("a", "resolved", 0.8, "holds"), ("b", "literal", 0.5, "holds")],
         [("", "held", "at most 0.8")]),
        ([("a", "resolved", 0.8, "holds"), ("b", "resolved", 2.0, "not proven")],
         [("", "part", "at most 2")]),
        ([("a", "literal", math.inf, "violated"), ("a", "literal", 3.0, "violated")],
         [("", "not", "∞")]),
    ],
)  # fmt: skip
def test_an_algorithm_is_judged_by_the_worst_of_its_resolved_settings(rows, expected):
    """The text as published has a row of its own if it is worse."""
    privacy_rows = [
        privacy_row("first", variant, 1.0, accounted, interpretation=kind, verdict=verdict,
                    epsilon_lower=accounted if accounted == math.inf else None)
        for variant, kind, accounted, verdict in rows
    ]  # fmt: skip
    papers = {"first": conftest.paper("first", "000")}
    delivered_rows = privacy.delivered(conftest.results_of(papers, privacy=privacy_rows))
    assert [
        (row["title"], row["icon"], row["multiple"], row["claimed"]) for row in delivered_rows
    ] == [(f"descent{title}", icon, multiple, "1") for title, icon, multiple in expected]


def test_a_refuted_claim_of_one_iteration_has_a_row_of_its_own():
    audit = {
        "algorithm": "release_audit", "level": "release of descent", "variant": "descent",
        "copy": "correct", "bound": 3.0, "claimed": 0.5, "verdict": "violated",
    }  # fmt: skip
    ablation = {**audit, "variant": "ablation", "bound": 9.0}
    weaker = {**audit, "bound": 2.0}
    papers = {"first": conftest.paper("first", "000")}
    rows = [privacy_row("first", "a", 1.0, math.inf, verdict="not proven", proven=False)]
    for verdict, titles in (("violated", ["descent, one iteration"]), ("not contradicted", [])):
        audits = {"audits": [{**audit, "verdict": verdict}, ablation, weaker]}
        results = conftest.results_of(papers, privacy=rows, audit=audits)
        delivered_rows = privacy.delivered(results)
        assert [row["title"] for row in delivered_rows] == [*titles, "descent"]
        assert not titles or delivered_rows[0]["low"] == 6.0
    assert (
        privacy.delivered(conftest.results_of(papers, privacy=rows))[0]["multiple"] == "not known"
    )


def test_audits_and_algorithms_without_a_claim_are_not_in_the_chart():
    papers = {"first": conftest.paper("first", "000")}
    silent = privacy_row("first", "a", math.inf, 1.0)
    audit = privacy_row("first", "a", 1.0, 1.0, algorithm="canary_audit")
    assert privacy.delivered(conftest.results_of(papers, privacy=[silent, audit])) == []


NASTY = "=HYPERLINK(1) | <script>x</script> [a](javascript:1) `b`\n| c | *d*"


def test_scorecard_files_escape_spreadsheet_formulas_and_markdown(results):
    claims = [{**row, "claim": NASTY, "id": f"{sign}{row['id']}"}
              for row, sign in zip(results.claims, "=+-@\t\r=+", strict=False)]  # fmt: skip
    file_texts = scorecard.files(scorecard.scored(replace(results, claims=claims)))
    rows = list(csv.DictReader(io.StringIO(file_texts["scorecard.csv"], newline="")))
    words = [row[key] for row in rows for key in ("id", "claim", "verdict", "command")]
    assert rows and not [word for word in words if word[:1] in tuple("=+-@\t\r")]
    assert all(float(row["value"]) == float(row["value"]) for row in rows if row["value"])
    table = file_texts["scorecard.md"].partition("| claim |")[2].splitlines()[2:]
    assert len(table) == len(rows)
    for line in table:
        assert len(re.findall(r"(?<!\\)\|", line)) == 13
        assert not re.search(r"(?<!\\)[<>]|(?<!\\)\[", line)
