"""Test measurements of section 3 of the dissertation of Ding, and the cost of Figure 11."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from observed import logistic_problem
from private_consensus.core.problems import logistic_regression
from private_consensus.reproduction.results.numbers import cost_to_reach

AGENTS, RECORDS = 5, 200


@pytest.fixture(params=[1.0, 20.0])
def problem(request, streams):
    options = {"ridge": 2e-5, "loss_scale": request.param, "test_rows": 100}
    return logistic_problem(streams, AGENTS, 40, records=RECORDS, **options)


@pytest.mark.parametrize("few", [0, np.inf])
def test_clipped_losses_of_selected_agents_match_those_of_all_agents(problem, monkeypatch, few):
    """Compare compiled code, for eight points at a time, with array operations."""
    monkeypatch.setattr(logistic_regression, "SMALL_ENTRIES", few)
    rng = np.random.default_rng(3)
    points = rng.normal(size=(7, len(problem.labels), AGENTS, problem.dim)) * 3
    selected = rng.random(points.shape[:-1]) < 0.5
    bound = np.linspace(0.5, 3.0, 7)[:, None, None, None]
    losses = problem.clipped_loss(points, bound, selected)[selected]
    assert losses == pytest.approx(problem.clipped_loss(points, bound)[selected], rel=1e-13)


@pytest.mark.parametrize("negative", [-1.0, 0.0])
def test_local_errors_match_a_direct_count(problem, negative):
    labels = np.where(problem.labels > 0, 1.0, negative)
    coding, tests = "signed" if negative else "zero_one", problem.test_labels
    tests = np.where(tests > 0, 1.0, negative)
    few = replace(problem, labels=labels, test_labels=tests, coding=coding)
    points = np.random.default_rng(3).normal(size=(7, len(labels), AGENTS, problem.dim)) * 3
    points[0] = 0.0
    margins = np.einsum("...k,...jk->...j", points, problem.features)
    wrong = (margins > 0) != (labels > 0)
    assert np.array_equal(few.local_error(points), wrong.mean((-1, -2)))
    points[1] = np.nan
    diverged = few.local_error(points)[1]
    assert np.array_equal(diverged, (labels > 0).mean((-1, -2)))


def points(values):
    x = [1.0, 10.0, 100.0]
    columns = {"x": x, "y": values, "low": values, "high": values, "series": ["a"] * 3}
    return pl.DataFrame(columns)


def test_the_cost_to_reach_a_goal_is_the_inverse_of_the_curve():
    """The test curve is linear in ln x, for which the inverse is exact within rounding."""
    goals = [0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05]
    costs = cost_to_reach(points([0.3, 0.2, 0.1]), goals)
    expected = [1.0, 1.0, 10**0.5, 10.0, 10**1.5, 100.0, np.inf]
    assert costs["x"].to_list() == goals
    assert np.allclose(costs["y"].to_numpy(), expected)
    assert costs["series"].to_list() == ["a"] * len(goals)


def test_a_goal_is_reached_only_if_the_curve_stays_below_it():
    """A curve that dips below the goal and rises again has not reached the goal."""
    assert cost_to_reach(points([0.1, 0.3, 0.1]), [0.2])["y"][0] == pytest.approx(10**1.5)
    assert cost_to_reach(points([np.inf, 0.3, 0.1]), [0.35])["y"][0] == pytest.approx(10.0)
    assert cost_to_reach(points([0.1, 0.1, 0.3]), [0.2])["y"][0] == np.inf
