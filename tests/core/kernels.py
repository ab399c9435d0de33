"""Calls of all compiled entry points, on array sizes that are no multiples of a SIMD vector."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from private_consensus.kernels import (
    backpropagation,
    logistic,
    normals,
    rounds,
    two_point,
)

KEY = np.array([0x13198A2E, 0x03707344], np.uint32)
DIMS = (1, 3, 8, 17, 33)


def randoms(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def single(generator: np.random.Generator, *shape: int) -> np.ndarray:
    return generator.normal(size=shape).astype(np.float32)


def ring(agents: int) -> np.ndarray:
    return (np.roll(np.eye(agents), 1, 0) + np.roll(np.eye(agents), -1, 0) + np.eye(agents)) / 3


def whole_rounds(dim: int) -> Any:
    g, agents = randoms(), 3
    steps = rounds.steps_of(ring(agents), np.ones(agents), np.ones(agents), 1)
    grid = rounds.Grid(*np.array([0.25, -8, 7], np.float32))
    keys = [rounds.keys(KEY + np.uint32(i), 5) for i in range(3)]
    u, normals = rounds.uniforms(keys[0], agents, dim), rounds.normals(keys[1], agents, dim)
    words = rounds.words(keys[2], agents, dim)
    gradients, results = single(g, agents, dim), []
    for variance in (0.0, 2.0, 300.0):
        x, message = single(g, agents, dim), np.zeros((agents, dim), np.float32)
        noise = rounds.Noise(variance, keys[2], words) if variance else None
        rounds.round_models(x, u, grid, message, noise)
        rounds.mix_and_step(x, x, message, gradients, steps, normals)
        results.append(x)
    sparse = rounds.Sparse(np.float32(0.5), np.float32(0.5), u)
    rounds.mix_and_step(x, x, x, gradients, steps, normals, sparse)
    return [*results, x.copy()]


def perceptrons(inputs: int, hidden: int = 5, agents: int = 3) -> Any:
    g = randoms()
    features = np.maximum(single(g, 12, inputs), 0)
    record_set = backpropagation.records(features)
    parameters = (inputs + 1) * hidden + (hidden + 1) * backpropagation.CLASSES
    x = 0.1 * single(g, agents, parameters)
    rows, sizes = g.integers(0, 12, (agents, 7)), np.array([[7, 3, 0]])
    batch_arguments = np.zeros(1, int), record_set, np.arange(12) % 10, rows, sizes, np.ones(1)
    out = np.empty_like(x)
    backpropagation.clipped_gradients(x, *batch_arguments, hidden, out)
    steps = rounds.steps_of(ring(agents), np.ones(agents), np.ones(agents), 1)
    moved, normals = x.copy(), rounds.normals(rounds.keys(KEY, 5), *x.shape)
    rounds.mix_and_step(moved, moved, moved, out, steps, normals)
    return backpropagation.outputs(x, record_set, np.arange(7), hidden), out, moved


def logistic_losses(dim: int, count: int = 45) -> Any:
    g, points = randoms(), 11
    signed = np.where(g.random((count, dim)) < 0.6, 0.3, g.normal(size=(count, dim)))
    record_set = logistic.records(signed)
    values, vectors = np.linalg.eigh(signed.T @ signed / 4)
    model = logistic.model(np.maximum(values, 0), vectors)
    x, linear = g.normal(size=(2, points, dim))
    numbers = 0.7, model, np.full(points, 0.3), linear, x, np.full(points, 1e-9)
    return [
        *logistic.minimise(record_set, *numbers),
        logistic.mean_losses(record_set, x, np.full(points, 2.0)),
    ]


def inner_loops(dim: int) -> Any:
    g, runs, agents = randoms(), 2, 2
    rows = g.normal(size=(runs, agents, 12, dim))
    return two_point.solve(
        rows.swapaxes(-1, -2) @ rows / 6,
        g.uniform(10, 30, size=(3, 1, agents)),
        g.normal(size=(3, runs, agents, dim)),
        np.full(3, 0.2),
        g.uniform(0.005, 0.02, size=(3, runs, agents)),
        g.integers(0, 2**32, size=(runs, 2), dtype=np.uint32),
        5,
        loops=6,
        samples=7,
    )


def draws(size: int) -> Any:
    u = np.uint32
    words = np.empty((2, size), np.uint32)
    numbers = np.empty((4, size), np.float32)
    normals.fill_words(*KEY, u(1), u(2), *words)
    normals.fill_normals(*KEY, u(1), u(2), *numbers[:2])
    normals.fill_uniforms(*KEY, u(1), u(2), *numbers[2:])
    return words, numbers


ENTRIES: tuple[Callable[[int], Any], ...] = (
    whole_rounds, perceptrons, logistic_losses, inner_loops, draws,
)  # fmt: skip


def arrays_of(result: Any) -> Iterator[np.ndarray]:
    """Return all arrays of a result."""
    if isinstance(result, list | tuple):
        for element in result:
            yield from arrays_of(element)
    else:
        yield np.asarray(result)
