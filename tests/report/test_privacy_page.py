"""Test the pages on privacy and audits, with lower bounds on epsilon next to claimed values."""

import math
from dataclasses import replace

import pytest

from private_consensus.audits.result import VERDICTS
from private_consensus.report.page import pages
from private_consensus.report.views.audits import table as audit_table
from private_consensus.report.views.privacy import (
    MAX_LISTED_SETTINGS,
    _bounded,
    _findings,
    _of_verdict,
    audit_in_words,
    of_experiments,
    privacy_by_variant,
    settings_table,
)

from .conftest import privacy_row


def row(bound, claimed, how="transcript", computed=None):
    return {
        "epsilon_empirical": bound, "epsilon_claimed": claimed, "audit": how,
        "epsilon_lower": computed, "lower_bound_method": "an attack",
    }  # fmt: skip


def test_the_lower_bound_with_the_largest_ratio_to_its_claim_is_shown():
    displayed = _bounded([row(5.0, 10.0, "weak"), row(3.0, 1.0, "strong"), row(None, 2.0)])
    assert (displayed["bound"], displayed["method"]) == ("3 (claimed 1)", "strong")
    displayed = _bounded([row(0.0, 1.0), row(0.0, 0.318, computed=2.29)])
    assert (displayed["bound"], displayed["method"]) == ("2.29 (claimed 0.318)", "an attack")


@pytest.mark.parametrize("rows", [[row(0.0, 1.0)], [row(None, 1.0)], [row(None, math.inf)]])
def test_a_zero_or_missing_lower_bound_is_not_shown(rows):
    assert _bounded(rows) == {"bound": "", "method": "", "lower_over_claimed": 0.0}


def test_the_variant_with_the_largest_lower_bound_ratio_is_selected():
    variants = [
        {"verdict": "holds", "icon": "held", "variant": "v", "ratio": None, "audited": "",
         **_bounded([row(bound, 1.0)])}
        for bound in (None, 0.5)
    ]  # fmt: skip
    assert _of_verdict(variants)["bound"] == "0.5 (claimed 1)"
    assert _of_verdict(variants)["multiple"] == ""
    ratios = [
        {**variants[0], "variant": name, "ratio": ratio, "proven": True}
        for name, ratio in (("a", 2.0), ("b", 3.0))
    ]
    assert _of_verdict(ratios)["multiple"] == "3 × claimed ε (b)"


def test_the_page_shows_the_lower_bound_that_violates_a_claim(results):
    violated = privacy_row(
        "first",
        "broken",
        0.318,
        2.4,
        verdict="violated",
        epsilon_lower=2.29,
        lower_bound_method="largest loss",
        epsilon_empirical=0.0,
        audit="transcript",
    )
    extended = replace(results, privacy=[*results.privacy, violated])
    text = pages(extended)["privacy.html"]
    assert "at least 2.29 (claimed 0.318)" in text
    assert "at least 0 of" not in text


@pytest.mark.parametrize("verdict", ["differs from its declaration", "inconclusive"])
def test_the_page_shows_audit_verdict_and_finding_instead_of_holds(results, verdict):
    """Check the table of algorithms, the settings page and the verdict on the variant."""
    text = "a record changes the draw by 2 times the declared sensitivity"
    row = privacy_row(
        "first", "differing", 1.0, 0.9, verdict=verdict, audit_verdict=verdict,
        audit_findings=text, epsilon_empirical=0.5, audit="transcript of this setting",
    )  # fmt: skip
    texts = pages(replace(results, privacy=[row]))
    table = texts["privacy.html"].split("<tbody>")[1].split("</tbody>")[0]
    assert verdict in table and text in table and ">holds" not in table
    papers = [page for name, page in texts.items() if name.startswith("settings/")]
    assert any(verdict in page and text in page for page in papers)
    (promised,) = privacy_by_variant(replace(results, privacy=[row]))
    assert (promised["icon"], promised["verdict"]) == ("part", verdict)


def test_an_audit_row_shows_an_icon_for_its_verdict():
    row = {**audit("m", "small example", None), "variant": "", "experiment": "", "setting": ""}
    for verdict in (*VERDICTS, "violated"):
        (table_row,) = audit_table([{**row, "verdict": verdict}])
        assert (table_row["icon"] == "held") == (verdict == "not contradicted")


def test_the_settings_table_is_complete_if_the_page_omits_settings(results):
    many = [
        privacy_row("first", "v", 1.0, 0.5, delta_power=-i) for i in range(MAX_LISTED_SETTINGS + 1)
    ]
    experiment_view, *_ = of_experiments(many, results.papers["first"]["experiments"])
    assert (experiment_view["settings"], experiment_view["count"]) == ([], MAX_LISTED_SETTINGS + 1)
    table = settings_table(many, results.papers["first"]["experiments"])
    assert table.height == MAX_LISTED_SETTINGS + 1
    assert {"variant", "delta_power", "epsilon_claimed", "lower", "verdict"} <= set(table.columns)


def audit(algorithm, level, bound):
    return {
        "algorithm": algorithm, "level": level, "copy": "correct", "bound": bound, "reached": "",
        "claimed": 0.5, "declared": 0.5, "delta": 0.001, "flagged": False, "variant": "d_zoa",
        "experiment": "", "reason": "", "setting": "", "verdict": "not contradicted", "pairs": 6,
        "agents": 3, "iterations": 2,
    }  # fmt: skip


def test_audits_of_a_small_example_or_of_a_release_are_shown():
    release = {**audit("release_audit", "release of d_zoa", 0.0), "verdict": "violated"}
    audits = [
        {**release, "bound": 1.0},
        {**release, "bound": 2.0},
        {**release, "bound": 9.0, "variant": "ablation"},
        audit("m", "small example", None),
    ]
    audit_texts = [audit_in_words(name, audits, has_bound=False) for name in ("d_zoa", "dgd", "m")]
    assert audit_texts == [
        "one iteration violated: at least 2 (claimed 0.5, δ = 0.001); the total over all "
        "iterations is not audited",
        "not audited",
        "small example not contradicted",
    ]


def test_the_audits_page_shows_replays_and_statistical_audits(results):
    """Check a column named ``copy``, which a template can confuse with ``dict.copy``."""
    half = {**audit("canary_audit", "one-run canaries", 0.1), "copy": "half of the noise"}
    leak = {**audit("m", "this setting", None), "verdict": "leaks", "reason": "a message leaks"}
    text = pages(replace(results, audit={**results.audit, "audits": [half, leak]}))["audits.html"]
    assert "<td>half of the noise</td>" in text and "a message leaks" in text
    assert "built-in method" not in text


def test_findings_list_each_reason_once():
    rows = [{"audit_findings": f"agent {i % 2} leaks"} for i in range(3)]
    assert _findings([*rows, {"audit_findings": None}]) == "agent 0 leaks; agent 1 leaks"
