"""Test clipped gradients of all agents against the reference in double precision."""

import numpy as np
import pytest

from private_consensus.core.problems.perceptron import Perceptron
from private_consensus.kernels import backpropagation

RECORDS, CLASSES = 60, backpropagation.CLASSES
SHAPES = [(1, 1), (5, 4), (63, 16), (64, 17), (130, 50), (30, 70)]
"""Pairs of the number of inputs and the number of hidden units."""


def perceptron(inputs, hidden, black=0.7):
    rng = np.random.default_rng(inputs)
    features = rng.random((RECORDS, inputs)) * (rng.random((RECORDS, inputs)) > black)
    labels = rng.integers(0, CLASSES, RECORDS)
    everyone = np.arange(RECORDS).reshape(1, 4, -1)
    return Perceptron(features.astype(np.float32), labels, everyone, labels[:0], hidden)


def exact(problem):
    """Return the problem in double precision, for which the reference implementation runs."""
    return Perceptron(
        problem.features.astype(float), problem.labels, problem.agent_rows, problem.test,
        problem.hidden,
    )  # fmt: skip


def sample(problem, sizes, widest=11):
    rng = np.random.default_rng(3)
    x = rng.normal(scale=0.5, size=(len(sizes), problem.dim)).astype(np.float32)
    rows = np.array([rng.permutation(RECORDS)[:widest] for _ in sizes])
    return x, rows, np.array(sizes)


@pytest.mark.parametrize("clip", [np.inf, 2.0, 0.1])
@pytest.mark.parametrize(("inputs", "hidden"), SHAPES)
@pytest.mark.parametrize("black", [0.0, 0.7, 1.0])
def test_gradients_equal_the_reference_up_to_rounding(inputs, hidden, clip, black):
    problem = perceptron(inputs, hidden, black)
    x, rows, sizes = sample(problem, [4, 0, 11, 1, 6])
    gradients = problem.clipped_gradient(x, rows, sizes, clip)
    expected_gradients = exact(problem).clipped_gradient(x.astype(float), rows, sizes, clip)
    assert gradients.dtype == np.float32
    np.testing.assert_allclose(
        gradients, expected_gradients, atol=3e-6 * max(1.0, np.abs(expected_gradients).max())
    )
    norms = np.linalg.norm(gradients, axis=1)
    assert (norms <= clip * (1 + 1e-5)).all()
    assert (norms[[0, 2, 3, 4]] > 0).all()
    assert norms[1] == 0


def test_only_gradients_are_written_and_only_records_of_the_batch_are_read():
    problem = perceptron(64, 17)
    x, rows, sizes = sample(problem, [3, 9])
    expected_gradients = problem.clipped_gradient(x, rows, sizes, 0.5)
    around = np.full((4, problem.dim), 7.0, np.float32)
    for i, size in enumerate(sizes):
        rows[i, size:] = RECORDS * 10**9
    gradients = problem.clipped_gradient(x, rows, sizes, 0.5, out=around[1:3])
    np.testing.assert_array_equal(gradients, expected_gradients)
    np.testing.assert_array_equal(around[[0, 3]], 7.0)


def test_large_outputs_do_not_overflow():
    problem = perceptron(20, 8)
    x, rows, sizes = sample(problem, [5])
    x *= 1000.0
    gradients = problem.clipped_gradient(x, rows, sizes, np.inf)
    expected_gradients = exact(problem).clipped_gradient(x.astype(float), rows, sizes, np.inf)
    assert np.isfinite(gradients).all()
    np.testing.assert_allclose(
        gradients, expected_gradients, rtol=1e-3, atol=1e-3 * np.abs(expected_gradients).max()
    )


def test_settings_in_a_batch_have_the_gradients_of_single_settings():
    problem = perceptron(130, 50)
    x, rows, sizes = sample(problem, [4, 11, 2, 6])
    alone = [
        problem.clipped_gradient(x[[0, 1]], rows[:2], sizes[:2], 0.5),
        problem.clipped_gradient(x[[2, 3]], rows[:2], sizes[2:], 0.1),
    ]
    gradients, first, clips = np.empty_like(x), np.array([0, 2]), np.array([0.5, 0.1])
    problem.clipped_gradients(x, first, rows[:2], sizes.reshape(2, 2), clips, gradients)
    assert gradients.tobytes() == np.concatenate(alone).tobytes()


@pytest.mark.parametrize(("inputs", "hidden"), SHAPES)
def test_losses_accuracies_and_outputs_equal_the_reference_up_to_rounding(inputs, hidden):
    problem = perceptron(inputs, hidden)
    x, _, _ = sample(problem, [0, 0, 0])
    rows = np.random.default_rng(4).permutation(RECORDS)[:49]
    losses, accuracies = problem.evaluate(x, rows)
    expected_losses, expected_accuracies = exact(problem).evaluate(x.astype(float), rows)
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-5)
    np.testing.assert_allclose(accuracies, expected_accuracies, atol=1e-12)
    outputs = problem.outputs(x, rows)
    np.testing.assert_allclose(outputs, exact(problem).outputs(x.astype(float), rows), atol=1e-5)
    assert outputs.shape == (3, CLASSES, 49)
    subset_outputs = problem.outputs(x[[1]], rows[7:9])
    assert subset_outputs.tobytes() == np.ascontiguousarray(outputs[[1], :, 7:9]).tobytes()
