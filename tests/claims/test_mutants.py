"""Test every claim of the configuration on synthetic curves that contradict it."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from private_consensus.reproduction.claims import Test, judge_all
from private_consensus.reproduction.claims.judging import Judgement
from private_consensus.reproduction.claims.schema import PRIVATE
from private_consensus.reproduction.claims.statements import estimates
from private_consensus.reproduction.claims.words import HELD, UNTESTABLE
from private_consensus.reproduction.configuration import plan as planning
from private_consensus.reproduction.configuration.schema import read_yaml

from .curves import layout, mutants, true_means, verdict

CONFIG = Path(__file__).parents[2] / "config"
PLAN = planning.load(read_yaml(CONFIG / "config.yaml"), CONFIG)
CLAIMS = {name: claim for paper in PLAN.papers.values() for name, claim in paper.claims.items()}


def variant_tests(claim):
    """Return the tests of all claims that can be tested."""
    return [
        (variant, test)
        for variant, tested in claim.variants.items()
        for test in tested.tests
        if not (claim.untestable and variant == claim.primary_variant)
    ]


@pytest.mark.parametrize("name", CLAIMS)
def test_claims_do_not_hold_on_mutated_curves(name):
    survivors, tested_count = [], 0
    for variant, test in variant_tests(CLAIMS[name]):
        if test.kind == PRIVATE:
            tested_count += 1
            if Judgement([estimates(test, None, privacy(test, 2.0))]).at(0.05) == HELD:
                survivors.append((variant, "twice the epsilon"))
            continue
        x = layout(PLAN, test)
        for mutant, means in mutants(test, x):
            tested_count += 1
            if verdict(test, x, means, exact=mutant == "flat") == HELD:
                survivors.append((variant, test.kind, mutant))
    assert survivors == []
    assert tested_count > 0 or CLAIMS[name].untestable


@pytest.mark.parametrize("name", CLAIMS)
def test_claims_hold_on_true_curves(name):
    wrong = []
    for variant, test in variant_tests(CLAIMS[name]):
        if test.kind == PRIVATE:
            is_held = Judgement([estimates(test, None, privacy(test, 1.0))]).at(0.05) == HELD
        else:
            x = layout(PLAN, test)
            is_held = verdict(test, x, true_means(test, x)) == HELD
        if not is_held:
            wrong.append((variant, test.kind))
    assert wrong == []


def privacy(test, factor: float) -> pl.DataFrame:
    """Return a row of ``privacy.parquet`` whose accounted epsilon is a multiple of the claim."""
    series = test.series
    return pl.DataFrame({
        "experiment": [series.experiment], "algorithm": [series.method],
        "variant": [series.variant], "epsilon_claimed": [0.5], "epsilon_accountant": [0.5 * factor],
        "epsilon_lower": [0.25], "proven": [True], "source": ["made"],
        **{key: [v[0] if isinstance(v, list | tuple) else v] for key, v in series.where.items()},
    })  # fmt: skip


def test_an_untestable_claim_stays_untestable_with_confirming_results():
    """The loss is clipped at the bound that it is compared with."""
    [test] = CLAIMS["xiao_c16"].variants["resolved"].tests
    below, bound = (
        {"experiment": series.experiment, "algorithm": series.method, "variant": series.variant,
         "quantity": series.measure[0], "metric": series.measure[1], "t": 1, "run": 0,
         "value": value}
        for series, value in ((test.series, 0.5), (test.against, 1.0))
    )  # fmt: skip
    runs = pl.DataFrame([below, bound])
    [row] = judge_all({"c": CLAIMS["xiao_c16"]}, runs, privacy(test, 1.0), paper="xiao",
                      deterministic={test.series.method}).to_dicts()  # fmt: skip
    assert row["confirmed"] == row["parts"] == 1
    assert row["verdict"] == UNTESTABLE
    assert row["untestable_because"] == CLAIMS["xiao_c16"].untestable


@pytest.mark.parametrize(
    ("kind", "options", "mutant"),
    [
        ("trend", {"expected": -0.505, "tolerance": 0.495}, "half of the rate"),
        ("trend", {"expected": -0.5, "tolerance": 0.4999}, "half of the rate"),
        ("slope", {"expected": -2.0, "tolerance": 1.1}, "half of the rate"),
        ("steady", {"tolerance": 0.6}, "another rate"),
        ("falls", {"expected": 1.0, "quantifier": "universal"}, "flat"),
        ("decreasing", {"quantifier": "universal"}, "flat"),
    ],
)
def test_mutants_reveal_tests_with_too_wide_acceptance_regions(kind, options, mutant):
    """A test with too wide a region accepts another slope or a constant curve."""
    series = {"experiment": "e", "method": "a", "variant": "r"}
    test = Test(kind=kind, series=series, x="t", **options)
    x = [np.arange(20.0, 61.0)]
    mutant_curves = dict(mutants(test, x))
    assert verdict(test, x, mutant_curves[mutant], exact=mutant == "flat") == HELD
