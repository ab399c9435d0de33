"""Test that each unaccounted use of private data is listed."""

import numpy as np
import polars as pl
import pytest

from private_consensus import algorithms, problems
from private_consensus.audits.examples import census, huber_regression
from private_consensus.core.problems.base import PUBLIC_RECORDS
from private_consensus.reproduction.data import PREPARATIONS
from private_consensus.reproduction.data.scaling import COLUMNS, ROWS
from private_consensus.reproduction.results.cells import (
    run_cell,
    unaccounted_uses,
    uses_of_setting,
    with_tuned,
)


def test_quantities_computed_from_data_count_for_algorithms_that_use_them():
    lasso = problems.class_of("lasso")
    problem = huber_regression()
    descent = algorithms.load("gradient_descent")()
    exact_admm = algorithms.load("exact_admm")()
    eigenvalues = {lasso.from_data["smoothness"], lasso.from_data["strong_convexity"]}
    specification = {"problem": {"name": "lasso"}}
    assert eigenvalues <= {*unaccounted_uses(descent, problem, specification)}
    assert not eigenvalues & {*unaccounted_uses(exact_admm, problem, specification)}
    zoa = unaccounted_uses(algorithms.load("d_zoa")(), problem, specification)
    assert any("optimum" in line for line in zoa)


@pytest.mark.parametrize("name", ["fair_classification", "pflr"])
def test_a_public_mean_of_the_protected_attribute_is_an_unaccounted_data_use(name):
    problem, specification = census(), {"problem": {"name": "fair_classification"}}
    line = problem.from_data["mean"]
    load = algorithms.load(name)
    assert line in unaccounted_uses(load(fair="penal", zbar="public"), problem, specification)
    assert line not in unaccounted_uses(load(fair="penal", zbar="data"), problem, specification)


def test_every_problem_lists_its_unaccounted_data_uses():
    for name in problems.names():
        declared_oracles = problems.class_of(name).oracles
        assert PUBLIC_RECORDS in declared_oracles or name == "linear_observation"
        assert declared_oracles


# --- Prepared data --------------------------------------------------------------------------------


def test_scalings_that_depend_on_private_rows_are_listed():
    """A scaling uses private rows if it depends on other rows or on an assumed public bound."""
    generator = np.random.default_rng(0)
    rows = generator.uniform(1, 2, (5, 3))
    changed_rows = rows.copy()
    changed_rows[1:] *= 3
    for name, scale in COLUMNS.items():
        looks = not np.allclose(scale.apply(rows)[0], scale.apply(changed_rows)[0])
        assert looks is (scale.data_use is not None), name
    assert {name for name, scale in ROWS.items() if scale.data_use} == ROWS.keys() - {"none"}


@pytest.mark.parametrize("name", PREPARATIONS)
def test_data_dependent_steps_of_each_preparation_are_listed(name):
    how = PREPARATIONS[name]
    data_use_text = " ".join(how.unaccounted_data_use)
    assert ("columns are" in data_use_text) is (how.scaling != "none")
    assert ("norm" in data_use_text) is (how.row_norm != "none")
    assert ("missing values" in data_use_text) is (
        how.encoding == "onehot" and not how.drop_missing
    )
    assert uses_of_setting({"problem": {"name": "any", "prepared": name}}) == [
        *how.unaccounted_data_use
    ]


# --- The configuration ----------------------------------------------------------------------------


def test_every_tuned_setting_lists_its_tuning_experiment(plan):
    tuned_count = 0
    for experiment, algorithm in plan.cells():
        for spec in plan.cell(experiment, algorithm)["settings"]:
            tuned = spec.get("tuned")
            if tuned is None:
                continue
            tuned_count += 1
            [line] = [line for line in uses_of_setting(spec) if tuned["experiment"] in line]
            assert all(axis in line for axis in tuned["axes"])
    assert tuned_count > 0


def test_the_tuned_setting_keeps_its_list_of_data_uses(plan):
    spec = next(s for pair in plan.cells() for s in plan.cell(*pair)["settings"] if s.get("tuned"))
    tuned = {**spec["tuned"], "criterion": "last"}
    row = {key: tuned[key] for key in ("experiment", "quantity", "metric")}
    row |= {"variant": tuned["variant"], "t": 1, "value": 1.0, **dict.fromkeys(tuned["axes"], 0.5)}
    row |= {k: v for k, v in spec["columns"].items() if k not in tuned["axes"]}
    tuned_spec = with_tuned({**spec, "tuned": tuned}, pl.DataFrame([row]))
    assert uses_of_setting(tuned_spec) == uses_of_setting(spec)


def test_privacy_rows_list_the_data_uses_of_all_sources(plan):
    cell = plan.cell("gratton_fig2", "exact_admm")
    settings = [
        {**cell["settings"][0], "horizon": 2, "unaccounted_data_use": ["a choice: by outcomes"]}
    ]
    _, privacy = run_cell({**cell, "settings": settings, "runs": 1, "iterations": []}, {})
    lines = privacy["unaccounted_data_use"][0].split("; ")
    assert {PUBLIC_RECORDS, "a choice: by outcomes"} <= {*lines}
    assert any("largest entry" in line for line in lines)
