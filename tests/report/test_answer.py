"""Test the main result of the report, the names of papers, and scales without a verdict."""

import math
from dataclasses import replace
from pathlib import Path

import polars as pl

from private_consensus.report.views import answer
from private_consensus.report.views.privacy import claimed_settings
from private_consensus.reproduction.claims.words import may_decide
from private_consensus.reproduction.results.files import rows_of

from .conftest import paper, privacy_row, results_of


def test_only_the_paper_scale_may_decide_claims():
    assert [may_decide(scale) for scale in ("paper", "smoke", "small")] == [True, False, False]


def test_ablations_audits_tuning_grids_and_settings_without_a_claim_are_not_counted():
    rows = [
        privacy_row("first", "a", 1.0, 2.0),
        privacy_row("first", "a", 1.0, 2.0, verdict="not proven"),
        privacy_row("first", "a", 1.0, 2.0, interpretation="ablation"),
        privacy_row("first", "a", math.inf, 2.0),
        privacy_row("first", "a", 1.0, 2.0, algorithm="canary_audit"),
        privacy_row("first", "a", 1.0, 2.0, experiment="grid"),
    ]
    config = paper("first", "000")
    variants = config["experiments"]["first_fig1"]["algorithms"]["descent"]
    variants["repaired"]["tuned"] = {"experiment": "grid"}
    counted = results_of({"first": config}, privacy=rows)
    assert len(claimed_settings(counted)) == 2
    assert answer.privacy_clause(counted).startswith(
        "as published, or as resolved where a text is silent, 1 of the 1 methods that the papers"
    )


def test_the_readme_states_the_published_claims_and_settings(plan):
    root = Path(__file__).parents[2]
    privacy = rows_of(root / "results" / "reference" / "privacy.parquet")
    # The results may be older than the removal of an experiment.
    rows = privacy.filter(pl.col("experiment").is_in(list(plan.experiments))).to_dicts()
    papers = {key: plan.described(key) for key in plan.papers}
    claims = rows_of(root / "results" / "reference" / "claims.parquet").to_dicts()
    audits = rows_of(root / "results" / "reference" / "audit" / "audits.parquet").to_dicts()
    published = results_of(papers, privacy=rows, claims=claims, audit={"audits": audits})
    sentence = answer.privacy_clause(published)
    readme = " ".join((root / "README.md").read_text(encoding="utf-8").split())
    assert f"A{sentence[1:]}." in readme
    assert f"**Result.** {answer.claims_clause(claims)} (" in readme


def test_methods_of_papers_whose_claims_no_total_counts_are_not_counted(results):
    others = [{**claim, "addition": True} for claim in results.claims]
    assert answer.summary(replace(results, scale="paper", claims=others)) == ""
