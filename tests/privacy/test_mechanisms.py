"""Test that mechanisms add the declared noise, and that a replay inverts them."""

from types import SimpleNamespace

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import pld_privacy_accountant
from scipy import integrate, stats
from scipy.special import expit

from private_consensus.common.errors import InvalidInput
from private_consensus.core.randomness import Streams
from private_consensus.privacy import account
from private_consensus.privacy.mechanism_minimisers import MinimiserNoise
from private_consensus.privacy.mechanisms import (
    CancellingLinks,
    Correlated,
    Exact,
    GammaNorm,
    Gaussian,
    Laplace,
    Objective,
    ObjectivePerturbation,
    Recorded,
    SecureSum,
    Temporal,
    log_determinant,
)

SIZE = 2000
AGENTS, DIM, SCALE = 3, 2, 0.7
ROOT = np.array([[1.0, -0.5, 0.0], [0.0, 1.0, -0.5], [-0.5, 0.0, 1.0]])
FILTER = np.array([[1.0, 0.0], [-0.4, 0.9]])
MIXING = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
ADDITIVE = {
    "gaussian": Gaussian(1.0, SCALE),
    "laplace": Laplace(1.0, SCALE),
    "gamma_norm": GammaNorm(1.0, SCALE),
    "minimiser": MinimiserNoise(1.0, 2 * SCALE, curvature=2.0),
}
RNG = np.random.default_rng(20_261_128)


def rng(seed=7):
    return np.random.default_rng(seed)


def outputs(mechanism, query, runs=SIZE, iterations=1):
    """Return the outputs of the last iteration for one query, [runs, ...]."""
    problem = SimpleNamespace(n_agents=AGENTS, dim=DIM)
    units = mechanism.units(problem, Streams(0, tuple(range(runs))))
    for t in range(1, iterations + 1):
        noisy = mechanism.output(np.broadcast_to(query, (1, runs, AGENTS, DIM)), next(units), t)
    return noisy[0]


@pytest.mark.parametrize("name", ADDITIVE)
def test_an_output_is_the_query_with_noise_of_the_declared_scale(name):
    query = RNG.normal(size=(AGENTS, DIM))
    noise = outputs(ADDITIVE[name], query) - query
    law = {"laplace": stats.laplace, "gamma_norm": None}.get(name, stats.norm)
    drawn = np.linalg.norm(noise, axis=-1).ravel() if law is None else noise.ravel()
    for factor, agrees in ((1.0, True), (1.2, False), (1 / 1.2, False)):
        scaled = stats.gamma(DIM, scale=factor * SCALE) if law is None else law(0, factor * SCALE)
        pvalue = stats.kstest(drawn, scaled.cdf).pvalue
        assert pvalue > 1e-3 if agrees else pvalue < 1e-4


def test_correlated_noise_has_the_declared_covariance():
    noise = outputs(Correlated(1.0, SCALE, root=ROOT), 0.0, 20_000)[..., 0]
    covariance, expected = np.cov(noise.T), SCALE**2 * ROOT @ ROOT.T
    assert np.abs(covariance - expected).max() < 0.03 * expected.max()


def test_a_secure_sum_has_the_noise_of_all_agents():
    noise = outputs(SecureSum(1.0, SCALE, agents=AGENTS), 0.0)
    assert np.all(noise == noise[:, :1])
    law = stats.norm(0, SCALE / np.sqrt(AGENTS))
    assert stats.kstest(noise[:, 0].ravel(), law.cdf).pvalue > 1e-3
    assert stats.kstest(1.1 * noise[:, 0].ravel(), law.cdf).pvalue < 1e-4


def test_temporal_noise_is_filtered_white_noise():
    noise = outputs(Temporal(1.0, SCALE, filter=FILTER), 0.0, iterations=2)
    law = stats.norm(0, SCALE * np.linalg.norm(FILTER[1]))
    assert stats.kstest(noise.ravel(), law.cdf).pvalue > 1e-3
    assert stats.kstest(1.1 * noise.ravel(), law.cdf).pvalue < 1e-4


def test_the_noise_of_all_links_of_an_agent_cancels():
    problem = SimpleNamespace(n_agents=AGENTS, dim=DIM)
    mechanism = CancellingLinks(1.0, SCALE, shape=("agents", "agents", "dim"), mixing=MIXING)
    query = RNG.normal(size=(1, 4, AGENTS, DIM))
    unit = next(mechanism.units(problem, Streams(0, (0, 1, 2, 3))))
    links = mechanism.output(query, unit, 1)
    np.testing.assert_allclose((MIXING[..., None] * links).sum(-2), query)
    assert np.abs(links - query[..., None, :]).min() > 0


@pytest.mark.parametrize("name", ADDITIVE)
def test_the_changed_noise_gives_the_recorded_output_on_other_data(name):
    mechanism = ADDITIVE[name]
    query, other, unit = RNG.normal(size=(3, 1, 1, AGENTS, DIM))
    output = mechanism.output(query, unit, 1)
    recorded = Recorded(name, 1, mechanism.evidence(query, unit, output, 1), unit, output)
    change = mechanism.change(other, recorded, 1)
    np.testing.assert_allclose(mechanism.output(other, unit + change, 1), output)
    order = 1 if name == "laplace" else 2
    expected = np.linalg.norm(query - other, order, axis=-1, keepdims=True) / SCALE
    np.testing.assert_allclose(mechanism.cost(other, recorded, 1, []), expected)
    assert mechanism.replay(other, recorded, 1) is output


@pytest.mark.parametrize("kind", [Correlated, Temporal, SecureSum])
def test_the_cost_of_correlated_noise_is_the_mahalanobis_norm(kind):
    """Compare with the covariance of all outputs and the change of their means."""
    options = {Correlated: {"root": ROOT}, Temporal: {"filter": FILTER}, SecureSum: {"agents": 3}}
    mechanism = kind(1.0, SCALE, **options[kind])
    queries, others = RNG.normal(size=(2, 2, 1, 1, AGENTS, 1))
    earlier: list = []
    for t in (1, 2):
        evidence = mechanism.evidence(queries[t - 1], None, None, t)
        recorded = Recorded("", t, evidence, None, None)
        cost = mechanism.cost(others[t - 1], recorded, t, earlier)
    differences = (queries - others)[:, 0, 0, :, 0] / SCALE
    if kind is Temporal:  # of each agent, over both iterations
        change, covariance = differences, FILTER @ FILTER.T
        expected = np.sqrt(np.einsum("ta,ts,sa->a", change, np.linalg.inv(covariance), change))
    elif kind is Correlated:  # of all agents, in the last iteration
        change = differences[1]
        expected = np.sqrt(change @ np.linalg.inv(ROOT @ ROOT.T) @ change)
    else:
        expected = abs(differences[1].sum()) / np.sqrt(AGENTS)
    np.testing.assert_allclose(np.ravel(cost), np.ravel(expected))


def test_the_factor_is_the_largest_cost_of_a_unit_change_of_one_agent():
    mechanism = Correlated(1.0, SCALE, root=ROOT)
    zero = np.zeros((1, 1, AGENTS, 1))
    recorded = Recorded("", 1, zero, None, None)
    costs = [
        mechanism.cost(agent.reshape(1, 1, AGENTS, 1), recorded, 1, []).item()
        for agent in np.eye(AGENTS)
    ]
    assert max(costs) == pytest.approx(mechanism.loss(1).item())


@pytest.mark.parametrize(
    "root", [np.ones((AGENTS, AGENTS)), np.eye(AGENTS) - 1 / AGENTS, ROOT[:, :1]]
)
def test_a_root_with_a_combination_of_agents_without_noise_is_refused(root):
    with pytest.raises(InvalidInput) as error:
        Correlated(1.0, SCALE, root=root)
    assert error.value.key == "Correlated.root"


@pytest.mark.parametrize("name", ["sensitivity", "scale"])
def test_an_array_over_iterations_is_refused_and_a_list_is_not(name):
    over_time = np.arange(1.0, 4.0)
    stated = {"sensitivity": 1.0, "scale": SCALE}
    with pytest.raises(InvalidInput) as error:
        Gaussian(**stated | {name: over_time})
    assert error.value.key == f"Gaussian.{name}"
    losses = [Gaussian(**stated | {name: list(over_time)}).loss(t).item() for t in (1, 2, 3)]
    exponent = 1 if name == "sensitivity" else -1
    np.testing.assert_allclose(losses, losses[0] * over_time**exponent)


@pytest.mark.parametrize("shape", [("agents", 3, "dim"), (3, "dim"), ("agents",), ()])
def test_entries_of_an_agent_in_several_axes_are_refused(shape):
    """The cost of the change would be that of the last axis, here 1 instead of sqrt(3)."""
    with pytest.raises(InvalidInput) as error:
        Gaussian(1.0, SCALE, shape=shape)
    assert error.value.key == "Gaussian.shape"
    mechanism = Gaussian(1.0, SCALE, shape=("agents", 3))
    zero = np.zeros((1, 1, AGENTS, 3))
    cost = mechanism.cost(zero + 1, Recorded("", 1, zero, None, zero), 1, [])
    np.testing.assert_allclose(cost, np.sqrt(3) * mechanism.loss(1).item())


def test_a_value_without_noise_has_an_infinite_loss_unless_it_is_equal():
    value = RNG.normal(size=(1, 1, AGENTS, DIM))
    recorded = Recorded("", 1, value, None, value)
    moved = value + np.eye(AGENTS, DIM)[None, None]
    costs = Exact(reason="a test").cost(moved, recorded, 1, [])
    assert costs.ravel().tolist() == [np.inf, np.inf, 0.0]
    assert Exact(reason="a test").loss(1) == np.inf


@pytest.mark.parametrize(("kind", "event"), [
    (Gaussian, dp_event.GaussianDpEvent), (Laplace, dp_event.LaplaceDpEvent),
])  # fmt: skip
def test_the_releases_compose_to_the_epsilon_of_dp_accounting(kind, event):
    changes, scales, delta = [0.5, 0.0, 1.5, 1.0], [2.0, 1.0, 4.0, 3.0], 1e-5
    ours = account(kind(changes, scales).releases(4), delta).epsilon
    composed = dp_event.ComposedDpEvent(
        [event(s / c) for c, s in zip(changes, scales, strict=True) if c > 0]
    )
    theirs = pld_privacy_accountant.PLDAccountant().compose(composed).get_epsilon(delta)
    assert ours == pytest.approx(theirs, rel=1e-3)


def test_the_largest_releases_count_if_one_change_touches_few():
    changes = [1.0, 3.0, 2.0]
    whole, touched = (Laplace(changes, 1.0, touched=n).releases(3) for n in (None, 2))
    assert account(whole, 0.0).epsilon == pytest.approx(6.0)
    assert account(touched, 0.0).epsilon == pytest.approx(5.0)


# --- Objective perturbation -----------------------------------------------------------------------

ROWS, RIDGE = np.array([0.8, -0.5, 0.3]), 0.4


def regression(rows):
    """Return the objective of a logistic regression with one coefficient, and its Hessian."""

    def gradient(x):
        return RIDGE * x - (rows * expit(-rows * x)).sum(-1, keepdims=True)

    def hessian(x):
        slopes = expit(rows * x) * expit(-rows * x)
        return RIDGE + (rows**2 * slopes).sum(-1, keepdims=True)

    def solve(linear):
        x = np.zeros(np.shape(linear))
        for _ in range(100):
            x = x - (gradient(x) + linear) / hessian(x)
        return x

    return Objective(solve, gradient), hessian


@pytest.mark.parametrize("distribution", ["gamma_norm", "laplace", "gaussian"])
def test_the_log_determinant_is_that_of_the_density_of_the_minimiser(distribution):
    """The density of the minimiser, with the Jacobian, integrates to 1."""
    objective, hessian = regression(ROWS)
    law = stats.norm if distribution == "gaussian" else stats.laplace

    def density(x):
        point = np.full((1, 1, 1, 1), x)
        jacobian = np.exp(log_determinant(objective, point))
        return (law.pdf(-objective.gradient(point), scale=SCALE) * jacobian).item()

    total, _ = integrate.quad(density, -60, 60, points=[0.0], limit=400)
    assert total == pytest.approx(1.0, abs=1e-6)
    point = np.full((1, 1, 1, 1), 0.3)
    np.testing.assert_allclose(np.exp(log_determinant(objective, point)), hessian(point))


@pytest.mark.parametrize("weight", [1.0, -2.5])
@pytest.mark.parametrize("distribution", ["gamma_norm", "laplace"])
def test_the_cost_bounds_the_log_ratio_of_the_densities_of_a_minimiser(distribution, weight):
    """In one dimension, both pure distributions are Laplace noise."""
    (first, hessian), (second, other_hessian) = regression(ROWS), regression(ROWS * [1, 1, -2])
    mechanism = ObjectivePerturbation(1.0, SCALE, distribution=distribution, weight=weight)
    scaled = Objective(lambda b: first.solve(weight * b), first.gradient)
    moved = Objective(lambda b: second.solve(weight * b), second.gradient)
    ratios, costs = [], []
    for unit in np.linspace(-4, 4, 41):
        unit = np.full((1, 1, 1, 1), unit)
        output = mechanism.output(scaled, unit, 1)
        recorded = Recorded("", 1, mechanism.evidence(scaled, unit, output, 1), unit, output)
        costs.append(mechanism.cost(moved, recorded, 1, []).item())
        noises = (objective.gradient(output) for objective in (first, second))
        densities = [
            stats.laplace.logpdf(noise, scale=abs(weight) * SCALE) + np.log(curvature(output))
            for noise, curvature in zip(noises, (hessian, other_hessian), strict=True)
        ]
        ratios.append(abs(densities[0] - densities[1]).item())
    assert np.all(np.array(ratios) <= np.array(costs) * (1 + 1e-6))
    assert max(np.array(ratios) / np.array(costs)) > 0.99


# --- Gamma-norm noise -----------------------------------------------------------------------------


def test_gamma_norm_noise_has_a_uniform_direction():
    draws = rng()
    noise = GammaNorm.unit(draws, (20_000, 3))
    height = noise[:, 2] / np.linalg.norm(noise, axis=-1)  # uniform on the sphere (Archimedes)
    assert stats.kstest(height, stats.uniform(-1, 2).cdf).pvalue > 1e-3
    independent = stats.laplace.rvs(size=(20_000, 3), random_state=draws)
    skewed = independent[:, 2] / np.linalg.norm(independent, axis=-1)
    assert stats.kstest(skewed, stats.uniform(-1, 2).cdf).pvalue < 1e-6
