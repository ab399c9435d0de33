"""Test that curves, claims and tables of private methods show released values.

The audit of every algorithm tests that released values depend on data through mechanisms only.
"""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from private_consensus import algorithms
from private_consensus.audits.examples import complete, logistic_regression
from private_consensus.common import yamls
from private_consensus.common.errors import InvalidInput
from private_consensus.privacy import Budget
from private_consensus.reproduction.audits.repairs import QUANTITIES, SIDES, compared, last_means

CONFIG = Path(__file__).parents[2] / "config"


@pytest.mark.parametrize("name", ["admm", "dgd", "logistic"])
def test_a_non_private_algorithm_refuses_a_privacy_budget(name):
    problem = logistic_regression()
    with pytest.raises(InvalidInput, match="not private"):
        network = complete(problem.n_agents)
        algorithms.load(name)().calibrate(Budget(1.0, 1e-3), problem, network, 3)


def private(plan, experiment: str, algorithm: str, run: str) -> bool:
    """Return True if a variant claims privacy."""
    experiment_config = plan.experiments[experiment]
    epsilon = experiment_config.algorithms[algorithm][run].set.get(
        "budget.epsilon", experiment_config.budget.epsilon
    )
    return np.isfinite(epsilon)


def is_internal(quantity: str) -> bool:
    return quantity.startswith("internal")


def test_private_curves_of_internal_quantities_are_not_labelled_resolved(plan):
    wrong, curve_count = [], 0
    for figure, spec in plan.figures.items():
        for panel in spec.panels:
            for curve in panel.curves:
                experiment = curve.experiment or panel.experiment
                if is_internal(curve.measure[0]) and private(
                    plan, experiment, curve.method, curve.variant
                ):
                    curve_count += 1
                    if curve.interpretation == "resolved":
                        wrong.append((figure, panel.title, curve.method, curve.variant))
    assert wrong == []
    assert curve_count > 0


def test_utility_claims_of_private_methods_are_judged_by_released_quantities(plan):
    """A published quantity that is not released may be a part, next to the released quantity."""
    wrong, variant_count = [], 0
    for paper in plan.papers.values():
        for name, claim in paper.claims.items():
            for variant, tested in claim.variants.items():
                sides = [s for test in tested.tests for s in (test.series, test.against) if s]
                if not any(
                    s.measure
                    and is_internal(s.measure[0])
                    and private(plan, s.experiment, s.method, s.variant)
                    for s in sides
                ):
                    continue
                variant_count += 1
                if any(s.measure and not is_internal(s.measure[0]) for s in sides):
                    continue
                labelled = tested.interpretation in ("literal", "ablation")
                if variant == claim.primary_variant or not labelled:
                    wrong.append((name, variant))
    assert wrong == []
    assert variant_count > 0


def test_tables_corrected_variants_and_tuning_use_no_internal_quantity(plan):
    tuned = [
        variant.tuned.measure[0]
        for experiment in plan.experiments.values()
        for variants in experiment.algorithms.values()
        for variant in variants.values()
        if variant.tuned
    ]
    tables = [table.measure[0] for table in plan.tables.values()]
    assert tuned and tables
    assert not any(map(is_internal, (*QUANTITIES, *tuned, *tables)))


def test_experiments_with_internal_quantities_also_measure_released_quantities(plan):
    """An internal quantity is accompanied by a released one."""
    for name, experiment in plan.experiments.items():
        quantities = {quantity for quantity, _ in experiment.measures}
        if any(map(is_internal, quantities)):
            sent = {
                quantity.removeprefix("internal_")
                for quantity in quantities
                if is_internal(quantity)
            }
            assert quantities & {*QUANTITIES, *sent - {"internal"}}, name


def test_each_pair_of_published_and_corrected_variants_occurs_in_one_experiment(plan):
    experiments = [experiment.algorithms for experiment in plan.experiments.values()]
    for pair in yamls.read(CONFIG / "repairs.yaml"):
        sides = [pair[side].split(".") for side in SIDES]
        assert any(
            all(variant in algorithms.get(name, {}) for name, variant in sides)
            for algorithms in experiments
        ), pair


def test_a_comparison_of_variants_keeps_values_of_delta_apart():
    pairs = [{"published": "a.old", "corrected": "a.new"}]
    runs = pl.DataFrame(
        {
            "experiment": "e", "algorithm": "a", "variant": variant, "run": run, "t": 1,
            "quantity": "released", "metric": "error", "delta": delta, "value": delta + run,
        }
        for variant in ("old", "new") for delta in (0.1, 0.2) for run in (0, 1)
    )  # fmt: skip
    privacy = runs.filter(run=0).select(
        "experiment", "algorithm", "variant", "delta", epsilon_accountant=1 / pl.col("delta"),
        epsilon_claimed=1.0, proven=True,
    )  # fmt: skip
    rows = compared(pairs, last_means(pairs, runs), privacy).sort("delta")
    np.testing.assert_allclose(rows["value_corrected"], [0.6, 0.7])
    np.testing.assert_allclose(rows["epsilon_corrected"], [10.0, 5.0])
    without = runs.filter(delta=0.1).drop("delta")
    rows = compared(pairs, last_means(pairs, without), privacy.filter(delta=0.1))
    np.testing.assert_allclose(rows["epsilon_published"], [10.0])
