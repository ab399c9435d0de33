"""Test graphs, mixing matrices and networks of dense and of sparse matrices."""

import re
import warnings
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pytest
from benchmarks.worlds import RANDOM_REGULAR, WORLDS, network, world
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import chi2, truncnorm

import private_consensus as pc
from observed import run
from private_consensus import networks
from private_consensus.common.errors import InvalidInput, OutsideRange
from private_consensus.core import graphs
from private_consensus.core.algorithms.base import stack
from private_consensus.core.graphs import MIXINGS
from private_consensus.core.networks import Network
from private_consensus.core.problems.perceptron import Perceptron
from private_consensus.core.randomness import Streams
from private_consensus.privacy import gaussian_mu
from private_consensus.reproduction.configuration import plan as planning
from private_consensus.reproduction.configuration.schema import read_yaml
from private_consensus.reproduction.results.cells import run_cell

AGENTS, RUNS, HORIZON = 12, 3, 3
STREAMS = Streams(3, tuple(range(RUNS)))
GRID = {"name": "grid", "rows": 3, "weights": "metropolis"}
EDGES = {"name": "random_edges", "edges": 20, "weights": "metropolis"}
FIXED = [
    ({"name": "ring"}, nx.cycle_graph),
    ({"name": "path"}, nx.path_graph),
    ({"name": "star"}, lambda agents: nx.star_graph(agents - 1)),
]
PETERSEN = nx.petersen_graph()


def sparse(*matrices):
    """Return sparse matrices, or tuples of them if there is one matrix per run."""
    return [csr_array(m) if m.ndim == 2 else tuple(map(csr_array, m)) for m in matrices]


@pytest.fixture(params=[GRID, EDGES], ids=["shared", "of runs"])
def pair(request):
    dense = networks.build(STREAMS, agents=AGENTS, **request.param)
    return dense, Network.unchecked(*sparse(dense.adjacency, dense.mixing))


# --- Families of graphs ---------------------------------------------------------------------------


@pytest.mark.parametrize("agents", [2, 3, 8, 300])
@pytest.mark.parametrize(("call", "graph"), [*FIXED, ({"name": "complete"}, nx.complete_graph)])
def test_graph_families_equal_those_of_networkx(streams, call, graph, agents):
    expected = nx.to_numpy_array(graph(agents), dtype=bool)
    assert np.array_equal(networks.build(streams, agents=agents, **call).adjacency, expected)


def test_grids_and_listed_edges_equal_those_of_networkx(streams):
    for rows, columns in ((3, 4), (15, 20)):
        grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, columns))
        built = networks.build(streams, "grid", rows * columns, rows=rows)
        assert np.array_equal(built.adjacency, nx.to_numpy_array(grid, dtype=bool))
    path = networks.build(streams, "edges", 300, edges=[[i, i + 1] for i in range(1, 300)])
    assert np.array_equal(path.adjacency, networks.build(streams, "path", 300).adjacency)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), agents=st.integers(2, 12))
def test_connectedness_agrees_with_networkx(seed, agents):
    links = np.triu(np.random.default_rng(seed).random((20, agents, agents)) < 1.5 / agents, 1)
    expected = [nx.is_connected(nx.from_numpy_array(a | a.T)) for a in links]
    assert [graphs.is_connected(agents, np.argwhere(a)) for a in links] == expected


@pytest.mark.parametrize(("agents", "edges"), [(10, 20), (400, 2000)])
def test_random_edges_give_connected_graphs_with_the_requested_number_of_edges(agents, edges):
    for of_run in graphs.random_edges(STREAMS.generators("graph"), agents, edges=edges):
        assert len({*map(tuple, np.sort(of_run, axis=1).tolist())}) == edges
        assert graphs.is_connected(agents, of_run)


def test_edges_of_random_graphs_have_the_expected_frequencies():
    many = Streams(1, tuple(range(2000)))
    counts = list(map(len, graphs.erdos_renyi(many.generators("graph"), 30, probability=0.3)))
    pairs = 30 * 29 / 2
    assert abs(np.mean(counts) - 0.3 * pairs) < 4 * np.sqrt(0.21 * pairs / 2000)
    assert 0.85 < np.var(counts) / (0.21 * pairs) < 1.15
    links = np.concatenate(
        graphs.random_edges(many.generators("graph"), 6, edges=8)
    )  # few of these are disconnected
    pair_counts = np.bincount(links[:, 0] * 6 + links[:, 1], minlength=36)
    pair_counts = pair_counts[np.flatnonzero(np.triu(np.ones((6, 6)), 1).ravel())]
    assert (np.abs(pair_counts - 2000 * 8 / 15) < 4 * np.sqrt(2000 * 8 / 15 * 7 / 15)).all()


def test_random_regular_graphs_are_regular_and_nearly_uniform(streams):
    small = networks.build(streams, "random_regular", 10, degree=3)
    assert (small.degrees == 3).all() and small.adjacency.shape == (12, 10, 10)
    assert (network(1000, RANDOM_REGULAR).degrees == 6).all()
    # Ten of the 70 labelled cubic graphs with six vertices are bipartite; the others are prisms.
    generator = np.random.default_rng(2)
    samples = [nx.Graph(graphs.paired_stubs(generator, 6, 3).tolist()) for _ in range(1500)]
    bipartite = [nx.is_bipartite(graph) for graph in samples if len(graph) == 6][:700]
    assert len(bipartite) == 700 and 60 < sum(bipartite) < 140


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (dict(name="erdos_renyi", agents=1, probability=0.5), "network.agents: found 1"),
        (dict(name="erdos_renyi", agents=5, probability=0.0), "network.probability: found 0.0"),
        (dict(name="erdos_renyi", agents=300, probability=0.001), "can be connected"),
        (dict(name="random_edges", agents=10, edges=8), "network.edges: found 8, expected .* >= 9"),
        (dict(name="ring", agents=5, weights="best"), "network.weights: found 'best'"),
        (dict(name="ring", agents=5, probability=0.5), "found 0.5, expected no parameters"),
        (dict(name="erdos_renyi", agents=5), "network.probability: missing"),
        (dict(name="edges", agents=4, edges=[(1, 2), (3, 4)]), "disconnected graph"),
        (dict(name="edges", agents=4, edges=[(1, 5)]), "numbered 1 to 4"),
        (dict(name="edges", agents=3, edges=[(1, 1)]), "pairs of different agents"),
        (dict(name="random_regular", agents=9, degree=3), "network.degree: found 3"),
        (dict(name="grid", agents=10, rows=3), "network.rows: found 3.*divisor of 10"),
    ],
)
def test_impossible_networks_are_refused(streams, call, message):
    with pytest.raises(InvalidInput, match=message):
        networks.build(streams, **call)


def test_a_random_graph_family_without_connected_samples_is_refused(streams, monkeypatch):
    monkeypatch.setattr(graphs, "MAX_ATTEMPTS", 2048)
    with pytest.raises(InvalidInput, match="can be connected"):
        networks.build(streams, "erdos_renyi", 40, probability=0.005)


# --- Mixing matrices and spectra ------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    agents=st.integers(2, 15),
    probability=st.floats(0.25, 1.0),
    weights=st.sampled_from(sorted(MIXINGS)),
)
def test_mixing_matrices_are_symmetric_and_contracting(seed, agents, probability, weights):
    streams = Streams(seed, (0, 1, 2), {})
    net = networks.build(streams, "erdos_renyi", agents, probability=probability, weights=weights)
    w = net.mixing
    assert np.allclose(w, w.swapaxes(-1, -2), atol=1e-14)
    assert np.allclose(w.sum(-1), 1.0, atol=1e-12)
    allowed = net.adjacency | np.eye(agents, dtype=bool)
    assert not w[~np.broadcast_to(allowed, w.shape)].any()
    eigenvalues = np.linalg.eigvalsh(w)
    assert (eigenvalues[..., 0] > -1 + 1e-9).all()
    assert (net.consensus_rate < 1 - 1e-9).all()
    largest = np.sort(np.abs(eigenvalues), axis=-1)[..., -2]
    assert np.allclose(net.consensus_rate, largest, rtol=0, atol=1e-14)


def test_laplacian_mixing_is_the_identity_minus_two_thirds_of_the_scaled_laplacian(streams):
    net = networks.build(streams, "erdos_renyi", 10, probability=0.6)
    for adjacency, w in zip(net.adjacency, net.mixing, strict=True):
        lap = nx.laplacian_matrix(nx.from_numpy_array(adjacency)).toarray()
        largest = np.linalg.eigvalsh(lap)[-1]
        assert np.allclose(w, np.eye(10) - 2 / (3 * largest) * lap)


@pytest.mark.parametrize("weights", sorted(MIXINGS))
@pytest.mark.parametrize("call", [*(call for call, _ in FIXED), {"name": "grid", "rows": 15}])
def test_sparse_and_dense_mixing_weights_are_equal(streams, call, weights):
    built = networks.build(streams, agents=300, weights=weights, **call)
    expected = MIXINGS[weights](built.adjacency)
    assert np.allclose(built.mixing, expected, rtol=0, atol=1e-12)
    assert np.allclose(MIXINGS[weights](csr_array(built.adjacency)).toarray(), built.mixing)


@pytest.mark.parametrize("agents", [300, 1000])
def test_spectra_of_rings_and_grids_have_their_closed_forms(agents):
    ring = network(agents, {"name": "ring", "weights": "metropolis"})
    angle = 2 * np.pi / agents
    assert np.isclose(ring.consensus_rate, (1 + 2 * np.cos(angle)) / 3, rtol=0, atol=1e-12)
    assert np.isclose(ring.algebraic_connectivity, 2 - 2 * np.cos(angle), rtol=1e-6)
    ring = network(agents, {"name": "ring", "weights": "laplacian"})
    assert np.allclose(ring.own_weights, 2 / 3, rtol=1e-12)  # the largest eigenvalue of L is 4
    grid = network(agents, {"name": "grid", "rows": 10})
    longest = 2 - 2 * np.cos(np.pi / (agents // 10))
    assert np.isclose(grid.algebraic_connectivity, longest, rtol=1e-6)
    ends = sum(2 + 2 * np.cos(np.pi / side) for side in (10, agents // 10))
    assert np.allclose(1 - grid.own_weights, grid.degrees / (1.5 * ends), rtol=1e-12)


def test_spectra_of_a_sparse_random_graph_equal_those_of_its_dense_matrix():
    net = network(600, RANDOM_REGULAR)
    dense = graphs.second_eigenvalue(net.mixing)
    assert np.isclose(net.consensus_rate, dense, rtol=1e-12)


# --- Values through the network -------------------------------------------------------------------


def test_dense_and_sparse_networks_give_equal_results(pair):
    dense, links = pair
    x = np.random.default_rng(0).normal(size=(2, RUNS, AGENTS, 4))
    messages = np.random.default_rng(1).normal(size=(2, RUNS, AGENTS, AGENTS, 4))
    w = np.broadcast_to(dense.mixing, (RUNS, AGENTS, AGENTS))
    a = np.broadcast_to(dense.adjacency, w.shape)
    others = w * (1 - np.eye(AGENTS))
    accepted = messages[..., 0] > 0
    for net in pair:
        assert np.allclose(net.mix(x), w @ x, rtol=0, atol=1e-14)
        assert np.allclose(net.mix_others(x, 0.3), 0.3 * others @ x, rtol=0, atol=1e-14)
        received = np.einsum("rij,srjid->srid", w, messages)
        assert np.allclose(net.mix_links(messages), received, rtol=0, atol=1e-14)
        assert np.allclose(net.neighbour_sum(x), a @ x, rtol=0, atol=1e-13)
        some = (a & accepted).astype(float) @ x
        assert np.allclose(net.neighbour_sum(x, accepted), some, rtol=0, atol=1e-13)
        single = net.mix(x.astype(np.float32))
        assert single.dtype == np.float32 and np.allclose(single, w @ x, atol=1e-5)
    for name in ("degrees", "own_weights", "adjacency", "mixing"):
        ours, theirs = getattr(links, name), getattr(dense, name)
        assert np.array_equal(ours, theirs) and ours.dtype == theirs.dtype
    assert np.allclose(links.consensus_rate, dense.consensus_rate, rtol=1e-12)
    for name in ("closed_neighbourhoods", "open_neighbourhoods"):
        ours, theirs = getattr(links, name), getattr(dense, name)
        assert np.array_equal(ours, theirs)
        assert np.array_equal(links.gather(x, ours), dense.gather(x, theirs))
    assert np.array_equal(links.of_run(1).mixing, dense.of_run(1).mixing)
    two = slice(1, 3)
    assert np.array_equal(links.of_run(two).adjacency, dense.of_run(two).adjacency)
    equal = Network.unchecked(*sparse(dense.adjacency, dense.mixing))
    assert links.identity == equal.identity != dense.identity
    assert dense.shared is links.shared and (links in [links]) and links != dense


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_algorithms_give_equal_results_on_sparse_and_dense_networks(name, pair):
    instance = world(name, AGENTS, dim=5, records=8, runs=RUNS)
    if isinstance(instance.problem, Perceptron):
        double = replace(instance.problem, features=instance.problem.features.astype(float))
        instance = replace(instance, problem=double)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideRange)
        observables = []
        for net in pair:
            arguments = instance.budget, instance.problem, net.of_run(0), HORIZON
            batch = stack([instance.algorithm.calibrate(*arguments)])
            observables.append(run(batch, instance.problem, net, STREAMS, HORIZON))
    ours, theirs = ({(t, k): v for t in at for k, v in at[t].items()} for at in observables)
    assert ours.keys() == theirs.keys()
    for key, values in ours.items():
        scale = np.abs(values[np.isfinite(values)]).max(initial=1e-12)
        assert np.allclose(values, theirs[key], rtol=0, atol=1e-12 * scale, equal_nan=True), key


def test_a_single_agent_keeps_its_values_and_has_no_neighbours(streams):
    net = networks.build(streams, "single", 1)
    x = streams.draw("noise", "normal", (1, 3))
    assert np.array_equal(net.mix(x), x) and not net.neighbour_sum(x).any()
    assert net.closed_neighbourhoods.tolist() == [[0]] and net.consensus_rate == 0
    with pytest.raises(InvalidInput, match=r"network.agents: found 1, expected at least 2"):
        _ = net.open_neighbourhoods


def test_neighbourhood_arrays_hold_the_neighbours_and_gather_their_values(streams):
    net = networks.build(streams, "random_edges", 9, edges=12)
    x = np.random.default_rng(0).normal(size=(2, 12, 9, 3))
    gathered = net.gather(x, net.closed_neighbourhoods)
    for index, agent in np.ndindex(12, 9):
        neighbours = set(np.flatnonzero(net.adjacency[index, agent]))
        assert set(net.open_neighbourhoods[index, agent]) == neighbours
        closed = net.closed_neighbourhoods[index, agent]
        assert set(closed) == neighbours | {agent}
        assert np.array_equal(gathered[:, index, agent], x[:, index, closed])


# --- Validation -----------------------------------------------------------------------------------


def matrices():
    """Return adjacency and mixing matrix of a ring of four agents."""
    ring = networks.build(STREAMS, "ring", 4)
    return np.array(ring.adjacency), np.array(ring.mixing)


def changed(matrix_index, at, value):
    matrix_pair = list(matrices())
    matrix_pair[matrix_index][at] = value
    return matrix_pair


def without_edge(weight):
    """Move weight to the pair of agents 0 and 2, which have no edge."""
    adjacency, mixing = matrices()
    mixing[[0, 2], [2, 0]] += weight
    mixing[[0, 2], [0, 2]] -= weight
    return [adjacency, mixing]


def below_zero():
    adjacency, mixing = matrices()
    mixing[[0, 1], [1, 0]] -= 1.0
    mixing[[0, 1], [0, 1]] += 1.0
    return [adjacency, mixing]


@pytest.mark.parametrize("kind", ["shared", "of runs"])
@pytest.mark.parametrize(
    ("matrix_pair", "message"),
    [
        (changed(0, (0, 2), True), r"network.adjacency[from agent 0, to agent 2]: found True, "
            "expected an undirected graph; this graph is directed"),
        (changed(0, (1, 1), True), "network.adjacency[agent 1]: found True, expected no self-loop"),
        (changed(1, (0, 1), 0.5), "network.mixing[from agent 0, to agent 1]: found 0.5, expected a "
            "symmetric"),
        (changed(1, (2, 2), np.nan), "network.mixing[from agent 2, to agent 2]: found nan"),
        (changed(1, (2, 2), 0.9), "sum of row of network.mixing[agent 2]: found"),
        (without_edge(0.1), "network.mixing[from agent 0, to agent 2]: found 0.1, expected 0, as "
            "these agents have no edge"),
        (below_zero(), "expected a weight >= 0 on an edge"),
        ([np.zeros((4, 4), bool), np.eye(4)], "network: found 'disconnected graph'"),
    ],
)  # fmt: skip
def test_invalid_networks_are_refused(matrix_pair, message, kind):
    if kind == "of runs":
        matrix_pair = [np.stack(two) for two in zip(matrices(), matrix_pair, strict=True)]
        message = re.sub(r"\[(from )?agent", r"[run 1, \1agent", message)
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Network(*matrix_pair)


A, W = matrices()


@pytest.mark.parametrize(
    ("matrix_pair", "message"),
    [
        ([A, W + 0j], "network.mixing: found 'an array of complex128'"),
        ([A[:, :3], W], "network.adjacency: found .* square"),
        ([np.zeros((0, 0), bool), np.zeros((0, 0))], "network.adjacency: found .*at least 1"),
    ],
)
def test_matrices_of_other_types_or_shapes_are_refused(matrix_pair, message):
    with pytest.raises(InvalidInput, match=message):
        Network(*matrix_pair)


@given(
    seed=st.integers(0, 10**6),
    value=st.floats() | st.complex_numbers(),
    matrix_name=st.sampled_from(["adjacency", "mixing"]),
)
def test_a_network_with_a_changed_entry_is_refused_or_valid(seed, value, matrix_name):
    generator = np.random.default_rng(seed)
    adjacency, mixing = matrices()
    entry = tuple(generator.integers(0, 4, 2))
    if matrix_name == "adjacency":
        adjacency[entry] = bool(value)
    else:
        mixing = mixing.astype(complex) if isinstance(value, complex) else mixing
        mixing[entry] = value
    try:
        net = Network(adjacency, mixing)
    except InvalidInput:
        return
    assert (net.adjacency == net.adjacency.T).all() and not np.diagonal(net.adjacency).any()
    assert np.allclose(net.mixing.sum(-1), 1) and np.allclose(net.mixing, net.mixing.T)
    assert not net.mixing[~net.adjacency & ~np.eye(4, dtype=bool)].any()


# --- Graphs of networkx ---------------------------------------------------------------------------


@pytest.mark.parametrize("mixing", sorted(MIXINGS))
def test_a_networkx_graph_keeps_its_edges_and_gets_the_named_mixing_weights(mixing):
    net = pc.Network.from_networkx(PETERSEN, mixing=mixing)
    np.testing.assert_array_equal(net.adjacency, nx.to_numpy_array(PETERSEN).astype(bool))
    edges = [[i + 1, j + 1] for i, j in PETERSEN.edges]
    built = networks.build(Streams(0, (0,)), "edges", 10, edges=edges, weights=mixing)
    np.testing.assert_array_equal(net.mixing, built.mixing)


def test_agents_follow_the_node_order_of_the_graph():
    graph = nx.Graph([("hub", "b"), ("hub", "a"), ("hub", "c")])
    assert pc.Network.from_networkx(graph).degrees.tolist() == [3, 1, 1, 1]
    assert pc.Network.from_networkx(nx.path_graph(1)).n_agents == 1


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        (nx.DiGraph([(0, 1)]), {}, r"DiGraph.*an undirected.*networkx.Graph\(graph\)"),
        (nx.MultiGraph([(0, 1)]), {}, r"MultiGraph.*networkx.Graph\(graph\)"),
        (nx.Graph([(0, 1), (2, 3), (3, 4)]), {}, "network: found 'disconnected graph'"),
        (nx.Graph([(0, 1), (1, 1)]), {}, "graph: found .*, expected no self-loop"),
        (nx.empty_graph(2), {}, "disconnected graph"),
        (nx.empty_graph(0), {}, "disconnected graph"),
        ([[0, 1]], {}, "graph: found 'list', expected an undirected networkx.Graph"),
        (PETERSEN, {"scale": 0.5}, "network.scale: found 0.5, expected a number > 0.5"),
        (nx.Graph([(0, 1, {"weight": 2.0})]), {}, "edges with weights"),
        (PETERSEN, {"mixing": "fast"}, "mixing: found 'fast', expected one of laplacian"),
    ],
)
def test_an_invalid_graph_is_refused_with_a_one_line_error(graph, options, message):
    with pytest.raises(InvalidInput, match=message) as error:
        pc.Network.from_networkx(graph, **options)
    assert "\n" not in str(error.value)


# --- Many agents ----------------------------------------------------------------------------------


def test_the_dense_mixing_matrix_of_5000_agents_is_refused():
    net = network(5000, {"name": "ring", "weights": "metropolis"})
    with pytest.raises(InvalidInput, match=r"network.agents: found 5000.*at most 4096"):
        _ = net.mixing


@pytest.fixture(scope="module")
def scaled():
    """Return the cells of the experiment with many agents, restricted to 1,000 agents."""
    config = Path(__file__).parents[2] / "config"
    plan = planning.load({**read_yaml(config / "config.yaml"), "papers": ["scale"]}, config)
    cells_by_name = {}
    for _, name in plan.cells():
        cell = plan.cell("scale_fig1", name)
        assert {spec["network"]["agents"] for spec in cell["settings"]} >= {10, 1000, 10_000}
        of_thousand = [spec for spec in cell["settings"] if spec["network"]["agents"] == 1000]
        cells_by_name[name] = {**cell, "settings": of_thousand}
    return cells_by_name


def test_gossip_of_1000_agents_ends_at_the_mean_of_their_noise(scaled):
    """The error of each agent is the mean n of the N noise vectors.

    In each run, N |n|^2 / sigma^2 has the chi-square distribution with p degrees of freedom."""
    assert len(scaled) == 3
    rows = run_cell(scaled["muffliato"], {})[0]
    errors, of_agent = (
        rows.filter(pl.col("metric") == name)["value"].to_numpy()
        for name in ("normalised_error", "node_error")
    )
    agents, dim, records, box = 1000, 10, 10, 1.0
    sigma = 2 * box * np.sqrt(dim) / records / gaussian_mu(4.0, 1e-5)
    centre = truncnorm(-1.7, 0.3, loc=0.7).mean()
    total = (errors * agents * dim * centre**2 / sigma**2).sum()
    low, high = chi2(dim * len(errors)).ppf([1e-4, 1 - 1e-4])
    assert low < total < high
    assert np.allclose(of_agent, errors, rtol=1e-5)
