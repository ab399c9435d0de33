"""Test lost messages: the receiver uses the last message that arrived from the sender."""

from dataclasses import replace

import numpy as np
import pytest

from private_consensus import algorithms
from private_consensus.common.errors import InvalidInput
from private_consensus.comparison.costs import WITHOUT_MESSAGES
from private_consensus.comparison.faults import UnreliableNetwork, require_faults
from private_consensus.core.algorithms.base import stack
from private_consensus.core.networks import build
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.problems.perceptron import Perceptron
from private_consensus.core.randomness import Streams

AGENTS, RUNS = 6, 3
STREAMS = Streams(5, tuple(range(RUNS)))
NETWORK = build(STREAMS, "ring", AGENTS, weights="metropolis")
X = np.random.default_rng(0).normal(size=(2, RUNS, AGENTS, 4))
GENERATOR = np.random.default_rng(3)


def unreliable(missing: float, links: float, streams: Streams = STREAMS) -> UnreliableNetwork:
    return UnreliableNetwork(NETWORK, missing, links, streams)


def test_without_faults_mixing_and_neighbour_sums_equal_those_of_the_network():
    np.testing.assert_allclose(unreliable(0, 0).mix(X), NETWORK.mix(X), rtol=1e-12)
    neighbour_sums = unreliable(0, 0).neighbour_sum(X)
    np.testing.assert_allclose(neighbour_sums, NETWORK.neighbour_sum(X), rtol=1e-12)


def test_mixing_with_faults_equals_a_loop_that_uses_the_last_message_per_edge():
    """Compare with a loop over edges that uses the same masks of lost messages."""
    network = unreliable(0.4, 0.3)
    generators = STREAMS.generators("graph", "faults")
    last = np.broadcast_to(X[..., :, None, :], (2, RUNS, AGENTS, AGENTS, 4)).copy()
    for step in range(6):
        x = X + step
        mixed = network.mix(x)
        for run, generator in enumerate(generators):
            units = generator.random((1 + AGENTS, AGENTS))
            expected = NETWORK.own_weights[:, None] * x[:, run]
            for i in range(AGENTS):
                for j in NETWORK.neighbours_of(i):
                    link = units[1 + min(i, j), max(i, j)]
                    if units[0, j] >= 0.4 and link >= 0.3:
                        last[:, run, i, j] = x[:, run, j]
                    expected[:, i] += NETWORK.mixing[i, j] * last[:, run, i, j]
            np.testing.assert_allclose(mixed[:, run], expected, rtol=1e-12)


def test_the_fraction_of_sent_messages_is_one_minus_the_missing_probability():
    network = UnreliableNetwork(NETWORK, 0.2, 0.5, Streams(1, tuple(range(200))))
    x = np.zeros((1, 200, AGENTS, 1))
    for _ in range(20):
        network.mix(x)
    sent = np.sum(network.sent, axis=0) / (20 * 2 * AGENTS)
    assert abs(sent.mean() - 0.8) < 4 * 0.4 / np.sqrt(200 * 20 * AGENTS)


def test_the_lost_messages_of_a_run_do_not_depend_on_additional_runs():
    few, many = unreliable(0.4, 0.3), unreliable(0.4, 0.3, Streams(5, tuple(range(RUNS + 2))))
    extended = np.concatenate([X, X[:, :2]], axis=1)
    for _ in range(3):
        np.testing.assert_array_equal(few.mix(X), many.mix(extended)[:, :RUNS])


def test_mixed_kinds_of_exchange_and_access_to_the_adjacency_are_refused():
    network = unreliable(0.1, 0.0)
    network.mix(X)
    with pytest.raises(InvalidInput, match="one kind"):
        network.neighbour_sum(X)
    with pytest.raises(InvalidInput, match="one kind"):
        network.gather(X, NETWORK.open_neighbourhoods)
    with pytest.raises(InvalidInput, match="one kind"):
        network.exchange()
    with pytest.raises(InvalidInput, match="faults"):
        _ = network.adjacency


def means(runs: int) -> MeanEstimation:
    local = np.random.default_rng(1).uniform(-1, 1, (1, AGENTS, 2))
    return MeanEstimation(np.broadcast_to(local, (runs, AGENTS, 2)), 20, 5.0)


ENTERED = {
    "muffliato": {}, "muffliato_gd": {"eta": 0.05}, "pdop": {"eta": 0.05, "init_std": 0.0},
    "gradient_descent": {}, "p_admm": {"eta": 4.0}, "one_shot_averaging": {},
    "exact_admm": {"rho": 8.0}, "pr_admm": {"threshold": "none", "eta": 4.0},
    "decor": {"eta": 0.05}, "mafalda_sgd": {"eta": 0.05}, "zip_dl": {"eta": 0.05},
    "ldp_gradient_descent": {"eta": 0.05, "init_std": 0.0, "law": "gaussian", "noise": 0.1},
    "ldp_subgradient": {"eta": 0.05, "init_std": 0.0, "law": "gaussian", "noise": 0.1},
}  # fmt: skip


@pytest.mark.parametrize("name", ENTERED)
def test_without_losses_the_results_agree_with_about_one_exchange_per_round(name):
    """Without lost messages, the result equals that on the network without faults."""
    horizon, final_messages, exchanges = 5, [], []
    algorithm = algorithms.load(name)(**ENTERED[name])
    problem = means(RUNS)
    require_faults(name)
    for network in (NETWORK, unreliable(0.0, 0.0)):

        def keep(t, active, observed, network=network):
            if t == horizon and "released" in observed:
                final_messages.append(observed["released"])
                exchanges.append(len(getattr(network, "sent", [])))

        stack([algorithm]).run(problem, network, STREAMS, np.array([horizon]), keep)
    np.testing.assert_allclose(final_messages[0], final_messages[1], rtol=1e-9, atol=1e-12)
    assert abs(exchanges[-1] - horizon) <= 1


def test_gather_returns_the_last_message_of_each_edge():
    """A neighbourhood contains the agent and the last value that arrived on each edge."""
    network, members = unreliable(0.4, 0.3), NETWORK.closed_neighbourhoods
    generators = STREAMS.generators("graph", "faults")
    last = np.broadcast_to(X[..., :, None, :], (2, RUNS, AGENTS, AGENTS, 4)).copy()
    for step in range(4):
        x = X + step
        gathered = network.gather(x, members)
        for run, generator in enumerate(generators):
            units = generator.random((1 + AGENTS, AGENTS))
            for i in range(AGENTS):
                for position, j in enumerate(members[i]):
                    link = units[1 + min(i, j), max(i, j)]
                    if j == i or (units[0, j] >= 0.4 and link >= 0.3):
                        last[:, run, i, j] = x[:, run, j]
                    np.testing.assert_array_equal(gathered[:, run, i, position], last[:, run, i, j])


def test_mix_links_uses_the_last_message_of_each_edge():
    """Before the first message arrives, an agent uses its own message on that edge."""
    network = unreliable(0.4, 0.3)
    generators = STREAMS.generators("graph", "faults")
    sent = np.random.default_rng(2).normal(size=(2, RUNS, AGENTS, AGENTS, 4))
    last = sent.copy()  # [.., receiver, sender]; initially the receiver's own messages
    for step in range(4):
        messages = sent + step
        mixed = network.mix_links(messages)
        for run, generator in enumerate(generators):
            units = generator.random((1 + AGENTS, AGENTS))
            expected = np.zeros_like(mixed[:, run])
            for i in range(AGENTS):
                for j in NETWORK.neighbours_of(i):
                    link = units[1 + min(i, j), max(i, j)]
                    if units[0, j] >= 0.4 and link >= 0.3:
                        last[:, run, i, j] = messages[:, run, j, i]
                    elif step == 0:
                        last[:, run, i, j] = messages[:, run, i, j]
                    expected[:, i] += NETWORK.mixing[i, j] * last[:, run, i, j]
            np.testing.assert_allclose(mixed[:, run], expected, rtol=1e-9, atol=1e-12)


def test_mixing_one_run_at_a_time_equals_mixing_the_batch():
    """Sampled-gradient methods mix the model of one run at a time."""
    batch_network, one_by_one = unreliable(0.4, 0.3), unreliable(0.4, 0.3)
    for step in range(4):
        x = X + step
        mixing_of, expected = one_by_one.exchange(), batch_network.mix(x)
        for s in range(len(X)):
            for run in range(RUNS):
                mixing = mixing_of(s, run)
                if step % 2:
                    local_weights, neighbour_weights = (
                        mixing.diagonal(),
                        3.0 * mixing.without_diagonal(),
                    )
                    mixed = local_weights[:, None] * x[s, run] + neighbour_weights @ x[s, run] / 3.0
                else:
                    mixed = mixing @ x[s, run]
                np.testing.assert_allclose(mixed, expected[s, run], rtol=1e-12)


SAMPLED = {
    "dsgd": {"gradients": "private"}, "q_dpsgd_1": {"e0": 1.0},
    "q_dpsgd_2": {"e0": 1.0, "own": "broadcast"},
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLED)
def test_sampled_gradient_methods_agree_without_losses_and_differ_with_losses(name):
    features = GENERATOR.normal(size=(60, 4)).astype(np.float32)
    labels = GENERATOR.integers(0, 10, 60)
    dealt = np.tile(np.arange(48).reshape(1, AGENTS, 8), (RUNS, 1, 1))
    problem = Perceptron(features, labels, dealt, np.arange(48, 60), 3)
    configured = replace(algorithms.load(name)(B=2, sigma_rule="given", **SAMPLED[name]), sigma=0.5)
    released_by_faults = {}
    for faults in (None, (0.0, 0.0), (0.3, 0.3)):
        network = NETWORK if faults is None else unreliable(*faults)

        def keep(t, active, observed, faults=faults):
            if t == 4 and "released" in observed:
                released_by_faults[faults] = np.array(observed["released"])

        stack([configured]).run(problem, network, STREAMS, np.array([4]), keep)
    np.testing.assert_allclose(
        released_by_faults[None], released_by_faults[0.0, 0.0], rtol=1e-3, atol=1e-5
    )
    assert np.isfinite(released_by_faults[0.3, 0.3]).all()
    assert not np.allclose(
        released_by_faults[None], released_by_faults[0.3, 0.3], rtol=1e-3, atol=1e-5
    )


def test_in_zip_dl_a_noise_shift_hides_a_model_difference_despite_lost_messages():
    """In Zip-DL, a shift of the noise hides a difference D in u's model from all messages.

    The messages of u shift by -D, and the message of u to itself by D (1 - w) / w, for any pattern
    of lost messages.
    """
    x = GENERATOR.normal(size=(1, RUNS, AGENTS, 2))
    u, moved = 2, np.array([0.7, -0.2])
    weights = NETWORK.mixing
    changed = x.copy()
    changed[..., u, :] += moved
    networks = [unreliable(0.5, 0.5) for _ in range(2)]
    for _ in range(3):
        noise = GENERATOR.normal(size=(1, RUNS, AGENTS, AGENTS, 2))
        shifted = noise.copy()
        shifted[..., u, :, :] -= moved
        shifted[..., u, u, :] = noise[..., u, u, :] + moved * (1 - weights[u, u]) / weights[u, u]
        states = []
        for state, z, network in ((x, noise, networks[0]), (changed, shifted, networks[1])):
            messages = state[..., None, :] + z
            local_term = np.einsum("i,...iid->...id", weights.diagonal(), messages)
            states.append((network.mix_links(messages) + local_term, messages))
        (x, sent), (changed, sent_too) = states
        off = ~np.eye(AGENTS, dtype=bool)
        np.testing.assert_allclose(sent[..., off, :], sent_too[..., off, :], atol=1e-12)
        difference = np.zeros_like(x)
        difference[..., u, :] = moved
        np.testing.assert_allclose(changed - x, difference, atol=1e-12)


def test_pr_admm_with_a_threshold_is_refused_on_an_unreliable_network():
    """PR-ADMM compares each message with earlier messages of the same neighbour."""
    configured = algorithms.load("pr_admm")(threshold="literal", noise=0.1)
    with pytest.raises(InvalidInput, match="faults"):
        stack([configured]).run(
            means(RUNS), unreliable(0.1, 0.0), STREAMS, np.array([2]), lambda *arguments: None
        )


def test_every_algorithm_without_fault_support_has_a_reason_and_is_refused():
    loaded = {name: algorithms.load(name) for name in algorithms.names()}
    reasons = {name: kind.needs_all_messages_because for name, kind in loaded.items()}
    refused = {name: reason for name, reason in reasons.items() if reason}
    assert {"dp_admm", "sdm_dsgd", "secure_aggregation"} <= set(refused)
    for name, reason in refused.items():
        with pytest.raises(InvalidInput, match=f"faults: found '{name}', .*{reason}"):
            require_faults(name)
    assert not WITHOUT_MESSAGES & set(refused)


@pytest.mark.parametrize("bad", [{"missing": 1.0, "links": 0.0}, {"missing": 0.0, "links": -0.1}])
def test_a_loss_probability_of_1_or_below_0_is_refused(bad):
    with pytest.raises(InvalidInput, match="faults"):
        UnreliableNetwork(NETWORK, streams=STREAMS, **bad)
