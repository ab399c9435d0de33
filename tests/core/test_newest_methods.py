"""Test methods that were published after 2023 against closed forms and exact moments."""

import numpy as np
import pytest

import private_consensus as pc
from observed import run
from private_consensus.core.algorithms.base import stack
from private_consensus.core.algorithms.decor import pairwise_root
from private_consensus.core.algorithms.whisper_dsgd import optimal_root
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.privacy import gaussian_epsilon, gaussian_mu
from private_consensus.privacy.random_walks import (
    arrival_probabilities,
    walk_epsilon,
    walk_renyi_epsilon,
)

AGENTS, RECORDS, DELTA = 6, 10, 1e-5
BUDGET = pc.Budget(1.0, DELTA)


def network(name="ring", agents=AGENTS, **parameters):
    streams = pc.Streams(0, (0,))
    return pc.networks.build(streams, name, agents, weights="metropolis", **parameters).of_run(0)


def means(agents=AGENTS):
    values = np.linspace(-0.5, 0.5, 2 * agents).reshape(1, agents, 2)
    return MeanEstimation(values, RECORDS, 1.0)


def course(algorithm, graph, horizon, runs=1, quantity="released", problem=None):
    """Return an observable of all iterations, [iterations, runs, agents, dim]."""
    streams = pc.Streams(0, tuple(range(runs)))
    at = run(stack([algorithm]), problem or means(), graph, streams, horizon)
    return np.array([at[t][quantity][0] for t in range(1, horizon + 1)])


def load(name, **parameters):
    return pc.algorithms.load(name)(**parameters)


# IncA.


@pytest.mark.parametrize("rounds", [1, 4])
def test_inca_reaches_the_mean_of_the_noisy_values(rounds):
    exact = course(load("inca", rounds=rounds), network(), 80)[-1]
    assert exact == pytest.approx(np.broadcast_to(means().means.mean(-2), exact.shape), abs=1e-9)
    noisy = course(load("inca", noise=1.0, ratio=100.0, rounds=rounds), network(), 80)[-1]
    once = course(load("muffliato", noise=1.0), network(), 80)[-1]
    assert noisy.mean(-2) == pytest.approx(once.mean(-2), abs=1e-9)


def test_cancelling_noise_hides_a_value_from_agents_but_not_from_the_eavesdropper():
    weak, strong = (load("inca", ratio=r, rounds=6) for r in (0.5, 20.0))
    largest = {}
    for algorithm in (weak, strong):
        for kind in ("agent", "eavesdropper"):
            losses = pc.observe(algorithm, means(), network(), BUDGET, 10, kind=kind).losses
            largest[algorithm.ratio, kind] = max(loss.epsilon for loss in losses)
            assert {loss.rule for loss in losses} == {"exact"}
    assert largest[20.0, "agent"] < 0.85 * largest[0.5, "agent"]
    for ratio in (0.5, 20.0):
        assert largest[ratio, "eavesdropper"] == pytest.approx(1.0, rel=1e-6)
    # No observer of the final mean learns less than of the noise of all agents.
    central = gaussian_epsilon(gaussian_mu(1.0, DELTA) / np.sqrt(AGENTS), DELTA)
    assert largest[20.0, "agent"] > central


# Whisper D-SGD.

GRAPHS = (("ring", {}), ("path", {}), ("erdos_renyi", {"probability": 0.5}))


@pytest.mark.parametrize(("name", "parameters"), GRAPHS)
def test_the_covariance_of_whisper_is_optimal_by_duality(name, parameters):
    mixing = network(name, 8, **parameters).mixing
    root = optimal_root(mixing)
    covariance = root @ root
    losses = np.diagonal(np.linalg.inv(covariance))
    assert losses == pytest.approx(np.ones(8), abs=1e-6)
    value = np.trace(mixing @ covariance @ mixing)
    # The stationary point R A R = Lambda has the dual value tr(A R) + sum(Lambda) - sum(Lambda).
    multipliers = covariance @ mixing @ mixing @ covariance
    assert multipliers == pytest.approx(np.diag(np.diagonal(multipliers)), abs=1e-4)
    assert np.trace(multipliers) == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize(("name", "parameters"), GRAPHS)
def test_no_pairwise_noise_leaves_less_after_mixing(name, parameters):
    graph = network(name, 8, **parameters)
    root = optimal_root(graph.mixing)
    least = np.trace(graph.mixing @ root @ root @ graph.mixing)
    for ratio in (0.0, 0.5, 1.0, 2.0, 5.0):
        pairs = pairwise_root(graph.adjacency, ratio)
        covariance = pairs @ pairs.T
        covariance *= np.diagonal(np.linalg.inv(covariance)).max()
        assert np.trace(graph.mixing @ covariance @ graph.mixing) > least * (1 - 1e-9)


def test_the_moments_of_mixed_noise_are_those_of_the_covariance():
    graph, algorithm = network(), load("whisper_dsgd", eta=1 / RECORDS, noise=0.3 * RECORDS)
    root = optimal_root(graph.mixing)
    # A step of size 1/L reaches the local means; only the noise of one round remains.
    errors = course(algorithm, graph, 1, runs=4000)[-1] - means().means
    covariance = np.einsum("rid,rjd->ij", errors, errors) / (4000 * 2)
    expected = 0.09 * root @ root
    assert covariance == pytest.approx(expected, abs=0.06 * expected.max())
    (release,) = algorithm.releases(means(), graph, 4)
    change = means().record_change("l2") / (0.3 * RECORDS)
    assert (release.losses() ** 2).sum() == pytest.approx(4 * change**2, rel=1e-6)


# Random walks.


@pytest.mark.parametrize(("name", "steps"), [("random_walk_sgd", 1), ("local_random_walk", 3)])
def test_a_walk_visits_each_agent_equally_often_and_stays_on_edges(name, steps):
    graph, runs = network(), 400
    options = {"local_steps": steps} if steps > 1 else {}
    models = course(load(name, eta=0.01, visits=100, **options), graph, 12 * steps, runs)
    visits = np.diff(models, axis=0, prepend=0.0).any(-1)
    assert (visits.sum(-1) == 1).all()
    at = visits.argmax(-1)
    assert (at.reshape(12, steps, runs) == at[::steps][:, None]).all()
    gaps = (at[steps::steps] - at[:-steps:steps]) % AGENTS
    assert set(np.unique(gaps)) == {0, 1, AGENTS - 1}
    assert np.bincount(at.ravel()) / at.size == pytest.approx(np.full(AGENTS, 1 / AGENTS), abs=0.03)
    assert (gaps == 0).mean() == pytest.approx(graph.own_weights[0], abs=0.03)


def test_a_walk_on_equal_means_is_descent_of_one_model():
    problem = MeanEstimation(np.full((1, AGENTS, 2), 0.4), RECORDS, 1.0)
    walk = load("random_walk_sgd", eta=0.05, visits=100)
    for t, model in enumerate(course(walk, network(), 7, 2, "walking", problem), 1):
        assert model == pytest.approx(np.full(model.shape, 0.4 * (1 - 0.5**t)), rel=1e-12)


@pytest.mark.parametrize(("name", "steps"), [("random_walk_sgd", 1), ("local_random_walk", 3)])
def test_the_loss_to_the_eavesdropper_is_that_of_all_contributions(name, steps):
    options = {"local_steps": steps} if steps > 1 else {}
    algorithm = load(name, visits=2, noise=5.0, **options)
    (release,) = algorithm.releases(means(), network(), 50)
    change = means().record_change("l2") / 5.0
    assert (release.losses() ** 2).sum() == pytest.approx(2 * steps * change**2)


def test_arrival_probabilities_of_a_complete_graph_are_geometric():
    graph = network("complete", 5)
    p = arrival_probabilities(graph.mixing, 0)
    expected = 0.2 * 0.8 ** np.arange(len(p) - 1)
    assert p[:-1, 3] == pytest.approx(expected, abs=1e-15)
    assert p.sum(0) == pytest.approx(np.ones(5))


def test_the_loss_of_a_walk_lies_between_those_of_immediate_and_of_late_arrival():
    for name in ("ring", "complete", "path"):
        mixing = network(name).mixing
        for v in range(AGENTS):
            epsilon = walk_epsilon(mixing, v, 0.3, DELTA)
            assert (epsilon < gaussian_epsilon(0.3, DELTA)).all()
            assert (epsilon <= walk_renyi_epsilon(mixing, 200, 0.3, DELTA)[v]).all()


def test_a_walk_that_certainly_arrives_next_has_the_loss_of_one_visit():
    pair = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert walk_epsilon(pair, 0, 0.3, DELTA)[1] == pytest.approx(gaussian_epsilon(0.3, DELTA))
    assert walk_epsilon(pair, 0, 0.3, DELTA)[0] == pytest.approx(
        gaussian_epsilon(0.3 / np.sqrt(2), DELTA)
    )


def test_losses_to_observers_of_a_walk_hold_for_all_walks():
    """The losses of one walk are 0 for most agents; the bound of the arriving steps is not."""
    algorithm = load("random_walk_sgd", visits=2)
    result = pc.observe(algorithm, means(), network("path"), BUDGET, 4)
    assert "random" in result.reason
    for loss in result.losses:
        arriving = min(2, 5 - loss.distance) / 2
        assert loss.rule == "causal bound"
        assert loss.epsilon <= 1.0 + 1e-9
        if arriving > 0:
            mu = gaussian_mu(1.0, DELTA) * np.sqrt(arriving)
            assert loss.epsilon >= gaussian_epsilon(mu, DELTA) * (1 - 1e-9)
