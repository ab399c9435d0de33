"""Test the perceptron: clipping against a loop, gradients against differences, data and loss."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, log_softmax

from observed import prepared_images
from private_consensus.common.errors import InvalidInput
from private_consensus.core.handlers import Running
from private_consensus.core.problems import perceptron, shared_by_runs
from private_consensus.core.problems.perceptron import CLASSES
from private_consensus.core.randomness import Streams

IMAGES = prepared_images(70, 20, inputs=6)


def small(dtype=float, agents=3, records=32, runs=(0, 1), **options):
    problem = perceptron.build(
        Streams(5, runs), agents, prepared=IMAGES, hidden=4, records=records, **options
    )
    return replace(problem, features=problem.features.astype(dtype))


def loss_of(problem, x, row):
    """Return the loss of one record, computed independently of the problem class."""
    d, h = problem.inputs, problem.hidden
    W1, remaining_parameters = x[: d * h].reshape(d, h), x[d * h :]
    b1, W2, b2 = (
        remaining_parameters[:h],
        remaining_parameters[h : h + h * CLASSES].reshape(h, CLASSES),
        remaining_parameters[h + h * CLASSES :],
    )
    o = expit(problem.features[row] @ W1 + b1) @ W2 + b2
    y = problem.labels[row]
    return -log_softmax(o)[y]


def differences(problem, x, row, h):
    steps = h * np.eye(len(x))
    return np.array(
        [(loss_of(problem, x + e, row) - loss_of(problem, x - e, row)) / (2 * h) for e in steps]
    )


def one_record(problem, x, row):
    """Return the clipped gradient of one record."""
    sample = np.full((problem.n_agents, 1), row)
    everywhere = np.broadcast_to(x, (problem.n_agents, len(x))).copy()
    return problem.clipped_gradient(everywhere, sample, np.ones(problem.n_agents, int))[0]


def point(problem, seed=1, scale=1.0):
    rng = np.random.default_rng(seed)
    return scale * rng.normal(size=(problem.n_agents, problem.dim))


def test_gradient_differs_from_central_differences_by_the_square_of_the_step():
    problem = small()
    x = point(problem)[0]
    exact = one_record(problem, x, 7)
    errors = [np.abs(differences(problem, x, 7, h) - exact).max() for h in (0.1, 0.05, 0.025)]
    ratios = np.array(errors[:-1]) / errors[1:]
    assert (np.abs(ratios - 4) < 0.3).all()
    assert errors[-1] < 1e-3 * np.abs(exact).max()


@pytest.mark.parametrize("clip", [np.inf, 2.0, 0.5])
@pytest.mark.parametrize("sizes", [(9, 0, 4), (0, 3, 0), (5, 5, 5), (0, 0, 0)])
def test_ghost_norms_clip_like_a_loop_over_records(clip, sizes):
    problem = small()
    x = point(problem)
    rng = np.random.default_rng(2)
    sample = rng.choice(70, size=(3, 9))
    sizes = np.array(sizes)
    gradients = problem.clipped_gradient(x, sample, sizes, clip, out=np.full_like(x, 7.0))
    for i in range(3):
        total = np.zeros(problem.dim)
        for row in sample[i, : sizes[i]]:
            g = one_record(problem, x[i], row)
            total += g / max(1.0, np.linalg.norm(g) / clip)
        np.testing.assert_allclose(gradients[i], total / max(sizes[i], 1), atol=1e-14)


def test_single_precision_gradients_agree_with_double_precision():
    double, single = small(), small(dtype=np.float32)
    x, sample, sizes = point(double), np.arange(27).reshape(3, 9), np.full(3, 9)
    exact = double.clipped_gradient(x, sample, sizes, 0.5)
    gradient = single.clipped_gradient(x.astype(np.float32), sample, sizes, 0.5)
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, exact, atol=2e-6)


def test_the_local_gradient_is_the_mean_over_the_records_of_the_agent():
    problem = small()
    x = np.stack([point(problem), point(problem, 3)])[None]
    gradients = problem.gradient(x)
    for r in range(2):
        mine = problem.rows_of(r)[1]
        mean = np.mean([one_record(problem, x[0, r, 1], row) for row in mine], axis=0)
        np.testing.assert_allclose(gradients[0, r, 1], mean, atol=1e-13)


def test_losses_are_those_of_the_average_model_on_all_records():
    problem = small()
    x = np.stack([point(problem), point(problem, 3)])[None]
    for r in range(2):
        average = x[0, r].mean(0)
        agent_rows = problem.rows_of(r).ravel()
        expected = np.mean([loss_of(problem, average, row) for row in agent_rows])
        assert problem.measure("training_loss", x)[0, r] == pytest.approx(expected, rel=1e-12)
    moved = x + 1.0
    assert (problem.measure("training_loss", moved) != problem.measure("training_loss", x)).all()


def test_training_records_are_split_equally_without_repetition():
    problem = small(agents=3, records=32)
    assert problem.agent_rows.shape == (2, 3, 10)
    for run in problem.agent_rows:
        assert len(np.unique(run)) == 30
        assert run.max() < 70
    assert (problem.agent_rows[0] != problem.agent_rows[1]).any()
    np.testing.assert_array_equal(small(runs=(0, 1, 2)).agent_rows[:2], problem.agent_rows)
    assert not shared_by_runs(perceptron, {})


def released(problem, groups=None):
    """Return the function of releases of a run, which samples starting points."""
    return Running({}, problem, Streams(5, (0, 1), groups or {}), np.array([1])).function()


def test_random_initial_models_have_their_distribution_and_are_shared():
    images = prepared_images(380, 20, inputs=300)
    problem = perceptron.build(Streams(5, (0,)), 2, prepared=images, hidden=40, records=100)
    x = problem.initial("random", released(problem))
    W1, b1, W2, b2 = problem.layers(x)
    assert W1.var() * 300 == pytest.approx(1, abs=4 * np.sqrt(2 / W1.size))
    assert W2.var() * 40 == pytest.approx(1, abs=4 * np.sqrt(2 / W2.size))
    assert not b1.any()
    assert not b2.any()
    other = released(problem, {"noise": "another algorithm"})
    np.testing.assert_array_equal(problem.initial("random", other), x)


@pytest.mark.parametrize("at_once", [1, 5, 1000])
def test_batched_evaluation_equals_the_evaluation_of_each_model(at_once, monkeypatch):
    monkeypatch.setattr(perceptron, "BLOCK_ROWS", 7)
    monkeypatch.setattr(perceptron, "BLOCK_MODELS", at_once)
    problem = small()
    x = np.random.default_rng(4).normal(size=(2, 3, problem.dim))
    losses, accuracies = problem.evaluate(x, problem.test)
    assert losses.shape == accuracies.shape == (2, 3)
    for where in np.ndindex(2, 3):
        expected_loss = np.mean([loss_of(problem, x[where], row) for row in problem.test])
        assert losses[where] == pytest.approx(expected_loss, rel=1e-12)
        W1, b1, W2, b2 = problem.layers(x[where])
        o = expit(problem.features[problem.test] @ W1 + b1) @ W2 + b2
        right = (o.argmax(-1) == problem.labels[problem.test]).mean()
        assert accuracies[where] == pytest.approx(right, abs=1e-15)


def test_rows_whose_squared_norm_overflows_are_refused():
    """Clipping divides by the norm of a gradient, which such rows make infinite or undefined."""
    images = prepared_images(70, 20, inputs=6)
    images.features[3, 0] = 1e20
    with pytest.raises(InvalidInput, match=r"norm of problem\.features\[row 3\]"):
        perceptron.build(Streams(5, (0,)), 3, prepared=images, hidden=4, records=20)
