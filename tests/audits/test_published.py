"""Test that the published privacy table agrees with the published audits."""

from pathlib import Path

import polars as pl
import pytest

from private_consensus.common import yamls
from private_consensus.privacy import DIFFERS, VIOLATED
from private_consensus.privacy.verdicts import FLAGGED
from private_consensus.reproduction.audits.errata import read_errata
from private_consensus.reproduction.audits.table import judged

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "results/reference"


@pytest.fixture(scope="module")
def published():
    audits = pl.read_parquet(REFERENCE / "audit/audits.parquet")
    return pl.read_parquet(REFERENCE / "privacy.parquet"), audits


def test_published_verdicts_equal_recomputed_verdicts(published):
    privacy, audits = published
    errata = read_errata(yamls.read(ROOT / "config/errata.yaml"))
    again = judged(privacy, errata, audits.to_dicts())
    assert again["verdict"].to_list() == privacy["verdict"].to_list()


def test_no_flagged_setting_is_published_as_holding(published):
    privacy, audits = published
    flagged = privacy.filter(pl.col("audit_verdict").is_in(FLAGGED))
    assert flagged.height and not flagged["verdict"].str.starts_with("holds").any()
    differing = audits.filter(pl.col("verdict") == DIFFERS)
    assert differing.is_empty(), differing["algorithm"].to_list()


def test_published_violations_are_significant_at_the_level_of_the_table(published):
    _, audits = published
    claims = audits.filter(pl.col("p_value").is_not_null(), ~pl.col("level").str.contains("noise"))
    assert (claims["contradicted"] == (claims["verdict"] == VIOLATED)).all()
    assert (claims.filter("contradicted")["adjusted"] < 0.01).all()
    assert (audits["flagged"] == audits["verdict"].is_in(FLAGGED)).all()
