"""Test the conversion of networks from and to networkx graphs."""

import networkx as nx
import numpy as np
import pytest

import private_consensus as pc
from private_consensus.core.networks import SparseNetwork, metropolis_mixing

PETERSEN = nx.petersen_graph()


@pytest.mark.parametrize("mixing", ["laplacian", "metropolis", "max_degree"])
def test_a_networkx_graph_keeps_its_edges_and_gets_the_named_mixing_weights(mixing):
    network = pc.Network.from_networkx(PETERSEN, mixing=mixing)
    np.testing.assert_array_equal(network.adjacency, nx.to_numpy_array(PETERSEN).astype(bool))
    edges = [[i + 1, j + 1] for i, j in PETERSEN.edges]
    built = pc.networks.build(pc.Streams(0, (0,)), "edges", 10, edges=edges, weights=mixing)
    np.testing.assert_array_equal(network.mixing, built.mixing)


def test_agents_follow_the_node_order_of_the_graph():
    graph = nx.Graph([("hub", "b"), ("hub", "a"), ("hub", "c")])
    assert pc.Network.from_networkx(graph).degrees.tolist() == [3, 1, 1, 1]
    assert pc.Network.from_networkx(nx.path_graph(1)).n_agents == 1


def test_conversion_to_networkx_and_back_keeps_graph_and_weights():
    network = pc.Network.from_networkx(PETERSEN, mixing="metropolis")
    graph = network.to_networkx()
    assert nx.utils.graphs_equal(nx.Graph(graph.edges), nx.Graph(sorted(PETERSEN.edges)))
    again = pc.Network.from_networkx(graph, edge_weight="weight")
    np.testing.assert_allclose(again.mixing, network.mixing, atol=1e-15)
    # one graph per run
    drawn = pc.networks.build(pc.Streams(0, (0, 1)), "erdos_renyi", 6, probability=0.5)
    for run in (0, 1):
        array = nx.to_numpy_array(drawn.to_networkx(run))
        np.testing.assert_array_equal(array > 0, drawn.adjacency[run])


def test_a_large_graph_becomes_a_sparse_network_and_converts_back():
    graph = nx.random_regular_graph(4, 400, seed=1)
    network = pc.Network.from_networkx(graph, mixing="metropolis")
    assert isinstance(network, SparseNetwork)
    dense = metropolis_mixing(nx.to_numpy_array(graph, nodelist=list(graph.nodes)).astype(bool))
    np.testing.assert_allclose(network.weights[0].toarray(), dense, atol=1e-12)
    back = network.to_networkx()
    assert back.number_of_edges() == 800 and dict(back.degree) == dict.fromkeys(range(400), 4)


def test_edge_weights_become_mixing_weights():
    graph = nx.path_graph(3)
    nx.set_edge_attributes(graph, {(0, 1): 0.25, (1, 2): 0.5}, "trust")
    network = pc.Network.from_networkx(graph, edge_weight="trust")
    expected = [[0.75, 0.25, 0.0], [0.25, 0.25, 0.5], [0.0, 0.5, 0.5]]
    np.testing.assert_allclose(network.mixing, expected)
