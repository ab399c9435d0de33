"""Test optima, noise, calibration and stability of decentralized ADMM and private variants."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import gamma, kstest, laplace, norm

from observed import logistic_problem, pooled_optimum, run
from private_consensus import networks
from private_consensus.common.errors import InvalidInput, OutsideRange
from private_consensus.core.algorithms.admm import ADMM
from private_consensus.core.algorithms.dvp import DualVariablePerturbation
from private_consensus.core.algorithms.ldp_admm import LocallyPrivateADMM
from private_consensus.core.algorithms.m_admm import PenaltyPerturbation
from private_consensus.core.algorithms.p_admm import OutputPerturbation
from private_consensus.core.problems import mean_estimation
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget, Release, account
from private_consensus.privacy.mechanisms import ADDITIVE

AGENTS, DIM = 6, 5
PRIVATE = (DualVariablePerturbation, PenaltyPerturbation, OutputPerturbation, LocallyPrivateADMM)
GRAPHS = {
    "ring": {},
    "star": {},
    "path": {},
    "complete": {},
    "erdos_renyi": {"probability": 0.5},
    "random_edges": {"edges": AGENTS},
}


@pytest.fixture
def problem(streams):
    return logistic_problem(streams, AGENTS, DIM)


@pytest.fixture
def network(streams):
    return networks.build(streams, "erdos_renyi", AGENTS, probability=0.5, weights="metropolis")


@pytest.mark.parametrize("graph", GRAPHS)
def test_without_noise_every_agent_reaches_the_pooled_optimum_on_any_graph(streams, problem, graph):
    network = networks.build(streams, graph, AGENTS, **GRAPHS[graph])
    best = np.stack([pooled_optimum(problem, run_) for run_ in range(12)])
    for algorithm in (
        ADMM(eta=0.3, init_std=1.0),
        LocallyPrivateADMM(),
        LocallyPrivateADMM(minimisation="exact"),
        LocallyPrivateADMM(weights="fixed"),
    ):
        last = run(algorithm, problem, network, streams, 900)[900]["released"][0]
        assert np.abs(last - best[:, None]).max() < 1e-8, algorithm


def test_the_published_sign_of_the_dual_update_diverges(problem, network, streams):
    """With the corrected sign, the iteration converges from the same start."""
    at = run(LocallyPrivateADMM(dual="literal"), problem, network, streams, 120)
    grown = [problem.measure("log_distance", at[t]["released"]).mean() for t in (40, 80, 120)]
    assert grown[0] + 5 < grown[1] and grown[1] + 5 < grown[2]
    at = run(LocallyPrivateADMM(), problem, network, streams, 120)
    fell = [problem.measure("log_distance", at[t]["released"]).mean() for t in (40, 80, 120)]
    assert fell[0] - 1 > fell[1] > fell[2] + 1


def test_private_variants_without_noise_equal_plain_admm(problem, network, streams):
    """DVP, M-ADMM with constant penalty, P-ADMM and exact LDP-ADMM are equal."""
    plain = run(ADMM(eta=0.4, init_std=1.0), problem, network, streams, 30)
    for version in (DualVariablePerturbation, PenaltyPerturbation, OutputPerturbation):
        trajectory = run(version(eta=0.4, init_std=1.0), problem, network, streams, 30)
        for t in (1, 7, 30):
            assert np.allclose(trajectory[t]["released"], plain[t]["released"], atol=1e-8)
    exact = LocallyPrivateADMM(D=6.0, zeta=0.4, weights="fixed", minimisation="exact")
    same = ADMM(D=6.0, zeta=0.4, init_std=1.0)
    exact_models, plain_models = (
        run(a, problem, network, streams, 30)[30]["released"] for a in (exact, same)
    )
    assert np.allclose(exact_models, plain_models, atol=1e-8)


def test_admm_satisfies_the_textbook_optimality_condition(problem, network, streams):
    """Check grad f + 2 lambda + 2 eta v x = eta (v x_i + sum_j x_j), with dual step eta / 2."""
    eta = 0.4
    at = run(ADMM(eta=eta, init_std=1.0), problem, network, streams, 6)
    degrees, adjacency = network.degrees[..., None], network.adjacency.astype(float)
    x = streams.draw("data", "normal", (AGENTS, DIM), "start")
    dual = np.zeros_like(x)
    for t in range(1, 7):
        new = at[t]["released"][0]
        pull = eta * (degrees * x + adjacency @ x)
        slope = problem.gradient(new) + 2 * dual + 2 * eta * degrees * new - pull
        assert np.abs(slope).max() < 1e-9
        dual = dual + eta / 2 * (degrees * new - adjacency @ new)
        x = new


def reference_algorithm_1(problem, network, x, units, weights, noise, growth, r, horizon):
    """Return the last iterate of Algorithm 1 for one run, with the degree instead of N - 1."""
    dual = np.zeros_like(x)
    for k in range(1, horizon + 1):
        new = np.empty_like(x)
        for i in range(AGENTS):
            neighbours = np.flatnonzero(network.adjacency[r, i])
            mean = sum(x[j] for j in neighbours) / len(neighbours)
            z, y = problem.features[r, i], problem.labels[r, i]
            slope = -problem.weight * z.T @ (y / (1 + np.exp(y * (z @ x[i])))) + x[i]
            w = weights[k - 1][r, i]
            new[i] = w * x[i] + (1 - w) * mean - slope / 10 + dual[i] / 10
            new[i] += noise / growth**k * units[k - 1][r, i]
        for i in range(AGENTS):
            neighbours = np.flatnonzero(network.adjacency[r, i])
            dual[i] = dual[i] + 0.5 * sum(new[j] - new[i] for j in neighbours)
        x = new
    return x


def test_the_batched_algorithm_equals_a_loop_over_runs_and_agents(problem, network, streams):
    algorithm = LocallyPrivateADMM(noise=0.7, growth=1.05)
    noise = streams.sequence("noise", "laplace", (AGENTS, DIM), "")
    sampled = streams.sequence("sampling", "uniform", (AGENTS, DIM), "weights")
    units, weights = ([next(draws) for _ in range(9)] for draws in (noise, sampled))
    released = run(algorithm, problem, network, streams, 9)[9]["released"][0]
    start = streams.draw("data", "normal", (AGENTS, DIM), "start")
    for r in range(0, 12, 4):
        expected = reference_algorithm_1(
            problem, network, start[r], units, weights, 0.7, 1.05, r, 9
        )
        assert np.allclose(released[r], expected, rtol=1e-11, atol=1e-12)


def effective_noise(algorithm, problem, network, streams, t=1):
    """Return the noise of the first iteration, from messages and the optimality condition."""
    at = run(algorithm, problem, network, streams, t)
    iterates = at[t]
    if "message" in algorithm.mechanisms(problem, network, t):
        return (iterates["released"] - iterates["internal"])[0]
    x = streams.draw("data", "normal", (AGENTS, DIM), "start")
    centre = (x + network.neighbour_sum(x) / network.degrees[..., None]) / 2
    penalty = algorithm.penalty(network, 1)
    released = iterates["released"][0]
    linear = -(problem.gradient(released) + penalty * (released - centre))
    return -linear / penalty if isinstance(algorithm, PenaltyPerturbation) else linear


@pytest.mark.parametrize("law", ADDITIVE)
@pytest.mark.parametrize("version", PRIVATE)
def test_the_noise_has_the_stated_scale_and_other_scales_are_rejected(streams, version, law):
    many = Streams(streams.root, tuple(range(150)), streams.groups)
    problem = logistic_problem(many, AGENTS, DIM)
    network = networks.build(many, "ring", AGENTS)
    options = {} if version is LocallyPrivateADMM else {"init_std": 1.0, "D": 10.0, "zeta": 0.5}
    algorithm = version(noise=2.0, growth=1.25, law=law, **options)
    drawn = effective_noise(algorithm, problem, network, many)
    scale = 2.0 / 1.25
    if law == "gamma_norm":
        sample = np.linalg.norm(drawn, axis=-1).ravel()
        laws = [gamma(DIM, scale=s * scale).cdf for s in (1, 1.5, 2 / 3)]
        direction = (drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)).reshape(-1, DIM)
        assert np.abs(direction.mean(0)).max() < 4.5 / np.sqrt(DIM * len(direction))
    else:
        sample = drawn.ravel()
        family = {"laplace": laplace, "gaussian": norm}[law]
        laws = [family(scale=s * scale).cdf for s in (1, 1.5, 2 / 3)]
    accepted, *refused = (kstest(sample, cdf).pvalue for cdf in laws)
    assert accepted > 0.001 and max(refused) < 1e-3


def test_dual_noise_in_units_of_x_is_multiplied_by_the_penalty(problem, network, streams):
    unit_x = DualVariablePerturbation(noise=0.3, unit="x", D=10.0, zeta=0.5)
    unit_dual = DualVariablePerturbation(noise=3.0, unit="dual", D=10.0, zeta=0.5)
    models_x, models_dual = (
        run(a, problem, network, streams, 5)[5]["released"] for a in (unit_x, unit_dual)
    )
    assert np.allclose(models_x, models_dual, atol=1e-9)
    assert unit_x.claimed_epsilon(0, problem, network, 5) == pytest.approx(
        unit_dual.claimed_epsilon(0, problem, network, 5)
    )


@pytest.mark.parametrize("version", PRIVATE)
@pytest.mark.parametrize("law", ["laplace", "gamma_norm"])
def test_calibration_attains_and_never_exceeds_a_pure_budget(problem, network, version, law):
    budget = Budget(25.0, 0.0)
    algorithm = version(law=law, D=10.0, zeta=0.5, growth=1.02).calibrate(
        budget, problem, network, 20
    )
    epsilon = account(algorithm.releases(problem, network, 20), 0.0).epsilon
    assert 25 * (1 - 1e-5) < epsilon <= 25
    free = algorithm.calibrate(Budget(np.inf, 0.0), problem, network, 20)
    assert not free.noise


@pytest.mark.parametrize("version", PRIVATE)
def test_calibration_by_the_formula_attains_the_budget(problem, network, version):
    algorithm = version(law="laplace", D=10.0, zeta=0.5, growth=1.02, calibration="formula")
    calibrated = algorithm.calibrate(Budget(3.0, 0.0), problem, network, 20)
    assert calibrated.claimed_epsilon(0.0, problem, network, 20) == pytest.approx(3.0)


def test_a_budget_below_the_jacobian_terms_is_refused(problem, network):
    algorithm = DualVariablePerturbation(law="laplace", D=10.0, zeta=0.5, calibration="formula")
    with pytest.raises(InvalidInput, match="the privacy loss that remains with any noise"):
        algorithm.calibrate(Budget(0.1, 0.0), problem, network, 20)


def test_a_curvature_too_large_for_the_jacobian_term_is_refused(streams, network):
    steep = logistic_problem(streams, AGENTS, DIM, weight=100.0, ridge=1e-4)
    algorithm = DualVariablePerturbation(law="gamma_norm", noise=1.0, eta=0.5)
    with pytest.raises(InvalidInput, match=r"kappa: found .*1/2"):
        algorithm.releases(steep, network, 3)
    assert replace(algorithm, jacobian="tight").releases(steep, network, 3)


def spectral_radius(adjacency, h, D, zeta, exact):
    """Return the spectral radius for equal quadratics of curvature h, off consensus."""
    n, degrees = len(adjacency), adjacency.sum(1)
    mixing = (np.eye(n) + adjacency / degrees[:, None]) / 2
    lap = np.diag(degrees) - adjacency
    if exact:
        step, by_dual = D * mixing / (D + h), np.eye(n) / (D + h)
    else:
        step, by_dual = mixing - h / D * np.eye(n), np.eye(n) / D
    iteration = np.block([[step, -by_dual], [zeta * lap @ step, np.eye(n) - zeta * lap @ by_dual]])
    eigenvalues = np.linalg.eigvals(iteration)
    # The sum of the duals is constant: no initial state excites one eigenvalue 1.
    return np.abs(np.delete(eigenvalues, np.abs(eigenvalues - 1).argmin())).max()


@settings(max_examples=40, deadline=None)
@given(
    st.integers(4, 12),
    st.integers(0, 10**6),
    st.floats(0.05, 0.98),
    st.floats(0.5, 3),
    st.booleans(),
)
def test_within_the_stated_range_the_mean_iteration_contracts(agents, seed, share, h, exact):
    """On irregular graphs, the iteration contracts if zeta * degree < D - h, or D + h if exact."""
    streams = Streams(seed, (0,), {})
    network = networks.build(streams, "erdos_renyi", agents, probability=0.5)
    D = 4.0
    largest = (D + h if exact else D - h) / network.degrees.max()
    adjacency = network.adjacency[0].astype(float)
    assert spectral_radius(adjacency, h, D, share * largest, exact) < 1


def test_outside_the_stated_range_the_iteration_diverges_with_a_warning(streams):
    """On a ring with an even number of agents, the convergence condition is necessary."""
    network = networks.build(streams, "ring", AGENTS)
    problem = mean_estimation.build(streams, AGENTS, records=1, dim=3, box=1e9)
    edge = (4.0 - 1.0) / 2
    assert spectral_radius(network.adjacency.astype(float), 1.0, 4.0, 1.001 * edge, False) > 1
    wild = LocallyPrivateADMM(D=4.0, zeta=1.2 * edge, weights="fixed")
    with pytest.warns(OutsideRange, match=r"zeta \* degree < D - L"):
        wild.calibrate(Budget(np.inf, 0.0), problem, network, 10)
    at = run(wild, problem, network, streams, 400)
    assert np.abs(at[400]["released"]).max() > 1e3 * np.abs(at[200]["released"]).max()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tame = LocallyPrivateADMM(D=4.0, zeta=0.9 * edge, weights="fixed")
        tame.calibrate(Budget(np.inf, 0.0), problem, network, 10)
    at = run(tame, problem, network, streams, 400)
    assert at[400]["released"].std(axis=2).max() < 1e-6
    with pytest.warns(OutsideRange, match=r"zeta \* degree < D \+ mu"):
        ADMM(D=1.0, zeta=5.0).calibrate(Budget(np.inf, 0.0), problem, network, 10)


def test_plain_admm_refuses_a_finite_budget(problem, network):
    with pytest.raises(InvalidInput, match=r"budget.epsilon: found 1.0"):
        ADMM().calibrate(Budget(1.0, 0.0), problem, network, 5)
    assert np.isinf(account(ADMM().releases(problem, network, 5), 0.0).epsilon)


def test_secret_sharing_needs_a_complete_graph_and_changes_only_rounding(problem, streams):
    shared = LocallyPrivateADMM(exchange="secret_sharing", zeta=0.3)
    with pytest.raises(InvalidInput, match="a complete graph"):
        ring = networks.build(streams, "ring", AGENTS)
        shared.calibrate(Budget(np.inf, 0.0), problem, ring, 5)
    complete = networks.build(streams, "complete", AGENTS)
    shared_models = run(shared, problem, complete, streams, 40)[40]["released"]
    plain_models = run(LocallyPrivateADMM(zeta=0.3), problem, complete, streams, 40)[40]["released"]
    assert np.allclose(shared_models, plain_models, atol=1e-8)
    assert not np.array_equal(shared_models, plain_models)


@pytest.mark.parametrize("law", ["laplace", "gamma_norm"])
@pytest.mark.parametrize("kind", [DualVariablePerturbation, PenaltyPerturbation])
def test_noise_and_jacobian_of_an_iteration_are_one_pure_mechanism(problem, network, kind, law):
    """Composition of noise and Jacobian term as separate mechanisms would give too small a loss."""
    algorithm = kind(law=law, noise=2.0)
    changes, scales, jacobian_losses = algorithm.losses(problem, network, 12)
    iteration_losses = changes / scales + jacobian_losses
    guarantee = account(algorithm.releases(problem, network, 12), 1e-4)
    assert guarantee.proven
    assert guarantee.epsilon == pytest.approx(
        account([Release("pure", epsilon=e) for e in iteration_losses], 1e-4).epsilon
    )
    separate = [
        Release(law, sensitivity=changes, scale=scales),
        Release("pure", epsilon=jacobian_losses),
    ]
    assert account(separate, 1e-4).epsilon < guarantee.epsilon
    assert account(algorithm.releases(problem, network, 12), 0.0).epsilon == pytest.approx(
        iteration_losses.sum()
    )


def test_gaussian_objective_perturbation_is_not_proven(problem, network):
    algorithm = PenaltyPerturbation(law="gaussian", noise=2.0)
    assert not account(algorithm.releases(problem, network, 12), 1e-4).proven
