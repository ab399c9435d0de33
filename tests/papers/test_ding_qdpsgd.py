"""Test Q-DPSGD of Ding: run times, compared durations, noise and the one-run audit."""

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from observed import run
from private_consensus import networks
from private_consensus.audits.analyses.canary_audit import guessed
from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms import load
from private_consensus.core.problems import perceptron
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget
from private_consensus.privacy.one_run import one_run_epsilon, one_run_pvalue
from private_consensus.reproduction.configuration.schema import read_paper
from private_consensus.reproduction.results.numbers import curve_points

PAPER = Path(__file__).parents[2] / "config" / "papers" / "ding.yaml"
GROUPS = dict.fromkeys(("data", "graph", "noise", "sampling"), "test")
DELTA = 1e-5


@pytest.fixture(scope="module")
def paper():
    return read_paper(PAPER)


@pytest.fixture(scope="module")
def scene():
    """Return a learnable problem of ten agents with 200 records each."""
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 10, 2500)
    centres = draw.random((10, 16), dtype=np.float32)
    features = 0.5 * centres[labels] + 0.1 * draw.random((2500, 16), dtype=np.float32)
    splits = {"train": np.arange(2000), "test": np.arange(2000, 2500)}
    data = SimpleNamespace(features=features, labels=labels, splits=splits)
    streams = Streams(5, (0, 1), GROUPS)
    problem = perceptron.build(streams, 10, prepared=data, hidden=12, records=2000)
    graph = {"name": "erdos_renyi", "agents": 10, "probability": 0.4, "weights": "laplacian"}
    return problem, networks.build(streams, **graph, scale=1.0), streams


# --- Run times ------------------------------------------------------------------------------------


def waiting_time(n, B, extra):
    """Return E max_i B/V_i + extra, the expected duration of a round.

    The slowest of n speeds has the survival function ((90-v)/80)^n.
    """
    v = np.linspace(10, 90, 200_001)
    density = n / 80 * ((90 - v) / 80) ** (n - 1)
    return np.trapezoid(B / v * density, v) + extra


@pytest.mark.parametrize(
    ("experiment", "algorithm", "variant", "n", "B"),
    [
        ("ding_fig14_waiting", "sdm_dsgd", "main", 10, 20),
        ("ding_fig14_waiting", "dsgd", "main", 10, 20),
        ("ding_fig16", "sdm_dsgd", "n20", 20, 20),
        ("ding_fig16", "sdm_dsgd", "n30", 30, 20),
        ("ding_fig16", "dsgd", "n20", 20, 20),
        ("ding_fig16", "dsgd", "n30", 30, 20),
        ("ding_fig16", "sdm_dsgd", "b50", 10, 50),
        ("ding_fig16", "dsgd", "b50", 10, 50),
    ],
)
def test_compared_runs_have_equal_simulated_durations(paper, experiment, algorithm, variant, n, B):
    config = paper.experiments[experiment]
    rounds = config.algorithms[algorithm][variant].set.get("horizon", config.horizon)
    round_duration = waiting_time(n, B, {"sdm_dsgd": 0.9, "dsgd": 3.0}[algorithm])
    window = 1100 * (0.9625 if B == 20 else 1.5625)
    assert rounds * round_duration == pytest.approx(window, rel=3e-3)


def test_horizons_in_both_parts_of_figure_14_have_equal_durations(paper):
    q, waiting = (
        paper.experiments[name].axes["rounds"].values
        for name in ("ding_fig14", "ding_fig14_waiting")
    )
    ratio = waiting_time(10, 20, 0.9) / 0.9625
    assert np.array(q) / np.array(waiting) == pytest.approx(ratio, rel=0.05 / 4)


# --- Numbers of a figure --------------------------------------------------------------------------


def test_a_curve_against_seconds_uses_the_mean_over_runs():
    rows = [
        {"rounds": T, "t": t, "run": run, "quantity": q, "metric": m, "value": v, "variant": "main"}
        for T in (2, 4)
        for t in range(1, T + 1)
        for run in (0, 1)
        for q, m, v in (("internal", "loss", 10.0 * T + t), ("seconds", "value", t + 0.5 * run))
    ]
    curve = {
        "method": "a", "style": "main", "variant": "main", "interpretation": "resolved",
        "label": "", "measure": "internal.loss", "where": {}, "by": None, "low": None,
        "last_iteration_only": True,
    }  # fmt: skip
    frame = pl.DataFrame(rows)
    points = curve_points(frame, pl.DataFrame(), curve, "seconds")
    assert points["x"].to_list() == [2.25, 4.25]
    assert points["y"].to_list() == [22.0, 44.0]
    full_curve = {**curve, "last_iteration_only": False, "where": {"rounds": 4}}
    course = curve_points(frame, pl.DataFrame(), full_curve, "seconds")
    assert course["x"].to_list() == [1.25, 2.25, 3.25, 4.25]


# --- The one-run audit ----------------------------------------------------------------------------


def coin_epsilon(right, guesses=100, records=1000, *, delta=0.0, confidence=0.95):
    return one_run_epsilon(right, guesses, records, delta=delta, confidence=confidence)


def test_epsilon_for_all_correct_guesses_has_a_closed_form():
    for confidence in (0.95, 0.999):
        chance = (1 - confidence) ** (1 / 100)
        closed = math.log(chance / (1 - chance))
        assert coin_epsilon(100, confidence=confidence) == pytest.approx(closed)
    assert coin_epsilon(50) == 0
    bounds = [coin_epsilon(right) for right in range(50, 101)]
    assert bounds == sorted(bounds)
    assert coin_epsilon(90, delta=1e-5) < coin_epsilon(90)
    assert coin_epsilon(90, confidence=0.999) < coin_epsilon(90)
    assert one_run_pvalue(0.0, 60, 100, 1000, delta=0.0) == pytest.approx(binom.sf(59, 100, 0.5))


def test_one_run_bound_holds_for_randomised_response_and_attains_three_quarters():
    draw = np.random.default_rng(1)
    true, records = 1.0, 2000
    right = draw.binomial(records, 1 / (1 + math.exp(-true)), size=400)
    bounds = np.array([coin_epsilon(int(r), records, records) for r in np.unique(right)])
    bounds = bounds[np.searchsorted(np.unique(right), right)]
    assert np.mean(bounds > true) <= 0.08
    assert np.median(bounds) > 0.75 * true


def test_guesses_use_the_scores_of_largest_magnitude():
    assert guessed(np.array([3.0, -5.0, 0.1, -0.2]), np.array([1, -1, -1, -1]), 2) == (2, 2)
    assert guessed(np.array([3.0, -5.0, 0.1, -0.2]), np.array([-1, -1, 1, 1]), 3) == (1, 3)


def test_the_canary_audit_accepts_calibrated_noise_and_rejects_reduced_noise(scene):
    problem, network, _ = scene
    budget, rounds = Budget(1.0, DELTA), 60
    bounds = {}
    for share in (1.0, 0.02):
        audit = load("canary_audit")(confidence=0.99, share=share, sigma_rule="accountant")
        audit = audit.calibrate(budget, problem, network, rounds)
        observables = run(audit, *scene, rounds)[rounds]
        bounds[share] = observables["bound_gradients"]
        assert np.all(observables["bound_delta"] == DELTA) and np.all(
            observables["bound_confidence"] == 0.99
        )
        contradicted = observables["p_value_gradients"] <= 0.01
        assert np.array_equal(contradicted, observables["bound_gradients"] > observables["formula"])
        if share == 1.0:
            assert audit.accountant == pytest.approx(1.0, rel=2e-3)
            assert np.all(observables["bound_messages"] <= 1.0)
    assert np.all(bounds[1.0] <= 1.0)
    assert np.all(bounds[0.02] > 2.0)
    with pytest.raises(InvalidInput, match="share"):
        load("canary_audit")(confidence=0.99, share=0.0)
    with pytest.raises(InvalidInput, match=r"algorithm.confidence"):
        load("canary_audit")(confidence=1.0)
    with pytest.raises(InvalidInput, match="guesses"):
        load("canary_audit")(confidence=0.99, guesses=201).calibrate(
            budget, problem, network, rounds
        )
