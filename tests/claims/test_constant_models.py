"""Test the comparison of tested measurements with constant models."""

import math

import numpy as np
import polars as pl
import pytest

import private_consensus as pc
from private_consensus.reproduction.claims import Claim, Series, Test, judge_all
from private_consensus.reproduction.claims.constant_models import CONSTANTS, no_better
from private_consensus.reproduction.claims.words import HELD


def rows(variant, metric, means, *, t=1, quantity="released"):
    """Return five runs with the specified means at epsilon = 1, 2, ... and common noise."""
    noise = np.array([-2, -1, 0, 1, 2]) / 100
    return pl.DataFrame(
        [
            {
                "experiment": "e", "algorithm": "a", "variant": variant, "quantity": quantity,
                "metric": metric, "epsilon": float(i), "t": t, "run": run, "value": mean + shift,
            }
            for i, mean in enumerate(means, 1)
            for run, shift in enumerate(noise)
        ]
    )  # fmt: skip


def below(metric, x="epsilon", quantity="released", **where):
    one, two = (
        Series(experiment="e", method="a", variant=v, measure=f"{quantity}.{metric}", where=where)
        for v in ("one", "two")
    )
    return Test(kind="below", x=x, series=one, against=two)


def test_points_at_or_below_the_accuracy_of_the_majority_class_are_named():
    test = below("own_test_accuracy")
    runs = pl.concat(
        [rows(v, "majority_test_accuracy", [0.75] * 3) for v in ("one", "two")]
        + [rows("one", "own_test_accuracy", [0.6, 0.75, 0.76])]
        + [rows("two", "own_test_accuracy", [0.8, 0.8, 0.8])]
    )
    expected = "predicting the majority class: a.one at epsilon 1, 2"
    assert no_better([test], runs) == expected
    assert no_better([test, test], runs) == expected  # each point once
    claim = Claim(
        claim="less", location="here", figure="f", because="an order", caveat="weak",
        variants={"v": {"tests": [test]}, "w": {"tests": [test]}},
    )  # fmt: skip
    privacy = pl.DataFrame({"experiment": ["e"], "source": ["made"]})
    table = judge_all({"c": claim}, runs, privacy, paper="p")
    assert table["verdict"].to_list() == [HELD, HELD]  # the comparison changes no verdict
    assert table["no_better"].to_list() == [expected] * 2
    assert table["caveat"].to_list() == ["weak", ""]


def test_errors_and_losses_are_worse_if_they_are_larger():
    runs = pl.concat([rows("one", "own_loss", [0.6, math.log(2), 0.8]),
                      rows("two", "own_loss", [0.5, 0.5, 0.5])])  # fmt: skip
    assert no_better([below("own_loss")], runs) == "the zero vector: a.one at epsilon 2, 3"


def test_only_the_last_tested_iteration_counts():
    """At t = 1 each method is as bad as its start."""
    runs = pl.concat(
        [rows("one", "own_loss", [0.9], t=1), rows("one", "own_loss", [0.5], t=2),
         rows("two", "own_loss", [0.5], t=1), rows("two", "own_loss", [0.9], t=2)]
    )  # fmt: skip
    assert no_better([below("own_loss", x="t")], runs) == "the zero vector: a.two"
    assert no_better([below("own_loss", x="t", t=[0, 1])], runs) == "the zero vector: a.one"


@pytest.mark.parametrize("metric", ["own_test_accuracy", "log_distance", "squared_distance"])
def test_measures_without_a_recorded_constant_have_no_remark(metric):
    runs = pl.concat([rows(v, metric, [0.1, 0.2]) for v in ("one", "two")])
    assert no_better([below(metric)], runs) == ""


def test_the_constant_of_training_losses_is_the_cross_entropy_of_equal_probabilities(plan):
    assert CONSTANTS["training_loss"].value == pytest.approx(-np.log(0.1))
    series = [s for claim in plan.papers["ding"].claims.values() for _, s in claim.series()]
    tested = {(s.experiment, s.method, s.variant) for s in series
              if s.measure and s.measure[1] == "training_loss"}  # fmt: skip
    for experiment, method, variant in tested:
        settings = plan.cell(experiment, method)["settings"]
        assert {s["problem"].get("loss") for s in settings if s["variant"] == variant} == {None}


def test_an_error_is_compared_with_one_minus_the_accuracy_of_the_majority_class():
    levels = [rows(variant, "majority_accuracy", [0.75] * 3) for variant in ("one", "two")]
    errors = [rows("one", "error", [0.2, 0.25, 0.3]), rows("two", "error", [0.1] * 3)]
    runs = pl.concat(errors + levels)
    expected = "predicting the majority class: a.one at epsilon 2, 3"
    assert no_better([below("error")], runs) == expected


def test_the_setting_at_which_a_method_is_no_better_is_named():
    runs = pl.concat(
        [rows(v, "own_loss", means).with_columns(loss_scale=pl.lit(scale))
         for v, scale, means in (("one", 1.0, [0.8]), ("one", 2.0, [0.5]), ("two", 1.0, [0.5]),
                                 ("two", 2.0, [0.5]))]
    )  # fmt: skip
    tests = [below("own_loss", loss_scale=scale) for scale in (1.0, 2.0)]
    assert no_better(tests, runs) == "the zero vector: a.one (C = 1) at epsilon 1"


def test_the_constants_of_least_squares_are_the_errors_of_the_zero_vector():
    for agents, name in (
        (5, "gratton.normalised_error"),
        (8, "others_extra_correlated.normalised_error"),
    ):
        problem = pc.problems.load("lasso").build(
            pc.Streams(0, (0,)), agents, records=16, dim=5, eta=1e-6
        )
        error = problem.measure("normalised_error", np.zeros((1, 1, agents, 5)))
        assert error.item() == pytest.approx(CONSTANTS[name].value)


def test_an_infinite_mean_is_not_compared():
    runs = pl.concat([rows("one", "normalised_error", [0.5, np.inf, 2.0]),
                      rows("two", "normalised_error", [0.4, 0.4, 0.4])])  # fmt: skip
    assert no_better([below("normalised_error")], runs) == "the zero vector: a.one at epsilon 3"
