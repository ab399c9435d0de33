"""Test sparse networks of many agents: equality with dense matrices, and linear memory."""

import tracemalloc
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pytest
from benchmarks.worlds import INAPPLICABLE, RANDOM_REGULAR, WORLDS, network, world
from scipy.sparse import csr_array
from scipy.stats import chi2, truncnorm

from private_consensus import algorithms, networks
from private_consensus.common.errors import InvalidInput, OutsideRange
from private_consensus.core import large_graphs, large_networks
from private_consensus.core.algorithms.base import draws_of, stack
from private_consensus.core.algorithms.decor import DECORDraw
from private_consensus.core.algorithms.zip_dl import OnLinks, hiding_energy
from private_consensus.core.networks import SparseNetwork
from private_consensus.core.problems.perceptron import Perceptron
from private_consensus.core.randomness import Streams
from private_consensus.privacy import account, gaussian_mu
from private_consensus.privacy.correlated_noise import error_gram, gram_of_powers
from private_consensus.reproduction.experiments import plan as planning
from private_consensus.reproduction.experiments.cells import run_cell
from private_consensus.reproduction.experiments.schema import read_yaml

AGENTS, RUNS, HORIZON = 12, 3, 3
STREAMS = Streams(3, tuple(range(RUNS)))
GRID = {"name": "grid", "rows": 3, "weights": "metropolis"}
EDGES = {"name": "random_edges", "edges": 20, "weights": "metropolis"}


def sparse(dense):
    """Return the same network as a sparse network."""
    matrices = (
        tuple(csr_array(m.astype(float)) for m in np.reshape(stacked, (-1, *stacked.shape[-2:])))
        for stacked in (dense.adjacency, dense.mixing)
    )
    return SparseNetwork(*matrices, dense.shared)


@pytest.fixture(params=[GRID, EDGES], ids=["shared", "of runs"])
def pair(request):
    dense = networks.build(STREAMS, agents=AGENTS, **request.param)
    return dense, sparse(dense)


def observables(algorithm, problem, net, streams=STREAMS, horizon=HORIZON):
    observed = {}

    def observe(t, active, quantities):
        observed.update({(t, name): np.array(values) for name, values in quantities.items()})

    stack([algorithm]).run(problem, net, streams, np.array([horizon]), observe)
    return observed


# --- Equality with dense networks -----------------------------------------------------------------


def test_sparse_and_dense_networks_give_equal_results(pair):
    dense, links = pair
    x = np.random.default_rng(0).normal(size=(2, RUNS, AGENTS, 4))
    assert np.allclose(links.mix(x), dense.mix(x), rtol=0, atol=1e-14)
    assert np.allclose(links.neighbour_sum(x), dense.neighbour_sum(x), rtol=0, atol=1e-13)
    assert np.array_equal(links.degrees, dense.degrees)
    assert np.array_equal(links.own_weights, dense.own_weights)
    assert np.array_equal(links.adjacency, dense.adjacency)
    assert np.array_equal(links.mixing, dense.mixing)
    assert np.allclose(links.consensus_rate, dense.consensus_rate, rtol=1e-12)
    for name in ("closed_neighbourhoods", "open_neighbourhoods"):
        ours, theirs = getattr(links, name), getattr(dense, name)
        assert np.array_equal(ours, theirs)
        assert np.array_equal(links.gather(x, ours), dense.gather(x, theirs))
    assert np.array_equal(links.of_run(1).mixing, dense.of_run(1).mixing)
    assert np.array_equal(links.of_runs(1, 3).adjacency, dense.of_runs(1, 3).adjacency)
    assert np.array_equal(links.neighbours_of(4), dense.neighbours_of(4))
    assert np.array_equal(links.links_among([1, 4, 5]), dense.links_among([1, 4, 5]))


def test_sums_over_edges_equal_sums_over_neighbours(pair):
    links = pair[1]
    x = np.random.default_rng(0).normal(size=(2, RUNS, AGENTS, 4))
    assert np.allclose(links.sum_at_links(links.other_ends(x)), links.neighbour_sum(x))
    assert np.allclose(links.sum_at_links(links.own_ends(x)), links.degrees[..., None] * x)
    turned = links.own_ends(x)[..., links.reversed_links, :]
    assert np.array_equal(turned, links.other_ends(x))
    mixed = links.sum_at_links(links.link_weights[:, None] * links.other_ends(x))
    assert np.allclose(mixed + links.own_weights[..., None] * x, links.mix(x))
    number, sign = links.pairs_of_links
    assert np.array_equal(number[links.reversed_links], number)
    assert np.array_equal(sign[links.reversed_links], -sign)
    assert sorted(Counter(number).values()) == [2] * (len(number) // 2)


REDRAWN = {"decor", "zip_dl"}
"""Algorithms that sample noise per edge of sparse networks and per pair of agents of dense ones."""
APPROXIMATE = {"mafalda_sgd"}


@pytest.mark.parametrize("name", sorted(set(WORLDS) - REDRAWN - APPROXIMATE))
def test_algorithms_give_equal_results_on_sparse_and_dense_networks(name, pair):
    instance = world(name, AGENTS, dim=5, records=8, runs=RUNS)
    if isinstance(instance.problem, Perceptron):
        double = replace(instance.problem, features=instance.problem.features.astype(float))
        instance = replace(instance, problem=double)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideRange)
        ours, theirs = (
            observables(
                instance.algorithm.calibrate(instance.budget, instance.problem, net, HORIZON),
                instance.problem,
                net,
            )
            for net in pair
        )
    assert ours.keys() == theirs.keys()
    for key, values in ours.items():
        scale = np.abs(values[np.isfinite(values)]).max(initial=1e-12)
        assert np.allclose(values, theirs[key], rtol=0, atol=1e-12 * scale, equal_nan=True), key


def test_pr_admm_replaces_values_equally_on_sparse_and_dense_networks(pair):
    instance = world("pr_admm", AGENTS, dim=5, records=8, runs=RUNS)
    for threshold in ("literal", "consistent"):
        rough = replace(instance.algorithm, U=5.5, noise=0.3, threshold=threshold)
        ours, theirs = (observables(rough, instance.problem, net, horizon=6) for net in pair)
        replaced = ours[6, "replaced"]
        assert 0 < replaced.mean() < 1
        for key, values in ours.items():
            assert np.allclose(values, theirs[key], rtol=1e-12, atol=1e-12), key


def test_pairwise_noise_per_edge_equals_noise_per_pair_of_agents(pair):
    dense, links = pair
    instance = world("decor", AGENTS, dim=5, records=8, runs=RUNS)
    algorithm = stack([replace(instance.algorithm, noise=0.7)])
    draw = next(draws_of(algorithm, instance.problem, links, STREAMS))
    agent_noise, of_links = draw.noise
    pairs = np.zeros((RUNS, AGENTS, AGENTS, 5))
    numbers = links.pairs_of_links[0]
    for run in range(RUNS):
        i, j = np.nonzero(np.triu(dense.of_run(run).adjacency))
        mine = of_links[run] if links.shared else of_links[_pairs_of_run(links, numbers, run)]
        pairs[run, i, j] = mine
    state = algorithm.start(instance.problem, links, STREAMS, 1)
    ours = algorithm.step(state, instance.problem, links, draw, 1)
    theirs = algorithm.step(state, instance.problem, dense, DECORDraw((agent_noise, pairs)), 1)
    assert np.allclose(ours.x, theirs.x, rtol=1e-12)
    assert np.allclose(
        ours.x.sum(-2), 0.1 * (0.7 * agent_noise).sum(-2) - 0.1 * _slopes(instance, dense)
    )


def _pairs_of_run(links, numbers, run):
    begin = int(np.reshape(links.degrees, (RUNS, -1))[:run].sum())
    end = int(np.reshape(links.degrees, (RUNS, -1))[: run + 1].sum())
    return np.unique(numbers[begin:end])


def _slopes(instance, dense):
    return instance.problem.gradient(np.zeros((1, RUNS, AGENTS, 5))).sum(-2)


def test_the_sparse_privacy_loss_of_pairwise_noise_is_a_bound_within_factor_2(pair):
    for ratio in (None, 0.3, 2.0):
        instance = world("decor", AGENTS, dim=5, records=8)
        algorithm = replace(instance.algorithm, ratio=ratio)
        bound, exact = (
            algorithm.losses(instance.problem, net.of_run(0), 2)[0] for net in pair[::-1]
        )
        assert exact <= bound <= 2 * exact


def test_a_guarantee_from_an_uncertified_connectivity_is_not_proven(pair):
    instance = world("decor", AGENTS, dim=5, records=8)
    for net, proven in zip(pair, (True, False), strict=True):
        network_of_run = net.of_run(0)
        noisy = instance.algorithm.calibrate(instance.budget, instance.problem, network_of_run, 2)
        assert account(noisy.releases(instance.problem, network_of_run, 2), 1e-3).proven is proven


def test_cancelling_noise_per_edge_equals_noise_per_pair_of_agents(pair):
    dense, links = pair
    instance = world("zip_dl", AGENTS, dim=5, records=8, runs=RUNS)
    algorithm = stack([replace(instance.algorithm, noise=0.7)])
    draw = next(draws_of(algorithm, instance.problem, links, STREAMS))
    pairs = np.zeros((RUNS, AGENTS, AGENTS, 5))
    flat = np.broadcast_to(draw.links, (RUNS, *draw.links.shape[-2:])) if links.shared else None
    begin = 0
    for run in range(RUNS):
        i, j = np.nonzero(dense.of_run(run).adjacency)
        pairs[run, i, j] = flat[run] if links.shared else draw.links[begin : begin + len(i)]
        pairs[run, range(AGENTS), range(AGENTS)] = draw.agents[run]
        begin += len(i)
    ours = theirs = None
    for t in (1, 2):
        first = t == 1
        before = algorithm.start(instance.problem, links, STREAMS, 1) if first else ours
        ours = algorithm.step(before, instance.problem, links, draw, t)
        before = algorithm.start(instance.problem, dense, STREAMS, 1) if first else theirs
        theirs = algorithm.step(before, instance.problem, dense, pairs, t)
    assert np.allclose(ours.x, theirs.x, rtol=1e-11, atol=1e-13)
    assert np.allclose(ours.mean, theirs.mean, rtol=1e-11, atol=1e-13)
    assert isinstance(draw, OnLinks)
    energy = max(hiding_energy(dense.of_run(run).mixing) for run in range(RUNS))
    losses = [algorithm.losses(instance.problem, net, 1)[0] for net in pair]
    assert np.isclose(losses[0], losses[1], rtol=1e-12)
    assert np.isclose(losses[0], algorithm.change_of_step(instance.problem) * np.sqrt(energy))


def test_traces_of_matrix_powers_are_accurate_and_their_gram_matrix_is_definite():
    net = networks.build(STREAMS, "grid", 400, rows=20, weights="metropolis")
    exact = (np.linalg.eigvalsh(net.mixing)[:, None] ** np.arange(13)).sum(0)
    traces = net.traces_of_powers(12)
    assert np.allclose(traces, exact, rtol=0.05)
    assert np.isclose(traces[0], 400)
    gram = gram_of_powers(traces, 6)
    assert np.linalg.eigvalsh(gram).min() > 0
    assert np.allclose(gram, error_gram(net.mixing, 6), rtol=0.05)


# --- Families -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "graph"),
    [
        ({"name": "ring"}, nx.cycle_graph(300)),
        ({"name": "path"}, nx.path_graph(300)),
        ({"name": "star"}, nx.star_graph(299)),
        ({"name": "grid", "rows": 15}, nx.convert_node_labels_to_integers(nx.grid_graph((20, 15)))),
        ({"name": "edges", "edges": [[i, i + 1] for i in range(1, 300)]}, nx.path_graph(300)),
    ],
)
@pytest.mark.parametrize("weights", sorted(networks.MIXINGS))
def test_large_graphs_equal_networkx_graphs_and_have_the_dense_mixing_weights(name, graph, weights):
    built = networks.build(STREAMS, agents=300, weights=weights, **name)
    assert isinstance(built, SparseNetwork)
    adjacency = nx.to_numpy_array(graph, nodelist=range(300), dtype=bool)
    assert np.array_equal(built.adjacency, adjacency)
    assert np.allclose(built.mixing, networks.MIXINGS[weights](adjacency), rtol=0, atol=1e-12)


def test_a_large_graph_with_many_edges_is_stored_as_a_dense_matrix():
    assert isinstance(networks.build(STREAMS, "complete", 300), networks.Network)
    few = networks.build(STREAMS, "erdos_renyi", 300, probability=0.05)
    assert isinstance(few, SparseNetwork) and not few.shared and len(few.graphs) == RUNS
    many = networks.build(STREAMS, "erdos_renyi", 300, probability=0.4)
    assert isinstance(many, networks.Network) and many.adjacency.shape == (RUNS, 300, 300)


def test_each_pair_of_agents_has_one_number():
    numbers = np.arange(50 * 49 // 2)
    i, j = large_graphs._pairs(numbers).T
    assert (i < j).all() and (i >= 0).all() and j.max() == 49
    assert len({*zip(i.tolist(), j.tolist(), strict=True)}) == len(numbers)
    last = np.array([100_000 * 99_999 // 2 - 1, 99_999 * 99_998 // 2, 99_999 * 99_998 // 2 - 1])
    assert large_graphs._pairs(last).tolist() == [[99_998, 99_999], [0, 99_999], [99_997, 99_998]]


def test_edges_of_large_random_graphs_have_the_expected_frequencies():
    generator = np.random.default_rng(1)
    counts = [len(large_graphs.erdos_renyi(generator, 30, 0.2)) for _ in range(2000)]
    pairs = 30 * 29 / 2
    assert abs(np.mean(counts) - 0.2 * pairs) < 4 * np.sqrt(0.16 * pairs / 2000)
    assert 0.85 < np.var(counts) / (0.16 * pairs) < 1.15
    links = np.concatenate([large_graphs.random_edges(generator, 6, 5) for _ in range(3000)])
    of_pair = np.bincount(links[:, 0] * 6 + links[:, 1], minlength=36)
    pair_counts = of_pair[np.flatnonzero(np.triu(np.ones((6, 6)), 1).ravel())]
    assert (np.abs(pair_counts - 1000) < 4 * np.sqrt(3000 * 2 / 9)).all()


@pytest.mark.parametrize("among", [0, 1, 40])
def test_membership_in_a_sorted_array_agrees_with_numpy(among):
    generator = np.random.default_rng(7)
    ascending = np.sort(generator.choice(60, among, replace=False))
    numbers = generator.integers(-5, 70, 200)
    expected = np.isin(numbers, ascending)
    np.testing.assert_array_equal(large_graphs._among(numbers, ascending), expected)


def test_random_regular_graphs_are_regular_and_nearly_uniform(streams):
    small = networks.build(streams, "random_regular", 10, degree=3)
    assert (small.degrees == 3).all() and small.adjacency.shape == (12, 10, 10)
    large = network(1000, RANDOM_REGULAR)
    assert (large.degrees == 6).all()
    # Ten of the 70 labelled cubic graphs with six vertices are bipartite; the others are prisms.
    generator = np.random.default_rng(2)
    bipartite = 0
    for _ in range(700):
        graph = nx.Graph(large_graphs.random_regular(generator, 6, 3).tolist())
        bipartite += nx.is_bipartite(graph)
    assert 60 < bipartite < 140


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (dict(name="random_regular", agents=9, degree=3), "network.degree: found 3"),
        (dict(name="random_regular", agents=9, degree=9), "network.degree: found 9"),
        (dict(name="random_regular", agents=8, degree=1), "network.degree: found 1"),
        (dict(name="grid", agents=10, rows=3), "network.rows: found 3.*divisor of 10"),
        (dict(name="erdos_renyi", agents=300, probability=0.001), "can be connected"),
        (dict(name="edges", agents=300, edges=[(1, 2)]), "disconnected graph"),
    ],
)
def test_impossible_and_disconnected_graphs_are_refused(streams, call, message):
    with pytest.raises(InvalidInput, match=message):
        networks.build(streams, **call)


# --- Spectra --------------------------------------------------------------------------------------


@pytest.mark.parametrize("agents", [300, 2000])
def test_spectra_of_rings_and_grids_have_their_closed_forms(agents):
    ring = network(agents, {"name": "ring", "weights": "metropolis"})
    angle = 2 * np.pi / agents
    assert np.isclose(ring.consensus_rate, (1 + 2 * np.cos(angle)) / 3, rtol=0, atol=1e-12)
    slowest = 2 - 2 * np.cos(angle)
    assert np.isclose(ring.algebraic_connectivity, slowest, rtol=1e-6)
    lap = large_networks.sparse_laplacian(ring.graphs[0])
    assert np.isclose(large_networks.largest_eigenvalue(lap), 4, rtol=1e-12)
    grid = network(agents, {"name": "grid", "rows": 10})
    longest = 2 - 2 * np.cos(np.pi / (agents // 10))
    assert np.isclose(grid.algebraic_connectivity, longest, rtol=1e-6)
    ends = sum(2 + 2 * np.cos(np.pi / side) for side in (10, agents // 10))
    lap = large_networks.sparse_laplacian(grid.graphs[0])
    assert np.isclose(large_networks.largest_eigenvalue(lap), ends, rtol=1e-12)


def test_spectra_of_a_sparse_random_graph_equal_those_of_its_dense_matrix():
    net = network(600, RANDOM_REGULAR)
    assert np.isclose(net.consensus_rate, networks.second_eigenvalue(net.mixing), rtol=1e-12)
    eigenvalues = np.linalg.eigvalsh(networks.laplacian(net.adjacency))
    assert np.isclose(net.algebraic_connectivity, eigenvalues[1], rtol=1e-10)
    lap = large_networks.sparse_laplacian(net.graphs[0])
    assert np.isclose(large_networks.largest_eigenvalue(lap), eigenvalues[-1], rtol=1e-12)


def test_the_dense_mixing_matrix_of_5000_agents_is_refused():
    net = network(5000, {"name": "ring", "weights": "metropolis"})
    with pytest.raises(InvalidInput, match=r"network.agents: found 5000.*at most 4096"):
        _ = net.mixing


# --- Many agents ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scaled():
    """Return the cells of the experiment with many agents, restricted to 1,000 agents."""
    config = Path(__file__).parents[2] / "config"
    plan = planning.load({**read_yaml(config / "config.yaml"), "papers": ["scale"]}, config)
    cells_by_name = {}
    for _, name in plan.cells():
        cell = plan.cell("scale_fig1", name)
        assert {spec["network"]["agents"] for spec in cell["settings"]} >= {10, 1000, 10_000}
        settings = [spec for spec in cell["settings"] if spec["network"]["agents"] == 1000]
        cells_by_name[name] = {**cell, "settings": settings}
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


@pytest.mark.parametrize(("agents", "has_bound"), [(10_000, True), (10_001, False)])
def test_the_bound_of_theorem_2_is_omitted_for_more_than_10000_agents(agents, has_bound):
    """The bound needs the second eigenvalue, which is fast to compute only for the ring."""
    mean_problem = world("gradient_descent", agents)
    ring = network(agents, {"name": "ring", "weights": "metropolis"})
    quantities: dict = {}
    mean_problem.algorithm.run(
        mean_problem.problem, ring, Streams(0, (0,)), np.array([1]),
        lambda t, active, observables: quantities.update(observables),
    )  # fmt: skip
    assert "expected" in quantities
    assert ("bound" in quantities) is has_bound


# --- Memory ---------------------------------------------------------------------------------------


def test_each_reviewed_algorithm_has_a_benchmark_instance_or_is_inapplicable():
    assert sorted([*WORLDS, *INAPPLICABLE]) == sorted(algorithms.names())


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_peak_memory_is_linear_in_the_number_of_agents(name):
    """Measure the peak memory of building the network and of a run."""
    few, many = (_peak(name, agents) for agents in (400, 1600))
    assert np.log(many / few) / np.log(4) < 1.15


def _peak(name: str, agents: int) -> int:
    tracemalloc.start()
    try:
        net = network(agents, RANDOM_REGULAR)
        instance = world(name, agents, dim=5, records=8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutsideRange)
            algorithm = instance.algorithm.calibrate(
                instance.budget, instance.problem, net, HORIZON
            )
            algorithm.releases(instance.problem, net, HORIZON)
            observables(algorithm, instance.problem, net, Streams(1, (0,)))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("agents", [500, 501])
def test_the_largest_sparse_eigenvalue_of_a_ring_equals_the_dense_one(agents):
    ring = networks.build(Streams(0, (0,)), "ring", agents)
    lap = np.linalg.eigvalsh(networks.laplacian(np.asarray(ring.adjacency)))
    sparse = large_networks.sparse_laplacian(csr_array(np.asarray(ring.adjacency, float)))
    assert large_networks.largest_eigenvalue(sparse) == pytest.approx(lap[-1], rel=1e-12)
