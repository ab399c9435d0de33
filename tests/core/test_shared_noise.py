"""Test methods with shared or correlated noise: convergence, noise and privacy cost."""

from dataclasses import replace

import numpy as np
import pytest

from observed import executed
from private_consensus import algorithms, networks
from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.base import stack
from private_consensus.core.algorithms.mafalda_sgd import batch_of
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget, account, gaussian_mu
from private_consensus.privacy.cancelling_noise import hiding_energy
from private_consensus.privacy.correlated_noise import cyclic_factor, error_gram
from private_consensus.privacy.mechanisms import Temporal

STREAMS = Streams(3, (0,))
BUDGET = Budget(2.0, 1e-5)
NAMES = ("muffliato", "muffliato_gd", "mafalda_sgd", "decor", "zip_dl", "secure_aggregation")


def network(name: str = "ring", agents: int = 8):
    return networks.build(STREAMS, name, agents, weights="metropolis")


def means(agents: int = 8) -> MeanEstimation:
    values = np.random.default_rng(1).uniform(-1, 1, (1, agents, 2))
    return MeanEstimation(values, 5, 1.0)


def classified(records: int = 6) -> LogisticRegression:
    generator = np.random.default_rng(2)
    features = generator.normal(size=(4, records, 2))
    features /= np.linalg.norm(features, axis=-1, keepdims=True)
    labels = generator.choice([-1.0, 1.0], size=(4, records))
    return LogisticRegression(features, labels, features[0], labels[0], 1.0 / records, 0.1)


def states(algorithm, problem, graph, rounds: int) -> list:
    """Return the states after all rounds of a run."""
    return executed(stack([algorithm]), problem, graph, STREAMS, rounds)[0][1:]


@pytest.mark.parametrize("name", NAMES)
def test_without_noise_the_average_model_converges_to_the_mean(name):
    """The average over agents is unbiased for mean estimation, even with constant steps."""
    graph, problem = network(), means()
    eta = {} if name == "muffliato" else {"eta": 0.05}
    last = states(algorithms.load(name)(**eta), problem, graph, 60)[-1].x[0, 0]
    assert last.mean(0) == pytest.approx(problem.target[0], abs=1e-6)
    if name == "muffliato":
        assert np.abs(last - problem.target).max() < 1e-3


@pytest.mark.parametrize("name", [*NAMES, "local_training"])
def test_calibrated_noise_meets_the_budget_and_less_noise_exceeds_it(name):
    """The calibrated noise meets the budget and slightly less noise exceeds it.

    Without a budget there is no noise, and without delta no Gaussian noise.
    """
    graph, problem = network("path", 4), means(4) if name == "muffliato" else classified()
    algorithm = algorithms.load(name)(**({} if name == "muffliato" else {"clip": 0.2}))
    noisy = algorithm.calibrate(BUDGET, problem, graph, 3)
    accounted = account(noisy.releases(problem, graph, 3), BUDGET.delta)
    assert accounted.epsilon == pytest.approx(BUDGET.epsilon, rel=1e-4) and accounted.proven
    less = replace(noisy, noise=noisy.noise * 0.99)
    assert account(less.releases(problem, graph, 3), BUDGET.delta).epsilon > BUDGET.epsilon
    bare = algorithm.calibrate(Budget(np.inf, 0.0), problem, graph, 3)
    assert not bare.noise and account(bare.releases(problem, graph, 3), 0.1).epsilon == np.inf
    with pytest.raises(InvalidInput, match="delta"):
        algorithm.calibrate(Budget(2.0, 0.0), problem, graph, 3)


def test_muffliato_cost_is_independent_of_rounds_and_chebyshev_converges_faster():
    graph, problem = network(agents=20), means(20)
    plain, fast = (algorithms.load("muffliato")(acceleration=how) for how in ("none", "chebyshev"))
    assert plain.releases(problem, graph, 1)[0].count == plain.releases(problem, graph, 50)[0].count
    errors = [np.abs(states(method, problem, graph, 30)[-1].x[0, 0] - problem.target).max()
              for method in (plain, fast)]  # fmt: skip
    assert errors[1] < errors[0] / 10
    noisy = algorithms.load("muffliato")(noise=1.0, acceleration="chebyshev")
    mixed = states(noisy, problem, graph, 12)
    assert mixed[-1].x.mean(-2) == pytest.approx(mixed[0].x.mean(-2), rel=1e-12)


def test_muffliato_gd_steps_start_from_the_gossip_average():
    """If K rounds reach consensus, each step uses the mean gradient."""
    graph, problem = network("complete", 4), classified()
    algorithm = algorithms.load("muffliato_gd")(eta=0.5, rounds=2, clip=0.05)
    trajectory = states(algorithm, problem, graph, 5)
    x = np.zeros((1, 1, 4, 2))
    for _ in range(3):
        gradient = problem.gradient(x)
        gradient /= np.maximum(1, np.linalg.norm(gradient, axis=-1, keepdims=True) / 0.05)
        before, x = x, (x - 0.5 * gradient).mean(-2, keepdims=True) + 0 * x
    assert trajectory[4].x == pytest.approx(before - 0.5 * gradient, rel=1e-12)


def test_pair_noise_of_decor_cancels_in_the_mean_and_its_cost_has_a_fourier_form():
    graph, problem = network(agents=6), means(6)
    algorithm = algorithms.load("decor")(noise=0.7, ratio=2.0, eta=1.0)
    mechanism = stack([algorithm]).mechanisms(problem, graph, 5)["step"]
    unit = next(mechanism.units(problem, STREAMS))
    total = mechanism.output(np.zeros((1, 1, 6, 2)), unit, 1)[0, 0] / 0.7
    assert total.mean(0) == pytest.approx(unit[0, :6].mean(0), abs=1e-12)
    assert np.abs(total - unit[0, :6]).max() > 1
    wave = 2 - 2 * np.cos(2 * np.pi * np.arange(6) / 6)
    expected = (1 / (1 + 4 * wave)).mean() / 0.49 * problem.record_change("l2") ** 2 * 5
    (release,) = algorithm.releases(problem, graph, 5)
    assert (release.losses() ** 2).sum() == pytest.approx(expected, rel=1e-9)
    root = mechanism.root[0, 0]
    assert np.linalg.inv(root @ root.T)[0, 0] == pytest.approx(np.mean(1 / (1 + 4 * wave)))


@pytest.mark.parametrize("name", ["path", "ring", "complete"])
def test_loss_of_decor_with_much_pair_noise_is_that_of_a_server(name):
    """The covariance is singular up to rounding; its inverse tends to 1/N."""
    problem, graph = means(9), network(name, 9)
    algorithm = algorithms.load("decor")(noise=1.0, ratio=1e6)
    (release,) = algorithm.releases(problem, graph, 1)
    expected = problem.record_change("l2") / 3
    assert expected <= release.losses().max() < expected * (1 + 1e-6)
    with pytest.raises(InvalidInput, match="ratio"):
        algorithms.load("decor")(ratio=1e8)


@pytest.mark.parametrize(
    "rows", [((0.0, 10.0), (10.0, 0.0)), ((0.0,),), ((1.0, 0.0),), ((np.nan,),), "ab", 1.0]
)
def test_a_filter_with_a_round_without_noise_is_refused(rows):
    """Noise of a later round cannot enter a message, so the filter is lower triangular."""
    with pytest.raises(InvalidInput, match=r"Temporal\.filter"):
        Temporal(1.0, 1.0, filter=rows)


def test_noise_of_zip_dl_cancels_at_its_sender():
    """The mean model has no noise, and the hiding energy is d (d + 1) for degree d."""
    graph, problem = network("path", 5), means(5)
    quiet, noisy = (algorithms.load("zip_dl")(noise=s, eta=0.02) for s in (0.0, 3.0))
    ends = [states(method, problem, graph, 4)[-1] for method in (quiet, noisy)]
    assert ends[1].x.mean(-2) == pytest.approx(ends[0].x.mean(-2), rel=1e-10)
    assert np.abs(ends[1].sent - ends[0].sent).max() > 0.05
    assert hiding_energy(network("ring", 6).mixing) == pytest.approx(6, rel=1e-6)
    assert hiding_energy(network("complete", 4).mixing) == pytest.approx(12, rel=1e-6)


def test_the_cyclic_factor_has_norm_at_most_one_and_reduces_the_error():
    """Changes of a record have norm at most one; the error is at most that of independent noise."""
    gram = error_gram(network("ring", 6).mixing, 8)
    generator = np.random.default_rng(3)
    for period in (1, 2, 4):
        C = cyclic_factor(gram, period)
        assert np.array_equal(C, np.tril(C))
        for _ in range(50):
            change = np.zeros((8, 8))
            start = generator.integers(period)
            change[start::period] = generator.normal(size=change[start::period].shape)
            change[start::period] /= np.linalg.norm(change[start::period], axis=1, keepdims=True)
            assert np.linalg.norm(C @ change) <= 1 + 1e-9
        inverse = np.linalg.inv(C)
        independent = np.trace(gram) * (8 // period)
        assert np.trace(inverse.T @ gram @ inverse) <= independent * (1 + 1e-9)
        if period == 1:  # only the noise size of each round can vary
            best = np.sqrt(np.diag(gram)).sum() ** 2
            assert np.trace(inverse.T @ gram @ inverse) == pytest.approx(best, rel=1e-6)
        else:
            assert np.trace(inverse.T @ gram @ inverse) < 0.95 * independent
    assert noise_energy(gram, cyclic_factor(gram, 8)) < noise_energy(gram, np.eye(8))


def test_secure_aggregation_equals_central_gradient_descent():
    """All agents have one model, updated with the mean of clipped gradients.

    The noise of the sum has the declared variance.
    """
    graph, problem = network("path", 4), classified()
    quiet = algorithms.load("secure_aggregation")(eta=0.5, clip=0.05)
    trajectory, x = states(quiet, problem, graph, 4), np.zeros((1, 1, 4, 2))
    for state in trajectory:
        gradient = problem.gradient(x)
        gradient /= np.maximum(1, np.linalg.norm(gradient, axis=-1, keepdims=True) / 0.05)
        x = x - 0.5 * gradient.mean(-2, keepdims=True)
        assert state.x == pytest.approx(x, rel=1e-12)
    noisy, many = replace(quiet, noise=3.0), Streams(5, tuple(range(4000)))
    (_, state), _ = executed(stack([noisy]), problem, graph, many, 1)
    model_noise = state.x - trajectory[0].x
    assert np.array_equal(model_noise, np.broadcast_to(model_noise[..., :1, :], model_noise.shape))
    unit = model_noise[0, :, 0] / (0.5 * 3.0 / 4)
    assert unit.var() == pytest.approx(1.0, abs=5 * np.sqrt(2 / unit.size))


def test_local_training_converges_to_the_local_optimum():
    """Local training converges to the local mean instead of the mean of all agents."""
    graph, problem = network("ring", 5), means(5)
    last = states(algorithms.load("local_training")(eta=0.05), problem, graph, 80)[-1].x[0, 0]
    assert last == pytest.approx(problem.means[0], abs=1e-8)
    assert np.abs(last - problem.target).max() > 0.1


def test_the_error_gram_equals_the_sum_of_model_responses():
    W = network("ring", 5).mixing
    total = np.zeros((3, 3))
    for i in range(5):  # unit noise of agent i in round s, models W y_r of all rounds
        responses = np.zeros((3, 3, 5))
        for s in range(3):
            for r in range(s, 3):
                responses[s, r] = np.linalg.matrix_power(W, r - s + 1)[:, i]
        total += np.einsum("srj,trj->st", responses, responses)
    assert error_gram(W, 3) == pytest.approx(total, rel=1e-12)


def test_the_optimal_factor_satisfies_its_optimality_condition():
    """X^{-1} G X^{-1} is diagonal, and no perturbation of C with unit columns is better."""
    gram = error_gram(network("path", 5).mixing, 6)
    best = cyclic_factor(gram, 6)
    inverse = np.linalg.inv(best.T @ best)
    dual = inverse @ gram @ inverse
    assert np.abs(dual - np.diag(np.diag(dual))).max() < 1e-6 * dual.max()
    generator = np.random.default_rng(2)
    least = noise_energy(gram, best)
    for _ in range(20):
        moved = np.tril(best + 0.05 * generator.normal(size=best.shape))
        assert noise_energy(gram, moved / np.linalg.norm(moved, axis=0)) >= least


def noise_energy(gram, factor) -> float:
    """Return the squared error of all models, if a record changes one round by at most 1."""
    inverse = np.linalg.inv(factor)
    return float((factor**2).sum(0).max() * np.trace(inverse.T @ gram @ inverse))


def test_zip_dl_without_clipping_and_with_large_steps_has_no_finite_loss():
    graph, problem = network("ring", 6), means(6)
    steep = algorithms.load("zip_dl")(noise=2.0, eta=1.0)
    assert account(steep.releases(problem, graph, 2), 1e-3).epsilon == np.inf
    with pytest.raises(InvalidInput, match="clip"):
        steep.calibrate(BUDGET, problem, graph, 2)


def test_batches_of_mafalda_average_to_the_gradient_and_its_loss_is_that_of_one_mechanism():
    graph, problem = network("path", 4), classified()
    algorithm = algorithms.load("mafalda_sgd")(batches=3, eta=0.2)
    noisy = algorithm.calibrate(BUDGET, problem, graph, 6)
    assert algorithm.calibrate(BUDGET, problem, graph, 6) == noisy
    # A record affects the rounds s and s + 3; its changes may point in any directions.
    columns = np.linalg.inv(noisy.filter_of(6)).T
    sensitivity = max(
        np.linalg.norm(columns[s] + sign * columns[s + 3]) for s in range(3) for sign in (-1, 1)
    )
    mu = noisy.change(problem) * sensitivity / noisy.noise
    assert mu == pytest.approx(gaussian_mu(2.0, 1e-5), rel=1e-5)
    x = np.ones((1, 1, 4, 2))
    batch_gradients = [batch_of(problem, t, 3).gradient(x) for t in (1, 2, 3)]
    assert np.mean(batch_gradients, axis=0) == pytest.approx(problem.gradient(x), rel=1e-12)
    with pytest.raises(InvalidInput, match="divisor"):
        replace(algorithm, batches=4).calibrate(BUDGET, problem, graph, 6)
    longer = account(noisy.releases(problem, graph, 7), 1e-5)
    assert longer.epsilon > 2.0 and noisy.filter_of(7)[6].tolist() == [0] * 6 + [1]
