"""Test graphs and mixing matrices."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_consensus import networks
from private_consensus.common.errors import InvalidInput
from private_consensus.core.randomness import Streams


def some_streams(seed: int, runs: int = 3) -> Streams:
    return Streams(seed, tuple(range(runs)), {})


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    agents=st.integers(2, 15),
    probability=st.floats(0.25, 1.0),
    weights=st.sampled_from(sorted(networks.MIXINGS)),
)
def test_mixing_matrices_are_symmetric_and_contracting(seed, agents, probability, weights):
    net = networks.build(
        some_streams(seed), "erdos_renyi", agents, probability=probability, weights=weights
    )
    w = net.mixing
    assert np.allclose(w, w.swapaxes(-1, -2), atol=1e-14)
    assert np.allclose(w.sum(-1), 1.0, atol=1e-12)
    allowed = net.adjacency | np.eye(agents, dtype=bool)
    assert not w[~np.broadcast_to(allowed, w.shape)].any()
    eigenvalues = np.linalg.eigvalsh(w)
    assert (eigenvalues[..., 0] > -1 + 1e-9).all()
    if agents > 1:
        assert (networks.second_eigenvalue(w) < 1 - 1e-9).all()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), agents=st.integers(2, 12))
def test_connectedness_agrees_with_networkx(seed, agents):
    links = np.triu(np.random.default_rng(seed).random((20, agents, agents)) < 1.5 / agents, 1)
    adjacency = links | links.swapaxes(1, 2)
    expected = [nx.is_connected(nx.from_numpy_array(a)) for a in adjacency]
    assert networks.connected(adjacency).tolist() == expected


@pytest.mark.parametrize(
    ("name", "graph"),
    [
        ("ring", nx.cycle_graph),
        ("path", nx.path_graph),
        ("star", lambda agents: nx.star_graph(agents - 1)),
        ("complete", nx.complete_graph),
    ],
)
def test_graph_families_equal_those_of_networkx(streams, name, graph):
    for agents in (2, 3, 8):
        expected = nx.to_numpy_array(graph(agents), dtype=bool)
        assert np.array_equal(networks.build(streams, name, agents).adjacency, expected)


def test_laplacian_mixing_is_the_identity_minus_two_thirds_of_the_scaled_laplacian(streams):
    net = networks.build(streams, "erdos_renyi", 10, probability=0.6)
    for adjacency, w in zip(net.adjacency, net.mixing, strict=True):
        lap = nx.laplacian_matrix(nx.from_numpy_array(adjacency)).toarray()
        largest = np.linalg.eigvalsh(lap)[-1]
        assert np.allclose(w, np.eye(10) - 2 / (3 * largest) * lap)


def test_most_graphs_of_a_larger_edge_probability_contain_the_sparser_graph(streams):
    sparse = networks.erdos_renyi(streams, 10, probability=0.5)
    dense = networks.erdos_renyi(streams, 10, probability=0.9)
    # Both accept the first connected sample. For equal samples, the denser graph only adds edges.
    contained = [not (a & ~b).any() for a, b in zip(sparse, dense, strict=True)]
    assert np.mean(contained) > 0.8


def test_edge_counts_of_connected_random_graphs_agree_with_networkx():
    agents, probability = 6, 0.3
    drawn = networks.erdos_renyi(some_streams(3, 400), agents, probability=probability)
    rng = np.random.default_rng(0)
    reference = []
    while len(reference) < 400:
        graph = nx.gnp_random_graph(agents, probability, seed=rng)
        if nx.is_connected(graph):
            reference.append(graph.number_of_edges())
    ours = drawn.sum((1, 2)) / 2
    error = np.sqrt((ours.var() + np.var(reference)) / 400)
    assert abs(ours.mean() - np.mean(reference)) < 4 * error


def test_random_edges_gives_connected_graphs_with_the_requested_number_of_edges(streams):
    adjacency = networks.random_edges(streams, 10, edges=20)
    assert (adjacency.sum((1, 2)) == 40).all()
    assert networks.connected(adjacency).all()


@pytest.mark.parametrize("name", ["ring", "path", "star", "complete"])
def test_mixing_multiplies_by_the_mixing_matrix(streams, name):
    net = networks.build(streams, name, 30)
    x = streams.draw("noise", "normal", (30, 4))
    assert np.allclose(net.mix(x), np.einsum("ij,rjd->rid", net.mixing, x))


def test_mixing_keeps_the_mean_and_contracts_to_it(streams):
    net = networks.build(streams, "erdos_renyi", 10, probability=0.3)
    x = streams.draw("noise", "normal", (10, 3))
    spread, rate = x - x.mean(1, keepdims=True), networks.second_eigenvalue(net.mixing)
    mixed = net.mix(x)
    assert np.allclose(mixed.mean(1), x.mean(1))
    contracted = np.linalg.norm(mixed - mixed.mean(1, keepdims=True), axis=(1, 2))
    assert (contracted <= rate * np.linalg.norm(spread, axis=(1, 2)) + 1e-12).all()


def test_mixing_leaves_a_single_agent_unchanged(streams):
    net = networks.build(streams, "single", 1)
    x = streams.draw("noise", "normal", (1, 3))
    assert np.array_equal(net.mix(x), x)


def test_a_graph_family_can_have_required_and_default_parameters(streams, monkeypatch):
    def circulant(streams, agents, *, reach, skip=1):
        steps = range(skip, reach + 1)
        return networks.always(lambda n: nx.circulant_graph(n, list(steps)))(streams, agents)

    monkeypatch.setitem(networks.GRAPHS, "circulant", circulant)
    assert networks.build(streams, "circulant", 9, reach=2).degrees.tolist() == [4] * 9
    assert networks.build(streams, "circulant", 9, reach=2, skip=2).degrees.tolist() == [2] * 9
    with pytest.raises(InvalidInput, match=r"network.reach: missing"):
        networks.build(streams, "circulant", 9, skip=2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (dict(name="erdos_renyi", agents=1, probability=0.5), "network.agents: found 1"),
        (dict(name="erdos_renyi", agents=5, probability=0.0), "network.probability: found 0.0"),
        (dict(name="random_edges", agents=10, edges=8), "network.edges: found 8.*between 9"),
        (dict(name="single", agents=2), "network.agents: found 2"),
        (dict(name="circle", agents=5), "network.name: found 'circle'"),
        (dict(name="ring", agents=5, weights="best"), "network.weights: found 'best'"),
        (
            dict(name="ring", agents=5, probability=0.5),
            r"network.probability: found 0.5, expected no parameters",
        ),
        (dict(name="erdos_renyi", agents=5), "network.probability: missing"),
        (dict(name="edges", agents=4, egdes=[(1, 2)]), "network.edges: missing"),
        (dict(name="edges", agents=4, edges=[(1, 2), (3, 4)]), "disconnected graph"),
        (dict(name="edges", agents=4, edges=[(1, 5)]), "numbered 1 to 4"),
    ],
)
def test_invalid_networks_are_refused(streams, call, message):
    with pytest.raises(InvalidInput, match=message):
        networks.build(streams, **call)


def test_a_random_graph_family_without_connected_samples_is_refused(streams, monkeypatch):
    monkeypatch.setattr(networks, "MAX_ATTEMPTS", 4 * 512)
    with pytest.raises(InvalidInput, match="can be connected"):
        networks.build(streams, "erdos_renyi", 40, probability=0.005)


@pytest.mark.parametrize("count", [1, 7, 512])
def test_graphs_do_not_depend_on_the_number_of_attempts_per_batch(streams, monkeypatch, count):
    usual = networks.random_edges(streams, 12, edges=14)
    sparse = networks.erdos_renyi(streams, 8, probability=0.25)
    monkeypatch.setattr(networks, "ATTEMPTS_TOGETHER", count)
    assert np.array_equal(networks.random_edges(streams, 12, edges=14), usual)
    assert np.array_equal(networks.erdos_renyi(streams, 8, probability=0.25), sparse)


def test_neighbourhood_arrays_hold_the_neighbours_and_gather_their_values(streams):
    network = networks.build(streams, "random_edges", 9, edges=12)
    for kind, includes_agent in (
        (network.closed_neighbourhoods, True),
        (network.open_neighbourhoods, False),
    ):
        for run in range(12):
            for agent in range(9):
                members = set(np.flatnonzero(network.adjacency[run, agent])) | (
                    {agent} if includes_agent else set()
                )
                assert set(kind[run, agent]) == members
    shared = networks.build(streams, "star", 9)
    x = np.random.default_rng(0).normal(size=(2, 12, 9, 3))
    gathered = shared.gather(x, shared.closed_neighbourhoods)
    assert np.array_equal(gathered[1, 5, 0], x[1, 5, [0, *range(1, 9)]])
    gathered = network.gather(x, network.closed_neighbourhoods)
    first = network.closed_neighbourhoods[4, 7]
    assert np.array_equal(gathered[0, 4, 7], x[0, 4, first])


@pytest.mark.parametrize(("agents", "rows"), [(10_000, 100), (12, 3), (7, 1), (1, 1)])
def test_the_default_grid_is_as_square_as_possible(agents, rows):
    assert networks.default_parameters("grid", agents) == {"rows": rows}


@pytest.mark.parametrize(("name", "agents"), [("grid", 36), ("random_regular", 36), ("ring", 5)])
def test_default_parameters_give_a_valid_graph(name, agents):
    networks.require_buildable(name, agents, **networks.default_parameters(name, agents))
