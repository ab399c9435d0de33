"""Test private and fair classification (Ding): minima, sensitivities, privacy, metrics."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observed import run, running
from private_consensus import networks
from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.fair_classification import (
    FairClassification,
    extended_gaussian_epsilon,
)
from private_consensus.core.algorithms.families.functional_mechanism import paper_sensitivity
from private_consensus.core.algorithms.logistic import Logistic
from private_consensus.core.algorithms.pflr import Pflr
from private_consensus.core.claims import claims_of
from private_consensus.core.problems import fair_classification as fair
from private_consensus.core.randomness import Streams
from private_consensus.core.solvers import quadratics
from private_consensus.privacy import (
    Budget,
    account,
    analytic_gaussian_scale,
    extended_gaussian_scale,
    gaussian_delta,
)
from private_consensus.privacy.functional import Sensitivity, covariance_l1, weights

DIM, ROWS, DELTA = 6, 400, 1e-3
NAMES = ("age", "work=a", "work=b", "race", "hours", "gain")


def prepared_rows(seed: int = 0, **changes):
    """Return rows with features in [0, 1/sqrt(d)] and dependent labels and groups."""
    draw = np.random.default_rng(seed)
    features = draw.random((ROWS, DIM)) / np.sqrt(DIM)
    labels = np.where(features @ [4, 1, -2, 1, 3, -4] + draw.normal(0, 0.4, ROWS) > 0.7, 1, -1)
    sex = (features[:, 0] + draw.normal(0, 0.2, ROWS) > 0.15).astype(np.int8)

    def columns_of(*attributes):
        return np.array([i for i, c in enumerate(NAMES) if c.partition("=")[0] in attributes], int)

    fields = {
        "features": features,
        "labels": labels,
        "protected": {"sex": sex, "constant": np.ones(ROWS), "kinds": np.arange(ROWS) % 3},
        "columns_of": columns_of,
    }
    return SimpleNamespace(**{**fields, **changes})


@pytest.fixture
def problem(streams):
    return fair.build(streams, 1, prepared=prepared_rows(), protected="sex")


@pytest.fixture
def network(streams):
    return networks.build(streams, "single", 1)


def released(algorithm, problem, network, streams):
    return run(algorithm, problem, network, streams, 1)[1]["released"][0, :, 0]


# --- Minima ------------------------------------------------------------------------------------


def random_problems(count: int, dim: int = 5, seed: int = 1, indefinite: bool = False):
    draw = np.random.default_rng(seed)
    root = draw.normal(size=(count, dim, dim))
    matrix = root @ np.swapaxes(root, -1, -2) / dim + (-0.6 if indefinite else 0.5) * np.eye(dim)
    return matrix, draw.normal(size=(count, dim)), draw.normal(size=(count, dim))


def value(matrix, linear, absolute, w):
    return w @ matrix @ w + linear @ w + abs(absolute @ w)


def by_cvxpy(matrix, linear, absolute):
    import cvxpy as cp  # slow to import

    w = cp.Variable(len(linear))
    objective = cp.quad_form(w, cp.psd_wrap(matrix)) + linear @ w + cp.abs(absolute @ w)
    tight = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13, "max_iter": 500}
    cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL, **tight)
    return w.value


@pytest.mark.parametrize("strength", [0.1, 1.0, 10.0])
def test_minimisers_with_an_absolute_value_match_a_convex_solver(strength):
    matrix, linear, absolute = random_problems(20)
    minimisers = quadratics.minimise(matrix, linear, strength * absolute)
    on_the_fold = 0
    for case in zip(matrix, linear, strength * absolute, minimisers, strict=True):
        reference = by_cvxpy(*case[:3])
        assert value(*case[:3], case[3]) == pytest.approx(value(*case[:3], reference), abs=1e-8)
        assert value(*case) <= value(*case[:3], reference) + 1e-12
        assert np.allclose(case[3], reference, atol=1e-5)
        on_the_fold += abs(case[2] @ case[3]) < 1e-9
    assert on_the_fold > 0


def test_trimming_minimises_over_directions_of_positive_curvature():
    matrix, linear, absolute = random_problems(30, seed=4, indefinite=True)
    minimisers = quadratics.minimise(matrix, linear, absolute)
    values, vectors = np.linalg.eigh(matrix)
    for case in zip(matrix, linear, absolute, values, vectors, minimisers, strict=True):
        basis = case[4][:, case[3] > 0]
        inside = [basis.T @ case[0] @ basis, case[1] @ basis, case[2] @ basis]
        best = value(*inside, by_cvxpy(*inside))
        assert np.allclose(case[4][:, case[3] <= 0].T @ case[5], 0, atol=1e-10)
        assert value(*case[:3], case[5]) == pytest.approx(best, abs=1e-8)


def test_without_noise_the_result_is_the_closed_form(problem, network, streams):
    coefficients = problem.coefficients
    closed = -np.linalg.solve(coefficients.quadratic, coefficients.linear[..., None])[..., 0] / 2
    free = FairClassification(fair="off").calibrate(Budget(np.inf, 0.0), problem, network, 1)
    assert np.allclose(released(free, problem, network, streams), closed, atol=1e-9)


def objective(problem, w):
    """Return the objective (102) of models, without its constant, as a sum over the records."""
    margins, trains = w @ problem.features.T, problem.in_training().T
    losses = (0.5 - problem.labels) * margins + margins**2 / 8
    covariance = ((problem.protected - problem.mean) * margins * trains).sum(-1)
    return (losses * trains).sum(-1) + np.abs(covariance)


def test_the_fairness_term_is_minimised_and_reduces_the_covariance(problem, network, streams):
    coefficients = problem.coefficients
    plain = released(FairClassification(fair="off"), problem, network, streams)
    w = released(FairClassification(), problem, network, streams)
    assert (
        np.abs(np.vecdot(coefficients.covariance, w))
        < np.abs(np.vecdot(coefficients.covariance, plain))
    ).all()
    best = objective(problem, w)
    shifted = w + np.random.default_rng(0).normal(0, 0.1, (50, *w.shape))
    assert (objective(problem, shifted) > best).all()
    away = w + 1.0  # away from the kink of the absolute value
    step = 1e-6 * np.eye(DIM)
    slope = [(objective(problem, away + s) - objective(problem, away - s)) / 2e-6 for s in step]
    assert np.allclose(np.stack(slope, -1), problem.gradient(away[:, None])[:, 0], rtol=1e-5)


# --- Data and coefficients ---------------------------------------------------------------------


def test_coefficients_are_sums_over_the_training_rows(problem):
    for index in range(len(problem.test)):
        train = np.setdiff1d(np.arange(ROWS), problem.test[index])
        x, y, z = problem.features[train], problem.labels[train], problem.protected[train]
        coefficients, mean = problem.coefficients, problem.protected.mean()
        assert np.allclose(coefficients.quadratic[index], x.T @ x / 8)
        assert np.allclose(coefficients.linear[index], (0.5 - y) @ x)
        assert np.allclose(coefficients.covariance[index], (z - mean) @ x)


def test_runs_have_separate_splits_that_do_not_depend_on_the_number_of_runs(streams):
    test_rows = fair.build(streams, 1, prepared=prepared_rows(), protected="sex").test
    assert len({tuple(sorted(rows)) for rows in test_rows}) == len(test_rows) == 12
    more_streams = Streams(streams.root, tuple(range(20)), streams.groups)
    assert np.array_equal(
        test_rows, fair.build(more_streams, 1, prepared=prepared_rows(), protected="sex").test[:12]
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protected": "height"}, "problem.protected: found 'height', expected one of sex"),
        ({"protected": "constant"}, "constant with 1 value', expected .* two values"),
        (
            {"prepared": prepared_rows(features=-np.ones((ROWS, DIM)) / 9)},
            r"coordinate 0\]: found -0.1",
        ),
        ({"prepared": prepared_rows(features=np.ones((ROWS, DIM)))}, r"\[row 0\]: found 2.4"),
        ({"prepared": prepared_rows(labels=np.ones(ROWS))}, "both labels in both groups"),
    ],
)
def test_invalid_data_and_options_are_refused(streams, changes, message):
    with pytest.raises(InvalidInput, match=message):
        fair.build(streams, 1, **{"prepared": prepared_rows(), "protected": "sex", **changes})


def test_metrics_match_fairlearn(problem, network, streams):
    import fairlearn.metrics as oracle  # slow to import

    algorithm = FairClassification(fair="off").calibrate(Budget(50.0, 0.0), problem, network, 1)
    w = run(algorithm, problem, network, streams, 1)[1]["released"]
    w = np.concatenate([w, np.ones_like(w), -np.ones_like(w)])  # also all or none positive
    measured = {name: problem.measure(name, w) for name in problem.metrics}
    for setting, index in product(range(3), range(4)):
        rows = problem.test[index]
        y, z = problem.labels[rows], problem.protected[rows]
        predictions = (problem.features[rows] @ w[setting, index, 0] > 0).astype(int)
        expected = {
            "accuracy": (predictions == y).mean(),
            "error": (predictions != y).mean(),
            "positive_share": predictions.mean(),
            "majority_accuracy": max(y.mean(), (1 - y).mean()),
            "risk_difference": oracle.demographic_parity_difference(
                y, predictions, sensitive_features=z
            ),
        }
        for name, number in expected.items():
            assert measured[name][setting, index] == pytest.approx(number, abs=1e-12), name


def test_the_logistic_fit_has_a_zero_gradient_on_the_training_rows(problem, network, streams):
    ridge = 1e-2
    w = released(Logistic(ridge=ridge), problem, network, streams)
    for index in range(len(w)):
        train = np.setdiff1d(np.arange(ROWS), problem.test[index])
        x, y = problem.features[train], problem.labels[train]
        slope = x.T @ (1 / (1 + np.exp(-x @ w[index])) - y) + ridge * w[index]
        assert np.linalg.norm(slope) < 1e-8
    with pytest.raises(InvalidInput, match="inf, since this algorithm is not private"):
        Logistic().calibrate(Budget(1.0, 0.0), problem, network, 1)


# --- Sensitivities -----------------------------------------------------------------------------


def coefficients_of(x, weight):
    """Return linear and quadratic coefficients of one record, with their columns."""
    d = len(x)
    pairs = np.array(list(product(range(d), repeat=2)))
    quadratic = np.outer(x, x)[tuple(pairs.T)] / 8
    linear = np.outer(weight, x)
    columns = [{j} for _ in weight for j in range(d)] + [set(map(int, p)) for p in pairs]
    return np.concatenate([linear.ravel(), quadratic]), columns


unit = st.floats(0, 1, allow_nan=False)
rows_of_ball = st.lists(unit, min_size=DIM, max_size=DIM).map(
    lambda v: np.array(v) / max(1.0, np.linalg.norm(v))
)


@pytest.mark.parametrize("kind", ["off", "penal"])
@settings(max_examples=60, deadline=None, derandomize=True)
@given(x=rows_of_ball, replacement=rows_of_ball, mean=unit, pick=st.tuples(unit, unit))
def test_a_replaced_record_changes_coefficients_by_at_most_the_tight_sensitivities(
    kind, x, replacement, mean, pick
):
    options = weights(kind, mean)
    record_weights = [options[min(int(p * len(options)), len(options) - 1)] for p in pick]
    before, columns = coefficients_of(x, record_weights[0])
    after, _ = coefficients_of(replacement, record_weights[1])
    change = np.abs(before - after)
    tight = Sensitivity(DIM, kind, mean)
    assert change.sum() <= tight.l1 + 1e-12
    assert np.linalg.norm(change) <= tight.l2 + 1e-12
    assert tight.l1 <= paper_sensitivity("l1", DIM, fair=kind != "off") + 1e-12
    assert tight.l2 <= paper_sensitivity("l2", DIM, fair=kind != "off") + 1e-12
    for selected in ({0}, {1, 2}):
        inside = np.array([bool(c & selected) for c in columns])
        selected_change, remaining_change = change[inside].sum(), change[~inside].sum()
        assert selected_change <= tight.part_l1(len(selected)) + 1e-12
        assert remaining_change <= tight.rest_l1(len(selected)) + 1e-12
        for scales in ((1.0, 7.0), (7.0, 1.0)):
            loss = selected_change / scales[0] + remaining_change / scales[1]
            assert loss <= tight.laplace_loss(*scales, len(selected)) + 1e-12
            mu = np.hypot(
                np.linalg.norm(change[inside]) / scales[0],
                np.linalg.norm(change[~inside]) / scales[1],
            )
            assert mu <= tight.gaussian_loss(*scales, len(selected)) + 1e-12


@pytest.mark.parametrize(
    ("kind", "expected", "first", "second"),
    [
        ("off", 1.0, 0, 1),  # y flipped
        ("penal", np.sqrt(2), 1, 2),  # (y, z) = (0, 1) and (1, 0)
    ],
)
def test_worst_pairs_attain_the_tight_l2_sensitivity(kind, expected, first, second):
    x = np.full(DIM, 1 / np.sqrt(DIM))
    options = np.array([[0.5], [-0.5]]) if kind == "off" else weights(kind, 0.4)
    pair = [coefficients_of(x, options[i])[0] for i in (first, second)]
    assert np.linalg.norm(pair[0] - pair[1]) == pytest.approx(expected)
    assert Sensitivity(DIM, kind, 0.4).l2 == pytest.approx(expected)


def test_orthogonal_rows_attain_the_l2_sensitivity_for_a_rare_group():
    """With one record in a thousand in the group, the weights of both changes add up."""
    tight = Sensitivity(DIM, "penal", 0.001).l2
    coefficients_a, coefficients_b = (
        coefficients_of(np.eye(DIM)[i], weights("penal", 0.001)[1])[0] for i in (0, 1)
    )
    assert np.linalg.norm(coefficients_a - coefficients_b) == pytest.approx(tight)
    assert tight > np.sqrt(2)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    x=rows_of_ball, replacement=rows_of_ball, pick=st.tuples(unit, unit), seed=st.integers(0, 99)
)
def test_the_sensitivity_with_a_private_mean_bounds_all_changes(x, replacement, pick, seed):
    """If the mean is computed from data, replacing one record changes the terms of all records."""
    draw = np.random.default_rng(seed)
    other_rows = draw.random((20, DIM)) / np.sqrt(DIM)
    y, z = draw.integers(0, 2, 20), draw.integers(0, 2, 20)

    def sums(row, label_and_group):
        rows, labels, groups = (
            np.vstack([other_rows, row]),
            np.append(y, label_and_group // 2),
            np.append(z, label_and_group % 2),
        )
        covariance = (groups - groups.mean()) @ rows
        blocks = [(0.5 - labels) @ rows, covariance, (rows.T @ rows).ravel() / 8]
        return np.concatenate(blocks), covariance

    (sums_before, covariance_before), (sums_after, covariance_after) = (
        sums(x, int(3.99 * pick[0])),
        sums(replacement, int(3.99 * pick[1])),
    )
    open_mean = Sensitivity(DIM, "penal", 0.5, public_mean=False)
    assert np.abs(sums_before - sums_after).sum() <= open_mean.l1
    assert np.linalg.norm(sums_before - sums_after) <= open_mean.l2
    assert np.abs(covariance_before - covariance_after).sum() <= covariance_l1(
        DIM, 0.5, public_mean=False
    )


def test_paper_sensitivities_equal_those_of_the_lemmas():
    assert paper_sensitivity("l1", 13, fair=False) == 13**2 / 4 + 13
    assert paper_sensitivity("l1", 13, fair=True) == 13**2 / 4 + 39
    assert paper_sensitivity("l2", 13, fair=False) == np.sqrt(13**2 / 16 + 13)
    assert paper_sensitivity("l2", 13, fair=True) == np.sqrt(13**2 / 16 + 117)
    blocks = 13 + 2 * 13 + 13**2 / 4  # b, g and M of PFLR* and of the three-block release
    assert blocks == paper_sensitivity("l1", 13, fair=True)


# --- Theorems 18 and 20 ------------------------------------------------------------------------


def test_the_average_of_theorem_18_fails_for_a_tight_sensitivity():
    """Use x = x' = e_s and (y, z) from (0, 1) to (1, 0), which change coefficients of w_s only."""
    x, options = np.eye(DIM)[0], weights("penal", 0.4)
    before, columns = coefficients_of(x, options[1])
    after, _ = coefficients_of(x, options[2])
    change, inside = np.abs(before - after), np.array([0 in c for c in columns])
    assert change[inside].sum() == pytest.approx(2.0)
    assert change[~inside].sum() == 0
    split = 10.0
    loss = split * change.sum() / Sensitivity(DIM, "penal", 0.4).l1
    assert loss > split / DIM + (DIM - 1) / DIM


def test_an_average_charge_with_a_tight_sensitivity_is_refused():
    with pytest.raises(InvalidInput, match=r"algorithm.charge: found 'average', expected max"):
        FairClassification(selected="age", sens="tight")
    FairClassification(selected="age", sens="tight", charge="max")
    FairClassification(sens="tight")


def test_selected_noise_applies_to_all_coefficients_of_the_selected_attributes(problem):
    for selected, k in (("age", 1), ("work", 2), ("age+work", 3), ("", 0)):
        algorithm = FairClassification(selected=selected, noise_selected=5.0, noise_rest=1.0)
        scales = algorithm.scales(problem)
        assert (scales["linear"] == 5).sum() == k
        assert (scales["quadratic"] == 5).sum() == k * (2 * DIM - 1) - k * (k - 1)


@pytest.mark.parametrize("split", [0.1, 0.5, 1.0, 10.0])
def test_selected_and_remaining_budgets_average_to_the_total(problem, network, split):
    budget = Budget(2.0, DELTA)
    algorithm = FairClassification(selected="work", split=split, mechanism="gaussian")
    selected_budget, remaining_budget = algorithm.budgets(budget, 2, DIM)
    assert 2 / DIM * selected_budget.epsilon + (
        DIM - 2
    ) / DIM * remaining_budget.epsilon == pytest.approx(2.0)
    assert selected_budget.epsilon / remaining_budget.epsilon == pytest.approx(split)
    assert 1 - (1 - selected_budget.delta) * (1 - remaining_budget.delta) == pytest.approx(DELTA)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("kind", ["off", "penal"])
@pytest.mark.parametrize("split", [0.1, 10.0])
def test_published_mechanisms_have_a_smaller_loss_than_the_formula_states(
    problem, network, mechanism, epsilon, kind, split
):
    delta = 0.0 if mechanism == "laplace" else DELTA
    algorithm = FairClassification(mechanism=mechanism, fair=kind, selected="age", split=split)
    algorithm = algorithm.calibrate(Budget(epsilon, delta), problem, network, 1)
    formula = algorithm.claimed_epsilon(delta, problem, network, 1)
    assert formula == pytest.approx(epsilon)
    guarantee = account(algorithm.releases(problem, network, 1), delta)
    assert guarantee.epsilon < epsilon


@pytest.mark.parametrize("kind", ["off", "penal"])
@pytest.mark.parametrize("selected", ["", "age"])
def test_a_tight_calibration_uses_the_full_budget(problem, network, kind, selected):
    options = {"fair": kind, "selected": selected, "split": 0.1, "sens": "tight", "charge": "max"}
    for mechanism, delta in (("laplace", 0.0), ("gaussian", DELTA)):
        algorithm = FairClassification(mechanism=mechanism, gaussian="analytic", **options)
        algorithm = algorithm.calibrate(Budget(1.0, delta), problem, network, 1)
        epsilon = account(algorithm.releases(problem, network, 1), delta).epsilon
        if mechanism == "gaussian" or not selected:
            assert epsilon == pytest.approx(1.0, rel=1e-6)
        assert epsilon <= 1.0 + 1e-9
    ahead = replace(algorithm, zbar="data").calibrate(Budget(1.0, DELTA), problem, network, 1)
    assert (ahead.noise_rest > algorithm.noise_rest) == (kind != "off")
    honest = replace(algorithm, zbar="data")  # calibrated as public, accounted as private
    epsilon = account(honest.releases(problem, network, 1), DELTA).epsilon
    assert (epsilon > 1.0 + 1e-6) == (kind != "off")


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-7])
def test_the_extended_gaussian_mechanism_is_private_and_not_tight(epsilon, delta):
    scale = extended_gaussian_scale(Budget(epsilon, delta), 3.0)
    assert gaussian_delta(3.0 / scale, epsilon) <= delta
    exact = analytic_gaussian_scale(Budget(epsilon, delta), 3.0)
    assert exact < scale
    assert gaussian_delta(3.0 / exact, epsilon) == pytest.approx(delta, rel=1e-6)
    assert gaussian_delta(3.0 / (0.99 * exact), epsilon) > delta
    assert extended_gaussian_epsilon(3.0 / scale, delta) == pytest.approx(epsilon)


# --- PFLR* -------------------------------------------------------------------------------------


def test_pflr_splits_its_budget_between_covariance_and_objective(problem, network):
    algorithm = Pflr(share=0.25).calibrate(Budget(2.0, 0.0), problem, network, 1)
    assert algorithm.noise_fairness == pytest.approx(2 * DIM / 0.5)
    assert algorithm.noise_objective == pytest.approx((DIM**2 / 4 + DIM) / 1.5)
    assert algorithm.claimed_epsilon(0.0, problem, network, 1) == pytest.approx(2.0)
    assert account(algorithm.releases(problem, network, 1), 0.0).epsilon < 2.0
    tight = replace(algorithm, sens="tight").calibrate(Budget(2.0, 0.0), problem, network, 1)
    assert account(tight.releases(problem, network, 1), 0.0).epsilon == pytest.approx(2.0)


def test_pflr_with_the_raw_covariance_is_not_private(problem, network):
    raw = Pflr(shift="raw").calibrate(Budget(2.0, 0.0), problem, network, 1)
    assert np.isinf(account(raw.releases(problem, network, 1), 0.0).epsilon)
    assert raw.claimed_epsilon(0.0, problem, network, 1) == pytest.approx(2.0)


# --- Noise and batches -------------------------------------------------------------------------


def perturbed(algorithm, problem, network, streams):
    """Return the coefficients with noise of an algorithm, one array [settings, runs, ...] each."""
    handler = running(algorithm, problem, network, streams, 1)
    handler.begin(1)
    return algorithm.perturbed(problem, handler.function())


def test_products_of_two_features_have_half_the_noise_variance_of_squares(network, streams):
    many = Streams(streams.root, tuple(range(300)), streams.groups)
    problem = fair.build(many, 1, prepared=prepared_rows(), protected="sex")
    algorithm = FairClassification(noise_selected=1.0, noise_rest=1.0, mechanism="gaussian")
    noise = perturbed(algorithm, problem, network, many)[0][0] - problem.coefficients.quadratic
    assert noise[:, 0, 1].std() == pytest.approx(np.sqrt(0.5), rel=0.15)
    assert noise[:, 0, 0].std() == pytest.approx(1.0, rel=0.15)


def test_the_ridge_is_four_standard_deviations_of_the_noise(problem, network, streams):
    algorithm = FairClassification(fair="off", noise_selected=1.0, noise_rest=1.0)
    matrix, linear, _ = (noisy[0] for noisy in perturbed(algorithm, problem, network, streams))
    ridge = 4 * np.sqrt(2) * np.eye(DIM)
    expected = -np.linalg.solve(matrix + ridge, linear[..., None])[..., 0] / 2
    assert np.allclose(released(algorithm, problem, network, streams), expected)


def test_emulated_records_reduce_the_noise_and_remove_the_claim(problem, network):
    budget = Budget(1.0, 0.0)
    for plain in (FairClassification(fair="off"), Pflr()):
        calibrated = plain.calibrate(budget, problem, network, 1)
        ahead = replace(plain, emulated=10.0 * ROWS).calibrate(budget, problem, network, 1)
        name = "noise_rest" if isinstance(plain, FairClassification) else "noise_objective"
        assert getattr(ahead, name) == pytest.approx(getattr(calibrated, name) / 10)
        assert claims_of(ahead, budget, problem, network, 1)[0][1] == np.inf
        assert claims_of(calibrated, budget, problem, network, 1)[0][1] == 1.0
        epsilons = [
            account(a.releases(problem, network, 1), 0.0).epsilon for a in (calibrated, ahead)
        ]
        assert epsilons[1] == pytest.approx(10 * epsilons[0])
