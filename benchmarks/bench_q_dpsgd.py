"""How fast a round of decentralized SGD on a perceptron is, and its parts, in processor time.

`pytest benchmarks/bench_q_dpsgd.py --benchmark-enable` prints the parts; run as a script it says
milliseconds a round of every algorithm on both networks, and compares clipping by ghost norms with
a loop over records.
"""

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from private_consensus import algorithms, networks
from private_consensus.core.problems import perceptron
from private_consensus.core.problems.perceptron import CLASSES, sigmoid
from private_consensus.core.quantization import Grid
from private_consensus.core.randomness import Streams
from private_consensus.kernels import compiling, messages

NETWORKS = {"MNIST": (784, 50), "CIFAR-10": (3072, 40)}
AGENTS, BATCH, CLIP = 10, 20, 0.5
KEY = np.array([1, 2], np.uint32)


def scene(name: str):
    inputs, hidden = NETWORKS[name]
    rng = np.random.default_rng(0)
    prepared = SimpleNamespace(
        features=rng.random((10_010, inputs), dtype=np.float32),
        labels=rng.integers(0, CLASSES, 10_010),
        splits={"train": np.arange(10_000), "test": np.arange(10_000, 10_010)},
    )
    streams = Streams(0, (0,))
    problem = perceptron.build(streams, AGENTS, prepared=prepared, hidden=hidden)
    network = networks.build(streams, "erdos_renyi", AGENTS, probability=0.4, scale=1.0)
    return problem, network, streams


def batches(problem):
    """Models, one batch an agent, and room for gradients."""
    x = np.broadcast_to(problem.initial("random", Streams(0, (0,)))[0], (AGENTS, problem.dim))
    rows = problem.rows_of(0)[:, :BATCH]
    return x.copy(), rows, np.full(AGENTS, BATCH), CLIP, np.empty(x.shape, np.float32)


def looped(problem, x, rows, sizes, clip, out):
    """One record after the other, each with a gradient of its own."""
    layers, total = problem.layers(x), problem.layers(out)
    out[:] = 0.0
    for i in range(len(x)):
        W1, b1, W2, b2 = (part[i] for part in layers)
        for row in rows[i, : sizes[i]]:
            a = problem.features[row]
            h = sigmoid(a @ W1 + b1[0])
            back2 = np.exp(h @ W2 + b2[0])
            back2 /= back2.sum()
            back2[problem.labels[row]] -= 1
            back1 = (W2 @ back2) * h * (1 - h)
            own = np.outer(a, back1), back1, np.outer(h, back2), back2
            norm = np.sqrt(sum((g * g).sum() for g in own))
            weight = 1 / max(1.0, norm / clip) / sizes[i]
            for part, g in zip(total, own, strict=True):
                part[i] += weight * g
    return out


def milliseconds(call, repeats: int = 20, rounds: int = 5) -> float:
    """Least processor time of a call; other work on the machine does not count."""
    call()
    best = np.inf
    for _ in range(rounds):
        begin = time.process_time()
        for _ in range(repeats):
            call()
        best = min(best, (time.process_time() - begin) / repeats)
    return 1e3 * best


def round_of(name: str, network_name: str, **options):
    """A call that makes one round of an algorithm, noise and all."""
    problem, network, streams = scene(network_name)
    algorithm = algorithms.load(name)(sigma=0.0 if name == "dsgd" else 0.6, **options)
    if hasattr(algorithm, "T"):
        algorithm = replace(algorithm, T=np.array([1000.0]))
    state = algorithm.start(problem, network, streams, 1)
    draws = algorithm.draws(problem, streams)
    return lambda: algorithm.step(state, problem, network, next(draws), 1)


@pytest.mark.parametrize("engine", [perceptron.Perceptron.clipped_gradient, looped])
def test_clipped_gradient(benchmark, engine):
    problem, _, _ = scene("MNIST")
    benchmark(engine, problem, *batches(problem))


@pytest.mark.parametrize("name", ["q_dpsgd_1", "q_dpsgd_2", "dsgd", "sdm_dsgd"])
def test_round(benchmark, name):
    benchmark(round_of(name, "MNIST"))


def test_ghost_norms_are_ten_times_faster_than_a_loop_over_records():
    problem, _, _ = scene("MNIST")
    given = batches(problem)
    with threadpool_limits(1, "blas"):
        fast = problem.clipped_gradient(*given[:-1]).copy()
        np.testing.assert_allclose(fast, looped(problem, *given), atol=1e-6)
        stacked = milliseconds(lambda: problem.clipped_gradient(*given))
        loop = milliseconds(lambda: looped(problem, *given), 2, 3)
    assert stacked * 10 <= loop


def report_messages() -> None:
    x = np.random.default_rng(0).normal(0, 0.2, (AGENTS, 39_760)).astype(np.float32)
    out, ones, grid = x.copy(), np.ones(AGENTS), Grid(0.1)
    parts = {
        "rounding": lambda: grid.quantize(x, KEY, 0, out),
        "noisy step": lambda: messages.descend(out, x, x, x, ones, 0.1, ones, KEY, 0),
        "sparse noisy step": lambda: messages.sparsify(out, x, x, 0.6, 0.2, ones, 0.3, KEY, KEY, 0),
        "discrete Gaussian, 3 steps wide": lambda: grid.add_noise(out, 0.3, KEY, 0),
        "discrete Gaussian, 1000 steps wide": lambda: grid.add_noise(out, 100.0, KEY, 0),
    }
    for name, call in parts.items():
        spent = milliseconds(call)
        print(f"{name:36} {spent:6.2f} ms {1e6 * spent / x.size:6.2f} ns a coordinate")


def report() -> None:
    report_messages()
    for name in NETWORKS:
        problem, _, _ = scene(name)
        given = batches(problem)
        stacked = milliseconds(lambda p=problem, g=given: p.clipped_gradient(*g))
        loop = milliseconds(lambda p=problem, g=given: looped(p, *g), 2, 3)
        print(f"{name}: clipped gradients {stacked:.2f} ms, by a loop {loop:.1f} ms")
        for algorithm in ("q_dpsgd_1", "q_dpsgd_2", "dsgd", "sdm_dsgd"):
            spent = milliseconds(round_of(algorithm, name))
            print(f"{name}: a round of {algorithm} {spent:.2f} ms")


if __name__ == "__main__":
    compiling.threads = lambda: 1
    with threadpool_limits(1, "blas"):
        report()
