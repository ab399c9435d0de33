"""Test Gratton et al.: objectives, minimisers, D-ZOA, DP-ADMM, exact ADMM and the audit."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from observed import run
from private_consensus import networks
from private_consensus.audits.analyses.release_audit import ReleaseAudit, neighbours
from private_consensus.common.errors import InvalidInput, OutsideRange
from private_consensus.core.algorithms.d_zoa import DZOA, step_sum
from private_consensus.core.algorithms.dp_admm import DPADMM
from private_consensus.core.algorithms.exact_admm import ExactADMM
from private_consensus.core.algorithms.families.consensus_admm import total_epsilon
from private_consensus.core.claims import claims_of
from private_consensus.core.problems import lasso
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget, account, gaussian_epsilon

AGENTS, EDGES = 5, [(1, 2), (2, 3), (3, 4), (4, 5), (5, 1), (1, 3)]
BUDGET = Budget(0.95, 1e-3)
OBJECTIVES = {
    "A": {"loss": "mean"},
    "B": {},
    "C": {"loss": "mean", "normalised": False, "eta": 0.05},
    "raw responses": {"responses": "raw"},
}


def build_problem(streams, **changes):
    return lasso.build(streams, AGENTS, **{"records": 20, "dim": 10, **changes})


@pytest.fixture
def network(streams):
    return networks.build(streams, "edges", AGENTS, edges=EDGES)


def last_of(algorithm, problem, network, streams, horizon):
    return run(algorithm, problem, network, streams, horizon)[horizon]


# --- The problem ----------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_optimum_matches_the_lasso_of_scikit_learn(streams, objective):
    from sklearn.linear_model import Lasso  # slow to import

    problem = build_problem(streams, **OBJECTIVES[objective])
    X = problem.features.reshape(len(streams.runs), -1, problem.dim)
    y = problem.responses.reshape(len(streams.runs), -1)
    weight = problem.weight * 2 * y.shape[1]
    for index in range(4):
        model = Lasso(alpha=problem.penalty * AGENTS / weight, fit_intercept=False, tol=1e-14,
                      max_iter=10**6)  # fmt: skip
        expected = model.fit(X[index], y[index]).coef_
        assert np.allclose(problem.optimum[index], expected, atol=1e-8)


def test_objective_c_has_the_minimiser_of_equation_33_and_a_differs_from_b(streams):
    """Equation (33) with the same features has eta = 1 and no factor 1/N_k."""
    a, b, c = (build_problem(streams, **OBJECTIVES[name]) for name in "ABC")
    raw = build_problem(streams, normalised=False)
    assert np.allclose(c.optimum, raw.optimum, atol=1e-10)
    distance = np.linalg.norm(a.optimum - b.optimum, axis=-1) / b.optimum_norm
    assert distance.min() > 0.3
    assert (np.abs(np.linalg.norm(b.features, axis=-1) - 1) < 1e-12).all()


def test_the_normalised_error_is_infinite_if_the_minimiser_is_zero(streams):
    problem = build_problem(streams, loss="mean", eta=1e3)
    assert np.array_equal(problem.optimum, np.zeros_like(problem.optimum))
    x = np.ones((2, len(streams.runs), AGENTS, problem.dim))
    assert np.isinf(problem.measure("normalised_error", x)).all()
    assert np.allclose(problem.measure("squared_error", x), AGENTS * problem.dim)


@pytest.mark.parametrize("bound", [np.inf, 1.0])
def test_the_gradient_matches_central_differences(streams, bound):
    problem = build_problem(streams, gradient_bound=bound)
    rng = np.random.default_rng(1)
    x, direction = rng.normal(size=(2, 12, AGENTS, 10))

    def value(at):
        r = (problem.features @ at[..., None])[..., 0] - problem.responses
        inner = np.minimum(np.abs(r), bound / 2)
        loss = inner**2 + 2 * inner * (np.abs(r) - inner)
        return problem.weight * loss.sum(-1) + problem.penalty * np.abs(at).sum(-1)

    slope = (value(x + 1e-6 * direction) - value(x - 1e-6 * direction)) / 2e-6
    assert np.allclose(slope, (problem.gradient(x) * direction).sum(-1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("bound", [np.inf, 1.0])
def test_the_proximal_point_satisfies_its_optimality_condition(streams, bound):
    problem = build_problem(streams, gradient_bound=bound)
    rng = np.random.default_rng(2)
    linear, centre = rng.normal(size=(2, 1, 12, AGENTS, 10))
    penalty = np.full((1, 1, AGENTS, 1), 24.0)
    x = problem.proximal(linear, penalty, centre, np.zeros_like(centre))
    slope = problem.smooth_gradient(x) + linear + penalty * (x - centre)
    moving = x != 0
    assert np.abs(slope + problem.penalty * np.sign(x))[moving].max() < 1e-9
    assert (np.abs(slope[~moving]) <= problem.penalty + 1e-9).all()


def test_huber_loss_has_a_bounded_record_gradient_and_squared_loss_does_not(streams):
    """Records of squared loss exceed the bound c_1 = 1 of the paper."""
    bounded, squared = build_problem(streams, gradient_bound=1.0), build_problem(streams)
    r = np.einsum("rkjp,rp->rkj", squared.features, squared.optimum) - squared.responses
    assert (np.abs(2 * r) > 1).mean() > 0.05
    assert bounded.record_gradient_change == pytest.approx(2.0)
    assert np.isinf(squared.record_gradient_change)


# --- Exact ADMM, D-ZOA ----------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["B", "C"])
def test_admm_without_noise_converges_to_the_optimum(streams, network, objective):
    problem = build_problem(streams, **OBJECTIVES[objective])
    last = last_of(ExactADMM(), problem, network, streams, 1500)
    assert problem.measure("normalised_error", last["released"]).max() < 1e-8


def test_the_step_length_satisfies_equation_27(streams, network):
    problem = build_problem(streams)
    calibrated = DZOA().calibrate(BUDGET, problem, network, 1)
    length = calibrated.step_length(problem.optimum_norm[:, None], problem, network)
    alpha_R = length * calibrated.L * np.sqrt(10 * np.log(20))
    S = step_sum(100, 10)
    bracket = 0.5 * alpha_R**2 / np.log(20) * S - 4 * problem.optimum_norm[:, None] ** 2 / 100
    sizes = network.degrees + 1
    level = np.sqrt(2.1 * 30 * 10 * np.log(1.25 / BUDGET.delta))
    assert np.allclose(1.0 / (4 * sizes * 20) * level / np.sqrt(bracket), BUDGET.epsilon)


def test_one_step_of_d_zoa_has_the_mean_of_the_exact_update(streams, network):
    """With L = 1 and a tiny penalty, the step is unbiased up to a small bias at kinks (Lemma 1)."""
    many = Streams(streams.root, tuple(range(600)), streams.groups)
    problem = build_problem(Streams(streams.root, (0,), streams.groups), eta=1e-9)
    wide = replace(
        problem,
        features=np.repeat(problem.features, 600, 0),
        responses=np.repeat(problem.responses, 600, 0),
    )
    calibrated = DZOA().calibrate(BUDGET, problem, network, 1)
    noisy = last_of(calibrated, wide, network, many, 1)["released"][0]
    exact = last_of(ExactADMM(), problem, network, many, 1)
    off = noisy.mean(0) - exact["released"][0, 0]
    error = noisy.std(0) / np.sqrt(600)
    assert (np.abs(off) < 5 * error + 2e-3).all()


# --- DP-ADMM --------------------------------------------------------------------------------------


def test_dp_admm_without_noise_converges_to_the_optimum(streams, network):
    problem = build_problem(streams)
    last = last_of(DPADMM(rho=3.0, eta_0=0.3), problem, network, streams, 4000)
    assert problem.measure("normalised_error", last["released"]).max() < 1e-3


def test_dp_admm_matches_the_published_iteration(streams, network):
    problem = build_problem(streams)
    algorithm = DPADMM(rho=2.0, eta_0=0.5).calibrate(BUDGET, problem, network, 2)
    units = streams.sequence("noise", "normal", (AGENTS, 10), "")
    first, second = next(units), next(units)
    released = last_of(algorithm, problem, network, streams, 2)["released"][0]
    w = gamma = noisy = np.zeros((12, AGENTS, 10))
    for t, unit in ((1, first), (2, second)):
        inverse = np.sqrt(t) / 0.5
        exact = (2.0 * w + gamma + noisy * inverse - problem.gradient(noisy)) / (2.0 + inverse)
        s = 2 * np.sqrt(2 * np.log(1.25 / 1e-3)) / (20 * 0.95 * (2.0 + inverse))
        noisy = exact + s * unit
        w = noisy.mean(1, keepdims=True) - gamma.mean(1, keepdims=True) / 2.0
        gamma = gamma - 2.0 * (noisy - w)
    assert np.allclose(released, noisy)


# --- Privacy --------------------------------------------------------------------------------------


def test_d_zoa_has_no_guarantee_although_the_paper_claims_a_total(streams, network):
    problem = build_problem(streams)
    algorithm = DZOA().calibrate(BUDGET, problem, network, 200)
    guarantee = account(algorithm.releases(problem, network, 200), BUDGET.delta)
    assert np.isinf(guarantee.epsilon) and not guarantee.proven
    [(_, claimed)] = claims_of(algorithm, BUDGET, problem, network, 200)
    assert claimed == pytest.approx(total_epsilon(0.95, 1e-3, 200))
    assert algorithm.claimed_epsilon(1e-3, problem, network, 200) == pytest.approx(claimed)


def test_the_gaussian_baseline_has_exactly_the_total_epsilon(streams, network):
    problem = build_problem(streams, loss="mean", gradient_bound=1.0)
    algorithm = ExactADMM(calibration="gaussian_dp").calibrate(BUDGET, problem, network, 200)
    guarantee = account(algorithm.releases(problem, network, 200), BUDGET.delta)
    assert guarantee.epsilon == pytest.approx(total_epsilon(0.95, 1e-3, 200), rel=1e-6)
    assert guarantee.proven
    assert algorithm.releases_if_assumed(problem, network, 200) is None


def test_calibration_with_an_unbounded_gradient_is_refused(streams, network):
    with pytest.raises(InvalidInput, match=r"algorithm.calibration: found 'gaussian_dp'"):
        ExactADMM(calibration="gaussian_dp").calibrate(BUDGET, build_problem(streams), network, 200)


@pytest.mark.parametrize(
    ("algorithm", "level"),
    [(DPADMM(), 2.0), (ExactADMM(), 2.1)],
)
@pytest.mark.parametrize(("loss", "factor"), [("sum", 20), ("mean", 1)])
@pytest.mark.parametrize("epsilon", [0.15, 0.95])
def test_squared_loss_has_a_finite_epsilon_only_under_an_assumed_gradient_bound(
    streams, network, algorithm, level, loss, factor, epsilon
):
    r"""If the bound c1 is assumed, a sum over N_k = 20 records has 20 times the calibrated mu.

    Epsilon of 200 iterations follows from the exact trade-off function, independently of the code.
    """
    budget, problem = Budget(epsilon, 1e-3), build_problem(streams, loss=loss)
    noisy = algorithm.calibrate(budget, problem, network, 200)
    guarantee = account(noisy.releases(problem, network, 200), 1e-3)
    assert guarantee.epsilon == np.inf and not guarantee.proven
    granted = account(noisy.releases_if_assumed(problem, network, 200), 1e-3)
    mu = factor * epsilon / np.sqrt(level * np.log(1250)) * np.sqrt(200)

    def excess(e):
        second_term = np.exp(e + stats.norm.logcdf(-e / mu - mu / 2))
        return stats.norm.cdf(mu / 2 - e / mu) - second_term - 1e-3

    assert granted.epsilon == pytest.approx(brentq(excess, 0.0, 1e5), rel=1e-6)
    assert not granted.proven
    if (level, loss, epsilon) == (2.0, "sum", 0.15):
        assert granted.epsilon == pytest.approx(96.9, rel=1e-3)


@pytest.mark.parametrize(("epsilon", "exceeds"), [(0.95, True), (0.15, False)])
def test_equation_29_is_below_the_exact_total_near_epsilon_1(streams, network, epsilon, exceeds):
    """Erratum E2.5: equation (29) is too small even for added Gaussian noise."""
    problem = build_problem(streams, loss="mean", gradient_bound=1.0)
    budget = Budget(epsilon, 1e-3)
    algorithm = ExactADMM().calibrate(budget, problem, network, 200)
    exact = account(algorithm.releases(problem, network, 200), 1e-3).epsilon
    mu = epsilon / np.sqrt(2.1 * np.log(1250)) * np.sqrt(200)
    assert exact == pytest.approx(gaussian_epsilon(mu, 1e-3), rel=1e-6)
    assert (exact > total_epsilon(epsilon, 1e-3, 200)) == exceeds


# --- The audit ------------------------------------------------------------------------------------


def audited(streams, network, **changes):
    problem = build_problem(streams, loss="mean", eta=0.05)
    few = Streams(streams.root, (0, 1), streams.groups)
    problem = replace(problem, features=problem.features[:2], responses=problem.responses[:2])
    algorithm = ReleaseAudit(replicates=4000, confidence=0.999, **changes)
    calibrated = algorithm.calibrate(Budget(0.15, 1e-3), problem, network, 1)
    return last_of(calibrated, problem, network, few, 1)


def test_the_audit_refutes_d_zoa_and_not_the_gaussian_mechanism(streams, network):
    zoa = audited(streams, network)
    gaussian = audited(streams, network, mechanism="gaussian")
    assert (zoa["epsilon_bound"] > 0.15).all()
    assert (gaussian["epsilon_bound"] <= 0.15).all()
    assert (zoa["bound_p_value"] <= 0.001).all() and (gaussian["bound_p_value"] > 0.001).all()
    assert (zoa["bound_confidence"] == 0.999).all() and (zoa["bound_delta"] == 1e-3).all()
    assert np.allclose(gaussian["deviation_ratio"], 1.0, atol=0.03)


def test_audited_neighbours_satisfy_the_sensitivity_bound_near_the_optimum(streams):
    problem = build_problem(streams, loss="mean", eta=0.05)
    for index in range(4):
        scene = neighbours(problem, index, 32.0, 1.0)
        moved = np.linalg.norm(scene.minimisers[0] - scene.minimisers[1])
        assert 0 < moved <= 1.0 / (16.0 * 20)  # (24) with rho |N_k| = 16
        assert np.allclose(scene.minimisers.mean(0), problem.optimum[index], atol=2e-3)


# --- Bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [DZOA(), DPADMM(), ExactADMM()])
@pytest.mark.parametrize(
    ("budget", "key"),
    [(Budget(1.5, 1e-3), "budget.epsilon"), (Budget(np.inf, 1e-3), "budget.epsilon"),
     (Budget(0.5, 0.0), "budget.delta")],
)  # fmt: skip
def test_budgets_outside_of_theorem_1_are_refused(streams, network, algorithm, budget, key):
    with pytest.raises(InvalidInput, match=key):
        algorithm.calibrate(budget, build_problem(streams), network, 10)


def test_too_few_samples_raise_a_warning():
    with pytest.warns(OutsideRange, match="central limit theorem"):
        DZOA(J=29)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DZOA(J=30)
