"""Test verdicts on settings that were not audited, and comparisons of corrected variants."""

import math

import polars as pl
import pytest

from private_consensus.common.errors import InvalidInput
from private_consensus.privacy import DIFFERS
from private_consensus.reproduction.audits.errata import Erratum
from private_consensus.reproduction.audits.experiments import of_experiments
from private_consensus.reproduction.audits.repairs import compared, released_rows
from private_consensus.reproduction.audits.settings import decided
from private_consensus.reproduction.audits.table import judged


def setting(claimed=1.0, accounted=0.9, **changes):
    return {
        "experiment": "fig1", "algorithm": "descent", "variant": "main", "delta": 1e-5,
        "epsilon_claimed": claimed, "epsilon_accountant": accounted, "accountant": "gaussian",
        "epsilon_lower": 0.1, "proven": True, "sampling": "none", **changes,
    }  # fmt: skip


def erratum(severity="breaks", outcome="confirmed", **changes):
    words = {"location": "p", "statement": "s", "why": "w", "repair": "r", "affects": ["descent"]}
    return Erratum(severity=severity, outcome=outcome, **(words | changes))


def audit(**changes):
    return {
        "experiment": "", "algorithm": "descent", "variant": "main", "level": "transcript",
        "setting": "representative", "copy": "correct", "bound": 0.5, "claimed": 1.0,
        "verdict": "not contradicted", "delta": 1e-5, **changes,
    }  # fmt: skip


def claim(**changes):
    """Return the row of an audit before the decision for the whole table."""
    values = {
        "confidence": 0.9999, "p_value": 1.0, "differs": False, "unproven": False, "testable": True,
        "findings": "", "refutation": "", "notes": "", "untested": "", "flagged": False,
    }  # fmt: skip
    return audit(**(values | changes))


@pytest.mark.parametrize(
    ("row", "entries", "audits", "verdict"),
    [
        (setting(), [], [], "holds"),
        (setting(), [erratum()], [], "holds by slack"),
        (setting(), [erratum(severity="argument")], [], "holds by slack"),
        (setting(), [erratum(severity="misprint")], [], "holds"),
        (setting(), [erratum(outcome="refuted")], [], "holds"),
        (setting(), [], [audit()], "holds"),
        (setting(), [erratum()], [audit(), audit(bound=1.2, verdict="violated")], "violated"),
        # a bound above the claim that is not significant at the error level of the table
        (setting(), [], [audit(bound=1.2)], "holds"),
        (setting(), [], [audit(verdict=DIFFERS)], DIFFERS),
        (setting(), [erratum()], [audit(verdict=DIFFERS)], DIFFERS),
        (setting(proven=False), [], [audit(verdict=DIFFERS)], DIFFERS),
        (setting(epsilon_lower=1.2), [], [audit(verdict=DIFFERS)], "violated"),
        (setting(), [], [audit(), audit(verdict="inconclusive")], "inconclusive"),
        (setting(proven=False), [], [audit(verdict="inconclusive")], "not proven"),
        (setting(), [], [audit(verdict="no test")], "holds"),
        (setting(accounted=1.1, epsilon_lower=1.05), [], [audit()], "violated"),
        (setting(accounted=1.1), [], [audit()], "not proven"),
        (setting(accounted=1.1, accountant="rdp"), [erratum()], [], "not proven"),
        (setting(proven=False), [erratum()], [], "not proven"),
        (setting(proven=False), [], [audit(bound=1.2, verdict="violated")], "violated"),
        (setting(claimed=math.inf, accounted=math.inf), [], [], "no claim"),
    ],
)
def test_verdicts_combine_accountant_errata_and_audits(row, entries, audits, verdict):
    errata = {f"E0.{number}": entry for number, entry in enumerate(entries)}
    assert judged(pl.DataFrame([row]), errata, audits)["verdict"].item() == verdict


def test_a_lower_bound_above_the_claim_is_published_only_for_a_violated_claim():
    rows = pl.DataFrame([setting()])
    for outcome, bound in (("not contradicted", 1.0), ("violated", 1.2)):
        (row,) = judged(rows, {}, [audit(bound=1.2, verdict=outcome)]).to_dicts()
        assert (row["epsilon_empirical"], row["audit_verdict"]) == (bound, outcome)


def test_a_setting_that_differs_from_its_declaration_is_unproven_with_findings():
    text = "a record changes the draw by 2 times the declared sensitivity"
    (row,) = judged(
        pl.DataFrame([setting()]), {}, [audit(verdict=DIFFERS, findings=text)]
    ).to_dicts()
    assert (row["proven"], row["audit_findings"]) == (False, text)


def test_unaudited_settings_inherit_a_difference_found_in_the_same_algorithm():
    """Six settings of two variants share code; only one setting was audited."""
    settings = [
        setting(variant=variant, claimed=claimed, accounted=claimed)
        for variant in ("main", "other") for claimed in (1.0, 2.0, 4.0)
    ]  # fmt: skip
    rows = pl.DataFrame([*settings, setting(algorithm="another")])
    judged_rows = judged(rows, {}, [audit(verdict=DIFFERS, findings="no noise")])
    assert judged_rows["verdict"].to_list() == [DIFFERS] * 6 + ["holds"]
    assert judged_rows["epsilon_empirical"].to_list() == [0.5, *[None] * 6]
    assert all("no noise" in text for text in judged_rows["audit_findings"][:6])
    # a setting that was audited has the verdict of its audit
    audits = [audit(verdict=DIFFERS), audit(claimed=2.0, verdict="not contradicted")]
    verdicts = judged(rows, {}, audits)["verdict"].to_list()
    assert verdicts == [DIFFERS, "holds", *[DIFFERS] * 4, "holds"]
    # a violated, unproven or inconclusive claim does not change the verdicts of other claims
    for outcome in ("violated", "not proven", "inconclusive"):
        verdicts = judged(rows, {}, [audit(verdict=outcome)])["verdict"].to_list()
        assert verdicts[1:] == ["holds"] * 6


def test_audits_of_one_table_are_decided_by_holms_method():
    """Holm's method uses the error level that remains after the findings of all audits."""
    rows = [
        claim(p_value=1e-6, bound=2.0), claim(p_value=3e-3, bound=1.2, refutation="it needs 1.2"),
        *[claim() for _ in range(8)],
    ]  # fmt: skip
    first, second, *_ = decided(rows, 0.01)
    assert (first["verdict"], first["flagged"], first["contradicted"]) == ("violated", True, True)
    assert "adjusted p" in first["findings"]
    assert (second["verdict"], second["flagged"]) == ("not contradicted", False)
    assert second["adjusted"] > 0.01 and second["findings"] == ""
    assert "not at the error level of the table" in second["notes"]
    alone = decided(rows[1:2], 0.01)[0]
    assert (alone["verdict"], alone["findings"]) == ("violated", "it needs 1.2")


def test_findings_and_claims_of_all_audits_share_one_error_level():
    """A p-value of 0.0095 is above the remaining level, 0.01 minus 1e-3 for the findings."""
    assert decided([claim(p_value=9.5e-3, confidence=0.999)], 0.01)[0]["contradicted"] is False
    assert decided([claim(p_value=9.5e-3, confidence=0.9999)], 0.01)[0]["contradicted"] is True
    with pytest.raises(InvalidInput, match=r"audits\.confidence"):
        decided([claim(confidence=0.99)] * 2, 0.01)


@pytest.mark.parametrize(
    ("changes", "verdict", "flagged"),
    [
        ({}, "not contradicted", False),
        ({"notes": "the noise is 1.2 times what is declared"}, "not contradicted", False),
        ({"differs": True, "findings": "a record moves it by 3 times"}, DIFFERS, True),
        ({"unproven": True, "findings": "costs 2"}, "not proven", True),
        ({"untested": "agent 2"}, "inconclusive", False),
        ({"testable": False}, "no test", False),
    ],
)
def test_findings_determine_the_verdict_and_the_flag_of_an_audit(changes, verdict, flagged):
    (row,) = decided([claim(**changes)], 0.01)
    assert (row["verdict"], row["flagged"]) == (verdict, flagged)


def test_a_privacy_row_has_the_errata_and_the_audit_of_its_setting():
    errata = {"E0.1": erratum(affects=["descent.other"]), "E0.2": erratum(affects=["descent"])}
    rows = pl.DataFrame([setting(), setting(algorithm="another")])
    first, second = judged(rows, errata, [audit(), audit(copy="half noise")]).to_dicts()
    assert (first["errata"], first["epsilon_empirical"]) == ("E0.2", 0.5)
    unaudited_row = judged(rows, errata, [audit(claimed=2.0)]).to_dicts()[0]
    assert unaudited_row["audit"] == "not audited"  # the audit is of another setting
    assert (second["errata"], second["audit"]) == ("", "not audited")


def test_an_audit_by_experiment_takes_its_numbers_from_the_first_run():
    values = {
        "epsilon_bound": (2.0, 9.0), "epsilon_claimed": (1.0, 1.0), "bound_p_value": (1e-5, 0.5),
        "bound_delta": (1e-3, 1e-3), "bound_confidence": (0.99, 0.99),
    }  # fmt: skip
    rows = [
        {"algorithm": "release_audit", "variant": "d_zoa", "run": run, "quantity": quantity,
         "value": of[run], "epsilon": 1.0, "delta": 1e-3}
        for quantity, of in values.items() for run in (0, 1)
    ]  # fmt: skip
    (audit_row,) = of_experiments(pl.DataFrame(rows))
    assert (audit_row["algorithm"], audit_row["bound"], audit_row["flagged"]) == (
        "release_audit",
        2.0,
        True,
    )
    assert (audit_row["delta"], audit_row["confidence"], audit_row["p_value"]) == (1e-3, 0.99, 1e-5)


def test_a_canary_audit_states_its_delta_and_confidence_level():
    """An experiment without a delta axis reports the delta of the budget."""
    numbers = {
        "bound_gradients": 1.8, "formula": 1.5, "p_value_gradients": 2e-4, "bound_delta": 1e-5,
        "bound_confidence": 0.999,
    }  # fmt: skip
    rows = [
        {"algorithm": "canary_audit", "variant": "main", "run": 0, "share": 1.0,
         "quantity": quantity, "value": value}
        for quantity, value in numbers.items()
    ]  # fmt: skip
    (audit_row,) = of_experiments(pl.DataFrame(rows))
    assert (audit_row["delta"], audit_row["confidence"]) == (1e-5, 0.999)
    assert (audit_row["copy"], audit_row["flagged"]) == ("correct", True)


def test_corrected_variants_are_compared_by_last_value_and_accounted_epsilon():
    keys = {"experiment": "fig1", "algorithm": "descent", "quantity": "released", "metric": "error"}
    rows = [
        {**keys, "variant": variant, "t": t, "run": run, "epsilon": 1.0, "value": value * t + run}
        for variant, value in (("literal", 1.0), ("repaired", 3.0))
        for t in (1, 2) for run in (0, 2)
    ]  # fmt: skip
    private = [
        {**setting(variant=variant, accounted=accounted_epsilon, proven=proven), "epsilon": 1.0}
        for variant, accounted_epsilon, proven in (("literal", 1.1, False), ("repaired", 0.9, True))
    ]
    pair = {"published": "descent.literal", "corrected": "descent.repaired"}
    (row,) = compared([pair], pl.DataFrame(rows), pl.DataFrame(private))
    assert (row["value_published"], row["value_corrected"]) == (3.0, 7.0)
    assert (row["epsilon_published"], row["epsilon_corrected"]) == (math.inf, 0.9)
    unrelated_rows = [{**rows[0], "variant": "another"}, {**rows[0], "quantity": "kept"},
              {**rows[0], "algorithm": "literal"}]  # fmt: skip
    selected_rows = released_rows([pair], pl.DataFrame([*unrelated_rows, *rows, *unrelated_rows]))
    assert selected_rows.equals(pl.DataFrame(rows))
    assert compared([pair], selected_rows, pl.DataFrame(private)) == [row]


def test_corrected_variants_are_compared_by_one_metric_at_selected_grid_points():
    """Metrics of the majority class are excluded; ``where`` selects one point of a grid."""
    rows = [
        {"experiment": "e", "algorithm": "a", "variant": variant, "interpretation": "", "run": 0,
         "t": 1, "quantity": "released", "metric": metric, "loss_scale": scale,
         "value": value + scale}
        for variant, value in (("literal", 1.0), ("repaired", 2.0))
        for metric in ("majority_test_error", "own_loss", "own_test_error")
        for scale in (1.0, 100.0)
    ]  # fmt: skip
    private = pl.DataFrame([
        {"experiment": "e", "algorithm": "a", "variant": variant, "loss_scale": scale,
         "proven": True, "epsilon_claimed": 1.0, "epsilon_accountant": 1.0}
        for variant in ("literal", "repaired") for scale in (1.0, 100.0)
    ])  # fmt: skip
    pair = {"published": "a.literal", "corrected": "a.repaired", "where": {"loss_scale": 100.0}}
    (row,) = compared([pair], pl.DataFrame(rows), private)
    assert (row["metric"], row["value_published"], row["value_corrected"]) == (
        "own_test_error", 101.0, 102.0
    )  # fmt: skip
    assert len(compared([{**pair, "where": {}}], pl.DataFrame(rows), private)) == 2
    (axis,) = pair["where"]
    both = {**pair, "where": {axis: sorted({row[axis] for row in rows})}}
    assert len(compared([both], pl.DataFrame(rows), private)) == 2
