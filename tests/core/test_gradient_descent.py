"""Test private gradient descent on means: optimum, moments, calibration and attack."""

from dataclasses import replace

import numpy as np
import pytest

from observed import run
from private_consensus import networks
from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.families import descent_theorems
from private_consensus.core.algorithms.families.descent_theorems import expected_error, first_step
from private_consensus.core.algorithms.gradient_descent import GradientDescent, consensus_limit
from private_consensus.core.problems import mean_estimation
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget, account, gaussian_delta

AGENTS, DIM = 6, 3
BUDGET = Budget(4.0, 1e-3)


@pytest.fixture
def problem(streams):
    return mean_estimation.build(streams, AGENTS, records=40, dim=DIM, box=5.0)


@pytest.fixture
def network(streams):
    return networks.build(streams, "erdos_renyi", AGENTS, probability=0.6)


def test_without_noise_the_agents_agree_on_the_mean_of_all_records(problem, network, streams):
    last = run(GradientDescent(), problem, network, streams, 2000)[2000]
    assert problem.measure("normalised_error", last["consensus"]).max() < 1e-6
    assert problem.measure("consensus_error", last["consensus"]).max() < 1e-28
    halfway = run(GradientDescent(), problem, network, streams, 1000)[1000]
    ratio = problem.measure("consensus_error", halfway["internal"]) / problem.measure(
        "consensus_error", last["internal"]
    )
    assert np.allclose(ratio, 4.0, rtol=0.05)  # the step 1/t leaves a disagreement of order 1/t


def test_error_of_the_mean_is_the_weighted_sum_of_the_noises(problem, network, streams):
    """Without active projections, T (xbar(T) - dbar) = sum over t < T of t nbar(t)."""
    horizon, noise = 30, 0.05
    algorithm = GradientDescent(noise=noise)
    wide = replace(problem, box=1e6)
    last = run(algorithm, wide, network, streams, horizon)[horizon]["internal"]
    units = algorithm.mechanisms(wide, network, horizon)["message"].units(wide, streams)
    total = sum(
        t * noise / wide.records * t**-0.75 * next(units).mean(1) for t in range(1, horizon)
    )
    assert np.allclose(horizon * (last[0].mean(1) - wide.target), total, atol=1e-10)


@pytest.mark.parametrize("switches", [{}, {"stage_two": "literal"}, {"shift": 2.0, "decay": 1.0}])
def test_the_expected_error_is_the_mean_over_runs_without_active_projections(streams, switches):
    """The mean difference is 0 within its error, but not if the noise is 20 % larger."""
    many = Streams(streams.root, tuple(range(400)), streams.groups)
    problem = mean_estimation.build(many, AGENTS, records=40, dim=DIM, box=5.0)
    problem = replace(problem, box=1e6)
    network = networks.build(many, "ring", AGENTS)
    algorithm = GradientDescent(noise=np.array([50.0, 100.0]), **switches)
    last: dict = {}
    keep = lambda t, active, observables: last.update(observables)  # noqa: E731
    algorithm.run(problem, network, many, np.array([25, 25]), keep)
    error = problem.measure("normalised_error", last["consensus"])
    for noise, z in ((1.0, 3.3), (1.2, None)):
        louder = replace(algorithm, noise=noise * algorithm.noise)
        expected = expected_error(louder, first_step(problem), problem, 25)
        assert expected.shape == error.shape == (2, 400)
        miss = error - expected
        score = np.abs(miss.mean(-1)) / (miss.std(-1, ddof=1) / np.sqrt(400))
        assert np.all(score < z) if z else np.all(score > 3.3)
    assert np.array_equal(
        last["expected"], expected_error(algorithm, first_step(problem), problem, 25)
    )


def test_the_first_step_gives_the_local_mean_of_each_agent(problem, network, streams):
    """The first step size is 1/N_i, so that the published error is 0 at T = 1 for any noise."""
    first = run(GradientDescent(noise=3.0), problem, network, streams, 1)[1]
    assert np.allclose(first["internal"][0], problem.means, atol=1e-12)


@pytest.mark.parametrize("horizon", [1, 10, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_theorem_2_satisfies_condition_14_with_slack(problem, network, horizon, epsilon):
    budget = Budget(epsilon, 1e-4)
    algorithm = GradientDescent().calibrate(budget, problem, network, horizon)
    [release] = algorithm.releases(problem, network, horizon)
    squared_ratio_sum = ((release.sensitivity / release.scale) ** 2).sum()
    allowed = descent_theorems.theorem_1_allowance(epsilon, 1e-4)
    assert squared_ratio_sum < allowed
    t = np.arange(1, horizon + 1)
    assert squared_ratio_sum / allowed == pytest.approx((t**-0.5).sum() / (2 * np.sqrt(horizon)))
    full_spending = replace(algorithm, spending="whole").calibrate(
        budget, problem, network, horizon
    )
    [release] = full_spending.releases(problem, network, horizon)
    assert ((release.sensitivity / release.scale) ** 2).sum() == pytest.approx(allowed)
    assert full_spending.claimed_epsilon(1e-4, problem, network, horizon) == pytest.approx(epsilon)


@pytest.mark.parametrize(
    "calibration", ["theorem_1", "gaussian_dp", "advanced_composition", "zcdp"]
)
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_every_calibration_meets_the_budget_and_only_gaussian_dp_is_tight(
    problem, network, calibration, epsilon
):
    algorithm = GradientDescent(calibration=calibration, spending="whole", decay=1.0).calibrate(
        Budget(epsilon, 1e-4), problem, network, 40
    )
    releases = algorithm.releases(problem, network, 40)
    accounted_epsilon = account(releases, 1e-4).epsilon
    assert accounted_epsilon <= epsilon * (1 + 1e-9)
    [release] = releases
    mu = np.sqrt(((release.sensitivity / release.scale) ** 2).sum())
    assert gaussian_delta(mu, accounted_epsilon) == pytest.approx(1e-4, rel=1e-6)
    assert (accounted_epsilon > epsilon * (1 - 1e-6)) == (calibration == "gaussian_dp")


def test_noise_1_over_t_minimises_the_error_of_the_mean(problem, network):
    """Among schedules t^-a of equal privacy cost, a = 1 minimises sum_t t^2 M_t^2."""
    t = np.arange(1, 101)

    def error(decay):
        algorithm = GradientDescent(decay=decay, spending="whole")
        noise = algorithm.calibrate(BUDGET, problem, network, 100).noise
        return (t**2 * noise**2 * t ** (-2 * decay)).sum()

    assert error(1.0) < min(error(0.75), error(0.95), error(1.05), error(1.25))


def test_the_literal_stage_two_reveals_the_means_and_the_corrected_one_does_not(
    problem, network, streams
):
    noisy = GradientDescent().calibrate(BUDGET, problem, network, 25)
    literal = replace(noisy, stage_two="literal")
    reconstruction_errors = run(literal, problem, network, streams, 25)[25]["reconstruction"]
    assert reconstruction_errors.max() < 1e-12
    repaired_errors = run(noisy, problem, network, streams, 25)[25]["reconstruction"]
    assert repaired_errors.min() > 0.05
    assert np.isinf(account(literal.releases(problem, network, 25), BUDGET.delta).epsilon)


def test_the_attack_reconstructs_the_means_from_messages(problem, network, streams):
    """The attack recovers the means from broadcast messages."""
    algorithm = replace(
        GradientDescent().calibrate(BUDGET, problem, network, 9), stage_two="literal"
    )
    at = run(algorithm, problem, network, streams, 9)
    public_z = problem.project(network.mix(at[8]["released"]))
    first_of_stage_two = at[9]["internal"]
    reconstructed_means = public_z + 9 * (first_of_stage_two - public_z)
    assert np.allclose(reconstructed_means[0], problem.means, atol=1e-10)


def reference_step(y, means, records, box, mixing, scale, unit, t):
    """Return one step of Algorithm 1 for one run, computed agent by agent."""
    x = np.empty_like(y)
    for i in range(len(y)):
        z = np.clip(sum(mixing[i, j] * y[j] for j in range(len(y))), -box, box)
        x[i] = np.clip(z - records * (z - means[i]) / (records * t), -box, box)
    return x + scale * unit


def test_the_batched_algorithm_equals_a_loop_over_runs_and_agents(problem, network, streams):
    algorithm = GradientDescent().calibrate(Budget(0.3, 1e-3), problem, network, 8)
    released = run(algorithm, problem, network, streams, 8)[8]["released"][0]
    units = algorithm.mechanisms(problem, network, 8)["message"].units(problem, streams)
    y = np.zeros_like(problem.means)
    for t in range(1, 9):
        unit = next(units)
        scale = algorithm.noise / problem.records * t**-0.75
        y = np.stack(
            [
                reference_step(
                    y[r],
                    problem.means[r],
                    problem.records,
                    problem.box,
                    network.mixing[r],
                    scale,
                    unit[r],
                    t,
                )
                for r in range(len(y))
            ]
        )
    assert np.allclose(released, y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("topology", ["complete", "erdos_renyi"])
def test_the_limit_of_stage_two_equals_a_high_power_of_the_mixing_matrix(streams, topology):
    """Compare for one graph shared by all runs, and for one graph per run."""
    probability = {"probability": 0.6} if topology == "erdos_renyi" else {}
    network = networks.build(streams, topology, AGENTS, **probability)
    x = np.random.default_rng(2).normal(size=(4, len(streams.runs), AGENTS, DIM))
    x[1] *= 1e6
    power = np.linalg.matrix_power(network.mixing, 4096)
    limit = consensus_limit(network, x)
    np.testing.assert_allclose(limit, power @ x, rtol=1e-10, atol=1e-10 * np.abs(x).max())
    assert limit.shape == x.shape


def test_theorem_1_is_inverted_exactly():
    for epsilon in (0.01, 0.7, 4.0, 60.0):
        allowed = descent_theorems.theorem_1_allowance(epsilon, 1e-5)
        assert descent_theorems.theorem_1_epsilon(allowed, 1e-5) == pytest.approx(
            epsilon, rel=1e-12
        )


def test_the_advanced_composition_allowance_attains_the_budget_of_its_theorem():
    allowed = descent_theorems.advanced_composition_allowance(1.0, 1e-4, 50)
    round_epsilon = np.sqrt(allowed / 50 * 2 * np.log(1.25 * 2 * 50 / 1e-4))
    total_epsilon = np.sqrt(
        2 * 50 * np.log(2 / 1e-4)
    ) * round_epsilon + 50 * round_epsilon * np.expm1(round_epsilon)
    assert total_epsilon == pytest.approx(1.0)


def test_pure_differential_privacy_with_gaussian_noise_is_refused(problem, network):
    with pytest.raises(InvalidInput, match=r"budget.delta: found 0"):
        GradientDescent().calibrate(Budget(1.0, 0.0), problem, network, 10)


def test_the_bound_of_theorem_2_equals_the_published_sum():
    """Compare with the published constants for mu = L = m."""
    m, G, p, beta, T = 50.0, 700.0, 4, 0.6, 30
    kappa = 0.02
    expected = (
        9.0 / T
        + G**2 * (1 + 1 / (1 - beta)) / m**2 * np.log(T) / T
        + 2 * np.sqrt(2 * p) * G / np.sqrt(kappa) * (4 + 3 / (1 - beta)) / m**2 / T**0.25
        + 2 * p / kappa / m**2
    )
    bound = descent_theorems.theorem_2_bound(T, 1 / kappa, G, 1 / m, p, beta, distance=9.0)
    assert bound == pytest.approx(expected)
