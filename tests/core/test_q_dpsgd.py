"""Test Q-DPSGD-1 and -2, DSGD and SDM-DSGD: messages, noise, step sizes and run time."""

import math
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from observed import prepared_images, run
from private_consensus import networks
from private_consensus.common.errors import InvalidInput, OutsideRange
from private_consensus.core.algorithms.dsgd import DSGD
from private_consensus.core.algorithms.families.compiled_rounds import STREAMS
from private_consensus.core.algorithms.families.decentralized_sgd import computed_per_second
from private_consensus.core.algorithms.q_dpsgd_1 import QDPSGD1
from private_consensus.core.algorithms.q_dpsgd_2 import QDPSGD2, reused_state_releases
from private_consensus.core.algorithms.sdm_dsgd import SDMDSGD
from private_consensus.core.claims import claims_of
from private_consensus.core.handlers import Running
from private_consensus.core.problems import logistic_regression, perceptron
from private_consensus.core.quantization import Grid
from private_consensus.core.randomness import Streams
from private_consensus.kernels import messages, rounds, rows
from private_consensus.kernels.normals import threefry
from private_consensus.privacy import Budget, account
from private_consensus.privacy.mechanism_sampled import SampledGradient

KEY, OTHER = np.array([7, 11], np.uint32), np.array([13, 17], np.uint32)
FINE = {"eta": 2.0**-30, "grid": "open"}
"""Grid so fine that messages equal the models up to 1e-9."""

pytestmark = pytest.mark.filterwarnings("ignore::private_consensus.common.errors.OutsideRange")


def scene(runs=(0,), agents=4, records=240, dtype=float, **options):
    streams, images = Streams(3, tuple(runs)), prepared_images(260, 40, inputs=8)
    problem = perceptron.build(streams, agents, prepared=images, hidden=5, records=records)
    problem = replace(problem, features=problem.features.astype(dtype))
    graph = {"probability": 0.6, "scale": 1.0, **options}
    return problem, networks.build(streams, "erdos_renyi", agents, **graph), streams


def handler_of(algorithm, problem, network, streams, horizon=1):
    """Return a handler for a run of the algorithm."""
    declared = algorithm.mechanisms(problem, network, horizon)
    return Running(declared, problem, streams, np.array([horizon]))


def draws(algorithm, problem, network, streams, rounds=1):
    """Yield speeds, sampled records and keys of each round."""
    handler = handler_of(algorithm, problem, network, streams, rounds)
    release = handler.function()
    for t in range(1, rounds + 1):
        handler.begin(t)
        keys = {name: release.key(name) for name in STREAMS}
        yield SimpleNamespace(**release.batch(algorithm.released)._asdict(), keys=keys)


def draw_of(algorithm, problem, network, streams):
    """Return the random numbers of the first round, and the batch sizes of the agents in run 0."""
    draw = next(draws(algorithm, problem, network, streams))
    return draw, draw.sizes[0, 0]


def start_of(algorithm, problem, network, streams):
    """Return the starting points of the agents in run 0."""
    release = handler_of(algorithm, problem, network, streams).function()
    return algorithm.start(problem, network, release).x[0, 0]


# --- Quantiser ------------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", [Grid(0.1), Grid(0.1, 3, clipped=False)])
def test_rounding_is_unbiased_inside_the_range(grid):
    x = np.linspace(-0.4, 0.3, 29, dtype=np.float32)
    many = np.tile(x, (50, 400))
    out = grid.quantize(many, KEY, 0)
    means = out.reshape(-1, 29).mean(0)
    assert np.abs(means - x).max() < 5 * 0.05 / np.sqrt(20_000)
    assert np.abs(np.rint(out / 0.1) * 0.1 - out).max() < 1e-6
    assert np.abs(out - many).max() < 0.1 + 1e-6


def test_values_outside_the_range_are_clipped():
    x = np.full((4, 1000), 0.35, np.float32)
    x[:, 500:] = -0.47
    np.testing.assert_allclose(np.unique(Grid(0.1).quantize(x, KEY, 0)), [-0.4, 0.3], atol=1e-6)
    unclipped = Grid(0.1, 3, clipped=False).quantize(x, KEY, 0)
    assert abs(unclipped[:, :500].mean() - 0.35) < 0.01


# --- Compiled code against NumPy ------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 7, 2048, 5001])
def test_compiled_updates_agree_with_the_numpy_reference(dim):
    rng = np.random.default_rng(0)
    x, mixed, g = rng.normal(size=(3, 3, dim)).astype(np.float32) * 0.3
    out = np.empty_like(x)
    # Use 0.125: as 0.1 is not a float32, the two types could round differently in the last digit.
    grid = rounds.Grid(*np.array([0.125, -4, 3], np.float32))
    key, other = rounds.keys(KEY, 9), rounds.keys(OTHER, 9)
    rounds.round_models(x, rounds.uniforms(key, *x.shape), grid, out)
    np.testing.assert_array_equal(out, Grid(0.125).quantize(x.astype(float), KEY, 9))
    scale, keep = np.array([0.5, 0.0, 2.0]), np.array([0.2, 1.0, -0.3])
    steps, normals = rounds.steps_of(np.eye(3), keep, scale, 0.3), rounds.normals(key, *x.shape)
    noisy = g + scale[:, None] * messages.normals_of(KEY, 9, x.shape)
    updated = x.copy()
    rounds.mix_and_step(updated, updated, mixed, g, steps, normals)
    expected = keep[:, None] * x + mixed - 0.3 * noisy
    np.testing.assert_allclose(updated, expected, atol=2e-5)
    mask = rounds.uniforms(other, *x.shape)
    sparse = rounds.Sparse(np.float32(0.6), np.float32(0.4), mask)
    updated = x.copy()
    rounds.mix_and_step(updated, updated, mixed, g, steps, normals, sparse)
    is_sent = messages.uniforms(OTHER, 9, x.shape) < np.float32(0.4)
    expected = x + is_sent * 0.6 / 0.4 * (mixed - x - 0.3 * noisy)
    np.testing.assert_allclose(updated, expected, atol=2e-5)
    table = rows.discrete_table(6.25)
    np.testing.assert_array_equal(
        messages.discrete_of(table, KEY, 9, (3, dim)), samples_by_search(table, dim)
    )


def samples_by_search(table, dim):
    """Return discrete Gaussian samples of three agents, decided by the first 64 bits."""
    counters = np.arange(9, 12, dtype=np.uint32)[:, None]
    high, low = threefry(KEY, counters, np.arange(dim, dtype=np.uint32))
    words = (high.astype(np.uint64) << np.uint64(32)) | low
    return np.searchsorted(table.high, words) + table.lowest


# --- Discrete Gaussian ----------------------------------------------------------------------------


def discrete_gaussian_pmf(k, variance):
    """Return the probabilities of integers in proportion to exp(-k^2 / (2 variance))."""
    support = np.arange(-2000, 2001)
    return np.exp(-(k**2) / (2 * variance)) / np.exp(-(support**2) / (2 * variance)).sum()


def chi_square(draws, variance, *, of=None) -> float:
    """Return the p-value of samples under a distribution; rare values share one cell per tail."""
    reach = max(1, round(2.5 * math.sqrt(of or variance)))
    support = np.arange(-reach, reach + 1)
    inner = np.array([(draws == k).sum() for k in support])
    law = discrete_gaussian_pmf(support, variance)
    tail = (1 - law.sum()) / 2
    observed = [(draws < -reach).sum(), *inner, (draws > reach).sum()]
    return stats.chisquare(observed, draws.size * np.array([tail, *law, tail])).pvalue


def discrete_samples(variance, shape=(20, 20_000), key=KEY):
    z = np.zeros(shape, np.float32)
    z = Grid(1.0, 3, clipped=False).add_noise(z, math.sqrt(variance), key, 0)
    return z.astype(int).ravel()


@pytest.mark.parametrize("variance", [0.3, 2.0, 9.7, 400.0])
def test_discrete_samples_match_their_variance_and_reject_variances_5_percent_off(variance):
    draws = discrete_samples(variance)
    assert chi_square(draws, variance) > 1e-3
    assert chi_square(draws, variance * 1.05, of=variance) < 1e-6
    assert chi_square(draws, variance / 1.05, of=variance) < 1e-6


def test_cumulative_probabilities_have_128_bits():
    variance = 2.0
    table = rows.discrete_table(variance)
    bounds = [(int(h) << 64) | int(low) for h, low in zip(table.high, table.low, strict=True)]
    weights = [math.exp(-(k**2) / 4) for k in range(-60, 61)]
    for k in (-6, -1, 0, 3):
        expected = math.fsum(weights[: k + 61]) / math.fsum(weights)
        assert bounds[k - table.lowest] / 2**128 == pytest.approx(expected, rel=1e-13)
    # Symmetry holds beyond double precision: P(X <= -1) + P(X <= 0) = 1.
    assert abs(bounds[-1 - table.lowest] + bounds[-table.lowest] - 2**128) <= 4
    assert bounds == sorted(bounds)
    assert math.exp(-(table.lowest**2) / 4) < 2.0**-128


def test_the_second_word_decides_a_tie_of_the_first():
    ((high,), (low,)) = threefry(KEY, np.array([9], np.uint32), rows.TIES)
    further = int(high) << 32 | int(low)
    bounds, guide = np.array([5 << 50, 5 << 50, 2**64 - 1], np.uint64), np.zeros(2**14, np.int32)

    def sample_of(word, *low):
        table = rows.NoiseTable(0, bounds, np.array([*low, 2**64 - 1], np.uint64), guide)
        words = np.array(divmod(word, 2**32), np.uint32)[:, None]
        sample = np.empty(1, np.float32)
        rows.find_steps(table, *KEY, np.uint32(9), np.uint32(0), *words, sample)
        return int(sample[0])

    lows = ((further + 1, further + 2), (further, further + 1), (further - 1, further))
    assert [sample_of(5 << 50, *pair) for pair in lows] == [0, 1, 2]
    assert sample_of(4 << 50, 0, 0) == 0


def test_discrete_noise_much_smaller_than_the_grid_step_is_exactly_zero():
    z = np.zeros((10, 40_000), np.float32)
    assert not Grid(0.1).add_noise(z, 0.025 * 0.1, KEY, 0).any()
    assert discrete_gaussian_pmf(np.array([0]), 0.025**2)[0] == 1.0
    z = Grid(0.1).add_noise(z, 0.25 * 0.1, KEY, 0)
    expected = 1 - discrete_gaussian_pmf(np.array([0]), 0.25**2)[0]
    assert (z != 0).mean() == pytest.approx(expected, rel=0.2)


# --- Steps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise_on", ["mean", "sum"])
def test_one_round_equals_algorithm_4_computed_per_agent(noise_on):
    """Compare with one round of Algorithm 4, computed per agent from the same random numbers."""
    algorithm = QDPSGD1(eta=0.125, sigma=0.8, noise_on=noise_on, e0=0.7)
    problem, network, streams = scene()
    at = run(algorithm, problem, network, streams, 1)
    draw, sizes = draw_of(algorithm, problem, network, streams)
    W, n = network.mixing[0], problem.n_agents
    x = start_of(algorithm, problem, network, streams)
    key = {name: keys[0] for name, keys in draw.keys.items()}
    u = messages.uniforms(key["rounding"], 0, x.shape)
    z = np.clip(np.floor(x / 0.125) + (u < x / 0.125 % 1), -4, 3) * 0.125
    noise = messages.normals_of(key["noise"], 0, x.shape)
    g = problem.clipped_gradient(x, draw.rows[0], sizes, 0.5)
    a, e = 0.3, 0.7
    for i in range(n):
        scale = 0.8 * 0.5 / (sizes[i] if noise_on == "sum" else 1)
        neighbour_sum = sum(W[i, j] * z[j] for j in range(n) if j != i)
        new = (1 - e + e * W[i, i]) * x[i] + e * neighbour_sum - a * e * (g[i] + scale * noise[i])
        np.testing.assert_allclose(at[1]["internal"][0, 0, i], new, atol=1e-13)


def test_agents_rounds_and_purposes_use_distinct_random_numbers():
    problem, network, streams = scene(agents=4, runs=(0, 1))
    rounds = list(draws(QDPSGD1(), problem, network, streams, 5))
    used = [
        (*key, draw.normals.counter + i)
        for draw in rounds
        for key in draw.normals.keys
        for i in range(4)
    ]
    assert len(set(used)) == len(used) == 5 * 4 * 2
    words = [tuple(key) for keys in rounds[0].keys.values() for key in keys]
    assert len(set(words)) == len(words) == 8


def test_the_published_step_sizes_give_e_equal_to_1_at_121_rounds():
    a, e = QDPSGD1().steps(121.0)
    assert e == pytest.approx(1.0)
    assert a == pytest.approx(0.3 / 121 ** (1 / 6))


def test_fewer_than_121_rounds_cause_a_warning():
    for horizon, algorithm in ((121, QDPSGD1()), (3, QDPSGD1(e0=1.0))):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            algorithm._warn(np.array([float(horizon)]))
    with pytest.warns(OutsideRange, match="T = 120"):
        QDPSGD1()._warn(np.array([120.0, 500.0]))
    with pytest.warns(OutsideRange):
        run(QDPSGD2(), *scene(), 2)


def test_an_agent_without_a_gradient_adds_no_noise():
    for noise_on, expected in (("sum", [0, 0.125, 0.025]), ("mean", [0, 0.5, 0.5])):
        mechanism = SampledGradient(scale=1.0, clip=0.5, on_sum=noise_on == "sum")
        assert mechanism.deviation(np.array([[[0, 4, 20]]])).ravel() == pytest.approx(expected)


def models_after_round(algorithm, x):
    """Return the models after one round from given models."""
    problem, network, streams = scene()
    handler = handler_of(algorithm, problem, network, streams, 100)
    release = handler.function()
    state = algorithm.start(problem, network, release)
    state.x[:] = x
    handler.begin(1)
    return algorithm.step(state, problem, network, release, 1).x[0, 0]


def test_the_update_depends_on_the_exact_model_unless_it_uses_the_broadcast_model():
    for own_model, forgets in (("exact", False), ("broadcast", True)):
        algorithm = QDPSGD2(own=own_model, sigma=1.0)
        # 0 is rounded to 0, and so is 1e-13 except once in 1e12 samples: the messages are equal.
        models_from_zero, models_from_perturbed = (
            models_after_round(algorithm, 0.0),
            models_after_round(algorithm, 1e-13),
        )
        assert np.array_equal(models_from_zero, models_from_perturbed) == forgets


def test_messages_of_q_dpsgd_2_contain_the_noise():
    loud, quiet = (
        models_after_round(QDPSGD2(sigma=s, eta=0.1, grid="open", e0=1.0), 0.0) for s in (4.0, 0.0)
    )
    problem, network, streams = scene()
    W = network.mixing[0]
    draw, _ = draw_of(QDPSGD2(), problem, network, streams)
    table = rows.discrete_table((4.0 * 0.5 / 0.1) ** 2)
    noise = messages.discrete_of(table, draw.keys["discrete"][0], 0, loud.shape) * 0.1
    expected = 0.1 * (W - np.diag(np.diagonal(W))) @ noise
    np.testing.assert_allclose(loud - quiet, expected, atol=1e-12)


def test_sdm_dsgd_with_full_messages_and_full_steps_equals_clipped_dsgd():
    sdm = run(SDMDSGD(theta=1.0, c=1.0), *scene(), 5)
    dsgd = run(DSGD(gradients="private", sigma=0.0), *scene(), 5)
    np.testing.assert_allclose(sdm[5]["internal"], dsgd[5]["internal"], atol=1e-12)
    plain = run(DSGD(), *scene(), 5)
    assert np.abs(plain[5]["internal"] - dsgd[5]["internal"]).max() > 1e-3


def test_sparsification_is_unbiased_and_sends_the_configured_fraction():
    x, zero = np.zeros((50, 20_000), np.float32), np.zeros((50, 20_000), np.float32)
    steps = rounds.steps_of(np.eye(50), np.zeros(50), np.zeros(50), 0.2)
    mask = rounds.uniforms(rounds.keys(OTHER, 0), *x.shape)
    sparse = rounds.Sparse(np.float32(0.6), np.float32(0.3), mask)
    rounds.mix_and_step(x, x, np.ones_like(x), zero, steps, zero, sparse)
    assert (x != 0).mean() == pytest.approx(0.3, abs=5 * math.sqrt(0.21 / x.size))
    np.testing.assert_allclose(np.unique(x), [0, 0.6 / 0.3], rtol=1e-6)


# --- Batches and run time -------------------------------------------------------------------------


def test_batches_have_uniform_sizes_from_4_to_35_and_no_repeated_records():
    problem, network, streams = scene(agents=4)
    algorithm = QDPSGD1()
    sizes, used = [], np.zeros((4, problem.records))
    for draw in draws(algorithm, problem, network, streams, 1500):
        now = draw.sizes[0, 0]
        sizes.append(now)
        for i in range(4):
            rows = draw.rows[0, i, : now[i]]
            assert len(set(rows)) == now[i]
            used[i] += np.isin(problem.rows_of(0)[i], rows)
    sizes = np.ravel(sizes)
    assert (sizes.min(), sizes.max()) == (4, 35)
    assert stats.chisquare(np.bincount(sizes)[4:]).pvalue > 1e-3
    assert used.sum() == sizes.sum()
    # Without replacement, the variance is below that of Poisson counts, for all agents and rows.
    assert stats.chisquare(used.ravel(), np.full(used.size, used.mean())).pvalue > 1e-3


def test_seconds_of_a_round_are_those_of_the_run_time_model():
    problem, network, streams = scene()
    at = run(QDPSGD1(), problem, network, streams, 4)
    np.testing.assert_allclose(at[4]["seconds"], 4 * (20 / 50 + 3 * 3 / 16))
    for algorithm, sending in ((DSGD(), 3.0), (SDMDSGD(), 0.9)):
        at = run(algorithm, problem, network, streams, 4)
        rounds = draws(algorithm, problem, network, streams, 4)
        waited = sum(20 / computed_per_second(draw.speeds).min() for draw in rounds)
        np.testing.assert_allclose(at[4]["seconds"], waited + 4 * sending)


# --- Batches of settings and runs -----------------------------------------------------------------


def test_results_do_not_depend_on_the_number_of_blas_threads():
    images, outputs = prepared_images(190, 10, inputs=784), []
    for threads in (1, 2):
        streams = Streams(3, (0,))
        problem = perceptron.build(streams, 4, prepared=images, hidden=50, records=190)
        network = networks.build(streams, "ring", 4, scale=1.0)
        with threadpool_limits(threads, "blas"):
            at = run(QDPSGD1(B=25), problem, network, streams, 3)
        outputs.append([at[t]["internal"].tobytes() for t in (1, 2, 3)])
    assert outputs[0] == outputs[1]


# --- Noise calibration ----------------------------------------------------------------------------


def sigma_of(algorithm, epsilon=1.0, horizon=500, agents=4):
    problem, network, _ = scene(agents=agents)
    return algorithm.calibrate(Budget(epsilon, 1e-5), problem, network, horizon).sigma


def test_calibrated_sigma_equals_the_formula_of_remark_6():
    expected = math.sqrt(16 * 500 * (2 * math.log(1e5) + 1) / 60**2)
    assert sigma_of(QDPSGD1()) == pytest.approx(expected, rel=1e-12)
    assert sigma_of(SDMDSGD()) == pytest.approx(expected, rel=1e-12)
    assert sigma_of(QDPSGD1(noise_on="sum")) == pytest.approx(20 * expected, rel=1e-12)


def test_calibrated_sigma_equals_the_formula_of_theorem_15():
    problem, _, _ = scene()
    first = sigma_of(QDPSGD1())
    a, e = QDPSGD2().steps(500.0)
    assert sigma_of(QDPSGD2()) == pytest.approx(first)
    assert sigma_of(QDPSGD2(sigma2="drop_eta")) == pytest.approx(a * e * first)
    rounding = 0.1 * math.sqrt(problem.dim) * 20 / 0.5
    assert sigma_of(QDPSGD2(sigma2="full")) == pytest.approx((a * e + rounding) * first)


@pytest.mark.parametrize(
    "algorithm",
    [QDPSGD1(), QDPSGD1(noise_on="sum"), QDPSGD2(sigma2="full"), SDMDSGD()],
)
def test_the_privacy_formula_inverts_the_calibration_of_sigma(algorithm):
    problem, network, _ = scene()
    ready = algorithm.calibrate(Budget(1.3, 1e-5), problem, network, 200)
    assert ready.claimed_epsilon(1e-5, problem, network, 200) == pytest.approx(1.3)


@pytest.mark.parametrize(
    "algorithm",
    [
        QDPSGD1(sigma_rule="accountant", noise_on="sum"),
        QDPSGD2(sigma_rule="accountant", own="broadcast"),
    ],
)
def test_the_sound_variants_use_most_of_the_budget_without_exceeding_it(algorithm):
    problem, network, _ = scene()
    ready = algorithm.calibrate(Budget(1.0, 1e-5), problem, network, 100)
    guarantee = account(ready.releases(problem, network, 100), 1e-5)
    assert guarantee.proven
    assert 0.7 < guarantee.epsilon <= 1.0 + 1e-4
    less = replace(ready, sigma=ready.sigma / 2)
    half = account(less.releases(problem, network, 100), 1e-5)
    assert half.epsilon > 1.5


def test_a_reused_model_keeps_the_largest_own_weight_of_the_network():
    problem, network, _ = scene()
    algorithm = QDPSGD2(sigma=3.0, own="exact", sigma_rule="given", e0=5.0)
    step, e = algorithm.steps(400.0)
    keep = np.abs(1 - e + e * np.diagonal(network.mixing, axis1=-2, axis2=-1)).max()
    message = {"step": step * e, "resolution": 0.1, "dim": problem.dim, "clip": 0.5}
    (expected,) = reused_state_releases(3.0, 400, keep=keep, **message)
    (release,) = algorithm.releases(problem, network, 400)
    assert release.sensitivity == pytest.approx(expected.sensitivity)


@pytest.mark.parametrize("sigma2", ["as_q1", "drop_eta"])
def test_variants_with_too_little_noise_for_the_rounding_exceed_epsilon(sigma2):
    """The variant ``full`` needs very large noise to meet a budget if agents have few records."""
    problem, network, _ = scene()
    ready = QDPSGD2(sigma2=sigma2).calibrate(Budget(1.0, 1e-5), problem, network, 400)
    assert account(ready.releases(problem, network, 400), 1e-5).epsilon > 10


def test_an_infinite_budget_gives_no_noise_and_non_private_dsgd_refuses_a_budget():
    problem, network, _ = scene()
    for algorithm in (QDPSGD1(), QDPSGD2(), SDMDSGD(), DSGD(), DSGD(gradients="private")):
        assert algorithm.calibrate(Budget(np.inf), problem, network, 9).sigma == 0
    with pytest.raises(InvalidInput, match=r"budget\.epsilon"):
        DSGD().calibrate(Budget(1.0, 1e-5), problem, network, 9)
    private = DSGD(gradients="private").calibrate(Budget(1.0, 1e-5), problem, network, 9)
    assert private.sigma > 0


# --- Strongly convex objectives (Theorems 12 and 16) ----------------------------------------------


def classified(copies, agents=3, dim=4, runs=2, ridge=0.5, scale=1.0):
    """Return ridge logistic regression with ``copies`` of one record, or 12 records, per agent."""
    rng = np.random.default_rng(1)
    distinct = 1 if copies else 12
    rows = rng.normal(size=(runs, agents, distinct, dim))
    rows /= 1.1 * np.linalg.norm(rows, axis=-1, keepdims=True)
    labels = rng.choice([-1.0, 1.0], size=(runs, agents, distinct))
    if copies:
        rows, labels = np.repeat(rows, copies, axis=2), np.repeat(labels, copies, axis=2)
    records = rows.shape[2]
    return logistic_regression.LogisticRegression(
        rows, labels, rows[0, 0], labels[0, 0], scale / records, ridge
    )


def test_a_sampled_gradient_is_the_clipped_sample_mean_plus_the_ridge_term():
    problem = classified(0, scale=1.7)
    x = np.random.default_rng(2).normal(size=(3, 4))
    all_sizes = np.full(3, 12)
    for index in (0, 1):
        rows = problem.rows_of(index)
        exact = problem.gradient(np.broadcast_to(x, (1, 2, 3, 4)))[0, index]
        gradients = problem.clipped_gradient(x, rows, all_sizes)
        np.testing.assert_allclose(gradients, exact, rtol=1e-12)
    sizes, clip = np.array([5, 12, 0]), 0.4
    gradients = problem.clipped_gradient(x, problem.rows_of(1), sizes, clip)
    for agent, size in enumerate(sizes[:2]):
        total = np.zeros(4)
        for row, label in zip(problem.features[1, agent, :size],
                              problem.labels[1, agent, :size], strict=True):  # fmt: skip
            slope = -1.7 * label * row / (1 + np.exp(label * row @ x[agent]))
            total += slope * min(1.0, clip / np.linalg.norm(slope))
        np.testing.assert_allclose(gradients[agent], total / size + 0.5 * x[agent], rtol=1e-12)
    assert not gradients[2].any()


@pytest.mark.parametrize(("make", "a0"), [(QDPSGD1, 2.0), (QDPSGD2, 1.0)])
def test_models_converge_to_the_penalised_minimiser_of_a_convex_objective(make, a0):
    """Compare with the minimiser of sum_i f_i + x^T (I - W) x / (2 alpha) by scipy.

    All records of an agent are equal, so that every batch has the full gradient, and only the
    rounding is random."""
    problem = classified(40, ridge=2.0)
    streams = Streams(3, (0, 1))
    network = networks.build(streams, "ring", 3, weights="laplacian", scale=1.0)
    algorithm = make(a0=a0, e0=1.0, rate=0.3, K=2.0, init="zero", **FINE)
    ended = run(algorithm, problem, network, streams, 230)[230]
    alpha = a0 / 230**0.15
    for index in (0, 1):

        def penalised(flat, index=index):
            x = flat.reshape(3, 4)
            everyone = np.broadcast_to(x, (1, 2, 3, 4))
            disagreement = x - network.of_run(index).mixing @ x
            value = problem.objective(everyone)[0, index].sum() + (x * disagreement).sum() / (
                2 * alpha
            )
            return value, (problem.gradient(everyone)[0, index] + disagreement / alpha).ravel()

        best = minimize(penalised, np.zeros(12), jac=True, options={"gtol": 1e-10}).x
        assert np.abs(ended["internal"][0, index].ravel() - best).max() < 1e-6
    squared_distances = ((ended["internal"] - problem.optimum[:, None, :]) ** 2).sum(-1).mean(-1)
    assert problem.measure("squared_distance", ended["internal"]) == pytest.approx(
        squared_distances
    )


def test_the_steps_for_convex_objectives_are_those_of_the_theorems():
    a, e = QDPSGD1(a0=2.0, e0=1.0, rate=0.4).steps(1000.0)
    assert (a, e) == pytest.approx((2 * 1000**-0.2, 1000**-0.6))
    with pytest.raises(InvalidInput, match=r"algorithm\.rate"):
        QDPSGD1(rate=0.5)


def test_a_configured_noise_is_kept_and_its_epsilon_follows_theorem_11():
    problem = classified(40)
    network = networks.build(Streams(3, (0, 1)), "ring", 3, weights="laplacian", scale=1.0)
    algorithm = QDPSGD1(sigma=0.7, sigma_rule="given", init="zero")
    budget = Budget(math.inf, 1e-5)
    assert algorithm.calibrate(budget, problem, network, 100).sigma == 0.7
    [(_, claimed)] = claims_of(algorithm, budget, problem, network, 100)
    recalibrated = QDPSGD1(init="zero").calibrate(Budget(claimed, 1e-5), problem, network, 100)
    assert recalibrated.sigma == pytest.approx(0.7, rel=1e-6)


def test_the_noise_multiplier_is_in_units_of_the_clipping_norm():
    """For any clipping norm, the standard deviation is proportional to the noise multiplier."""
    problem, network, _ = scene()
    for kind in (QDPSGD1, SDMDSGD, QDPSGD2):
        algorithm = kind(sigma=0.7, K=0.3)
        (mechanism,) = algorithm.mechanisms(problem, network, 9).values()
        if kind is QDPSGD2:
            assert mechanism.scale == pytest.approx(0.7 * 0.3)
        else:
            assert mechanism.deviation(np.array([[[0, 4]]])).ravel() == pytest.approx([0, 0.21])
