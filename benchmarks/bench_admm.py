"""Batched iterations of paper 001 against a loop over runs and agents, 100 agents.

    make benchmark

The loop is vectorised inside an agent, as a careful first implementation would be; for the exact
version it calls a solver an agent, as those usually do.
"""

import time
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize

from private_consensus import networks
from private_consensus.core.algorithms.ldp_admm import LocallyPrivateADMM
from private_consensus.core.problems import logistic_regression
from private_consensus.core.randomness import Streams

RUNS, AGENTS, DIM, STEPS = 10, 100, 14, 10


@pytest.fixture(scope="module")
def scene():
    rng = np.random.default_rng(0)
    features = np.abs(rng.normal(size=(20_000, DIM)))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    labels = np.where(rng.random(20_000) < 0.3, 1, -1)
    streams = Streams(1, tuple(range(RUNS)), {})
    problem = logistic_regression.build(
        streams,
        AGENTS,
        prepared=SimpleNamespace(features=features, labels=labels),
        records=100,
        ridge=1.0,
        weight="mean",
        partition="per_run",
        test_rows=10,
    )
    network = networks.build(streams, "random_edges", AGENTS, edges=200)
    draws = algorithm("exact").draws(problem, streams)
    return problem, network, streams, [next(draws) for _ in range(STEPS)]


def algorithm(minimisation):
    """Normal noise: losses of outputs, which the loop does not compute, are not computed."""
    return LocallyPrivateADMM(noise=1.0, growth=1.02, law="gaussian", minimisation=minimisation)


def batched(problem, network, streams, drawn, minimisation):
    steps = algorithm(minimisation)
    state = steps.start(problem, network, streams, 1)
    for k in range(1, STEPS + 1):
        state = steps.step(state, problem, network, drawn[k - 1], k)
    return state.x[0]


def looped(problem, network, streams, drawn, minimisation):
    """Algorithm 1, one run and one agent after the other."""
    start = streams.draw("data", "normal", (AGENTS, DIM), "start")
    released = np.empty_like(start)
    for run in range(RUNS):
        x, dual = start[run], np.zeros((AGENTS, DIM))
        neighbours = [np.flatnonzero(row) for row in network.adjacency[run]]
        for k in range(1, STEPS + 1):
            new = np.empty_like(x)
            for i in range(AGENTS):
                w = drawn[k - 1].weights[run, i]
                centre = w * x[i] + (1 - w) * x[neighbours[i]].mean(0)
                data = problem.features[run, i], problem.labels[run, i], problem.weight
                new[i] = agent_step(*data, x[i], centre, dual[i], minimisation)
                new[i] += drawn[k - 1].noise[run, i] / 1.02**k
            for i in range(AGENTS):
                heard = new[neighbours[i]].sum(0)
                dual[i] = dual[i] + 0.5 * (len(neighbours[i]) * new[i] - heard)
            x = new
        released[run] = x
    return released


def agent_step(z, y, weight, x, centre, dual, minimisation):
    def objective(v):
        margins = y * (z @ v)
        value = weight * np.logaddexp(0, -margins).sum() + v @ v / 2
        slope = v - weight * z.T @ (y / (1 + np.exp(margins)))
        return value + dual @ v + 5 * ((v - centre) ** 2).sum(), slope + dual + 10 * (v - centre)

    if minimisation == "exact":
        return minimize(objective, x, jac=True, method="L-BFGS-B", options={"gtol": 1e-9}).x
    margins = y * (z @ x)
    return centre - (x - weight * z.T @ (y / (1 + np.exp(margins))) + dual) / 10


@pytest.mark.parametrize("minimisation", ["first_order", "exact"])
@pytest.mark.parametrize("way", [batched, looped])
def test_ten_iterations(benchmark, scene, way, minimisation):
    benchmark.pedantic(way, args=(*scene, minimisation), rounds=3, warmup_rounds=1)


@pytest.mark.parametrize(("minimisation", "least"), [("first_order", 6), ("exact", 20)])
def test_batched_is_many_times_faster(scene, minimisation, least):
    """The fastest of three, in time of the processor.

    A first-order step reads every record twice and computes little, in the loop too: what a batch
    saves there is calls, and memory sets the limit. A minimisation is where loops cost.
    """

    def seconds(way):
        took = []
        for _ in range(3):
            begin = time.process_time()
            way(*scene, minimisation)
            took.append(time.process_time() - begin)
        return min(took)

    assert np.allclose(batched(*scene, minimisation), looped(*scene, minimisation), atol=1e-6)
    ratio = seconds(looped) / seconds(batched)
    print(f"{minimisation}: {ratio:.0f} times")
    assert ratio >= least
