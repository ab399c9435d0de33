"""Test the pages on privacy and audits, with lower bounds on epsilon next to claimed values."""

import math
from dataclasses import replace

import pytest

from private_consensus.audits.result import VERDICTS
from private_consensus.report.page import pages
from private_consensus.report.views import audits, privacy

from .conftest import privacy_row


def test_lower_bound_uses_the_audit_if_it_is_larger():
    row = privacy_row("first", "v", 1.0, 2.0, epsilon_lower=0.5)
    assert privacy.lower({**row, "epsilon_empirical": 0.8}) == 0.8
    assert privacy.lower({**row, "epsilon_empirical": 0.2}) == 0.5
    assert privacy.lower({"epsilon_accountant": 2.0}) == 0.0


@pytest.mark.parametrize(
    ("conditional", "expected"),
    [(1.02, 1.02), (None, math.inf), (math.nan, math.inf), (math.inf, math.inf)],
)
def test_an_upper_bound_without_proof_is_that_under_the_assumption(conditional, expected):
    row = privacy_row("first", "v", 1.0, 1.5, epsilon_under_assumption=conditional)
    assert privacy.upper({**row, "proven": False}) == expected
    assert privacy.upper(row) == 1.5


def test_the_front_page_lists_the_variant_and_the_bounds_of_mechanisms_with_less_privacy(results):
    less = {"verdict": "violated", "epsilon_lower": 3.18}
    rows = [privacy_row("first", "literal", 0.318, 6.36, **less), results.privacy[0]]
    front = pages(replace(results, privacy=rows))["index.html"]
    table = front.partition("<tbody>")[2]
    assert table.count("<tr>") == 1 and "10 to 20" in table and "a reason" in table
    assert "<tbody>" not in pages(replace(results, privacy=rows[1:]))["index.html"]


def audit(algorithm, level, bound):
    return {
        "algorithm": algorithm, "level": level, "copy": "correct", "bound": bound, "reached": "",
        "claimed": 0.5, "declared": 0.5, "delta": 0.001, "flagged": False, "variant": "d_zoa",
        "experiment": "", "reason": "", "setting": "", "verdict": "not contradicted", "pairs": 6,
        "agents": 3, "iterations": 2,
    }  # fmt: skip


def test_no_audit_confirms_a_guarantee(results):
    row = {**audit("m", "small example", None), "variant": "", "experiment": "", "setting": ""}
    for verdict in (*VERDICTS, "violated"):
        changed = replace(results, audit={"audits": [{**row, "verdict": verdict}]})
        ((table_row,),) = (method["audits"] for method in audits.page(changed)["methods"])
        assert table_row["icon"] in ("not", "part", "open")


def test_the_audits_page_shows_replays_and_statistical_audits(results):
    """Check a column named ``copy``, which a template can confuse with ``dict.copy``."""
    half = {**audit("canary_audit", "one-run canaries", 0.1), "copy": "half of the noise"}
    leak = {**audit("m", "this setting", None), "verdict": "leaks", "reason": "a message leaks"}
    text = pages(replace(results, audit={**results.audit, "audits": [half, leak]}))["audits.html"]
    assert "<td>half of the noise</td>" in text and "a message leaks" in text
    assert "built-in method" not in text
