"""Networks of many agents by their links, against matrices of all pairs.

make benchmark
"""

import numpy as np
import pytest
from benchmarks.peers.timing import seconds
from benchmarks.worlds import RANDOM_REGULAR, network

AGENTS, COLUMNS = 2000, 50


@pytest.fixture(scope="module")
def scene():
    net = network(AGENTS, RANDOM_REGULAR)
    return net, net.mixing, np.random.default_rng(0).normal(size=(1, 1, AGENTS, COLUMNS))


def by_links(net, mixing, x):
    return net.mix(x)


def by_pairs(net, mixing, x):
    return mixing @ x


@pytest.mark.parametrize("way", [by_links, by_pairs])
def test_mixing(benchmark, scene, way):
    benchmark(way, *scene)


def test_links_are_many_times_faster_than_pairs(scene):
    """6 of 2,000 numbers in a row are not zero: 285 times fewer products, not in blocks."""
    assert np.allclose(by_links(*scene), by_pairs(*scene), rtol=0, atol=1e-13)
    assert seconds(lambda: by_pairs(*scene)) > 5 * seconds(lambda: by_links(*scene))


def test_a_network_is_built_faster_than_the_spectrum_of_its_matrix(scene):
    def spectrum(net, mixing, x):
        return np.linalg.eigvalsh(mixing)[0]

    def whole(net, mixing, x):
        return network(AGENTS, RANDOM_REGULAR).consensus_rate

    assert seconds(lambda: spectrum(*scene), 1) > 3 * seconds(lambda: whole(*scene), 1)
