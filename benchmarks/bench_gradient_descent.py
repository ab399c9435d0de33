"""The batched step of paper 000 against loops over runs and agents.

    make benchmark

The reference is vectorised inside an agent, as a careful first implementation would be.
"""

import time

import numpy as np
import pytest

from private_consensus import networks
from private_consensus.core.algorithms.gradient_descent import GradientDescent, GradientDescentState
from private_consensus.core.problems import mean_estimation
from private_consensus.core.randomness import Streams

RUNS, AGENTS, DIM = 200, 10, 5


@pytest.fixture(scope="module")
def scene():
    streams = Streams(1, tuple(range(RUNS)), {})
    problem = mean_estimation.build(streams, AGENTS, records=100, dim=DIM, box=5.0)
    network = networks.build(streams, "erdos_renyi", AGENTS, probability=0.6)
    y, unit = streams.draw("noise", "normal", (2, AGENTS, DIM)).swapaxes(0, 1)
    return problem, network, y, unit


def batched(problem, network, y, unit):
    state = GradientDescentState(y[None], y[None], y[None])
    return GradientDescent(noise=0.3).step(state, problem, network, unit, 4).y[0]


def looped(problem, network, y, unit):
    """Algorithm 1, one run and one agent after the other."""
    released = np.empty_like(y)
    step = 1.0 / problem.records
    for run in range(len(y)):
        for agent in range(AGENTS):
            z = np.clip(network.mixing[run, agent] @ y[run], -problem.box, problem.box)
            gradient = problem.records * (z - problem.means[run, agent])
            x = np.clip(z - step / 4 * gradient, -problem.box, problem.box)
            released[run, agent] = x + 0.3 * step * 4**-0.75 * unit[run, agent]
    return released


@pytest.mark.parametrize("way", [batched, looped])
def test_step(benchmark, scene, way):
    benchmark(way, *scene)


def test_batched_step_is_ten_times_faster_and_the_same(scene):
    assert np.allclose(batched(*scene), looped(*scene), rtol=1e-12)
    assert best(looped, scene, 5) > 10 * best(batched, scene, 50)


def best(way, scene, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        way(*scene)
        times.append(time.perf_counter() - begin)
    return min(times)
