"""Test that an audit in the configuration names one setting and applies to that setting only."""

import json
from pathlib import Path

import polars as pl
import pytest

from private_consensus.common import yamls
from private_consensus.common.errors import InvalidInput
from private_consensus.common.fields import validate
from private_consensus.privacy.verdicts import DIFFERS
from private_consensus.reproduction.audits.settings import selected_settings
from private_consensus.reproduction.audits.table import judged
from private_consensus.reproduction.configuration.schema import Audits

ROOT = Path(__file__).parents[2]


def test_every_configured_audit_selects_settings(plan):
    entries = [entry for name in plan.audited() for entry in plan.audit(name)["entries"]]
    assert len(entries) == len(plan.audits.settings)
    for entry in entries:
        assert selected_settings(plan.cell(entry["experiment"], entry["algorithm"]), [entry]), entry


def test_an_audit_applies_only_to_its_setting():
    row = {
        "experiment": "fig", "algorithm": "descent", "variant": "main", "delta": 0.0,
        "epsilon_claimed": 1.0, "epsilon_accountant": 0.9, "accountant": "pure", "proven": True,
        "epsilon_lower": 0.0,
        "sampling": "none", "epsilon": 1.0, "coding": "signed",
    }  # fmt: skip
    audit = {
        "experiment": "fig", "algorithm": "descent", "variant": "main", "copy": "correct",
        "setting": json.dumps({"epsilon": 1, "coding": "signed"}), "level": "this setting",
        "delta": 0.0, "claimed": 1.0, "verdict": "leaks", "reason": "a message leaks",
    }  # fmt: skip
    changed = [{}, {"experiment": "other"}, {"coding": "zero_one"}, {"epsilon": 2.0}]
    privacy = pl.DataFrame([{**row, **change} for change in changed])
    judged_rows = judged(privacy, {}, [audit])
    assert judged_rows["verdict"].to_list() == [DIFFERS] * 4
    assert judged_rows["audit"].str.starts_with("another setting").to_list() == [False, *[True] * 3]
    weak = {**audit, "verdict": "no finite guarantee"}
    assert judged(privacy, {}, [weak])["verdict"].to_list() == ["not proven", *["holds"] * 3]


def test_a_smaller_scale_audits_the_first_selected_settings():
    """A scale with ``max_settings`` audits that many settings; other scales audit all settings."""
    columns = [{"epsilon": value} for value in (0.5, 1.0, 2.0)]
    settings = [{"columns": c, "variant": v} for v in ("main", "other") for c in columns]
    cell = {"experiment": "a", "algorithm": "dvp", "settings": settings}
    entries = [{"experiment": "a", "algorithm": "dvp", "variant": "other"}]
    assert selected_settings(cell, entries) == settings[3:]
    assert selected_settings(cell, entries, 2) == settings[3:5]
    raw = yamls.read(ROOT / "config" / "audits.yaml")
    with pytest.raises(InvalidInput, match=r"max_settings\.smoke"):
        validate(Audits, {**raw, "max_settings": {"smoke": 0}})
