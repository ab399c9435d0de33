"""Test privacy losses to observers against closed forms, an order and simulated likelihoods."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import private_consensus as pc
from private_consensus.audits.feeding import feed
from private_consensus.audits.observers import (
    AGENT,
    CAUSAL,
    EAVESDROPPER,
    EXACT,
    FINAL,
    KINDS,
    MEAN,
    SECURE,
    Observed,
)
from private_consensus.core.algorithms.base import Algorithm, Iterates, origin, stack
from private_consensus.core.algorithms.whisper_dsgd import optimal_root
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.privacy import gaussian_epsilon, gaussian_mu
from private_consensus.privacy.mechanisms import Gaussian

DELTA, NOISE, RECORDS = 1e-5, 8.0, 10
CLOSE = {"rel": 1e-6, "abs": 1e-9}


def network(name, agents, weights="metropolis", **parameters):
    return pc.networks.build(pc.Streams(0, (0,)), name, agents, weights=weights, **parameters)


def star(agents):
    return network("edges", agents, edges=[[1, v] for v in range(2, agents + 1)])


def means(agents, dim=1, values=None, box=1.0):
    values = np.zeros((agents, dim)) if values is None else values
    return MeanEstimation(values[None], RECORDS, box)


def logistic(agents, weight=0.1):
    random = np.random.default_rng(0)
    rows = random.standard_normal((agents, RECORDS, 2))
    rows *= 0.5 / np.linalg.norm(rows, axis=-1, keepdims=True)
    labels = np.sign(rows[..., 0])
    return LogisticRegression(rows, labels, rows[0], labels[0], weight, 1e-2)


def algorithm(name, noise=NOISE, **parameters):
    return pc.algorithms.load(name)(noise=noise, **parameters)


def epsilons(noisy, problem, graph, horizon, kind=AGENT, members=None):
    """Return epsilon by (observer, target), and all rules."""
    losses = Observed(noisy, problem, graph, horizon).result(kind, DELTA, members).losses
    table = {(loss.members, loss.target): loss.epsilon for loss in losses}
    return table, {loss.rule for loss in losses}


def of(mu_squared):
    return pytest.approx(float(gaussian_epsilon(np.sqrt(mu_squared), DELTA)), **CLOSE)


ONCE = (2.0 / RECORDS / NOISE) ** 2
"""Squared mu of one noisy mean of records in [-1, 1]."""


# Noise once, then gossip: every received message is a combination of the noisy means.


def test_gossip_of_a_star_reveals_the_sum_of_the_other_leaves_after_two_rounds():
    for horizon, other in ((1, 0.0), (2, ONCE / 3), (4, ONCE / 3)):
        losses, rules = epsilons(algorithm("muffliato"), means(5), star(5), horizon)
        assert rules == {EXACT}
        assert losses[(1,), 0] == losses[(0,), 1] == of(ONCE)  # leaf and hub
        assert losses[(1,), 2] == of(other)


@pytest.mark.parametrize("acceleration", ["none", "chebyshev"])
def test_gossip_reveals_all_noisy_means_within_the_causal_distance_on_a_path(acceleration):
    noisy = algorithm("muffliato", acceleration=acceleration)
    losses, _ = epsilons(noisy, means(6), network("path", 6), 3)
    for target in range(1, 6):
        assert losses[(0,), target] == of(ONCE if target <= 3 else 0.0)


def test_secure_sums_hide_a_mean_among_those_of_the_neighbours():
    losses, rules = epsilons(algorithm("muffliato"), means(6), network("complete", 6), 1, SECURE)
    assert rules == {EXACT}
    assert all(loss == of(ONCE / 5) for loss in losses.values())
    pair, _ = epsilons(
        algorithm("muffliato"), means(6), network("complete", 6), 1, SECURE, members=(0, 1)
    )
    assert all(loss == of(ONCE / 4) for loss in pair.values())


def test_one_shot_averaging_of_any_loss_is_exact_since_queries_do_not_react():
    problem, noisy = logistic(4), algorithm("one_shot_averaging", 0.5, D=0.05)
    change = problem.minimiser_change("l2", 0.05)
    losses, rules = epsilons(noisy, problem, network("complete", 4), 2, SECURE)
    assert rules == {EXACT}
    assert losses[(0,), 1] == of((change / 0.5) ** 2 / 3)


def test_an_ill_conditioned_view_has_the_causal_bound():
    losses, rules = epsilons(algorithm("muffliato"), means(24), network("path", 24), 23)
    assert CAUSAL in rules
    assert losses[(0,), 23] == of(ONCE)


# Fresh noise in every iteration.


def test_descent_on_a_complete_graph():
    noisy, problem = algorithm("muffliato_gd", eta=0.05), means(5)
    size = 4 * (2.0 / NOISE) ** 2
    for kind, mu_squared in ((AGENT, size), (EAVESDROPPER, size), (SECURE, size / 4)):
        losses, rules = epsilons(noisy, problem, network("complete", 5), 4, kind)
        assert rules == {EXACT}
        assert max(losses.values()) == of(mu_squared)


def test_secure_aggregation_hides_a_gradient_in_the_noise_of_the_other_agents():
    noisy, problem, graph = algorithm("secure_aggregation", eta=0.1), logistic(5), star(5)
    size = 3 * (problem.record_change("l2") / NOISE) ** 2
    for members in ((), (0,), (0, 3)):
        kind = AGENT if members else EAVESDROPPER
        losses, rules = epsilons(noisy, problem, graph, 3, kind, members)
        assert rules == {CAUSAL}
        assert all(loss == of(size * 5 / (5 - len(members))) for loss in losses.values())


def test_pairwise_noise_cancels_for_an_eavesdropper_and_is_known_to_neighbours():
    # Neighbours of an agent on a path know all of its pairwise noise.
    noisy, problem, graph = algorithm("decor", ratio=3.0, eta=0.05), means(3), network("path", 3)
    size = 3 * (problem.record_change("l2") / NOISE) ** 2
    laplacian = np.array([[1, -1, 0], [-1, 2, -1], [0, -1, 1]])
    inverse = np.linalg.inv(np.eye(3) + 9 * laplacian)
    losses, rules = epsilons(noisy, problem, graph, 3, EAVESDROPPER)
    assert rules == {EXACT}
    assert losses[(), 1] == of(size * inverse[1, 1])
    assert epsilons(noisy, problem, graph, 3, AGENT, (0, 2))[0][(0, 2), 1] == of(size)


def test_agents_who_share_all_seeds_of_correlated_noise_learn_the_changes():
    noisy, graph = algorithm("whisper_dsgd", eta=0.05), network("ring", 5)
    losses, rules = epsilons(noisy, means(5), graph, 2)
    assert rules == {EXACT} and set(losses.values()) == {np.inf}
    losses, _ = epsilons(noisy, means(5), graph, 2, EAVESDROPPER)
    root = optimal_root(graph.mixing)
    inverse = np.linalg.inv(root @ root)
    assert losses[(), 0] == of(2 * (2.0 / NOISE) ** 2 * inverse[0, 0])


def test_final_models_of_local_training_contain_one_change_and_all_noise():
    # The mean of the models has the noise of all agents; steps shrink changes and noise by a half.
    losses, rules = epsilons(
        algorithm("local_training", eta=0.05), means(4), network("ring", 4), 3, MEAN
    )
    factors = 0.5 ** np.arange(3)
    mu_squared = (2.0 * factors.sum()) ** 2 / (NOISE**2 * (factors**2).sum())
    assert rules == {EXACT}
    assert all(loss == of(mu_squared / 4) for loss in losses.values())


@pytest.mark.parametrize("kind", [AGENT, SECURE])
def test_clipped_descent_has_the_loss_of_the_iterations_that_can_arrive(kind):
    noisy, problem = algorithm("muffliato_gd", eta=0.05, clip=0.5), means(5)
    losses, rules = epsilons(noisy, problem, network("path", 5), 3, kind)
    assert rules == {CAUSAL}
    for target in range(1, 5):
        assert losses[(0,), target] == of(max(0, 4 - target) * (1.0 / NOISE) ** 2)


def test_a_projection_is_not_affine_even_if_noise_rarely_reaches_it():
    graph, noisy = network("path", 4), algorithm("pdop", 0.1, law="gaussian", eta=0.05, init_std=0)
    for box in (1.0, 1e6):
        assert epsilons(noisy, means(4, box=box), graph, 3)[1] == {CAUSAL}


@dataclass(frozen=True, kw_only=True)
class Arriving(Algorithm):
    """Gossip of noisy data that arrive in every iteration; none of them depend on a message."""

    noise: float = 5.0

    def mechanisms(self, problem, network, horizon):
        return {"message": Gaussian(2.0, self.noise)}

    def start(self, problem, network, release):
        return Iterates(origin(problem, release))

    def step(self, state, problem, network, release, t):
        return Iterates(release("message", network.mix(state.x)))

    def observables(self, state, problem, t):
        return {"released": state.x}


@dataclass(frozen=True, kw_only=True)
class Descent(Algorithm):
    """Gradient steps of size 0.05, each with noise; ``factor`` multiplies the sensitivity."""

    noise: float = 0.0
    factor: ClassVar[float] = 1

    def mechanisms(self, problem, network, horizon):
        return {"message": Gaussian(0.05 * self.factor * problem.record_change("l2"), self.noise)}

    def start(self, problem, network, release):
        return Iterates(origin(problem, release))

    def query(self, problem, z):
        return z - 0.05 * problem.gradient(z)

    def step(self, state, problem, network, release, t):
        query = self.query(problem, network.mix(state[0]))
        return Iterates(release("message", query))

    def observables(self, state, problem, t):
        return {"released": state[0]}


class OfAgents(Descent):
    """All records of an agent change: ten times the sensitivity of one record."""

    relation = pc.Relation("agent", "replace")
    factor = RECORDS


class TwoPaths(Descent):
    """The message depends on a record three times more through the means than by the gradient."""

    factor = 4

    def query(self, problem, z):
        return super().query(problem, z) + 0.05 * 3 * problem.records * problem.means


@pytest.mark.parametrize("kind", [OfAgents, TwoPaths])
def test_a_larger_declared_change_with_more_noise_is_not_observed_less(kind):
    """The gradient's change by one record is not the whole change of the message."""
    graph, problem, horizon = network("ring", 6), means(6), 5
    record, rules = epsilons(Descent(noise=NOISE), problem, graph, horizon)
    larger, _ = epsilons(kind(noise=kind.factor * NOISE), problem, graph, horizon)
    assert rules == {EXACT}
    assert all(larger[pair] >= epsilon * (1 - 1e-9) for pair, epsilon in record.items())


def test_changes_of_different_iterations_point_in_any_direction():
    # The largest loss over signs is 0.97415.
    graph = network("ring", 8, "laplacian")
    losses, rules = epsilons(Arriving(), means(8), graph, 6, AGENT, (0,))
    assert rules == {EXACT}
    assert gaussian_mu(losses[(0,), 1], DELTA) == pytest.approx(0.97425, abs=5e-6)


# Relations between observers, and simulated likelihood ratios.

METHODS = [
    ("muffliato_gd", {"eta": 0.05}), ("muffliato_gd", {"eta": 0.05, "rounds": 2}),
    ("muffliato", {}), ("zip_dl", {"eta": 0.05}), ("decor", {"eta": 0.05}),
    ("mafalda_sgd", {"eta": 0.05, "filter": ((1.0, 0.0, 0.0), (-0.5, 0.9, 0.0), (0.2, 0.1, 1.2))}),
    ("ldp_gradient_descent", {"eta": 0.05, "law": "gaussian", "weights": "fixed", "init_std": 0.0}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "parameters"), METHODS)
def test_an_observer_who_receives_more_learns_no_less(name, parameters):
    observed = Observed(algorithm(name, **parameters), means(6), network("ring", 6), 3)
    result = {kind: observed.result(kind, DELTA) for kind in KINDS}
    assert all(loss.rule == EXACT for r in result.values() for loss in r.losses)
    single = {(loss.members[0], loss.target): loss.epsilon for loss in result[AGENT].losses}
    secure = {(loss.members[0], loss.target): loss.epsilon for loss in result[SECURE].losses}
    both = observed.result(AGENT, DELTA, (0, 1)).losses
    allowed = 1 + 1e-6
    assert all(secure[pair] <= single[pair] * allowed for pair in secure)
    for loss in both:
        assert max(single[0, loss.target], single[1, loss.target]) <= loss.epsilon * allowed
    everyone, final, mean = (result[kind].losses for kind in (EAVESDROPPER, FINAL, MEAN))
    for e, f, m in zip(everyone, final, mean, strict=True):
        assert m.epsilon <= f.epsilon * allowed <= e.epsilon * allowed**2
        assert e.epsilon <= result[AGENT].accounted * allowed


@pytest.mark.parametrize(("name", "parameters"), METHODS)
def test_simulated_messages_reach_the_loss(name, parameters):
    """The discriminant of two data sets, from half of the runs, has mu on the other half."""
    runs, graph, horizon, target, v = 20_000, network("path", 4), 3, 2, 0
    noisy = algorithm(name, noise=2.0 if name != "muffliato" else 0.1, **parameters)
    views = []
    for world, value in enumerate((-1.0, 1.0)):
        values = np.zeros((4, 1))
        values[target] = value / RECORDS
        random, known = np.random.default_rng(world), []

        def units(_, t, unit, random=random, known=known):
            unit[...] = random.standard_normal(unit.shape)
            flat = unit.reshape(runs, -1)
            if name == "decor":
                own = [0, *(4 + np.flatnonzero(np.triu_indices(4, 1)[0] == v))]
            else:
                own = range(v * flat.shape[1] // 4, (v + 1) * flat.shape[1] // 4)
            known.append(flat[:, list(own)])

        problem = means(4, values=values)
        view = feed(stack([noisy]), problem, graph, horizon, runs, units)
        received = [
            m.values[:, 1, v] if m.values.ndim == 4 else m.values[:, 1]
            for m in view.messages if len(m.values) == runs
        ]  # fmt: skip
        views.append(np.concatenate([*received, *known], axis=1))
    first, second = views
    half = runs // 2
    covariance = np.cov(np.concatenate([x[:half] - x[:half].mean(0) for x in views]).T)
    direction = np.linalg.pinv(covariance, rcond=1e-9) @ (second[:half] - first[:half]).mean(0)
    a, b = first[half:] @ direction, second[half:] @ direction
    mu = (b.mean() - a.mean()) / np.sqrt((a.var() + b.var()) / 2)
    (loss,) = [
        x for x in epsilons(noisy, problem, graph, horizon)[0].items() if x[0] == ((v,), target)
    ]
    assert gaussian_mu(loss[1], DELTA) == pytest.approx(mu, abs=0.05)
