"""Likelihood ratios are what they are called, attackers' data are data the guarantee is for, and
settings that are not private are told apart."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import yaml

from private_consensus import algorithms, networks
from private_consensus.algorithms.base import stack
from private_consensus.audits.asked import checked, chosen
from private_consensus.audits.attained import least_epsilon, least_epsilon_from_zero
from private_consensus.audits.likelihood import overheard
from private_consensus.audits.neighbours import around, neighbours
from private_consensus.audits.rounds import Slopes, heard_in_rounds
from private_consensus.audits.settings import RATIO, _aggregates, _computed, audited
from private_consensus.audits.table import judged
from private_consensus.audits.transcripts import Together
from private_consensus.errors import InvalidInput
from private_consensus.experiments.plan import load
from private_consensus.experiments.schema import read_yaml
from private_consensus.privacy import (
    Budget,
    account,
    deadline_batches,
    discrete_gaussian_pmf,
    fixed_batches,
    gaussian_dp,
    gaussian_epsilon,
    noisy_mean,
)
from private_consensus.problems import fair_classification, lasso
from private_consensus.problems.logistic_regression import LogisticRegression
from private_consensus.problems.mean_estimation import MeanEstimation
from private_consensus.randomness import PURPOSES, Streams
from private_consensus.simulation import Setting

ROOT = Path(__file__).parents[2]
RUNS = 4000


def regression(records=6, dim=3, weight=0.5):
    rng = np.random.default_rng(1)
    features = rng.standard_normal((4, records, dim))
    features /= np.linalg.norm(features, axis=-1, keepdims=True)
    labels = np.where(rng.random((4, records)) < 0.5, -1.0, 1.0)
    return LogisticRegression(features, labels, features[0], labels[0], weight, 0.3)


def ring():
    return networks.build(Streams(0, (0,)), "ring", 4)


def ratios(name, budget=None, horizon=3, problem=None, **parameters):
    """Log-likelihood ratios under D and under D', and the algorithm."""
    problem = problem or regression()
    algorithm = algorithms.load(name)(**parameters)
    budget = budget or Budget(np.inf, 0.0)
    algorithm = algorithm.calibrate(budget, problem, ring(), horizon)
    made = neighbours(problem, ring(), algorithm)
    found = []
    for world in (0, 1):
        streams = Together(5, tuple(range(RUNS)), dict.fromkeys(PURPOSES, f"{name} {world}"))
        heard = overheard(
            algorithm, made.pair, world, made.network, horizon, made.direction, streams
        )
        found.append(heard.ratio)
    return (*found, algorithm, problem)


GIVEN = {"calibration": "given", "noise": 0.5}
KNOWN = {
    "output": ("p_admm", {**GIVEN, "law": "laplace"}),
    "output of a gradient step": ("pdop", GIVEN),
    "dual": ("dvp", GIVEN),
    "centre": ("m_admm", GIVEN),
    "odd iterations": ("r_admm", {**GIVEN, "law": "gamma_norm", "eta": 1.0}),
    "random weights": ("ldp_admm", {**GIVEN, "noise": 0.1}),
    "random weights of a range": ("ldp_gradient_descent", {**GIVEN, "aggregator": "range"}),
    "random weights of a pair": ("ldp_gradient_descent", GIVEN),
    "fixed weights": ("ldp_admm", {**GIVEN, "noise": 0.1, "weights": "fixed"}),
    "some coordinates": ("coordinate_descent", {**GIVEN, "noise": 0.3}),
}


@pytest.mark.filterwarnings("ignore::private_consensus.errors.OutsideRange")
@pytest.mark.parametrize(("name", "parameters"), KNOWN.values(), ids=KNOWN)
def test_what_is_called_a_likelihood_ratio_is_one(name, parameters):
    r"""Of any ratio :math:`E_{D'}[e^L] = E_D[e^{-L}] = 1`, and of no other statistic that moves."""
    one, other, _, _ = ratios(name, **parameters)
    for weights in (np.exp(other), np.exp(-one)):
        error = weights.std() / np.sqrt(RUNS)
        assert 0.005 < error < 0.2, error
        assert abs(weights.mean() - 1.0) < 4 * error
    assert one.mean() > 0 > other.mean()


@pytest.mark.parametrize("name", ["p_admm", "dvp", "ldp_admm"])
@pytest.mark.filterwarnings("ignore::private_consensus.errors.OutsideRange")
def test_no_loss_exceeds_what_the_accountant_finds(name):
    one, other, algorithm, problem = ratios(name, **GIVEN, law="laplace")
    bound = account(algorithm.releases(problem, ring(), 3), 0.0).epsilon
    assert np.abs([one, other]).max() <= bound * (1 + 1e-9)


def test_gaussian_messages_of_the_extreme_pair_lose_exactly_what_the_accountant_says():
    r"""The ratio is normal with mean :math:`\pm\mu^2/2` and variance :math:`\mu^2`."""
    problem = MeanEstimation(np.zeros((1, 4, 2)), 10, 1.0)
    budget = Budget(2.0, 1e-3)
    options = {"calibration": "gaussian_dp", "spending": "whole"}
    one, other, algorithm, _ = ratios("gradient_descent", budget, 6, problem, **options)
    mu = gaussian_dp(algorithm.releases(problem, ring(), 6))
    for sign, values in ((1, one), (-1, other)):
        assert values.mean() == pytest.approx(sign * mu**2 / 2, abs=4 * mu / np.sqrt(RUNS))
        assert values.std() == pytest.approx(mu, rel=4 / np.sqrt(2 * RUNS))


def test_a_message_without_noise_decides_and_its_repair_does_not():
    problem = MeanEstimation(np.zeros((1, 4, 2)), 10, 1.0)
    for stage_two, flagged in (("literal", True), ("repaired", False)):
        algorithm = algorithms.load("gradient_descent")(stage_two=stage_two)
        setting = Setting(algorithm, Budget(2.0, 1e-3), 4)
        found = audited(setting, problem, ring(), RUNS, stage_two).bound
        assert found.contradicts(2.0) == flagged
        assert (found.epsilon > 5) == flagged  # near what this many runs can show at all


def test_noise_in_two_places_has_no_known_ratio_and_is_audited_by_what_was_sent():
    problem = regression(weight=20.0)
    setting = Setting(algorithms.load("pp_admm")(calibration="accountant"), Budget(8.0, 1e-2), 3)
    found = audited(setting, problem, ring(), RUNS, "pp")
    assert found.statistic.startswith("linear")
    assert not found.bound.contradicts(8.0)


def test_the_closed_form_of_a_minimum_with_one_record_is_that_of_the_solver():
    problem = regression()
    made = neighbours(problem, ring(), None)
    few = made.pair[1]
    rows = np.zeros((few.n_agents, few.total, few.dim))
    rows[:, :1] = few.features
    labels = np.ones(rows.shape[:2])
    labels[:, :1] = few.labels
    full = LogisticRegression(rows, labels, rows[0], labels[0], few.weight, few.ridge)
    rng = np.random.default_rng(2)
    linear, centre = rng.standard_normal((2, 1, 5, few.n_agents, few.dim))
    penalty = rng.uniform(0.1, 2.0, (few.n_agents, 1))
    start = np.zeros_like(linear)
    found = few.proximal(linear, penalty, centre, start)
    assert np.allclose(found, full.proximal(linear, penalty, centre, start), atol=1e-9)
    assert few.smoothness == pytest.approx(full.smoothness)


def test_neighbours_differ_by_no_more_than_a_record_may():
    problem = regression()
    one, other = neighbours(problem, ring(), None).pair
    x = np.random.default_rng(3).standard_normal((7, one.n_agents, one.dim))
    apart = one.gradient(x) - other.gradient(x)
    assert np.allclose(apart[:, 1:], 0.0)
    assert np.allclose(np.linalg.norm(apart[:, 0], axis=-1), problem.weight)
    assert problem.weight <= problem.record_change("l2")


def test_labels_in_zero_and_one_stay_so():
    plain = regression()
    coded = LogisticRegression(
        np.abs(plain.features), np.maximum(plain.labels, 0.0), plain.features[0],
        plain.labels[0], plain.weight, plain.ridge,
    )  # fmt: skip
    pair = neighbours(coded, ring(), None).pair
    assert {label for problem in pair for label in problem.labels.ravel()} == {0.0, 1.0}


def test_of_a_network_the_agent_with_the_fewest_neighbours_is_kept_with_these():
    star = networks.build(Streams(0, (0,)), "star", 6)
    assert around(star).n_agents == 2
    drawn = networks.build(Streams(0, (0, 1)), "random_edges", 10, edges=20)
    kept = around(drawn)
    assert kept.degrees[0] == drawn.degrees[0].min() == kept.n_agents - 1


def test_one_output_of_a_random_aggregate_loses_almost_all_that_fixed_weights_would():
    problem = MeanEstimation(np.zeros((1, 10, 20)), 1, 1.0)
    algorithm = algorithms.load("random_aggregation")(omega=0.1, beta=10.0, change=0.05)
    one, other = _aggregates(algorithm, problem, None, 500, "test")[RATIO]
    worst = algorithm.beta * algorithm.change
    assert np.abs([one, other]).max() == pytest.approx(worst)
    assert np.exp(other).mean() == pytest.approx(1.0, abs=4 * np.exp(other).std() / 316)
    bound = audited(Setting(algorithm, Budget(np.inf, 0.0), 1), problem, None, 500, "test").bound
    assert 0.8 * worst < bound.epsilon <= worst


def fair():
    rng = np.random.default_rng(4)
    features = rng.random((40, 4))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    sides = np.arange(40) % 2
    return fair_classification.FairClassification(
        features, sides, sides, np.array([[39]]), lambda *names: np.array([], int)
    )


def test_a_minimum_on_the_plane_of_an_exact_covariance_tells_it():
    for shift, flagged in (("raw", True), ("noised", False)):
        setting = Setting(algorithms.load("pflr")(shift=shift, sens="tight"), Budget(1.0, 0.0), 1)
        found = audited(setting, fair(), None, RUNS, shift).bound
        assert found.contradicts(1.0) == flagged


def plan():
    return load(read_yaml(ROOT / "config" / "config.yaml"), ROOT / "config")


def entries():
    return yaml.safe_load((ROOT / "config" / "audits.yaml").read_text())


def test_every_entry_of_the_configuration_names_settings():
    planned = plan()
    assert checked(entries(), planned.experiments) == entries()
    for entry in entries():
        assert chosen(planned.cell(entry["experiment"], entry["algorithm"]), [entry]), entry


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ({"experiment": "a", "algorithm": "dpv"}, "dpv"),
        ({"experiment": "a", "algorithm": "dvp", "variant": "mian"}, "mian"),
    ],
)
def test_an_entry_that_names_nothing_is_refused(entry, found):
    known = {"a": SimpleNamespace(algorithms={"dvp": {"main": None}})}
    with pytest.raises(InvalidInput, match=f"audits.a.*{found}"):
        checked([entry], known)
    assert checked([{"experiment": "b", "algorithm": "dvp"}], known) == []


def test_an_audit_of_a_setting_speaks_of_that_setting_alone():
    row = {
        "experiment": "fig", "algorithm": "descent", "variant": "main", "delta": 0.0,
        "epsilon_claimed": 1.0, "epsilon_accountant": 0.9, "accountant": "pure", "proven": True,
        "epsilon_lower": 0.0,
        "sampling": "none", "epsilon": 1.0, "coding": "signed",
    }  # fmt: skip
    audit = {
        "experiment": "fig", "algorithm": "descent", "variant": "main", "copy": "correct",
        "setting": json.dumps({"epsilon": 1, "coding": "signed"}), "level": "transcript",
        "delta": 0.0, "claimed": 1.0, "bound": 1.5, "flagged": True,
    }  # fmt: skip
    changed = [{}, {"experiment": "other"}, {"coding": "zero_one"}, {"epsilon": 2.0}]
    privacy = pl.DataFrame([{**row, **change} for change in changed])
    found = judged(privacy, {}, [audit])
    assert found["verdict"].to_list() == ["violated", "holds", "holds", "holds"]
    assert found["epsilon_empirical"].to_list() == [1.5, None, None, None]


def test_records_without_features_count_in_the_mean_loss():
    few = neighbours(regression(), ring(), None).pair[0]
    rows = np.zeros((few.n_agents, few.total, few.dim))
    rows[:, :1] = few.features
    ones = np.ones(rows.shape[:2])
    full = LogisticRegression(rows, ones, rows[0], ones[0], few.weight, few.ridge)
    x = 3 * np.random.default_rng(6).standard_normal((2, 5, few.n_agents, few.dim))
    for bound in (np.inf, 0.5, np.array([0.4, 2.0]).reshape(2, 1, 1, 1)):
        assert np.allclose(few.clipped_loss(x, bound), full.clipped_loss(x, bound))


def test_an_attack_on_whole_batches_attains_what_gaussian_dp_allows_and_no_more():
    whole = noisy_mean(fixed_batches(20), 20)
    for sigma, rounds in ((0.5, 10), (1.0, 300)):
        exact = gaussian_epsilon(2 / (20 * sigma) * np.sqrt(rounds), 1e-5)
        found = least_epsilon(whole, sigma, rounds, 1e-5)
        assert exact * 0.97 < found <= exact


@pytest.mark.parametrize(("sigma", "rounds"), [(0.13, 100), (0.2, 300), (0.5, 20)])
def test_what_an_attack_attains_is_near_what_the_accountant_allows(sigma, rounds):
    noise = noisy_mean(deadline_batches(0.4), 1000)
    allowed = account(noise.releases(sigma, rounds), 1e-5).epsilon
    assert 0.9 * allowed < least_epsilon(noise, sigma, rounds, 1e-5) <= allowed


def test_less_noise_than_any_table_of_normals_knows_is_no_limit():
    noise = noisy_mean(fixed_batches(4), 1000)
    least, less = (least_epsilon(noise, sigma, 10, 1e-5) for sigma in (0.02, 0.005))
    assert 100 < least < less < np.inf


@pytest.mark.parametrize("bound", [1.0, np.inf])
def test_a_response_moves_the_gradient_by_twice_the_bound_that_is_met_or_assumed(bound):
    made = lasso.build(Streams(0, (0,)), 4, records=5, dim=3, gradient_bound=bound)
    one, other = neighbours(made, ring(), SimpleNamespace(c1=0.8)).pair
    origin = np.zeros((1, one.n_agents, 3))
    moved = one.gradient(origin) - other.gradient(origin)
    longest = bound if np.isfinite(bound) else 0.8
    assert np.linalg.norm(moved[0], axis=-1) == pytest.approx([2 * longest * one.weight, 0, 0])


@pytest.mark.parametrize("sigma", [0.02, 2.0])
def test_a_first_step_from_zero_is_noticed_as_often_as_computed(sigma):
    """By the algorithm itself, on batches of 5 of 10 on average."""
    dim, runs = 50, 3000
    slopes = np.zeros((3, 10, dim))
    slopes[0, 0] = 0.5 / np.sqrt(dim)
    algorithm = algorithms.load("q_dpsgd_2")(
        B=5, K=0.5, a0=1.0, e0=1.0, eta=0.1, sigma=sigma, init="zero", grid="open"
    )
    network = networks.build(Streams(0, (0,)), "complete", 3)
    streams = Together(7, tuple(range(runs)), dict.fromkeys(PURPOSES, "from zero"))
    ready = algorithm.for_horizon(np.array([2.0]))
    sent, _ = heard_in_rounds(stack([ready]), Slopes(slopes), network, 2, streams, stuck=False)
    noticed = (sent[1][:, 0] != 0).any(-1).mean()
    a, e = algorithm.steps(2.0)
    batches = algorithm.batches()
    deviation = sigma * 5.0
    bound = least_epsilon_from_zero(batches, 10, float(a * e * 5.0), deviation, dim, 0.0)
    quiet = discrete_gaussian_pmf(np.zeros(1), deviation**2)[0]
    none = 1.0 - quiet**dim
    if sigma < 1:
        # the noise is 0, so that what is noticed is the record
        expected = np.exp(bound) * dim * 2 * discrete_gaussian_pmf(np.ones(1), deviation**2)[0]
        assert noticed == pytest.approx(expected, abs=4 * np.sqrt(0.25 / runs))
    else:
        assert bound == 0.0 and noticed >= none - 4 * np.sqrt(0.25 / runs)


def computed(name, dim, **parameters):
    problem = Slopes(np.zeros((3, 40, dim)))
    network = networks.build(Streams(0, (0,)), "complete", 3)
    algorithm = algorithms.load(name)(B=10, sigma_rule="accountant", **parameters)
    return _computed(Setting(algorithm, Budget(2.0, 1e-4), 20), problem, network)[1]


def test_of_a_gradient_that_is_sent_in_part_an_attack_attains_less():
    whole = computed("dsgd", 1000, gradients="private")
    sent = {c: computed("sdm_dsgd", 1000, c=c) for c in (1.0, 0.5, 0.2)}
    assert sent[1.0] == pytest.approx(whole, rel=1e-3)  # delta is a little larger
    assert sent[0.2] < sent[0.5] < sent[1.0] <= 2.0
    assert computed("sdm_dsgd", 10, c=0.5) < sent[0.5]  # of few coordinates none may be sent


def test_an_attack_on_a_start_that_is_not_zero_is_not_known():
    with pytest.raises(InvalidInput, match="a start at 0"):
        computed("q_dpsgd_2", 10, own="broadcast")
