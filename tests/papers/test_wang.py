"""Test DP-CI: observations, iteration, exact moments and privacy loss."""

from dataclasses import replace
from functools import cache, reduce
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import kstest, norm, uniform

from observed import run, running
from private_consensus import networks
from private_consensus.audits.analyses.dp_ci_moments import DPCIMoments, constants_of, coupling
from private_consensus.core.algorithms.dp_ci import DPCI
from private_consensus.core.claims import claims_of
from private_consensus.core.lower_bounds import lower_bound_of
from private_consensus.core.problems import linear_observation as observation
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget, Release, account
from private_consensus.reproduction.configuration import plan as planning
from private_consensus.reproduction.configuration.schema import read_yaml
from private_consensus.reproduction.results.cells import run_cell

CONFIG = Path(__file__).parents[2] / "config"
EDGES = [(1, 2), (1, 4), (2, 3), (2, 5), (3, 4), (4, 5)]
SIMULATION = {"c": 2.0, "shift": 2.0, "initial_noise": True}
DAMPED = {"schedule": "exponential", "c": 1.0, "q": 0.4, "p": 0.8, "initial_noise": True}
FAMILY_LEVEL = 1e-3
TWO_ROWS = {  # three agents with two measurements per iteration
    "theta": [0.5, -2.0, 1.0],
    "initial": [0.0, 0.0, 0.0],
    "noise": 0.3,
    "constant": [[[1, 0, 0], [0, 1, 0]], [[0, 1, 1], [0, 0, 2]], [[1, 1, 0], [0.5, 0, -1]]],
    "sine": [[[0, 1, 0], [0, 0, 0]], [[0, 0, 0], [1, 0, 0]], [[0, 0, 0], [0, -1, 0]]],
    "cosine": [[[0, 0, 0], [1, 0, 0]], [[0, 0, 1], [0, 0, 0]], [[0, 0, 0.5], [0, 0, 0]]],
}


@pytest.fixture
def problem(streams):
    return observation.build(streams, 5, **observation.EXAMPLE)


@pytest.fixture
def network(streams):
    return networks.build(streams, "edges", 5, edges=EDGES)


@pytest.fixture(scope="module")
def plan():
    config = {**read_yaml(CONFIG / "config.yaml"), "papers": ["wang"], "scale": "smoke"}
    return planning.load(config, CONFIG)


# --- Observations ---------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [0, 1, 5, 11, 400])
def test_observation_matrices_match_the_paper(problem, t):
    s, c = np.sin(t), np.cos(t)
    printed = [[1 + s, 0], [1 - c, 0], [0, 1 + c], [1, 1 - s], [1, 0.5 * s]]
    assert np.allclose(problem.matrices(t)[:, 0], printed)


def test_measurements_are_linear_with_uniform_noise(problem, streams):
    runs = Streams(1, tuple(range(400)), streams.groups)
    units = runs.sequence("data", "uniform", problem.constant.shape[:2], "observations")
    noise = []
    for t in range(5):
        measured = problem.data(t, next(units))
        noise.append(measured - problem.matrices(t) @ problem.theta)
    noise = np.concatenate([n.ravel() for n in noise])
    assert kstest(noise, uniform(-0.2, 0.4).cdf).pvalue > 0.01
    assert kstest(noise, uniform(-0.21, 0.42).cdf).pvalue < 1e-3
    assert noise.var() == pytest.approx(problem.noise_variance, rel=0.03)
    assert problem.noise_variance == pytest.approx(0.4**2 / 12)


def test_row_norms_approach_but_do_not_exceed_the_largest_row_norm(problem):
    assert problem.largest_row_norm == pytest.approx(3.0, abs=1e-9)
    norms = problem.row_norms(np.arange(5000))
    assert np.allclose(norms[[0, 7, 999]], [problem.row_norm(t) for t in (0, 7, 999)])
    assert norms.max() <= problem.largest_row_norm
    assert norms.max() > 3.0 - 1e-4
    assert norms.argmax() % 5 == 3  # agent 4


@pytest.mark.parametrize("example", [observation.EXAMPLE, TWO_ROWS])
def test_a_changed_measurement_changes_the_innovation_by_at_most_the_row_norm(streams, example):
    problem = observation.build(streams, len(example["constant"]), **example)
    rng = np.random.default_rng(0)
    for t in range(20):
        H, bound = problem.matrices(t), problem.row_norm(t)
        change = rng.laplace(size=(50, *H.shape[:2]))
        change /= np.abs(change).sum(-1, keepdims=True)
        moved = np.abs(np.einsum("imk,rim->rik", H, change)).sum(-1)
        assert (moved <= bound + 1e-12).all()
        worst = np.abs(H).sum(-1).argmax(-1)
        corner = np.eye(H.shape[1])[worst]
        attained = np.abs(np.einsum("imk,im->ik", H, corner)).sum(-1)
        assert np.allclose(attained, bound)


def test_the_gram_matrix_is_block_diagonal_over_agents(streams):
    problem = observation.build(streams, 3, **TWO_ROWS)
    for t in (0, 2, 9):
        expected = np.zeros((9, 9))
        for i, H in enumerate(problem.matrices(t)):
            expected[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = H.T @ H
        assert np.allclose(problem.gram(t), expected)


def test_the_gradient_is_that_of_the_time_averaged_objective(streams):
    problem = observation.build(streams, 3, **TWO_ROWS)
    times = 2 * np.pi * np.arange(16) / 16
    x, direction = np.random.default_rng(1).normal(size=(2, 3, 3))

    def objective(x):
        misses = [np.einsum("imk,ik->im", problem.matrices(t), x - problem.theta) for t in times]
        return 0.5 * np.mean([(miss**2).sum(-1) for miss in misses], axis=0)

    exact = (problem.gradient(x) * direction).sum(-1)
    difference = (objective(x + 1e-4 * direction) - objective(x - 1e-4 * direction)) / 2e-4
    assert np.allclose(difference, exact, rtol=1e-6)
    assert np.allclose(problem.gradient(np.tile(problem.theta, (3, 1))), 0)


# --- The iteration --------------------------------------------------------------------------------


def reference(algorithm, problem, adjacency, streams, horizon, run_index):
    """Compute Eq. (3) for one run of the block, agent by agent."""
    start = streams.draw("noise", "laplace", problem.initial.shape, "initial message")[run_index]
    noises = streams.sequence("noise", "laplace", problem.initial.shape, "")
    observations = streams.sequence("data", "uniform", problem.constant.shape[:2], "observations")
    x = problem.initial.copy()
    sent = x + algorithm.noise_scale(problem, 0) * start
    for t in range(horizon):
        y, H = problem.data(t, next(observations))[run_index], problem.matrices(t)
        for i in range(problem.n_agents):
            disagreement = sum(
                sent[i] - sent[j] for j in range(problem.n_agents) if adjacency[i, j]
            )
            missed = y[i] - H[i] @ sent[i]
            x[i] = sent[i] - algorithm.step_size(t) * (disagreement - H[i].T @ missed)
        sent = x + algorithm.noise_scale(problem, t + 1) * next(noises)[run_index]
    return x, sent


@pytest.mark.parametrize("graph", ["printed", "ring", "erdos_renyi"])
@pytest.mark.parametrize("schedule", [SIMULATION, DAMPED, {"gamma": 0.6, "hmax": "time_varying"}])
def test_the_batched_algorithm_equals_a_loop_over_runs_and_agents(streams, graph, schedule):
    if graph == "printed":
        network = networks.build(streams, "edges", 5, edges=EDGES)
        problem = observation.build(streams, 5, **observation.EXAMPLE)
    else:
        options = {"probability": 0.6} if graph == "erdos_renyi" else {}
        network = networks.build(streams, graph, 7, **options)
        problem = observation.build(streams, 7, **observation.EXAMPLE)
    algorithm = DPCI(**schedule).calibrate(Budget(1.0), problem, network, 9)
    last = run(algorithm, problem, network, streams, 9)[9]
    graphs = np.broadcast_to(network.adjacency, (12, *network.adjacency.shape[-2:]))
    for run_index in (0, 5, 11):
        x, sent = reference(algorithm, problem, graphs[run_index], streams, 9, run_index)
        assert np.allclose(last["internal"][0, run_index], x, rtol=1e-11, atol=1e-11)
        assert np.allclose(last["released"][0, run_index], sent, rtol=1e-11, atol=1e-11)


def test_agents_with_several_measurements_follow_equation_3(streams):
    problem = observation.build(streams, 3, **TWO_ROWS)
    network = networks.build(streams, "path", 3)
    algorithm = DPCI(gamma=0.8).calibrate(Budget(2.0), problem, network, 6)
    last = run(algorithm, problem, network, streams, 6)[6]["internal"]
    x, _ = reference(algorithm, problem, network.adjacency, streams, 6, 3)
    assert np.allclose(last[0, 3], x, rtol=1e-11, atol=1e-11)


def test_without_any_noise_the_agents_converge_to_the_parameter(streams, network):
    exact = observation.build(streams, 5, **{**observation.EXAMPLE, "noise": 0.0})
    silent = DPCI(gamma=0.6).calibrate(Budget(np.inf), exact, network, 3000)
    at = run(silent, exact, network, streams, 3000)
    assert exact.squared_error(at[3000]["internal"]).max() < 1e-12
    assert at[3000]["internal"] == pytest.approx(at[3000]["released"])
    assert np.isinf(account(silent.releases(exact, network, 9), 0.0).epsilon)


# --- Noise and privacy ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "epsilon", "printed"),
    [
        (SIMULATION, 0.8, lambda t: 3 / (2 * (t + 1))),
        (SIMULATION, 0.4, lambda t: 3 / (t + 1)),
        (DAMPED, 2.0, lambda t: 0.6 * 0.8**t),
    ],
)
def test_the_noise_scale_matches_the_paper(problem, network, options, epsilon, printed):
    algorithm = DPCI(**options).calibrate(Budget(epsilon), problem, network, 400)
    for t in (0, 1, 2, 50):
        assert algorithm.noise_scale(problem, t) == pytest.approx(printed(t), rel=1e-9)
    silent = replace(algorithm, initial_noise=False)
    assert silent.noise_scale(problem, 0) == 0
    assert silent.noise_scale(problem, 1) == algorithm.noise_scale(problem, 1)


def test_time_varying_noise_is_never_larger_than_constant_noise(problem, network):
    constant = DPCI(noise=1.0)
    varying = replace(constant, hmax="time_varying")
    scales = [[a.noise_scale(problem, t) for t in range(1, 500)] for a in (constant, varying)]
    assert (np.array(scales[1]) <= np.array(scales[0]) + 1e-15).all()
    assert np.mean(scales[1]) < 0.9 * np.mean(scales[0])


def shifted(release, shift):
    """Return the release function of a run whose observations are shifted."""

    def function(name, query):
        return release(name, query)

    function.random = lambda *arguments: release.random(*arguments) + shift
    return function


@pytest.mark.parametrize("unit", ["measurement", "stream"])
def test_the_first_statement_has_the_requested_unit(problem, network, unit):
    algorithm = DPCI(unit=unit).calibrate(Budget(0.5), problem, network, 30)
    stated = claims_of(algorithm, Budget(0.5), problem, network, 30)
    assert stated[0][0].unit == unit and len(stated) == 2
    assert stated[0][1] == pytest.approx(0.5)


def accounted(algorithm, problem, network, horizon):
    stated = claims_of(algorithm, Budget(9.0), problem, network, horizon)
    return {
        str(stated_algorithm.relation): account(
            stated_algorithm.releases(problem, network, horizon), 0.0
        ).epsilon
        for stated_algorithm, _ in stated
    }


def losses_by_execution(algorithm, problem, network, horizon):
    """Return the change of every message in units of its noise; [iterations, agents].

    Each agent's measurement changes by the neighbouring distance, with earlier messages fixed.
    """
    streams = Streams(5, (0,), {"data": "t", "noise": "t"})
    moved = np.zeros((horizon, problem.n_agents))
    handler = running(algorithm, problem, network, streams, horizon)
    release = handler.function()
    state = algorithm.start(problem, network, release)._replace(sent=problem.initial[None, None])
    for t in range(1, horizon + 1):
        handler.begin(t)
        after = algorithm.step(state, problem, network, release, t)
        for agent in range(problem.n_agents):
            shift = np.zeros((1, *problem.constant.shape[:2]))
            shift[:, agent] = algorithm.delta / (2 * problem.noise)
            handler.begin(t)
            neighbour = algorithm.step(state, problem, network, shifted(release, shift), t)
            moved[t - 1, agent] = np.abs(neighbour.x - after.x).sum()
        state = state._replace(sent=after.sent)
    scales = [algorithm.noise_scale(problem, t) for t in range(1, horizon + 1)]
    return moved / np.array(scales)[:, None]


@pytest.mark.parametrize("hmax", ["constant", "time_varying"])
@pytest.mark.parametrize("options", [SIMULATION, DAMPED])
def test_lower_and_upper_bounds_on_epsilon_match_the_exact_loss(problem, network, options, hmax):
    """The loss of a measurement is the largest loss; that of a stream is the sum per agent.

    H_max affects the noise only, since no agent attains it at all times.
    """
    horizon = 30
    algorithm = DPCI(**options, hmax=hmax).calibrate(Budget(0.8), problem, network, horizon)
    losses = losses_by_execution(algorithm, problem, network, horizon)
    exact = {"replace one measurement": losses.max(), "replace one stream": losses.sum(0).max()}
    above = accounted(algorithm, problem, network, horizon)
    for stated_algorithm, _ in claims_of(algorithm, Budget(9.0), problem, network, horizon):
        unit = str(stated_algorithm.relation)
        below = lower_bound_of(stated_algorithm, problem, network, horizon, 0.0).epsilon
        assert below == pytest.approx(exact[unit])
        assert exact[unit] <= above[unit] * (1 + 1e-12)
        assert above[unit] == pytest.approx(exact[unit], rel=2e-3)


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.1])
def test_the_accounted_stream_costs_at_least_the_stream_of_every_agent(problem, network, delta):
    """For delta above 0, the sum of losses does not determine the composed epsilon."""
    algorithm = DPCI(**DAMPED, noise=1.0, unit="stream")
    losses = losses_by_execution(algorithm, problem, network, 12)
    above = account(algorithm.releases(problem, network, 12), delta).epsilon
    for agent_losses in losses.T:
        assert account([Release("laplace", agent_losses, 1.0)], delta).epsilon <= above * (1 + 1e-9)


@pytest.mark.parametrize("horizon", [1, 7, 400])
def test_losses_of_a_measurement_and_a_stream_follow_from_row_norms(problem, network, horizon):
    algorithm = DPCI(**SIMULATION).calibrate(Budget(0.8), problem, network, horizon)
    epsilons = accounted(algorithm, problem, network, horizon)
    shares = problem.row_norms(np.arange(horizon)) / problem.largest_row_norm
    assert epsilons["replace one measurement"] == pytest.approx(0.8 * shares.max())
    assert epsilons["replace one stream"] == pytest.approx(0.8 * shares.sum(0).max(), rel=2e-3)
    assert epsilons["replace one stream"] < 0.8 * horizon
    assert algorithm.claimed_epsilon(0.0, problem, network, horizon) == pytest.approx(0.8 * horizon)


def test_exponential_steps_cost_less_than_the_formula(problem, network):
    """The total loss is at most q/(p-q) = 1, whereas the paper states 2.

    Message t depends on data with (q/p)^t times the agent's fraction of H_max.
    """
    algorithm = DPCI(**DAMPED).calibrate(Budget(2.0), problem, network, 60)
    assert algorithm.noise == pytest.approx(1.0)
    for horizon in (1, 5, 60):
        epsilons = accounted(algorithm, problem, network, horizon)
        times = np.arange(horizon)
        losses = 0.5 ** (times + 1)[:, None] * problem.row_norms(times) / problem.largest_row_norm
        assert epsilons["replace one measurement"] == pytest.approx(losses.max())
        assert epsilons["replace one stream"] == pytest.approx(losses.sum(0).max(), rel=2e-3)
        assert epsilons["replace one stream"] < 1 - 0.5**horizon
        assert algorithm.claimed_epsilon(0.0, problem, network, horizon) == pytest.approx(2.0)


def test_a_budget_for_the_stream_is_divided_among_its_messages(problem, network):
    algorithm = DPCI(unit="stream").calibrate(Budget(3.0), problem, network, 30)
    epsilons = accounted(algorithm, problem, network, 30)
    assert 0.5 * 3.0 < epsilons["replace one stream"] < 3.0
    assert 0.9 * 0.1 < epsilons["replace one measurement"] <= 0.1


# --- Exact moments --------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", [SIMULATION, DAMPED, {"gamma": 0.6}])
def test_exact_moments_are_weighted_sums_of_noise_moments(problem, network, streams, schedule):
    """Write X(T) - Theta* as a weighted sum of independent noises."""
    horizon = 7
    algorithm = DPCIMoments(**schedule).calibrate(Budget(0.8), problem, network, horizon)
    factors = [
        np.eye(10) - algorithm.step_size(t) * coupling(problem, network, t) for t in range(horizon)
    ]
    covariance = np.zeros((10, 10))
    for t in range(horizon):
        after = reduce(np.matmul, factors[:t:-1], np.eye(10))
        H = np.zeros((10, 5))
        for i in range(5):
            H[2 * i : 2 * i + 2, i] = problem.matrices(t)[i, 0]
        private = after @ factors[t] * algorithm.noise_scale(problem, t)
        measured = after @ H * algorithm.step_size(t)
        covariance += 2 * private @ private.T + 0.4**2 / 12 * measured @ measured.T
    mean = reduce(np.matmul, factors[::-1]) @ (problem.initial - problem.theta).ravel()
    last = run(algorithm, problem, network, streams, horizon)[horizon]
    assert np.allclose(last["mean"][0, 0].ravel() - np.tile(problem.theta, 5), mean)
    sent = covariance + 2 * algorithm.noise_scale(problem, horizon) ** 2 * np.eye(10)
    centring = np.kron(np.eye(5) - 0.2, np.eye(2))
    assert last["squared_error"][0, 0] == pytest.approx((np.trace(sent) + mean @ mean) / 5)
    disagreement = np.trace(centring @ (sent + np.outer(mean, mean))) / 5
    assert last["disagreement"][0, 0] == pytest.approx(disagreement)
    agents = mean.reshape(5, 2)
    for of, prefix in ((sent, ""), (covariance, "internal_")):
        variance = np.diagonal(of).reshape(5, 2) + (agents - agents.mean(0)) ** 2
        high = agents.mean(0) + problem.theta + 2 * np.sqrt(variance.mean(0))
        assert np.allclose(last[f"{prefix}expected_high"][0, 0, 0], high)


def shortened(cell, *, horizon, runs, louder=1.0):
    """Return a cell with fewer iterations and runs; ``louder`` multiplies the privacy noise.

    The samples of a run do not depend on the block size; large blocks take fewer array operations.
    """
    settings = []
    for setting in cell["settings"]:
        budget = {**setting["budget"], "epsilon": setting["budget"]["epsilon"] / louder}
        settings.append({**setting, "horizon": horizon, "budget": budget})
    return {**cell, "settings": settings, "runs": runs, "runs_per_batch": 200}


def resolved(cell):
    """Return the cell without other interpretations of the paper."""
    return {**cell, "settings": [s for s in cell["settings"] if s["variant"] == "resolved"]}


@pytest.fixture(scope="module")
def exact_moments(plan):
    """Return a cached function that computes the exact moments of a shortened experiment."""

    @cache
    def moments(experiment, horizon):
        cell = resolved(plan.cell(experiment, "dp_ci_moments"))
        cell["measures"] = [[name, "value"] for name in ("squared_error", "disagreement")]
        return run_cell(shortened(cell, horizon=horizon, runs=1), {})[0]

    return moments


def largest_z(plan, exact, experiment, *, horizon, louder=1.0, runs=2000):
    """Return the largest standardised difference between Monte Carlo and exact values."""
    names = {"squared_error": "squared_error", "consensus_error": "disagreement"}
    cell = resolved(plan.cell(experiment, "dp_ci"))
    cell["measures"] = [["released", name] for name in names]
    measured, _ = run_cell(shortened(cell, horizon=horizon, runs=runs, louder=louder), {})
    axes = [a for a in ("gamma", "epsilon") if a in measured.columns]
    keys = [*axes, "t", "quantity"]
    mean = (
        measured.with_columns(quantity=pl.col("metric").replace_strict(names))
        .group_by(keys)
        .agg(mean=pl.col("value").mean(), error=pl.col("value").std() / np.sqrt(runs))
    )
    both = mean.join(exact(experiment, horizon), on=keys)
    z = ((both["mean"] - both["value"]) / both["error"]).abs()
    return float(z.max()), float(norm.isf(FAMILY_LEVEL / 2 / both.height)), both.height


CASES = [("wang_extra_mse", 60), ("wang_extra_simulation", 60), ("wang_fig3", 40)]


@pytest.mark.parametrize(("experiment", "horizon"), CASES)
def test_monte_carlo_agrees_with_the_exact_moments(plan, exact_moments, experiment, horizon):
    """Compare the largest |z| over plotted points with Bonferroni's bound at level 1e-3."""
    largest, bound, points = largest_z(plan, exact_moments, experiment, horizon=horizon)
    assert points >= 80
    assert largest < bound


@pytest.mark.parametrize(("experiment", "horizon"), CASES)
def test_a_change_of_the_noise_by_ten_percent_is_detected(plan, exact_moments, experiment, horizon):
    """A fifth more variance is ten standard errors of the mean of 800 runs."""
    options = {"experiment": experiment, "horizon": horizon, "runs": 800}
    for louder in (1.1, 0.9):
        largest, bound, _ = largest_z(plan, exact_moments, **options, louder=louder)
        assert largest > bound


def test_theorem_constants_match_the_coupling_matrix(problem, network):
    """The least eigenvalue is at most the Rayleigh quotient of any vector, and at most eta_0/N."""
    constants = constants_of(problem, network, 2000)
    eigenvalues = [np.linalg.eigvalsh(coupling(problem, network, t))[0] for t in range(2000)]
    assert constants.least_eigenvalue == pytest.approx(min(eigenvalues))
    assert constants.laplacian_norm == pytest.approx(5.0)
    assert constants.least_eigenvalue <= constants.eta0 / 5 + 1e-12
    v = np.random.default_rng(0).normal(size=(100, 10))
    for t in (0, 3, 77):
        quotient = np.einsum("ri,ij,rj->r", v, coupling(problem, network, t), v) / (v**2).sum(-1)
        assert (quotient >= constants.least_eigenvalue).all()


def test_the_bound_of_theorem_4_16_equals_the_published_sum(problem, network, streams):
    algorithm = DPCIMoments(**DAMPED, noise=1.0)
    last = run(algorithm, problem, network, streams, 50)[50]
    k = constants_of(problem, network, 50)
    noise = 2 * 5 * 2 * 0.2**2 * 3.0**2
    printed = (
        np.exp((2 * k.printed_b0 * 1.4 - 2 * 25 - 2 * k.gamma0**2) / 0.84) * 5 * 1.36
        + 3 * noise / 0.36
        + 3 * 0.16 * k.gamma0 * 5 * 0.4**2 / 12 / 0.84
        + 3 * 0.16 * (5 + k.gamma0) ** 2 * noise / (1 - 0.16 * 0.64)
    )
    assert last["theorem_4_16"][0, 0] == pytest.approx(printed / 5)
