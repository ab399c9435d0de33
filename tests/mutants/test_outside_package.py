"""Test that the algorithms from outside run, and that their losses and faults are as derived."""

import tomllib
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from math import inf
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

from private_consensus import problems, simulate
from private_consensus.core.algorithms.base import draws_of, stack
from private_consensus.core.randomness import Streams
from private_consensus.privacy import (
    Budget,
    Sampling,
    account,
    gaussian_epsilon,
    gaussian_log_delta,
)

from .outside.catalogue import BROKEN, CORRECT, ENTRIES
from .outside.settings import Setting

FOLDER = Path(__file__).parent / "outside"
NAMES = sorted(entry.module for entry in ENTRIES)
BY_NAME = {entry.module: entry for entry in ENTRIES}


def load(name):
    """Return the module of an algorithm."""
    return import_module(f"{__package__}.outside.outside_algorithms.{name}")


def execute(name, problem, seed=0, *, budget=None, horizon=None, setting=None):
    """Run one run and return all that the algorithm shows, by quantity.

    Each quantity has the iterations as first axis. Quantities of the outcome have the length 1.
    """
    setting = setting or BY_NAME[name].setting
    horizon = horizon or setting.horizon
    network = setting.build_network()
    algorithm = load(name).ALGORITHM(**setting.options)
    algorithm = algorithm.calibrate(budget or setting.budget, problem, network, horizon)
    batch, streams = stack([algorithm]), Streams(seed, (0,))
    state, draws = (
        batch.start(problem, network, streams, 1),
        draws_of(batch, problem, network, streams),
    )
    recorded = {}
    for t in range(1, horizon + 1):
        state = batch.step(state, problem, network, next(draws), t)
        for quantity, array in batch.observables(state, problem, t).items():
            recorded.setdefault(quantity, []).append(array[0, 0].copy())
    for quantity, array in batch.outcome(state, problem, network, horizon).items():
        recorded[quantity] = [array[0, 0]]
    return {quantity: np.array(arrays) for quantity, arrays in recorded.items()}


# --- The package ------------------------------------------------------------------------------


def test_catalogue_modules_and_entry_points_agree():
    modules = sorted(path.stem for path in (FOLDER / "outside_algorithms").glob("[a-z]*.py"))
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]["private_consensus.algorithms"]
    assert modules == NAMES == sorted(points)
    assert all(points[name] == f"outside_algorithms.{name}" for name in NAMES)
    assert len(CORRECT) >= 18
    assert len(BROKEN) >= 45


@pytest.mark.parametrize("entry", BROKEN, ids=lambda entry: entry.module)
def test_broken_algorithm_derives_from_its_correct_base(entry):
    base = BY_NAME[entry.base]
    assert base.correct
    assert issubclass(load(entry.module).ALGORITHM, load(entry.base).ALGORITHM)
    assert entry.ratio >= 1.5
    assert entry.location and entry.neighbours and entry.derivation


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.module)
def test_the_declared_releases_are_within_the_claim(entry):
    setting = entry.setting
    done = simulate(
        load(entry.module).ALGORITHM(**setting.options),
        setting.build_problem(),
        setting.build_network(),
        setting.budget,
        setting.horizon,
        runs=2,
    )
    assert done.guarantee.proven
    assert done.guarantee.epsilon <= setting.epsilon * (1 + 1e-9)
    if entry.module != "cautious_gossip":
        assert done.guarantee.epsilon == pytest.approx(setting.epsilon, rel=1e-4)
    assert np.isfinite(done.measurements["value"].to_numpy()).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_example_runs(name):
    module = load(name)
    problem_module = problems.load(module.EXAMPLE)
    parameters = dict(problem_module.EXAMPLE)
    generator = np.random.default_rng(0)
    if "prepared" in parameters:
        rows = generator.standard_normal((60, 6))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        labels = np.where(rows[:, 0] > 0, 1.0, -1.0)
        prepared = SimpleNamespace(features=rows, labels=labels)
        parameters |= {"prepared": prepared, "records": 10}
    problem = problem_module.build(Streams(0, (0,)), 4, **parameters)
    setting = replace(BY_NAME[name].setting, agents=4, options={})
    assert type(module.ALGORITHM()) is module.ALGORITHM
    outputs = execute(name, problem, horizon=3, setting=setting)
    assert outputs["released"].shape == (3, 4, problem.dim)
    assert np.isfinite(outputs["released"]).all()


# --- Correct algorithms -----------------------------------------------------------------------

FREE = Budget(inf)
MEAN = Setting()

GOSSIPS = {
    "one_release_gossip": 1e-12,
    "signed_noise_gossip": 1e-12,
    "cautious_gossip": 1e-12,
    "float32_gossip": 1e-6,
    "discrete_gaussian_gossip": 0.05 / 2 + 1e-9,
}


@pytest.mark.parametrize(("name", "tolerance"), GOSSIPS.items())
def test_gossip_without_noise_converges_to_the_mean(name, tolerance):
    problem = MEAN.build_problem()
    last = execute(name, problem, budget=FREE, horizon=80, setting=MEAN)["released"][-1]
    assert np.abs(last - problem.target[0]).max() <= tolerance


DESCENTS = {
    "round_noise_descent": 1e-9,
    "rotated_noise_descent": 1e-9,
    "message_report_descent": 1e-9,
    "secure_sum_descent": 1e-9,
    "momentum_descent": 1e-4,
    "grid_message_descent": 0.02,
    "output_noise_admm": 1e-6,
    "dual_noise_admm": 1e-6,
}


@pytest.mark.parametrize(("name", "tolerance"), DESCENTS.items())
def test_descent_without_noise_converges_to_the_mean(name, tolerance):
    problem = MEAN.build_problem()
    last = execute(name, problem, budget=FREE, horizon=150, setting=MEAN)["released"][-1]
    assert np.abs(last.mean(0) - problem.target[0]).max() <= tolerance


def test_signs_without_flips_average_to_the_mean_of_signs():
    problem = MEAN.build_problem()
    outputs = execute("random_sign_gossip", problem, budget=FREE, horizon=80, setting=MEAN)
    signs = np.where(problem.means[0] >= 0, 1.0, -1.0)
    np.testing.assert_allclose(outputs["released"][0], signs)
    np.testing.assert_allclose(outputs["released"][-1], np.tile(signs.mean(0), (4, 1)), atol=1e-9)


def mean_clipped(problem, x, clip, order=2, batch=None):
    """Return the mean of clipped gradients, record by record."""
    total = np.zeros_like(x)
    for agent, point in enumerate(x):
        for record, (row, label) in enumerate(
            zip(problem.features[agent], problem.labels[agent], strict=True)
        ):
            if batch is not None and record not in batch:
                continue
            gradient = -label * row / (1 + np.exp(label * (row @ point)))
            norm = np.linalg.norm(gradient, ord=order)
            total[agent] += gradient * min(1.0, clip / norm)
    return total / problem.records


LOGISTIC = Setting(problem="logistic_regression")


@pytest.mark.parametrize(
    ("name", "length", "order"),
    [("clipped_record_descent", 0.2, 2), ("laplace_clip_descent", 0.2, 1)],
)
def test_steps_without_noise_follow_the_mean_of_clipped_gradients(name, length, order):
    problem, network = LOGISTIC.build_problem(), LOGISTIC.build_network()
    x = execute(name, problem, budget=FREE, setting=LOGISTIC)["released"]
    before = np.zeros_like(x[0])
    for after in x:
        z = network.mixing @ before
        expected = z - length * mean_clipped(problem, z, 0.1, order)
        np.testing.assert_allclose(after, expected, atol=1e-12)
        before = after


def test_the_tree_adds_up_gradients_of_disjoint_records():
    problem, network = LOGISTIC.build_problem(), LOGISTIC.build_network()
    x = execute("tree_noise_descent", problem, budget=FREE, setting=LOGISTIC)["released"]
    total, before = 0.0, np.zeros_like(x[0])
    for t, after in enumerate(x):
        batch = [record for record in range(10) if record % 5 == t]
        total = total + mean_clipped(problem, network.mixing @ before, 0.2, batch=batch)
        np.testing.assert_allclose(after, -total, atol=1e-12)
        before = after


def test_the_noise_of_the_tree_has_one_normal_per_one_bit():
    module = load("tree_noise_descent")
    tree, streams = stack([module.ALGORITHM(sigma=2.0, rounds=12)]), Streams(3, tuple(range(4000)))
    problem, network = LOGISTIC.build_problem(), LOGISTIC.build_network()
    state, draws = tree.start(problem, network, streams, 1), tree.draws(problem, streams)
    for t in range(1, 13):
        level = (t & -t).bit_length() - 1
        state = state._replace(nodes=tree.with_node(state.nodes, next(draws), level))
        variance = (2.0 * state.nodes.sum(2)).var()
        assert variance == pytest.approx(4.0 * t.bit_count(), rel=0.05)


def test_a_sample_holds_each_record_with_its_rate():
    problem = LOGISTIC.build_problem()
    for name in ("poisson_descent", "fixed_batch_descent"):
        algorithm, streams = load(name).ALGORITHM(), Streams(0, tuple(range(200)))
        coins = next(algorithm.draws(problem, streams)).coins
        if name == "poisson_descent":
            is_sampled = algorithm.in_sample(coins, 1)
            assert is_sampled.sum(-1).std() == pytest.approx(np.sqrt(10 * 0.2 * 0.8), rel=0.1)
        else:
            is_sampled = coins.argsort(-1).argsort(-1) < algorithm.size(10)
            assert (is_sampled.sum(-1) == 2).all()
        assert is_sampled.mean((0, 1)) == pytest.approx(np.full(10, 0.2), abs=0.06)


def test_the_adaptive_clip_without_noise_moves_towards_the_median():
    problem = LOGISTIC.build_problem()
    outputs = execute("adaptive_clip_descent", problem, budget=FREE, horizon=60, setting=LOGISTIC)
    norms = np.linalg.norm(problem.features, axis=-1) * 0.5  # at the origin
    below = (norms <= 0.2).sum(-1)
    np.testing.assert_allclose(outputs["clip"][0, :, 0], 0.2 * np.exp(-0.3 * (below / 10 - 0.5)))
    assert (outputs["clip"][-1] > outputs["clip"][0]).all()  # half of the norms are above the clip


def test_agents_take_turns_as_often_as_counted():
    for horizon in range(1, 12):
        algorithm = load("alternating_descent").ALGORITHM()
        turns = sum(
            algorithm.takes_part(SimpleNamespace(n_agents=4), t)[:, 0]
            for t in range(1, horizon + 1)
        )
        assert turns.max() == algorithm.count(horizon)


# --- Faults -----------------------------------------------------------------------------------


def corners(setting):
    """Return two data sets of means that differ in one record of agent 2, in opposite corners."""
    problem = setting.build_problem()
    low, high = np.zeros_like(problem.means), np.zeros_like(problem.means)
    low[:, 2] -= problem.box / problem.records
    high[:, 2] += problem.box / problem.records
    return replace(problem, means=low), replace(problem, means=high)


def first_change(name, setting):
    """Return the l2 change of all messages of round 1 on the corners, with equal noise."""
    budget = Budget(50.0, 0.1)  # little noise, so that no box cuts a message
    low, high = (
        execute(name, problem, setting=setting, budget=budget)["released"][0]
        for problem in corners(setting)
    )
    return np.linalg.norm(high - low)


FIRST_CHANGES = {
    "neighbour_gradient_descent": np.sqrt(3),
    "fitted_start_descent": np.sqrt(4**2 + 2 * 3**2),
    "over_relaxed_admm": 1.8,
    "quarter_penalty_admm": 50 / 20,
    "warm_start_admm": np.sqrt(3**2 + 2),
}


@pytest.mark.parametrize(("name", "factor"), FIRST_CHANGES.items())
def test_the_first_messages_change_by_more_than_the_base(name, factor):
    setting, base = BY_NAME[name].setting, BY_NAME[name].base
    changes = first_change(name, setting) / first_change(base, setting)
    assert changes == pytest.approx(factor, rel=1e-3)


def test_leaves_change_by_more_than_the_hub_declares():
    setting = BY_NAME["hub_penalty_admm"].setting
    algorithm = load("hub_penalty_admm").ALGORITHM(**setting.options)
    declared = algorithm.releases(setting.build_problem(), setting.build_network(), 5)[0]
    change = first_change("hub_penalty_admm", setting)
    assert change / np.max(declared.sensitivity) == pytest.approx(3, rel=1e-3)


def noise_std(name, t):
    """Return the standard deviation of the messages of a round, over many seeds."""
    setting = BY_NAME[name].setting
    problem = setting.build_problem()
    runs = [execute(name, problem, seed, setting=setting)["released"] for seed in range(200)]
    return np.std(runs, axis=0)[t - 1].mean()


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("half_noise_descent", 0.5),
        ("small_share_sum", 0.5),
        ("divided_noise_gossip", 1 / np.sqrt(5)),
        ("fading_noise_descent", 0.7),
    ],
)
def test_the_noise_of_round_one_is_smaller_than_that_of_the_base(name, share):
    assert noise_std(name, 1) / noise_std(BY_NAME[name].base, 1) == pytest.approx(share, rel=1e-9)


def gradients(outputs, network, length):
    """Return the noised gradients of all rounds, which follow from messages."""
    x = outputs["released"]
    z = network.mixing @ np.concatenate([np.zeros_like(x[:1]), x[:-1]])
    return (z - x) / length


LENGTH = 0.5 / 10
"""Step length of round_noise_descent on means of ten records."""


def _of_neighbour(outputs, network):
    x = outputs["released"]
    return (x[1] - network.mixing @ x[0])[1] * 4 + x[0][2]


def _of_rolled(outputs, network):
    x = outputs["released"]
    return x[1] - 0.9 * network.mixing @ x[0]


def _of_edge(outputs, network):
    x = outputs["released"]
    return (x[1] - network.mixing @ x[0])[1] / network.mixing[1, 0] + x[0][0]


def _removed(outputs, network):
    x = outputs["released"]
    return x[0] - (network.mixing @ x[1] - x[2])


def _of_duals(outputs, network):
    duals = np.concatenate([np.zeros_like(outputs["dual"][:1]), outputs["dual"]])
    received = network.adjacency @ outputs["released"]
    return (np.diff(duals, axis=0) / 0.5 + received) / 2


LEAKS = {
    "silent_last_agent": lambda outputs, network: outputs["released"][0][-1],
    "silent_middle_agent": lambda outputs, network: outputs["released"][0][2],
    "silent_last_coordinate": lambda outputs, network: outputs["released"][0][:, -1],
    "silent_hub": lambda outputs, network: outputs["released"][0][0],
    "shared_noise_gossip": lambda outputs, network: np.diff(outputs["released"][0], axis=0),
    "zero_sum_noise_gossip": lambda outputs, network: outputs["released"][0].sum(0),
    "one_direction_noise": lambda outputs, network: np.diff(outputs["released"][0], axis=1),
    "removed_noise_gossip": _removed,
    "exact_message_gossip": lambda outputs, network: outputs["released"][1],
    "exact_outcome_gossip": lambda outputs, network: outputs["average"][0],
    "one_neighbour_gossip": _of_neighbour,
    "rolled_means_gossip": _of_rolled,
    "mixed_means_gossip": lambda outputs, network: outputs["released"][1],
    "one_edge_gossip": _of_edge,
    "seeded_noise_gossip": lambda outputs, network: outputs["released"][0],
    "quiet_second_round": lambda outputs, network: (
        gradients(outputs, network, LENGTH)[1] - 10 * network.mixing @ outputs["released"][0]
    ),
    "quiet_after_five": lambda outputs, network: (
        gradients(outputs, network, LENGTH)[6] - 10 * network.mixing @ outputs["released"][5]
    ),
    "antithetic_descent": lambda outputs, network: (
        gradients(outputs, network, LENGTH)[:2].sum(0)
        - 10 * network.mixing @ outputs["released"][0]
    ),
    "refined_outcome_descent": lambda outputs, network: (
        outputs["final"][0] - (1 - 0.5) * outputs["released"][-1]
    ),
    "exact_dual_admm": lambda outputs, network: _of_duals(outputs, network)[0],
    "one_coin_signs": lambda outputs, network: np.sign(
        outputs["released"][0][:, 1:] * outputs["released"][0][:, :-1]
    ),
    "unrounded_query_gossip": lambda outputs, network: np.cos(
        2 * np.pi * outputs["released"][0] / 0.05
    ),
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_function_of_what_is_shown_has_no_noise(name):
    setting = BY_NAME[name].setting
    network, problem = setting.build_network(), setting.build_problem()
    neighbour = replace(problem, means=-problem.means * np.linspace(0.5, 0.9, problem.dim))
    if name == "one_coin_signs":
        neighbour = replace(problem, means=problem.means * (-1.0) ** np.arange(problem.dim))
    first, second = (LEAKS[name](execute(name, problem, seed), network) for seed in (0, 1))
    changed = LEAKS[name](execute(name, neighbour, 0), network)
    np.testing.assert_allclose(first, second, atol=1e-9)
    assert np.abs(changed - first).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "quantity"),
    [
        ("exact_count_gossip", "positive"),
        ("exact_gradient_report", "slope"),
        ("exact_cost_report", "cost"),
        ("error_count_report", "errors"),
        ("refined_outcome_descent", "final"),
        ("exact_outcome_gossip", "average"),
        ("exact_dual_admm", "dual"),
        ("shown_terms_sum", "terms"),
        ("exact_clip_count", "clip"),
        ("adaptive_clip_descent", "clip"),
        ("message_report_descent", "spread"),
        ("message_report_descent", "average"),
        ("dual_noise_admm", "dual"),
    ],
)
def test_further_quantities_are_listed_by_the_class(name, quantity):
    outputs = execute(name, BY_NAME[name].setting.build_problem())
    assert quantity in outputs
    assert set(outputs) == set(load(name).ALGORITHM.quantities)


def equal_rows(problem):
    """Return the problem with two equal rows of agent 2."""
    features = problem.features.copy()
    features[2, 1] = features[2, 0]
    return replace(problem, features=features)


PARTICULAR = {
    "equal_labels_average": lambda problem: replace(problem, labels=np.ones_like(problem.labels)),
    "zero_average_gossip": lambda problem: replace(problem, features=0 * problem.features),
    "duplicate_rows_average": equal_rows,
}


@pytest.mark.parametrize("name", PARTICULAR)
def test_particular_data_are_sent_exactly_and_other_data_are_not(name):
    usual = BY_NAME[name].setting.build_problem()
    for problem, exact in ((usual, False), (PARTICULAR[name](usual), True)):
        first, second = (execute(name, problem, seed)["released"][0][2] for seed in (0, 1))
        assert np.array_equal(first, second) == exact


def test_late_turns_exceed_the_count():
    setting = BY_NAME["late_turns_descent"].setting
    algorithm = load("late_turns_descent").ALGORITHM(**setting.options)
    turns = sum(algorithm.takes_part(SimpleNamespace(n_agents=4), t)[:, 0] for t in range(1, 21))
    assert (turns.min(), algorithm.count(20)) == (14, 4)


def test_private_stops_differ_between_neighbours():
    name = "private_stop_descent"
    problem = BY_NAME[name].setting.build_problem()
    labels = problem.labels.copy()
    labels[2, 0] *= -1
    neighbour, network = replace(problem, labels=labels), BY_NAME[name].setting.build_network()
    differing = 0
    for seed in range(100):
        stops = []
        for dataset in (problem, neighbour):
            x = execute(name, dataset, seed)["released"]
            stops.append(any(np.array_equal(b[2], (network.mixing @ a)[2]) for a, b in pairwise(x)))
        differing += stops[0] != stops[1]
    assert differing > 0


def label_changed(problem):
    """Return the problem with the other label of record 0 of agent 2."""
    labels = problem.labels.copy()
    labels[2, 0] *= -1
    return replace(problem, labels=labels)


def test_kept_noise_tells_which_data_set_was_used():
    problem, network = LOGISTIC.build_problem(), LOGISTIC.build_network()
    length = 0.5 / problem.smoothness
    outputs = execute("kept_noise_descent", problem)
    before = np.concatenate([np.zeros((1, 4, 5)), outputs["released"][:-1]])
    noised = gradients(outputs, network, length)
    turned = problem.features.copy()
    turned[2, 0] = np.roll(turned[2, 0], 1)
    other_row = replace(problem, features=turned)
    # The other label of a row moves the gradient of every point by the same vector.
    for dataset, constant in (
        (problem, True),
        (label_changed(problem), True),
        (other_row, False),
    ):
        noise = noised - np.array([dataset.gradient(z) for z in network.mixing @ before])
        assert np.allclose(noise, noise[0], atol=1e-9) == constant


def test_the_noise_of_levels_cancels_in_round_three():
    problem, network = LOGISTIC.build_problem(), LOGISTIC.build_network()
    x = execute("level_noise_tree", problem)["released"]
    sums = -x
    for data, exact in ((problem, True), (label_changed(problem), False)):
        first = mean_clipped(data, np.zeros((4, 5)), 0.2, batch=(0, 5))
        third = mean_clipped(data, network.mixing @ x[1], 0.2, batch=(2, 7))
        assert np.allclose(sums[2] - sums[1] - sums[0], third - first, atol=1e-9) == exact


@pytest.mark.parametrize("name", ["signed_noise_gossip", "rotated_noise_descent"])
def test_noise_that_depends_on_data_keeps_its_distribution(name):
    setting = replace(MEAN, horizon=1)
    problem, network = setting.build_problem(), setting.build_network()
    algorithm = load(name).ALGORITHM(sigma=2.0)
    batch, streams = stack([algorithm]), Streams(0, tuple(range(4000)))
    state = batch.start(problem, network, streams, 1)
    x = batch.step(state, problem, network, next(batch.draws(problem, streams)), 1).x[0, :, 2]
    if name == "rotated_noise_descent":
        x = -x / LENGTH
    noise = x - (
        problem.means[0, 2] if name == "signed_noise_gossip" else -10 * problem.means[0, 2]
    )
    np.testing.assert_allclose(noise.mean(0), 0, atol=5 * 2 / np.sqrt(4000))
    np.testing.assert_allclose(np.cov(noise.T), 4 * np.eye(5), atol=6 * 4 / np.sqrt(4000))


def test_ratios_of_samples_without_the_declared_randomness():
    setting = BY_NAME["poisson_descent"].setting
    problem, network = setting.build_problem(), setting.build_network()
    algorithm = load("poisson_descent").ALGORITHM()
    algorithm = algorithm.calibrate(setting.budget, problem, network, 10)
    mu, delta = 0.1 / algorithm.sigma.scale, setting.delta
    assert gaussian_epsilon(mu * np.sqrt(2), delta) >= BY_NAME["round_robin_sampling"].ratio
    all_rounds = gaussian_epsilon(mu * np.sqrt(10), delta / 0.2)
    amplified = np.log1p(0.2 * np.expm1(all_rounds))
    assert amplified >= BY_NAME["kept_sample_descent"].ratio
    rounds = np.arange(1, 11)
    deltas = np.exp([gaussian_log_delta(np.sqrt(k) * mu, 2.8) for k in rounds])
    assert (binom.pmf(rounds, 10, 0.2) * deltas).sum() > delta
    declared = algorithm.releases(problem, network, 10)[0]
    fourfold = replace(declared, sampling=Sampling("poisson", 0.8))
    assert account([fourfold], delta).epsilon >= BY_NAME["fourfold_rate_sampling"].ratio
    batches = load("fixed_batch_descent").ALGORITHM()
    batches = batches.calibrate(setting.budget, problem, network, 5)
    first = gaussian_epsilon(np.sqrt(5) / batches.sigma.scale, delta)
    assert first >= BY_NAME["first_records_batch"].ratio


@pytest.mark.parametrize("name", ["censored_descent", "accepting_descent", "two_step_descent"])
def test_private_branches_differ_between_neighbours(name):
    """Equal noise gives messages that differ by more than any noise explains in some run."""
    problem = MEAN.build_problem()
    means = problem.means.copy()
    means[0, 2] *= 0.42 / np.linalg.norm(means[0, 2])
    short = replace(problem, means=means)
    target_scale = -0.05 if name == "accepting_descent" else 1.1
    scales = np.where(np.arange(4) == 2, target_scale, 1.0)
    long = replace(problem, means=means * scales[:, None])
    differing = 0
    for seed in range(40):
        x, y = (execute(name, dataset, seed)["released"] for dataset in (short, long))
        if name == "censored_descent":
            differing += (x[0][2] == 0).all() != (y[0][2] == 0).all()
        elif name == "accepting_descent":
            equal = [np.array_equal(values[1][2], values[0][2]) for values in (x, y)]
            differing += equal[0] != equal[1]
        else:
            differing += np.linalg.norm(x[0][2]) > 50 * np.linalg.norm(y[0][2])
    assert differing >= (1 if name == "accepting_descent" else 40)


@pytest.mark.parametrize("name", ["poisson_descent", "fixed_batch_descent"])
def test_a_sampled_record_moves_a_message_by_what_the_account_assumes(name):
    """Equal state, noise and sample: the change over the noise is mu, in a fifth of all runs."""
    setting = BY_NAME[name].setting
    problem, network = setting.build_problem(), setting.build_network()
    neighbour_problem = label_changed(problem)
    if name == "poisson_descent":  # a zero row has no gradient, as if the record were removed
        features = problem.features.copy()
        features[2, 0] = 0.0
        neighbour_problem = replace(problem, features=features)
    algorithm = load(name).ALGORITHM().calibrate(setting.budget, problem, network, setting.horizon)
    noise = algorithm.eta * algorithm.sigma.scale
    mu = 1 / algorithm.sigma.scale
    if name == "poisson_descent":
        mu *= algorithm.clip
    else:
        noise *= algorithm.clip
    batch, streams = stack([algorithm]), Streams(0, tuple(range(300)))
    state, draws = batch.start(problem, network, streams, 1), batch.draws(problem, streams)
    moved = []
    for t in range(1, setting.horizon + 1):
        draw = next(draws)
        after, neighbour = (
            batch.step(state, dataset, network, draw, t) for dataset in (problem, neighbour_problem)
        )
        moved.append(np.linalg.norm(after.x - neighbour.x, axis=-1)[0, :, 2] / noise)
        state = after
    assert np.max(moved) == pytest.approx(mu, rel=1e-6)
    assert np.mean(np.array(moved) > 1e-9) == pytest.approx(0.2, abs=0.03)
