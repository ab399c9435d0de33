"""Test that neighbouring data sets attain the fractions of the sensitivity that problems state."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import laplace, norm

from private_consensus import networks
from private_consensus.core.algorithms.base import BoundedGradients
from private_consensus.core.algorithms.dp_admm import DPADMM
from private_consensus.core.algorithms.dp_ci import DPCI
from private_consensus.core.algorithms.dvp import DualVariablePerturbation
from private_consensus.core.algorithms.exact_admm import ExactADMM
from private_consensus.core.algorithms.fair_classification import FairClassification
from private_consensus.core.algorithms.ipp_admm import ImprovedPlausiblyPrivateADMM
from private_consensus.core.algorithms.pp_admm import PlausiblyPrivateADMM
from private_consensus.core.lower_bounds import attack_on, lower_bound_of
from private_consensus.core.lower_bounds.fairness import _attained
from private_consensus.core.problems import linear_observation
from private_consensus.core.problems.fair_classification import FairLogisticRegression
from private_consensus.core.problems.lasso import Lasso
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget, account
from private_consensus.privacy.functional import Sensitivity, pair_l1, weights

DIM, RECORDS = 4, 6
RNG = np.random.default_rng(20_261_122)
NETWORK = networks.build(Streams(1, (0,), {"graph": "t"}), "ring", agents=3)


def logistic(row, label, *, weight=0.7, ridge=0.2, box=np.inf, agents=1):
    """Return a problem with one record; all other rows are 0."""
    features = np.zeros((agents, RECORDS, DIM))
    labels = np.ones((agents, RECORDS))
    features[:, 0], labels[:, 0] = row, label
    nothing = np.zeros((1, DIM)), np.ones(1)
    return LogisticRegression(features, labels, *nothing, weight, ridge, box)


def pair(row, **options):
    return logistic(row, 1.0, **options), logistic(row, -1.0, **options)


def unit(rng):
    row = rng.normal(size=DIM)
    return row / np.linalg.norm(row)


def test_flipping_a_label_changes_a_logistic_gradient_by_the_stated_fraction():
    positive_problem, negative_problem = pair(unit(RNG))
    x = 5 * RNG.normal(size=(200, 1, DIM))
    change = np.linalg.norm(positive_problem.gradient(x) - negative_problem.gradient(x), axis=-1)
    assert change == pytest.approx(
        positive_problem.attained_gradient_share("l2") * positive_problem.record_change("l2")
    )
    positive_problem, negative_problem = pair(np.eye(DIM)[1])
    change = np.abs(positive_problem.gradient(x) - negative_problem.gradient(x))
    assert (change[..., [0, 2, 3]] == 0).all()
    assert change.sum(-1) == pytest.approx(
        positive_problem.attained_gradient_share("l1") * positive_problem.record_change("l1")
    )


@pytest.mark.parametrize("curvature", [0.1, 3.0])
def test_flipping_a_label_changes_a_minimiser_by_at_least_the_stated_fraction(curvature):
    positive_problem, negative_problem = pair(unit(RNG))
    centre, linear = 3 * RNG.normal(size=(2, 300, 1, DIM))
    minimisers = [
        p.proximal(linear, np.full((1, 1), curvature), centre, centre)
        for p in (positive_problem, negative_problem)
    ]
    change = np.linalg.norm(minimisers[0] - minimisers[1], axis=-1)
    share = positive_problem.attained_minimiser_share("l2", curvature)
    bound = share * positive_problem.minimiser_change("l2", curvature)
    assert change.min() >= bound * (1 - 1e-8)
    assert change.min() < 1.2 * bound
    assert change.max() <= positive_problem.minimiser_change("l2", curvature)


def test_nearly_opposite_rows_reach_the_stated_gradient_change_at_a_distant_point():
    """The attack holds for any noise on other coordinates with the signs of the change."""
    small, far = 1e-3, 1e6
    a = np.array([1.0, 1, 1, 0]) * np.sqrt((1 - 4 * small**2) / 3)
    b = -a
    a[3], b[3] = -small, -2 * small
    z, x = np.stack([a, b]), 20 * np.sign(a - b) + np.array([0, 0, 0, far])
    change = [p.gradient(x[None, None]) for p in (logistic(row, 1.0) for row in z)]
    problem = logistic(a, 1.0)
    for norm_name, order in (("l1", 1), ("l2", 2)):
        moved = np.linalg.norm((change[0] - change[1]).ravel(), order)
        stated = problem.reached_gradient_share(norm_name) * problem.record_change(norm_name)
        assert moved == pytest.approx(stated, rel=2e-3)


def test_disjoint_rows_reach_the_stated_gradient_change_for_labels_zero_and_one():
    """The attack holds for any noise on other coordinates with the signs of the change."""
    small, far, dim = 1e-3, 1e6, 14
    rows = np.zeros((2, dim))
    rows[0, :6], rows[1, 6:13] = np.sqrt((1 - small**2) / 6), np.sqrt((1 - small**2) / 7)
    rows[:, 13] = small
    x = 20 * np.sign(rows[0] - rows[1])
    x[13] = -far
    constants = {"weight": 1.0, "ridge": 0.1, "coding": "zero_one", "nonnegative": True}
    one = np.ones((1, 1))
    first, second = (
        LogisticRegression(row[None, None], one, row[None], one[0], **constants) for row in rows
    )
    moved = np.abs(first.gradient(x[None, None]) - second.gradient(x[None, None])).sum()
    stated = first.reached_gradient_share("l1") * first.record_change("l1")
    assert moved == pytest.approx(stated, rel=2e-3)


def test_with_zero_one_coding_no_attained_fraction_is_stated():
    features, labels = np.zeros((1, 2, DIM)), np.array([[0.0, 1.0]])
    constants = {"weight": 1.0, "ridge": 0.1, "coding": "zero_one"}
    problem = LogisticRegression(features, labels, features[0], labels[0], **constants)
    assert problem.attained_gradient_share("l2") is None
    assert problem.attained_minimiser_share("l2", 1.0) is None
    assert problem.reached_gradient_share("l1") is None


@pytest.mark.parametrize(("name", "order"), [("l1", 1), ("l2", 2)])
def test_opposite_corners_or_faces_attain_the_stated_change_of_a_mean(name, order):
    record = np.full(DIM, 2.0) if name == "l2" else 2.0 * np.eye(DIM)[0]
    corners = [MeanEstimation(end[None, None] / 5, 5, 2.0) for end in (record, -record)]
    gradients = [problem.gradient(np.zeros((1, 1, 1, DIM))).ravel() for problem in corners]
    stated = corners[0].attained_gradient_share(name) * corners[0].record_change(name)
    assert np.linalg.norm(np.subtract(*gradients), order) == pytest.approx(stated)


def squared(row_length, sign, bound, *, penalty=0.1, weight=0.5):
    """Return a problem with one record of squared loss and gradient norm ``bound`` at 0."""
    features, responses = np.zeros((1, 1, 3, DIM)), np.zeros((1, 1, 3))
    features[..., 0, 0], responses[..., 0] = row_length, sign * bound / (2 * row_length)
    return Lasso(features, responses, weight, penalty)


def test_short_rows_attain_the_stated_fraction_under_an_assumed_gradient_bound():
    bound, reach = 1.5, 50.0
    pairs = [squared(1e-4, sign, bound) for sign in (1.0, -1.0)]
    x = RNG.uniform(-reach, reach, (200, 1, 1, DIM))
    for problem in pairs:  # the gradient of the record satisfies the bound
        record_gradient_norm = np.linalg.norm(problem.smooth_gradient(x), axis=-1) / problem.weight
        assert record_gradient_norm.max() <= bound * (1 + 1e-5)
    change = np.linalg.norm(pairs[0].gradient(x) - pairs[1].gradient(x), axis=-1)
    assumed = BoundedGradients(pairs[0], bound)
    allowed = assumed.record_change("l2")
    assert change == pytest.approx(assumed.attained_gradient_share("l2") * allowed)
    h = np.full((1, 1, 1, 1), 3.0)
    solved = [p.proximal(np.zeros(DIM), h, x, x) for p in pairs]
    change = np.linalg.norm(solved[0] - solved[1], axis=-1) * 3.0
    share = assumed.attained_minimiser_share("l2", 3.0)
    assert 0.8 < share < 1
    assert share * allowed * (1 - 1e-6) <= change.min() < change.max() <= allowed * (1 + 1e-6)
    penalised = BoundedGradients(squared(1e-4, 1.0, bound, penalty=1.0), bound)
    assert penalised.attained_minimiser_share("l2", 3.0) == 0.0


def test_under_an_assumed_gradient_bound_lower_and_upper_epsilon_are_close():
    """With Gaussian noise and an attained sensitivity, lower and upper bound agree."""
    single = squared(0.5, 1.0, 1.0)
    shape = 1, NETWORK.n_agents, 3
    problem = replace(
        single, features=np.broadcast_to(single.features, (*shape, DIM)),
        responses=np.broadcast_to(single.responses, shape),
    )  # fmt: skip
    for algorithm in (DPADMM(c1=1.0), ExactADMM(c1=1.0)):
        noisy = algorithm.calibrate(Budget(0.5, 1e-4), problem, NETWORK, 5)
        assert account(noisy.releases(problem, NETWORK, 5), 1e-4).epsilon == np.inf
        assumed = noisy.releases_if_assumed(problem, NETWORK, 5)
        lower = lower_bound_of(noisy, noisy.bounded(problem), NETWORK, 5, 1e-4).epsilon
        upper = account(assumed, 1e-4).epsilon
        assert 0.7 * upper < lower <= upper
        assert lower == pytest.approx(upper) or isinstance(noisy, ExactADMM)


@pytest.mark.parametrize("penalty", [0.1, 0.5])
def test_extreme_responses_change_a_huber_minimiser_by_the_stated_fraction(penalty):
    features = np.zeros((1, 1, 3, DIM))
    features[..., 0, 0] = 1.0
    responses = np.zeros((1, 1, 3))
    responses[..., 0] = 1e6
    common = {"weight": 1.0, "penalty": penalty, "gradient_bound": 1.0, "row_bound": 1.0}
    high_problem, low_problem = (
        Lasso(features, responses, **common),
        Lasso(features, -responses, **common),
    )
    centre = RNG.normal(size=(400, 1, 1, DIM))
    curvature = np.full((1, 1, 1, 1), 2.0)
    solved = [
        p.proximal(0.0 * centre, curvature, centre, centre) for p in (high_problem, low_problem)
    ]
    change = np.linalg.norm(solved[0] - solved[1], axis=-1).min()
    stated = high_problem.attained_minimiser_share("l2", 2.0) * high_problem.minimiser_change(
        "l2", 2.0
    )
    assert stated * (1 - 1e-9) <= change < stated * 1.01


def test_squared_loss_has_infinite_sensitivity_and_attained_fraction_1():
    problem = Lasso(np.ones((1, 1, 2, DIM)), np.zeros((1, 1, 2)), 1.0, 0.1)
    assert problem.record_change("l2") == np.inf
    assert problem.attained_gradient_share("l2") == problem.attained_minimiser_share("l2", 1) == 1.0


def test_a_label_flip_equals_a_shift_of_the_objective_noise_by_the_weighted_row():
    """Noise b on one data set and b + w z on the other one give equal minimisers."""
    row = unit(RNG)
    positive_problem, negative_problem = pair(row)
    b, centre = RNG.normal(size=(2, 50, 1, DIM))
    curvature = np.full((1, 1), 0.8)
    first = positive_problem.proximal(b, curvature, centre, centre)
    second = negative_problem.proximal(b - positive_problem.weight * row, curvature, centre, centre)
    np.testing.assert_allclose(first, second, atol=1e-8)
    hessians = [p.hessian(first) for p in (positive_problem, negative_problem)]
    np.testing.assert_allclose(*hessians, atol=1e-12)


def test_objective_perturbation_has_a_lower_bound_near_epsilon_at_delta_0():
    problem = logistic(np.eye(DIM)[0], 1.0, weight=0.01, ridge=0.01, agents=3)
    for law, min_fraction in (("laplace", 0.8), ("gamma_norm", 0.9)):
        algorithm = DualVariablePerturbation(law=law, eta=2.0, jacobian="tight")
        for delta in (0.0, 1e-4):
            noisy = algorithm.calibrate(Budget(1.0, delta), problem, NETWORK, 10)
            releases = noisy.releases(problem, NETWORK, 10)
            lower = lower_bound_of(noisy, problem, NETWORK, 10, delta).epsilon
            upper = account(releases, delta).epsilon
            assert (min_fraction if delta == 0 else 0.1) * upper < lower <= upper


@pytest.mark.parametrize("mean", [-2.0, 0.0, 1.5])
def test_the_trade_off_curve_is_at_most_that_of_the_stated_gaussian_shift(mean):
    """The trade-off curve of a message is at most that of the Gaussian shift."""
    w, h, dual, output = 1.0, 1.3, 0.8, 0.5
    margins, u = np.linspace(-40, 40, 40_001), np.linspace(-9, 9, 3001)

    def upper_tail(label, t):
        noise = h * (mean - margins) + w * label * expit(-label * margins)  # falls with the margin
        m = np.interp(-dual * u, -noise, margins)
        return np.trapezoid(norm.pdf(u) * norm.sf((t - m) / output), u)

    shift = w / (1 + w / 4 / h) / np.hypot(dual, output)
    for t in (mean - 1, mean, mean + 1):
        positive_tail, negative_tail = upper_tail(1.0, t), upper_tail(-1.0, t)
        assert positive_tail >= norm.cdf(norm.ppf(negative_tail) + shift) - 1e-7


def test_pp_admm_has_a_positive_lower_bound_on_epsilon_unless_solved_coarsely():
    problem = logistic(np.eye(DIM)[0], 1.0, weight=0.05, ridge=0.01, agents=3)
    for perturbed in ("objective", "output"):
        algorithm = PlausiblyPrivateADMM(perturbed=perturbed, eta=2.0, beta=1e-5)
        noisy = algorithm.calibrate(Budget(1.0, 1e-4), problem, NETWORK, 10)
        releases = noisy.releases(problem, NETWORK, 10)
        lower = lower_bound_of(noisy, problem, NETWORK, 10, 1e-4).epsilon
        upper = account(releases, 1e-4).epsilon
        assert 0.25 * upper < lower < upper
    coarse = replace(noisy, beta=0.05)
    assert lower_bound_of(coarse, problem, NETWORK, 10, 1e-4).epsilon == 0


@pytest.mark.parametrize(
    ("tested", "inner"), [("minimiser", 0.3), ("noised", 0.3), ("noised", 0.0)]
)
def test_the_lower_bound_of_ipp_admm_agrees_with_numerical_integration(tested, inner):
    """The distribution of one message or none on both data sets agrees with the bound."""
    weight, outer, lines, queries, alpha = 0.4, 0.2, 30.0, 20.0, 0.05
    features, labels = np.zeros((2, 1, 3, 1)), np.ones((2, 1, 3))
    features[:, 0, 0], labels[1, 0, 0] = 1.0, -1.0
    nothing = np.zeros((1, 1)), np.ones(1)
    pair = [
        LogisticRegression(z, y, *nothing, weight, 0.1)
        for z, y in zip(features, labels, strict=True)
    ]
    network = networks.build(Streams(1, (0,), {"graph": "t"}), "path", agents=2)
    algorithm = ImprovedPlausiblyPrivateADMM(
        perturbed="objective" if inner else "output", calibration="given", noise=inner,
        output_noise=outer, ridge=0.1, beta=1e-12, c=1, eta=0.5,
        alpha=alpha, tested=tested, threshold_drawn="once", threshold_noise=lines,
        query_noise=queries, svt_epsilon=1.0,
    )  # fmt: skip
    h = 0.1 + float(algorithm.penalty(network, 1).min())
    x, rho = np.linspace(-3, 3, 1201), np.linspace(-12, 12, 1201)
    threshold = laplace.pdf(rho) / laplace.pdf(rho).sum()

    def outcome(problem):
        """Return the probability of no message, and the density of the message on x."""
        y = problem.labels[0, 0]
        minimiser = np.linspace(-3, 3, 1201)
        if inner:  # change of variables from the noise in the objective
            b = -h * minimiser + weight * y * expit(-y * minimiser)
            slope = h + weight * expit(minimiser) * expit(-minimiser)
            law = norm.pdf(b / inner) / inner * slope
            law /= law.sum()
        else:
            root = brentq(lambda m: h * m - weight * y * expit(-y * m), -3, 3)
            minimiser, law = np.array([root]), np.ones(1)

        def sent(at):
            gained = (np.log(2) - np.minimum(np.log1p(np.exp(-y * at)), 2.0)) / 3
            lifted = (alpha + lines * rho - gained[..., None]) / queries
            return laplace.sf(lifted) @ threshold

        noise = norm.pdf((x[:, None] - minimiser) / (outer / h)) * h / outer
        density = (
            noise @ (law * sent(minimiser)) if tested == "minimiser" else sent(x) * (noise @ law)
        )
        return 1 - np.trapezoid(density, x), density

    (positive_silence, positive_density), (negative_silence, negative_density) = map(outcome, pair)
    both = replace(
        pair[0], features=np.tile(features[0], (2, 1, 1)), labels=np.tile(labels[0], (2, 1))
    )
    for delta in (1e-3, 0.03):
        epsilon = lower_bound_of(algorithm, both, network, 1, delta).epsilon
        assert epsilon > 0
        excess = np.trapezoid(
            np.maximum(positive_density - np.exp(epsilon) * negative_density, 0), x
        )
        assert excess + max(positive_silence - np.exp(epsilon) * negative_silence, 0) >= delta


def test_ipp_admm_has_a_positive_lower_bound_on_epsilon_unless_solved_coarsely():
    problem = logistic(np.eye(DIM)[0], 1.0, weight=0.05, ridge=0.01, agents=3)
    bounds = {}
    for key, options in {
        "coin": {"decision": "coin"}, "once": {"threshold_drawn": "once"},
        "literal": {"svt_sensitivity": "printed"}, "coarse": {"beta": 0.5, "decision": "coin"},
    }.items():  # fmt: skip
        algorithm = ImprovedPlausiblyPrivateADMM(
            eta=2.0, c=3, alpha=-1.0, **{"beta": 1e-5} | options
        )
        noisy = algorithm.calibrate(Budget(1.0, 1e-4), problem, NETWORK, 10)
        releases = noisy.releases(problem, NETWORK, 10)
        bounds[key] = lower_bound_of(noisy, problem, NETWORK, 10, 1e-4)
        assert bounds[key].epsilon < account(releases, 1e-4).epsilon
    least = [bounds[key].epsilon for key in ("coin", "once", "literal")]
    assert min(least) > 0.1
    assert bounds["coarse"].epsilon == 0


def test_a_changed_measurement_stream_attains_the_stated_loss_of_dp_ci():
    streams = Streams(3, (0,), {"data": "t"})
    problem = linear_observation.build(streams, 5, **linear_observation.EXAMPLE)
    algorithm = DPCI(noise=2.0, unit="stream", delta=0.2)
    ring = networks.build(streams, "ring", agents=5)
    declared = algorithm.releases(problem, ring, 20)
    (release,) = attack_on(algorithm)(algorithm, problem, ring, 20, declared)
    times = np.arange(20)
    moved = np.array([
        [algorithm.step_size(t) * 0.2 * np.abs(H[0]).sum() for H in problem.matrices(t)]
        for t in times
    ])  # fmt: skip
    losses = moved / np.asarray(release.scale)[:, None]
    attained = np.asarray(release.reached) * release.losses()
    assert attained.sum() == pytest.approx(losses.sum(0).max())
    assert account([release], 0.0).epsilon >= attained.sum()


def test_pair_l1_equals_the_change_of_coefficients_between_two_records():
    rng = np.random.default_rng(4)
    for columns, width in ((5, 2), (5, 3), (5, 5), (6, 4)):
        first, second = rng.normal(size=(2, 2))
        first_row, second_row = np.zeros((2, columns))
        first_row[:width] = second_row[-width:] = 1 / np.sqrt(width)
        linear = np.abs(np.outer(first, first_row) - np.outer(second, second_row)).sum()
        products = (
            np.abs(np.outer(first_row, first_row) - np.outer(second_row, second_row)).sum() / 8
        )
        assert pair_l1(columns, width, first, second) == pytest.approx(linear + products)


@pytest.mark.parametrize("fair", ["off", "penal"])
def test_a_known_pair_is_within_the_bounds_of_the_functional_mechanism(fair):
    tight = Sensitivity(12, fair, 0.3)
    reached = tight.reached_laplace_loss(1.0, 1.0, 0)
    assert 0.5 * tight.l1 < reached <= tight.l1
    for scales in ((2.0, 1.0, 3), (1.0, 2.0, 3)):
        assert tight.reached_laplace_loss(*scales) <= tight.laplace_loss(*scales)
    assert not Sensitivity(12, "penal", 0.3, public_mean=False).known


@pytest.mark.parametrize("fair", ["off", "penal"])
def test_records_with_equal_rows_attain_the_stated_l2_change(fair):
    """Enumeration of all coefficients: products are equal, and weights are opposite."""
    tight, row = Sensitivity(3, fair, 0.3), np.eye(3)[1]
    changes = [
        np.linalg.norm(np.outer(first, row) - np.outer(second, row))
        for first in weights(fair, 0.3)
        for second in weights(fair, 0.3)
    ]
    assert tight.same_row_l2 == pytest.approx(max(changes))
    assert tight.same_row_l2 <= tight.l2 * (1 + 1e-12)
    noises = (0.5, 2.0, 1)
    worst = tight.gaussian_loss(*noises)
    fields = _attained("gaussian", tight, noises, worst, 3)
    assert fields["attained"] * worst == pytest.approx(max(changes) / 0.5)


def test_a_fairness_term_of_weight_0_does_not_change_the_lower_bound():
    rng = np.random.default_rng(2)
    rows = rng.dirichlet(np.ones(4), 30)
    none = lambda *names: np.array([], int)  # noqa: E731
    problem = FairLogisticRegression(
        rows, np.arange(30) % 2, np.arange(30) % 3 % 2, np.array([[29]]), none
    )
    single = networks.build(Streams(1, (0,)), "single", agents=1)
    for law, delta in (("laplace", 0.0), ("gaussian", 1e-3)):
        bounds = {}
        for fair, alpha in (("off", 1.0), ("penal", 0.0), ("penal", 1.0)):
            algorithm = FairClassification(mechanism=law, fair=fair, alpha=alpha, noise_rest=9.0)
            bounds[fair, alpha] = lower_bound_of(algorithm, problem, single, 1, delta).epsilon
        assert bounds["penal", 0.0] == pytest.approx(bounds["off", 1.0])
        assert 0 < bounds["penal", 0.0] < bounds["penal", 1.0]
