"""Test that the published privacy table agrees with the published audits."""

from pathlib import Path

import polars as pl
import pytest

from private_consensus.audits.result import LEAKS, UNDERSTATED
from private_consensus.common import yamls
from private_consensus.privacy.verdicts import DIFFERS, VIOLATED
from private_consensus.reproduction.audits.table import judged
from private_consensus.reproduction.statements.table import errata_of, read_statements

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "results/reference"


@pytest.fixture(scope="module")
def published():
    audits = pl.read_parquet(REFERENCE / "audit/audits.parquet")
    return pl.read_parquet(REFERENCE / "privacy.parquet"), audits


def test_published_verdicts_equal_recomputed_verdicts(published):
    privacy, audits = published
    errata = errata_of(read_statements(yamls.read(ROOT / "config/statements.yaml")))
    again = judged(privacy, errata, audits.to_dicts())
    assert again["verdict"].to_list() == privacy["verdict"].to_list()


def test_no_contradicted_setting_is_published_as_holding(published):
    privacy, audits = published
    contradicted = privacy.filter(pl.col("audit_verdict").is_in([VIOLATED, DIFFERS]))
    assert contradicted.height and not contradicted["verdict"].str.starts_with("holds").any()
    assert audits.filter(pl.col("verdict").is_in([LEAKS, UNDERSTATED])).is_empty()


def test_published_violations_are_significant_at_the_level_of_the_table(published):
    _, audits = published
    violated = audits.filter(pl.col("verdict") == VIOLATED)
    assert violated.height and (violated["adjusted"] <= 0.01).all()
    assert (audits["flagged"] == audits["verdict"].is_in([VIOLATED, LEAKS, UNDERSTATED])).all()
