"""Messages that do not arrive are replaced by the last that did; without faults nothing changes."""

import numpy as np
import pytest

from private_consensus import algorithms
from private_consensus.algorithms.base import stack
from private_consensus.comparison.faults import BROKEN, SILENT, UnreliableNetwork, require_faults
from private_consensus.errors import InvalidInput
from private_consensus.networks import build
from private_consensus.problems.mean_estimation import MeanEstimation
from private_consensus.randomness import Streams

AGENTS, RUNS = 6, 3
STREAMS = Streams(5, tuple(range(RUNS)))
NETWORK = build(STREAMS, "ring", AGENTS, weights="metropolis")
X = np.random.default_rng(0).normal(size=(2, RUNS, AGENTS, 4))


def unreliable(missing: float, links: float, streams: Streams = STREAMS) -> UnreliableNetwork:
    return UnreliableNetwork(NETWORK, missing, links, streams)


def test_without_faults_it_is_the_network():
    np.testing.assert_allclose(unreliable(0, 0).mix(X), NETWORK.mix(X), rtol=1e-12)
    found = unreliable(0, 0).neighbour_sum(X)
    np.testing.assert_allclose(found, NETWORK.neighbour_sum(X), rtol=1e-12)


def test_the_last_message_of_a_link_is_used_by_brute_force():
    """The same masks, one link at a time."""
    network = unreliable(0.4, 0.3)
    generators = STREAMS.generators("graph", "faults")
    last = np.broadcast_to(X[..., :, None, :], (2, RUNS, AGENTS, AGENTS, 4)).copy()
    for step in range(6):
        x = X + step
        found = network.mix(x)
        for run, generator in enumerate(generators):
            units = generator.random((1 + AGENTS, AGENTS))
            expected = NETWORK.own_weights[:, None] * x[:, run]
            for i in range(AGENTS):
                for j in NETWORK.neighbours_of(i):
                    link = units[1 + min(i, j), max(i, j)]
                    if units[0, j] >= 0.4 and link >= 0.3:
                        last[:, run, i, j] = x[:, run, j]
                    expected[:, i] += NETWORK.mixing[i, j] * last[:, run, i, j]
            np.testing.assert_allclose(found[:, run], expected, rtol=1e-12)


def test_so_many_are_missing_and_so_many_messages_are_sent():
    network = UnreliableNetwork(NETWORK, 0.2, 0.5, Streams(1, tuple(range(200))))
    x = np.zeros((1, 200, AGENTS, 1))
    for _ in range(20):
        network.mix(x)
    sent = np.sum(network.sent, axis=0) / (20 * 2 * AGENTS)
    assert abs(sent.mean() - 0.8) < 4 * 0.4 / np.sqrt(200 * 20 * AGENTS)


def test_a_run_has_its_masks_whoever_runs_beside_it():
    few, many = unreliable(0.4, 0.3), unreliable(0.4, 0.3, Streams(5, tuple(range(RUNS + 2))))
    more = np.concatenate([X, X[:, :2]], axis=1)
    for _ in range(3):
        np.testing.assert_array_equal(few.mix(X), many.mix(more)[:, :RUNS])


def test_two_kinds_of_exchange_or_values_at_links_are_refused():
    network = unreliable(0.1, 0.0)
    network.mix(X)
    with pytest.raises(InvalidInput, match="one kind"):
        network.neighbour_sum(X)
    with pytest.raises(InvalidInput, match="faults"):
        network.gather(X, NETWORK.open_neighbourhoods)


def means(runs: int) -> MeanEstimation:
    local = np.random.default_rng(1).uniform(-1, 1, (1, AGENTS, 2))
    return MeanEstimation(np.broadcast_to(local, (runs, AGENTS, 2)), 20, 5.0)


ENTERED = {
    "muffliato": {}, "muffliato_gd": {"eta": 0.05}, "pdop": {"eta": 0.05, "init_std": 0.0},
    "gradient_descent": {}, "p_admm": {"eta": 4.0}, "one_shot_averaging": {},
    "exact_admm": {"rho": 8.0},
}  # fmt: skip


@pytest.mark.parametrize("name", ENTERED)
def test_an_algorithm_that_takes_part_exchanges_once_a_round(name):
    """And is the same as on the network where nothing fails."""
    horizon, found, exchanges = 5, [], []
    algorithm = algorithms.load(name)(**ENTERED[name])
    problem = means(RUNS)
    require_faults(name)
    for network in (NETWORK, unreliable(0.0, 0.0)):

        def keep(t, active, seen, network=network):
            if t == horizon and "released" in seen:
                found.append(seen["released"])
                exchanges.append(len(getattr(network, "sent", [])))

        stack([algorithm]).run(problem, network, STREAMS, np.array([horizon]), keep)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-12)
    assert abs(exchanges[-1] - horizon) <= 1


def test_every_algorithm_that_is_left_out_says_why():
    for name, reason in BROKEN.items():
        assert name in algorithms.names() and reason
        with pytest.raises(InvalidInput, match="faults"):
            require_faults(name)
    assert not SILENT & set(BROKEN)


@pytest.mark.parametrize("bad", [{"missing": 1.0, "links": 0.0}, {"missing": 0.0, "links": -0.1}])
def test_a_probability_that_is_none_is_refused(bad):
    with pytest.raises(InvalidInput, match="faults"):
        UnreliableNetwork(NETWORK, streams=STREAMS, **bad)
