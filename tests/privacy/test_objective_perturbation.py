"""Test the bound for objective perturbation against integrals of exact densities."""

import numpy as np
import pytest
from scipy.special import expit

from observed import logistic_rows
from private_consensus import networks
from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.pp_admm import PlausiblyPrivateADMM
from private_consensus.core.algorithms.pp_admm_renyi import RenyiAccountedPPADMM
from private_consensus.core.lower_bounds import lower_bound_of
from private_consensus.core.problems import logistic_regression, mean_estimation
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget
from private_consensus.privacy.objective_perturbation import PerturbedObjective

ORDERS = np.array([1.25, 2.0, 4.0, 10.0])


def log_density(o, rows, curvature, sigma, weight):
    r"""Return the log-density of the minimiser with objective perturbation at the points o.

    The objective is curvature/2 |x|^2 + weight sum ln(1 + exp(z'x)) + b'x. The density is that of
    the noise b with minimiser o, times the Jacobian of the map. The shape of o is [points, d].
    """
    dim = o.shape[1]
    margins = o @ rows.T
    slope = curvature * o + weight * expit(margins) @ rows
    bend = weight * expit(margins) * expit(-margins)
    hessian = curvature * np.eye(dim) + np.einsum("pj,jk,jl->pkl", bend, rows, rows)
    noise = -(slope**2).sum(1) / (2 * sigma**2) - dim * np.log(sigma * np.sqrt(2 * np.pi))
    return noise + np.linalg.slogdet(hessian)[1]


def divergences(dataset, neighbour, curvature, sigma, weight, points):
    """Return Renyi divergences in both directions at ORDERS, by numerical integration."""
    dim = dataset.shape[1]
    reach = (9 * sigma + weight * (len(dataset) + ORDERS.max())) / curvature
    axis = np.linspace(-reach, reach, points)
    o = np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), -1).reshape(-1, dim)
    cell = (axis[1] - axis[0]) ** dim
    p, q = (log_density(o, rows, curvature, sigma, weight) for rows in (dataset, neighbour))
    assert np.exp(p).sum() * cell == pytest.approx(1.0, abs=1e-6)
    return np.array(
        [
            max(
                np.log(np.exp(s * a + (1 - s) * b).sum() * cell) / (s - 1)
                for a, b in ((p, q), (q, p))
            )
            for s in ORDERS
        ]
    )


CASES = [
    (curvature, sigma, weight)
    for curvature in (0.3, 1.0, 5.0)
    for sigma in (0.5, 2.0)
    for weight in (0.3, 1.0)
]


@pytest.mark.parametrize(("curvature", "sigma", "weight"), CASES)
def test_bound_exceeds_the_divergence_of_minimisers_in_one_dimension(curvature, sigma, weight):
    """Replace one row of either sign by the opposite one, with and without other rows."""
    bound = PerturbedObjective(2 * weight / sigma, weight / 4 / curvature)
    for further_rows in ([], [[0.7], [-0.4]]):
        dataset, neighbour = (np.array([[z], *further_rows]) for z in (1.0, -1.0))
        exact = divergences(dataset, neighbour, curvature, sigma, weight, 20_001)
        assert np.all(exact <= bound.divergence(ORDERS) * (1 + 1e-9))
        assert np.all(exact > 0)


@pytest.mark.parametrize("angle", [1.2, 2.4])
def test_bound_exceeds_the_divergence_in_two_dimensions_for_records_at_an_angle(angle):
    """Compare in two dimensions, where the direction of the shift depends on the minimiser."""
    curvature, sigma, weight = 0.5, 1.0, 0.6
    dataset = np.array([[1.0, 0.0], [-0.3, 0.5]])
    neighbour = np.array([[np.cos(angle), np.sin(angle)], [-0.3, 0.5]])
    exact = divergences(dataset, neighbour, curvature, sigma, weight, 401)
    bound = PerturbedObjective(2 * weight / sigma, weight / 4 / curvature)
    assert np.all(exact <= bound.divergence(ORDERS) * (1 + 1e-9))


def test_gaussian_mechanism_bound_fails_without_the_jacobian_term():
    """Erratum E4.3: a proof with a constant shift omits the Jacobian term."""
    curvature, sigma, weight = 0.02, 4.0, 0.3
    dataset, neighbour = np.zeros((1, 1)), np.ones((1, 1))
    exact = divergences(dataset, neighbour, curvature, sigma, weight, 40_001)
    # the replaced record has gradient 0, so that the shift is weight
    assert exact[0] > ORDERS[0] * (weight / sigma) ** 2 / 2
    bound = PerturbedObjective(2 * weight / sigma, weight / 4 / curvature)
    assert np.all(exact <= bound.divergence(ORDERS))


def test_divergence_without_record_curvature_is_that_of_the_gaussian_mechanism():
    flat = PerturbedObjective(0.3, 0.0)
    assert flat.divergence(ORDERS) == pytest.approx(ORDERS * 0.3**2 / 2)


def test_divergence_moment_agrees_with_quadrature():
    """Compare E_1 with quadrature at an order without the simple bound."""
    x, step = np.linspace(-30, 30, 600_001, retstep=True)
    normal = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    mu, order = 0.7, np.array([5.0])
    worst = np.maximum(0, mu * x + mu**2 / 2)
    moment = (normal * np.exp((order - 1) * worst)).sum() * step
    divergence = PerturbedObjective(mu, 1.0).divergence(order) - np.log(2.0)
    assert divergence == pytest.approx(np.log(moment) / (order - 1), rel=1e-9)


@pytest.mark.parametrize(("key", "value"), [("mu", -1.0), ("kappa", np.inf), ("mu", np.nan)])
def test_negative_or_non_finite_mu_and_kappa_are_refused(key, value):
    with pytest.raises(InvalidInput, match=f"objective.{key}"):
        PerturbedObjective(**({"mu": 1.0, "kappa": 0.1} | {key: value}))


def test_pp_admm_declares_releases_of_the_minimiser_and_of_the_approximation():
    """The calibrated noise exceeds that for a constant shift.

    Doubling the weight of all records doubles mu and kappa.
    """
    streams = Streams(3, (0,))
    network = networks.build(streams, "ring", 4)
    prepared = logistic_rows(400, 3)
    profiles = []
    for weight in (0.02, 0.04):
        problem = logistic_regression.build(
            streams, 4, prepared=prepared, records=50, ridge=0.1, weight=weight
        )
        algorithm = RenyiAccountedPPADMM(noise=0.5, output_noise=0.5, ridge=0.2)
        profiled, approximation = algorithm.releases(problem, network, 5)
        profiles.append(profiled.profile)
        assert (profiled.count, approximation.count) == (5, 5)
        assert profiled.proven and approximation.proven
        assert profiled.profile.mu == pytest.approx(2 * weight / 0.5)
        assert profiled.profile.kappa == pytest.approx(weight / 4 / (0.2 + 2 * 0.5 * 2))
    assert profiles[1].mu == pytest.approx(2 * profiles[0].mu)
    assert profiles[1].kappa == pytest.approx(2 * profiles[0].kappa)
    budget = Budget(1.0, 1e-4)
    fixed = PlausiblyPrivateADMM(calibration="accountant", rho_conversion="safe")
    granted, proven = (a.calibrate(budget, problem, network, 5) for a in (fixed, algorithm))
    assert granted.noise < proven.noise < 2 * granted.noise
    attacked = lower_bound_of(proven, problem, network, 5, budget.delta).epsilon
    assert 0 < attacked < budget.epsilon


def test_pp_admm_refuses_box_constraints_and_mean_estimation():
    streams = Streams(3, (0,))
    network = networks.build(streams, "ring", 4)
    boxed = logistic_regression.build(
        streams, 4, prepared=logistic_rows(400, 3), records=50, ridge=0.1, box=1.0
    )
    means = mean_estimation.build(streams, 4, records=50, dim=3, box=1.0)
    for problem, key in ((boxed, "problem.box"), (means, "problem.name")):
        with pytest.raises(InvalidInput, match=key):
            RenyiAccountedPPADMM().calibrate(Budget(1.0, 1e-4), problem, network, 5)
