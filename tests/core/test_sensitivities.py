"""Test sensitivities of problems against random search for the largest change by a record."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from private_consensus import algorithms, networks
from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.base import BoundedGradients
from private_consensus.core.problems.base import NORMS, Problem
from private_consensus.core.problems.lasso import Lasso
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.problems.perceptron import Perceptron
from private_consensus.core.randomness import Streams
from private_consensus.core.solvers import Unsolved

DIM, RECORDS, TRIED, CLIMBS = 4, 3, 400, 150
FAR = 60.0
"""Norm of x at which the slope of a logistic loss is close to its supremum."""
ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}


# --- Random search: candidates are runs of one problem, evaluated in one batch --------------------


def nearly_opposite(direction, tilt):
    """Return two nearly opposite unit rows and a distant point with margins of equal sign."""
    direction, tilt = (np.array(v, float) / np.linalg.norm(v) for v in (direction, tilt))
    pair = np.stack([direction, -direction]) * np.sqrt(0.99) + 0.1 * tilt
    return pair, -FAR * 10 * tilt


EXTREMES = [
    nearly_opposite([1, 1, 1, 1], [1, -1, 0, 0]),
    nearly_opposite([1, 0, 0, 0], [0, 1, 0, 0]),
]
ONE_SIDED = [
    (np.array([[1, 1, 0, 0], [0, 0, 1, 1]]) / np.sqrt(2), -FAR * np.ones(4)),
    (np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0]]), -FAR * np.ones(4)),
]


def climbed(objective, allowed, start, seed=0):
    """Return the largest value of ``objective`` that random search from all candidates reaches."""
    rng = np.random.default_rng(seed)
    best = allowed(start)
    value = objective(best)
    for step in np.geomspace(1.0, 1e-3, CLIMBS):
        tried = allowed(best + step * rng.normal(size=best.shape))
        new_values = objective(tried)
        better = new_values > value
        best[better], value[better] = tried[better], new_values[better]
    return float(value.max())


def pairs_and_points(extremes, one_sided=False):
    """Return candidates [TRIED, 3, DIM] of two rows and a point, extreme ones first."""
    start = np.random.default_rng(1).normal(size=(TRIED, 3, DIM))
    for index, (rows, x) in enumerate(extremes):
        start[index] = [*rows, x]

    def allowed(v):
        rows = np.abs(v[:, :2]) if one_sided else v[:, :2]
        lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
        return np.concatenate([rows / np.maximum(lengths, 1.0), v[:, 2:]], 1)

    return start, allowed


def with_first(features, labels, rows, values):
    """Yield two data sets that differ in the first record of agent 0."""
    for side in range(2):
        changed_features, changed_labels = features.copy(), labels.copy()
        changed_features[:, 0, 0], changed_labels[:, 0, 0] = rows[:, side], values[side]
        yield changed_features, changed_labels


def logistic(coding, weight=0.7, ridge=0.3):
    rng = np.random.default_rng(3)
    features = np.abs(rng.normal(size=(TRIED, 1, RECORDS, DIM)))
    features /= np.linalg.norm(features, axis=-1, keepdims=True)
    if coding == "signed":
        features *= rng.choice([-1, 1], size=features.shape)
    labels = np.ones((TRIED, 1, RECORDS))
    labels[..., -1] = -1.0 if coding == "signed" else 0.0
    return LogisticRegression(
        features, labels, features[0, 0], labels[0, 0], weight, ridge, coding=coding,
        nonnegative=coding == "zero_one",
    )  # fmt: skip


def neighbours_of(problem, rows, values=(1.0, 1.0)):
    for features, labels in with_first(problem.features, problem.labels, rows, values):
        yield replace(problem, features=features, labels=labels)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("coding", ["signed", "zero_one"])
def test_the_gradient_sensitivity_of_logistic_regression_is_valid_and_tight(coding, norm):
    """Both records have the label 1.

    A record with label 0 has the gradient 0. A record with label -1 has the same gradient as the
    opposite row with label 1.
    """
    problem = logistic(coding)
    one_sided = coding == "zero_one"

    def moved(v):
        x = v[None, :, 2:]
        gradient_a, gradient_b = (p.gradient(x)[0, :, 0] for p in neighbours_of(problem, v))
        return np.linalg.norm(gradient_a - gradient_b, ORDERS[norm], axis=-1)

    start, allowed = pairs_and_points(ONE_SIDED if one_sided else EXTREMES, one_sided)
    largest = climbed(moved, allowed, start)
    stated = problem.record_change(norm)
    assert 0.9 * stated <= largest <= stated * (1 + 1e-12)


def test_the_bound_covers_a_change_of_label_even_if_all_labels_are_positive():
    """The bound holds for all data sets with these labels, not only for the data of the problem."""
    problem = logistic("signed")
    features = np.abs(problem.features)
    problem = replace(problem, features=features, labels=np.ones_like(problem.labels))
    x = np.broadcast_to(FAR * np.array([-1.0, 1, 0, 0]), (1, TRIED, 1, DIM))
    rows = np.array([[0.9, 0.43, 0, 0], [0.43, 0.9, 0, 0]])
    changed = neighbours_of(problem, np.broadcast_to(rows, (TRIED, 2, DIM)), (1.0, -1.0))
    gradient_a, gradient_b = (p.gradient(x)[0, :, 0] for p in changed)
    moved = np.linalg.norm(gradient_a - gradient_b, axis=-1).max()
    assert np.sqrt(2) * problem.weight < moved <= problem.record_change("l2")


@pytest.mark.parametrize("norm", NORMS)
def test_the_minimiser_sensitivity_of_logistic_regression_is_valid_and_tight(norm):
    """At distant points, the loss has no curvature, and only ridge and penalty remain."""
    problem, penalty = logistic("signed"), 2.0
    problem = replace(problem, features=problem.features[:8], labels=problem.labels[:8])
    rows = np.random.default_rng(2).normal(size=(8, 2, DIM))
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    centre = 10.0 * np.random.default_rng(4).normal(size=(1, 8, 1, DIM))
    for index, (pair, x) in enumerate(EXTREMES):
        rows[index], centre[0, index, 0] = pair, 10 * x
    D = np.full((1, 1, 1, 1), penalty)
    minimiser_a, minimiser_b = (
        p.proximal(np.zeros_like(centre), D, centre, np.zeros_like(centre))[0, :, 0]
        for p in neighbours_of(problem, rows)
    )
    largest = np.linalg.norm(minimiser_a - minimiser_b, ORDERS[norm], axis=-1).max()
    stated = problem.minimiser_change(norm, penalty)
    assert 0.9 * stated <= largest <= stated * (1 + 1e-9)


@pytest.mark.parametrize("weight", [1e-12, 1e-6, 1.0])
def test_the_tolerance_of_the_solver_is_small_relative_to_the_sensitivity(weight):
    """A label changes a minimiser that one of two data sets reaches without a step."""
    count, curvature = 420, 420 * weight
    features = np.broadcast_to([1.0, 0.0], (2, count, 2))
    zero, penalty = np.zeros((1, 1, 2, 2)), np.full((1, 1, 1, 1), curvature)
    for positive in range(count // 2, count // 2 + 30):
        minimisers = []
        for changed in (0, 1):
            labels = np.where(np.arange(count) < positive + changed, 1.0, -1.0)
            labels = np.stack([labels, labels])
            problem = LogisticRegression(features, labels, features[0], labels[0], weight, 0.0)
            minimisers.append(problem.proximal(zero, penalty, zero, zero)[0, 0, 0])
        change = np.linalg.norm(minimisers[1] - minimisers[0])
        bound = problem.minimiser_change("l2", curvature)
        # Near the origin, a label changes the gradient by w, and the curvature is at most 5wN/4.
        assert 0.39 * bound < change < 0.5 * bound


def test_a_lasso_that_needs_too_many_steps_is_refused():
    """The result after a fixed number of steps would not satisfy the bound on minimisers."""
    features, responses = np.zeros((1, 2, 1000, 2)), np.full((1, 2, 1000), 1e6)
    features[..., 0] = 0.01
    problem = Lasso(features, responses, 1.0, 0.0, gradient_bound=1.0, row_bound=1.0)
    zero = np.zeros((1, 1, 2, 2))
    with pytest.raises(Unsolved, match="larger quadratic penalty"):
        problem.proximal(zero, np.full((1, 1, 1, 1), 1e-5), zero, zero)


def test_the_sensitivity_of_clipped_logistic_losses_is_attained():
    """One extreme record has loss 0; the loss of the other record is clipped."""
    problem, bound = logistic("signed"), 2.0
    x = np.broadcast_to(FAR * np.eye(DIM)[0], (1, TRIED, 1, DIM))
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(TRIED, 2, DIM))
    rows[0] = [np.eye(DIM)[0], -np.eye(DIM)[0]]
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    loss_a, loss_b = (p.clipped_loss(x, bound)[0, :, 0] for p in neighbours_of(problem, rows))
    assert np.abs(loss_a - loss_b).max() == pytest.approx(problem.clipped_loss_change(bound))


def test_the_record_curvature_of_logistic_regression_is_valid_and_tight():
    problem = logistic("signed")
    empty = replace(problem, features=np.zeros_like(problem.features))
    start, allowed = pairs_and_points([(np.eye(DIM)[:2], np.zeros(DIM))])

    def curvature(v):
        x = v[None, :, 2:]
        single_record, no_record = next(neighbours_of(empty, v)), empty
        return np.linalg.eigvalsh((single_record.hessian(x) - no_record.hessian(x))[0, :, 0])[:, -1]

    largest = climbed(curvature, allowed, start)
    assert 0.9 * problem.record_curvature <= largest <= problem.record_curvature * (1 + 1e-12)


def regressions(weight, bound):
    rng = np.random.default_rng(6)
    features = rng.normal(size=(TRIED, 1, RECORDS, DIM))
    features /= np.linalg.norm(features, axis=-1, keepdims=True)
    responses = rng.normal(size=(TRIED, 1, RECORDS))
    return Lasso(features, responses, weight, 0.1, bound, row_bound=1.0)


def regressed(problem, rows, ends=(1e3, -1e3)):
    for features, responses in with_first(problem.features, problem.responses, rows, ends):
        yield replace(problem, features=features, responses=responses)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("weight", [1.0, 1.0 / RECORDS])
def test_gradient_and_minimiser_sensitivities_of_the_huber_loss_are_tight(weight, norm):
    """The two records have parallel rows and opposite responses."""
    problem, penalty = regressions(weight, 1.5), 3.0
    extremes = [(np.ones((2, DIM)) / 2, np.zeros(DIM)), (np.eye(DIM)[[0, 0]], np.zeros(DIM))]
    start, allowed = pairs_and_points(extremes)

    def moved(v):
        gradient_a, gradient_b = (
            p.gradient(v[None, :, 2:])[0, :, 0] for p in regressed(problem, v)
        )
        return np.linalg.norm(gradient_a - gradient_b, ORDERS[norm], axis=-1)

    stated = problem.record_change(norm)
    assert 0.9 * stated <= climbed(moved, allowed, start) <= stated * (1 + 1e-12)

    few = replace(problem, features=problem.features[:8], responses=problem.responses[:8])
    centre = np.full((1, 8, 1, DIM), 50.0)
    D = np.full((1, 1, 1, 1), penalty)
    minimiser_a, minimiser_b = (
        p.proximal(np.zeros_like(centre), D, centre, centre)[0, :, 0]
        for p in regressed(few, start[:8, :2] / np.linalg.norm(start[:8, :2], axis=-1)[..., None])
    )
    largest = np.linalg.norm(minimiser_a - minimiser_b, ORDERS[norm], axis=-1).max()
    stated = problem.minimiser_change(norm, penalty)
    assert 0.9 * stated <= largest <= stated * (1 + 1e-9)


@pytest.mark.parametrize("loss", ["squared", "rows without a bound"])
def test_the_sensitivity_is_infinite_if_gradients_are_unbounded(loss):
    """A large enough response or row exceeds any number."""
    squared = loss == "squared"
    problem = replace(regressions(1.0, np.inf if squared else 1.0), row_bound=np.inf)
    x = np.zeros((1, TRIED, 1, DIM))
    for size in (1e3, 1e6, 1e9):
        rows = np.ones((TRIED, 2, DIM)) * (1.0 if squared else size)
        ends = (size, -size) if squared else (1.0, -1.0)
        gradient_a, gradient_b = (p.gradient(x)[0, :, 0] for p in regressed(problem, rows, ends))
        assert np.linalg.norm(gradient_a - gradient_b, axis=-1).max() > size
    assert problem.record_change("l1") == problem.record_change("l2") == np.inf
    assert problem.minimiser_change("l2", 5.0) == np.inf
    assert BoundedGradients(problem, 1.5).record_change("l2") == 3.0


@pytest.mark.parametrize("dim", range(1, 15))
def test_opposite_corners_of_a_box_do_not_exceed_the_bound_by_rounding(dim):
    upper_corner, lower_corner = (
        MeanEstimation(np.full((1, 1, dim), end), 1, 5.0) for end in (5.0, -5.0)
    )
    change = upper_corner.gradient(0.0 * upper_corner.means) - lower_corner.gradient(
        0.0 * upper_corner.means
    )
    assert np.abs(change).sum() == upper_corner.record_change("l1") == 10.0 * dim


@pytest.mark.parametrize("norm", NORMS)
def test_gradient_and_minimiser_sensitivities_of_mean_estimation_hold(norm):
    box, penalty = 2.5, 4.0
    rng = np.random.default_rng(7)
    pair = rng.uniform(-box, box, size=(2, TRIED, 1, DIM))
    pair[0, 0], pair[1, 0] = box, -box
    remaining_sum = rng.uniform(-box, box, size=(TRIED, 1, DIM)) * (RECORDS - 1)
    problem_a, problem_b = (
        MeanEstimation((remaining_sum + d) / RECORDS, RECORDS, box) for d in pair
    )
    x = rng.uniform(-box, box, size=(1, TRIED, 1, DIM))
    moved = np.linalg.norm(
        problem_a.gradient(x) - problem_b.gradient(x), ORDERS[norm], axis=-1
    ).max()
    assert moved == pytest.approx(problem_a.record_change(norm))
    D = np.full((1, 1, 1, 1), penalty)
    minimisers = (p.proximal(0.0, D, 0.0 * x, x) for p in (problem_a, problem_b))
    moved = np.linalg.norm(np.subtract(*minimisers), ORDERS[norm], axis=-1).max()
    stated = problem_a.minimiser_change(norm, penalty)
    assert moved <= stated * (1 + 1e-12)
    # A separable objective attains 1/sqrt(d) of the bound in linf that is derived from l2.
    assert moved >= 0.9 * stated / (np.sqrt(DIM) if norm == "linf" else 1.0)


def test_the_sensitivity_of_a_clipped_mean_gradient_of_a_perceptron_is_tight():
    """The two records are one image with two labels, which affect the last layer only."""
    hidden, clip, batch = 4, 0.5, 5
    rng = np.random.default_rng(9)
    features = rng.uniform(size=(batch + 1, 6))
    features[batch] = features[0]
    labels = np.array([1, 3, 4, 5, 6, 2])
    problem = Perceptron(features, labels, np.arange(batch)[None, None], np.array([0]), hidden)
    x = np.zeros((1, problem.dim))
    W2 = problem.layers(x)[2]
    W2[..., 1], W2[..., 2] = [1e4, -1e4, 1e4, -1e4], [-1e4, 1e4, -1e4, 1e4]
    first_rows, other_rows = np.array([[0], [batch]]), np.arange(1, batch)
    means = [
        problem.clipped_gradient(x, np.append(first_row, other_rows)[None], np.array([batch]), clip)
        for first_row in first_rows
    ]
    moved, stated = np.linalg.norm(means[0] - means[1]), 2 * clip / batch
    assert 0.9 * stated <= moved <= stated * (1 + 1e-9)
    algorithm = algorithms.load("dsgd")(B=batch, K=clip)
    assert algorithm.sampled(problem, 1).losses == pytest.approx([stated / clip])


# --- Algorithms: privacy losses follow from the sensitivity of the problem ------------------------


def graph():
    streams = Streams(3, (0,), {})
    return networks.build(streams, "ring", 4)


def bounded(w=1.0):
    rng = np.random.default_rng(11)
    features = rng.normal(size=(1, 4, 30, DIM))
    features /= np.linalg.norm(features, axis=-1, keepdims=True)
    return Lasso(features, rng.normal(size=(1, 4, 30)), w / 30, 0.1, 1.0, row_bound=1.0)


def squared(w=1.0):
    return replace(bounded(w), gradient_bound=np.inf)


@pytest.mark.parametrize(
    ("name", "options"),
    [("dp_admm", {}), ("exact_admm", {}),
     ("release_audit", {"mechanism": "gaussian", "confidence": 0.9})],
)  # fmt: skip
def test_assumed_privacy_losses_scale_with_the_weight_and_are_not_proven(name, options):
    algorithm = algorithms.load(name)(noise=0.7, **options)
    for problem in (squared(1.0), squared(2.0)):
        [stated] = algorithm.releases(problem, graph(), 3)
        assert np.isinf(stated.losses()).all() and not stated.proven and stated.note
    once, twice = (algorithm.releases_if_assumed(squared(w), graph(), 3)[0] for w in (1.0, 2.0))
    assert twice.losses() == pytest.approx(2 * once.losses())
    [granted] = algorithm.releases(bounded(1.0), graph(), 3)
    assert once.losses() == pytest.approx(granted.losses()) and not once.proven


@dataclass(frozen=True)
class SeparateCoordinates(Problem):
    """Sum of one logistic loss per coordinate, so that a record's Hessian has full rank."""

    signs: np.ndarray
    ridge: float = 0.01
    weight, record_curvature, n_runs, n_agents, records = 1.0, 0.25, 1, 3, 1

    @property
    def dim(self):
        return self.signs.shape[-1]

    @property
    def record_gradient_change(self):
        return 2.0 * np.sqrt(self.dim)

    smoothness = 0.26

    def gradient(self, x):
        return -self.signs / (1 + np.exp(self.signs * x)) + self.ridge * x

    def proximal(self, linear, penalty, centre, start, tolerance=None):
        raise NotImplementedError


class Convex(SeparateCoordinates):
    least_convexity = 0.01


class Concave(SeparateCoordinates):
    least_convexity = -0.5


@pytest.mark.parametrize("name", ["dvp", "m_admm"])
@pytest.mark.parametrize("jacobian", ["paper", "tight"])
def test_the_jacobian_term_covers_hessians_of_any_rank(name, jacobian):
    problem = Convex(np.ones((3, 20)))
    network = networks.build(Streams(0, (0,)), "complete", 3)
    algorithm = algorithms.load(name)(jacobian=jacobian, D=1.0, noise=1e9, calibration="given")
    (release,) = algorithm.releases(problem, network, 1)
    # At x = 0, all second derivatives of a record are 1/4 for one data set and 0 for the other.
    log_ratio = 20 * np.log((1.0 + 0.01 + 0.25) / (1.0 + 0.01))
    assert release.losses() >= log_ratio


def test_a_problem_without_declared_convexity_has_no_bound_that_needs_it():
    problem = SeparateCoordinates(np.ones((3, 20)))
    network = networks.build(Streams(0, (0,)), "complete", 3)
    with pytest.raises(InvalidInput, match=r"problem\.least_convexity"):
        problem.minimiser_change("l2", 1.0)
    for name in ("p_admm", "dvp", "one_shot_averaging", "exact_admm", "ipp_admm"):
        with pytest.raises(InvalidInput, match="least_convexity"):
            algorithms.load(name)().check_needs(problem)
    zip_dl = algorithms.load("zip_dl")(eta=1.0, noise=1.0)
    (release,) = zip_dl.releases(problem, network, 2)
    assert np.isinf(release.losses()).all()
    (release,) = zip_dl.releases(Convex(problem.signs), network, 2)
    assert np.isfinite(release.losses()).all()


def test_a_negative_convexity_is_no_convexity():
    problem = Concave(np.ones((3, 20)))
    network = networks.build(Streams(0, (0,)), "complete", 3)
    with pytest.raises(InvalidInput, match=r"problem\.least_convexity"):
        problem.minimiser_change("l2", 1.0)
    with pytest.raises(InvalidInput, match=r"problem\.least_convexity"):
        algorithms.load("exact_admm")(noise=1.0).releases(problem, network, 2)
    (release,) = algorithms.load("zip_dl")(eta=1.0, noise=1.0).releases(problem, network, 2)
    assert np.isinf(release.losses()).all()


@dataclass(frozen=True)
class LongRows(LogisticRegression):
    """Logistic regression whose universe has rows of norm 10."""

    record_gradient_change = 20.0
    record_curvature = 25.0


@pytest.mark.parametrize(
    ("name", "options"),
    [("one_shot_averaging", {"perturbed": "objective"}), ("pp_admm_renyi", {"output_noise": 1.0})],
)
def test_objective_perturbation_uses_the_declared_gradients(name, options):
    rows = np.zeros((3, 5, 2))
    network = networks.build(Streams(0, (0,)), "complete", 3)
    algorithm = algorithms.load(name)(**{**options, "noise": 1.0, "D": 100.0})
    data = rows, np.ones((3, 5)), rows[0], np.ones(5), 1.0, 0.1
    problems = LogisticRegression(*data), LongRows(*data)
    profiles = [algorithm.releases(problem, network, 1)[0].profile for problem in problems]
    assert [profile.mu for profile in profiles] == [2.0, 20.0]
    assert profiles[1].kappa == pytest.approx(100 * profiles[0].kappa)


@pytest.mark.parametrize("change", [np.nan, -1.0, np.array([1.0, 2.0])])
def test_an_invalid_bound_on_the_change_of_a_gradient_is_refused(change):
    class Invalid(MeanEstimation):
        record_gradient_change = change

    with pytest.raises(InvalidInput, match=r"problem\.record_gradient_change"):
        Invalid(np.zeros((1, 3, 2)), 5, 1.0).record_change("l2")
