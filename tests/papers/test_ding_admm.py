"""Test section 3 of the dissertation of Ding on surrogate Adult data, and the cost of Figure 11."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from private_consensus import networks
from private_consensus.core.algorithms.base import stack
from private_consensus.core.algorithms.dvp import DualVariablePerturbation as DVP
from private_consensus.core.algorithms.ipp_admm import ImprovedPlausiblyPrivateADMM as IPP
from private_consensus.core.algorithms.m_admm import PenaltyPerturbation as M
from private_consensus.core.algorithms.pp_admm import PlausiblyPrivateADMM as PP
from private_consensus.core.algorithms.pr_admm import PeriodicallyReducedADMM as PR
from private_consensus.core.algorithms.r_admm import RecycledADMM as R
from private_consensus.core.problems import logistic_regression
from private_consensus.privacy import Budget, zcdp_rho
from private_consensus.reproduction.datasets import Acquisition, acquire, prepare
from private_consensus.reproduction.experiments.numbers import cost_to_reach

AGENTS, RECORDS, ETA = 5, 200, 0.5


@pytest.fixture(scope="module")
def adult(tmp_path_factory):
    """Prepare surrogate data for Adult, encoded as in section 3.5 of the paper."""
    acquisition = Acquisition(
        source="surrogate", surrogate_rows=3000, cache=tmp_path_factory.mktemp("c")
    )
    return prepare("adult-onehot41", *acquire("adult", acquisition))


@pytest.fixture(params=[1.0, 20.0])
def problem(request, streams, adult):
    return logistic_regression.build(
        streams, AGENTS, prepared=adult, records=RECORDS, ridge=2e-5, weight="mean",
        loss_scale=request.param, partition="per_run", test_rows=100,
    )  # fmt: skip


@pytest.fixture
def network(streams):
    return networks.build(streams, "ring", AGENTS)


def neighbours(problem, adult, count: int):
    """Yield problems in which the first record of every agent is replaced by another record."""
    rng = np.random.default_rng(5)
    for _ in range(count):
        features, labels = problem.features.copy(), problem.labels.copy()
        replacements = rng.integers(len(adult.labels), size=labels.shape[:2])
        features[:, :, 0], labels[:, :, 0] = (
            adult.features[replacements],
            adult.labels[replacements],
        )
        yield replace(problem, features=features, labels=labels)


@pytest.mark.parametrize("few", [0, np.inf])
def test_clipped_losses_of_selected_agents_match_those_of_all_agents(problem, monkeypatch, few):
    """Compare compiled code, for eight points at a time, with array operations."""
    monkeypatch.setattr(logistic_regression.objective, "SMALL_ENTRIES", few)
    rng = np.random.default_rng(3)
    points = rng.normal(size=(7, len(problem.labels), AGENTS, problem.dim)) * 3
    selected = rng.random(points.shape[:-1]) < 0.5
    bound = np.linspace(0.5, 3.0, 7)[:, None, None, None]
    losses = problem.clipped_loss(points, bound, selected)[selected]
    assert losses == pytest.approx(problem.clipped_loss(points, bound)[selected], rel=1e-13)


@pytest.mark.parametrize("negative", [-1.0, 0.0])
def test_local_error_counts_match_a_direct_count(problem, monkeypatch, negative):
    labels = np.where(problem.labels > 0, 1.0, negative)
    coding, tests = "signed" if negative else "zero_one", problem.test_labels
    tests = np.where(tests > 0, 1.0, negative)
    few = replace(problem, labels=labels, test_labels=tests, coding=coding)
    points = np.random.default_rng(3).normal(size=(7, len(labels), AGENTS, problem.dim)) * 3
    points[0] = 0.0
    margins = np.einsum("...k,...jk->...j", points, problem.features)
    wrong = (margins > 0) != (labels > 0)
    for size in (0, np.inf):
        monkeypatch.setattr(logistic_regression.objective, "SMALL_ENTRIES", size)
        assert np.array_equal(few.local_error_counts(points), wrong.sum(-1))
        assert np.array_equal(few.measure("own_train_error", points), wrong.mean((-1, -2)))
    points[1] = np.nan
    assert np.array_equal(few.local_error_counts(points)[1], (labels > 0).sum(-1))


def test_a_replaced_record_moves_minimisers_by_at_most_the_sensitivity(problem, network, adult):
    """Test Theorem 2 and the tighter bound for proximal centres of several orders of magnitude."""
    rng = np.random.default_rng(2)
    penalty = 2 * ETA * network.degrees[..., None]
    shape = (1, len(problem.labels), AGENTS, problem.dim)
    sharp, printed = problem.minimiser_change("l2", 2.0), problem.record_change("l2") / 2.0
    assert sharp <= printed == pytest.approx(2 * problem.weight / (2 * ETA * 2))
    zero, worst = np.zeros(shape), 0.0
    for neighbour, size in zip(neighbours(problem, adult, 4), (0.0, 0.1, 1.0, 10.0), strict=True):
        centre = size * rng.normal(size=shape)
        minimisers, neighbour_minimisers = (
            p.proximal(zero, penalty, centre, zero) for p in (problem, neighbour)
        )
        worst = max(worst, np.linalg.norm(minimisers - neighbour_minimisers, axis=-1).max())
    assert 0.1 * sharp < worst <= sharp


def test_a_replaced_record_changes_the_clipped_gain_by_at_most_its_sensitivity(problem, adult):
    """The bound 2 C_loss / n for two fixed models is nearly attained."""
    rng = np.random.default_rng(4)
    before, after = rng.normal(size=(2, 1, *problem.labels.shape[:2], problem.dim)) * 30.0
    bound, allowed = 2.0, 2 * 2.0 / RECORDS

    def gain(p):
        return p.clipped_loss(before, bound) - p.clipped_loss(after, bound)

    moves = [
        np.abs(gain(neighbour) - gain(problem)).max()
        for neighbour in neighbours(problem, adult, 20)
    ]
    assert max(moves) <= allowed * (1 + 1e-12)
    # For a row along after - before, the gains with the two labels are opposite extremes.
    away = (after - before)[0]
    row = away / np.linalg.norm(away, axis=-1, keepdims=True)
    pair = []
    for label in (1.0, -1.0):
        features, labels = problem.features.copy(), problem.labels.copy()
        features[:, :, 0], labels[:, :, 0] = row, label
        pair.append(replace(problem, features=features, labels=labels))
    moved = (gain(pair[0]) - gain(pair[1])).max()
    assert 0.99 * allowed < moved <= allowed * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 10.0])
def test_every_method_is_calibrated_to_the_same_total_rho(problem, network, epsilon):
    pure = {"law": "gamma_norm", "calibration": "formula", "curvature": "half"}
    methods = [PR(calibration="formula"), PP(e3=0.9), IPP(e3=0.9), DVP(**pure), R(**pure)]
    methods.append(M(**pure, penalty_growth=1.02, t_0=1))
    for method in methods:
        safe_method = replace(method, rho_conversion="safe")
        done = safe_method.calibrate(Budget(epsilon, 1e-4), problem, network, 30)
        rho = done.rho_by_formula(problem, network, 30)
        assert rho == pytest.approx(zcdp_rho(epsilon, 1e-4, conversion="safe"), rel=1e-9)


def test_settings_with_growing_penalties_run_in_one_batch(problem, network, streams):
    done = [
        M(law="gamma_norm", penalty_growth=1.02, t_0=1, calibration="given", noise=noise)
        for noise in (1e-3, 1e-2)
    ]
    observables = {}
    stack(done).run(
        problem, network, streams, np.array([3, 3]), lambda t, a, s: observables.update(s)
    )
    assert observables["released"].shape[0] == 2


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
