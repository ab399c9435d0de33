"""Test mu of partial observers: exact elimination, closed forms, ordering and sums."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from dense_views import (
    brute_force,
    complete,
    descent_rows,
    energy,
    floats,
    lopsided,
    metropolis,
    path,
    ring,
    star,
)

from private_consensus.common.errors import InvalidInput
from private_consensus.privacy.observers import (
    Coalition,
    Constant,
    Cyclic,
    Eavesdropper,
    FinalModels,
    Free,
    Once,
    SecureSums,
    agent,
    all_victims,
    gossip,
    gradient_change,
    mu,
    muffliato_gd,
    noised_descent,
    secure_agent,
)
from private_consensus.privacy.observers.certificates import certified_information
from private_consensus.privacy.observers.changes import correlation_maximum
from private_consensus.privacy.observers.fixed_point import fixed_point_information
from private_consensus.privacy.observers.linear_view import linear_view
from private_consensus.privacy.observers.modular import determines_noise
from private_consensus.privacy.observers.rational import exact_information, exact_view


def squares(system, observer, changes):
    return {u: b.upper**2 for u, b in all_victims(system, observer, changes).items()}


def agrees(bracket, square):
    """Assert that both bounds enclose the exact value and differ by at most 1e-9 of it."""
    truth = np.sqrt(float(square))
    assert bracket.lower <= truth * (1 + 1e-15) and truth <= bracket.upper * (1 + 1e-15)
    assert bracket.upper - bracket.lower <= 1e-9 * truth


# --- Exact elimination ------------------------------------------------------------------------


@pytest.mark.parametrize("graph", [path(4), ring(5), lopsided()], ids=["path", "ring", "lopsided"])
@pytest.mark.parametrize("sums", [False, True], ids=["messages", "sums"])
def test_mu_agrees_with_exact_elimination(graph, sums):
    W = metropolis(graph)
    signs = [1, -1, 1]
    system = noised_descent(floats(W), 3)
    neighbours = list(np.flatnonzero(graph[0]))
    observed = [{j: W[0][j] for j in neighbours}] if sums else neighbours
    observer = secure_agent(0) if sums else agent(0)
    for victim in range(1, len(graph)):
        truth = brute_force(W, 3, signs, victim, observed, known_agents=[0])
        agrees(mu(system, observer, victim, SignedConstant(signs)), truth)


class SignedConstant(Constant):
    """Change of constant size with one sign per round."""

    def __init__(self, signs):
        object.__setattr__(self, "size", np.array(signs, dtype=float))

    def basis(self, horizon):
        return self.size[:, None]


def test_mu_of_a_coalition_with_schedules_agrees_with_exact_elimination():
    graph = lopsided()
    W = metropolis(graph)
    gains, noises = [1, 0.5, 0.25], [1, 2, 0.5]
    system = noised_descent(floats(W), 3, gain=gains, noise=noises)
    options = {"gains": list(map(Fraction, gains)), "noises": list(map(Fraction, noises))}
    members = (0, 6)
    observed = [1, 2, 3]
    for victim in (1, 4, 5):
        truth = brute_force(W, 3, [1, 1, 1], victim, observed, known_agents=members, **options)
        agrees(mu(system, Coalition(members), victim, Constant()), truth)


def test_mu_of_gossip_without_fresh_noise_agrees_with_exact_elimination():
    graph = lopsided()
    W = metropolis(graph)
    neighbours = list(np.flatnonzero(graph[0]))
    system = gossip(floats(W), 3)
    options = {"gains": [1, 0, 0], "noises": [1, 0, 0]}
    for victim in range(1, 7):
        truth = brute_force(W, 3, [1, 1, 1], victim, neighbours, known_agents=[0], **options)
        agrees(mu(system, agent(0), victim, Constant()), truth)


# --- Closed forms -----------------------------------------------------------------------------


def test_mu_squared_on_a_path_of_three_is_one_tenth():
    value = mu(noised_descent(floats(metropolis(path(3))), 2), agent(2), 0, Constant())
    agrees(value, 1 / 10)


def test_an_agent_adjacent_to_all_agents_equals_the_eavesdropper():
    W = floats(metropolis(complete(5)))
    gains, noises = np.array([1, 0.7, 0.2]), np.array([0.5, 1, 2])
    system = noised_descent(W, 3, gain=gains, noise=noises)
    value = float(((gains / noises) ** 2).sum())
    agrees(mu(system, agent(1), 3, Free()), value)
    agrees(mu(system, Eavesdropper(), 3, Free()), value)
    agrees(mu(system, Eavesdropper((0, 1)), 3, Constant()), value)


def test_a_coalition_of_all_other_agents_equals_the_eavesdropper():
    system = noised_descent(floats(metropolis(ring(6))), 4)
    agrees(mu(system, Coalition((0, 1, 2, 4, 5)), 3, Free()), 4)


@pytest.mark.parametrize("horizon", [1, 5])
def test_secure_sums_on_the_complete_graph_have_the_central_loss(horizon):
    n = 6
    system = noised_descent(floats(metropolis(complete(n))), horizon)
    agrees(mu(system, secure_agent(0), 2, Constant()), horizon / (n - 1))


def test_a_star_hub_learns_each_leaf_and_a_leaf_the_mean_of_other_leaves():
    W = floats(metropolis(star(6)))
    agrees(mu(gossip(W, 1), agent(0), 3, Constant()), 1)
    first, later = gossip(W, 1), gossip(W, 3)
    assert mu(first, agent(1), 4, Constant()).upper == 0
    agrees(mu(later, agent(1), 0, Constant()), 1)
    agrees(mu(later, agent(1), 4, Constant()), 1 / 4)


@pytest.mark.parametrize("graph", [ring(8), path(8)], ids=["ring", "path"])
def test_gossip_without_fresh_noise_has_full_loss_within_reach_and_none_beyond(graph):
    W = floats(metropolis(graph))
    for rounds in (1, 2, 3):
        values = all_victims(gossip(W, rounds, noise=2.0), agent(0), Constant())
        for victim in range(1, 8):
            distance = min(victim, 8 - victim) if graph[0, -1] else victim
            agrees(values[victim], 1 / 4) if distance <= rounds else None
            assert distance <= rounds or values[victim].upper == 0


def test_mu_at_the_far_end_of_a_long_path_is_exact():
    """Singular values fall by a factor per hop, and a pseudo-inverse drops the smallest."""
    system = gossip(floats(metropolis(path(25))), 24)
    agrees(mu(system, agent(0), 24, Constant()), 1)


def test_noise_free_gossip_rounds_increase_mu():
    """On a ring of six at distance 3, mu^2 rises from 1/50 of the local value to all of it."""
    W = floats(metropolis(ring(6)))
    mu_squared = [mu(muffliato_gd(W, 4, k), agent(0), 3, Free()).upper ** 2 for k in (1, 2, 3)]
    assert mu_squared == pytest.approx([0.0764, 0.4997, 4.0], abs=1e-4)


def test_mu_of_correlated_noise_to_the_eavesdropper_is_that_of_the_mechanism():
    """For noise multiplied by B = C^{-1}, mu^2 is |C Delta|^2 for a lower triangular C."""
    C = np.tril(np.ones((4, 4)))
    system = noised_descent(floats(metropolis(ring(5))), 4, filter=np.linalg.inv(C))
    agrees(mu(system, Eavesdropper(), 2, Constant()), float((C.sum(1) ** 2).sum()))
    agrees(mu(system, Eavesdropper(), 2, Once()), 4)


def test_the_mean_of_final_models_contains_the_sum_of_all_noise():
    n, horizon = 5, 4
    system = noised_descent(floats(metropolis(ring(n))), horizon, noise=0.5)
    value = mu(system, FinalModels(mean=True), 1, Constant())
    agrees(value, horizon**2 / (n * horizon * 0.25))


# --- Properties -------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", [ring(7), lopsided(), star(6)], ids=["ring", "lopsided", "star"])
def test_mu_squared_sums_to_the_number_of_received_scalars(graph):
    """The sum of mu^2 over all target agents is the number of independent received scalars."""
    system = noised_descent(floats(metropolis(graph)), 6)
    degree = int(graph[0].sum())
    for observer, scalars in ((agent(0), degree), (secure_agent(0), 1)):
        assert sum(squares(system, observer, Constant()).values()) == pytest.approx(
            6 * scalars, rel=1e-7
        )


def test_mu_increases_with_the_view_of_the_observer():
    system = noised_descent(floats(metropolis(lopsided())), 5)
    chain = [
        FinalModels((0,), of=(0,)),
        agent(0),
        Coalition((0, 5)),
        Eavesdropper((0, 5)),
    ]
    values = [mu(system, observer, 3, Free()) for observer in chain]
    assert all(a.lower <= b.upper for a, b in pairwise(values))
    assert values[0].upper < values[1].lower < values[2].lower < values[3].upper
    assert mu(system, secure_agent(0), 3, Free()).upper < values[1].lower
    mean, models = FinalModels(mean=True), FinalModels()
    assert mu(system, mean, 3, Free()).upper <= mu(system, models, 3, Free()).upper


def test_mu_does_not_decrease_with_more_rounds():
    W = floats(metropolis(lopsided()))
    values = [mu(noised_descent(W, t), agent(0), 4, Free()) for t in range(1, 8)]
    assert all(a.lower <= b.upper for a, b in pairwise(values))


def test_mu_is_invariant_under_renumbering_of_agents():
    graph = lopsided()
    order = np.array([3, 0, 6, 1, 5, 2, 4])
    moved = graph[np.ix_(order, order)]
    original_bounds = all_victims(noised_descent(floats(metropolis(graph)), 4), agent(3), Free())
    permuted_bounds = all_victims(noised_descent(floats(metropolis(moved)), 4), agent(0), Free())
    for position, number in enumerate(order[1:], 1):
        assert permuted_bounds[position].upper == pytest.approx(
            original_bounds[number].upper, rel=1e-9
        )


def test_mu_scales_with_change_over_noise():
    W = floats(metropolis(ring(6)))
    unit_bounds = mu(noised_descent(W, 5), agent(0), 2, Free())
    scaled_bounds = mu(noised_descent(W, 5, noise=0.25), agent(0), 2, Free(3.0))
    assert scaled_bounds.upper == pytest.approx(12 * unit_bounds.upper, rel=1e-9)


def test_mu_on_a_sequence_of_graphs_agrees_with_exact_elimination():
    """Messages of the second round use another graph than the first mixing step."""
    first, second = metropolis(path(4)), metropolis(ring(4))
    system = noised_descent(np.array([floats(first), floats(second)]), 2)
    rows = brute_force_of_two(first)
    agrees(mu(system, agent(0), 3, Constant()), rows)


def brute_force_of_two(first):
    """Return mu^2 of agent 3 to agent 0, which receives from 1 and then from 1 and 3."""
    n = 4
    noise = [[0] * (2 * n) for _ in range(3)]
    noise[0][1] = 1
    change = [0, 0, 0]
    for row, j in ((1, 1), (2, 3)):
        for i in range(1, n):
            noise[row][i] = first[j][i]
        noise[row][n + j] = 1
        change[row] = first[j][3] + (1 if j == 3 else 0)
    return energy(noise, change)


# --- Sets of changes --------------------------------------------------------------------------


def test_free_changes_of_a_neighbour_have_a_quarter_more_mu_squared_than_constant():
    system = noised_descent(floats(metropolis(ring(6))), 10)
    constant = mu(system, agent(0), 1, Constant())
    free = mu(system, agent(0), 1, Free())
    assert free.upper**2 / constant.upper**2 == pytest.approx(1.25, abs=0.01)
    assert free.gap < 1e-6 and constant.gap < 1e-9


def test_mu_increases_from_single_to_cyclic_to_free_changes():
    system = noised_descent(floats(metropolis(ring(6))), 6)
    once, cycle, free = (
        mu(system, agent(0), 2, changes) for changes in (Once(), Cyclic(period=3), Free())
    )
    assert once.upper < cycle.lower < cycle.upper < free.lower
    period_one = mu(system, agent(0), 2, Cyclic(period=1))
    assert period_one.upper == pytest.approx(free.upper, rel=1e-9)
    assert mu(system, agent(0), 2, Cyclic(period=6)).upper == pytest.approx(once.upper, rel=1e-9)


def test_correlation_maximum_is_at_least_the_value_of_every_sign_vector():
    """Compare the bounds for random matrices with the values of all sign vectors."""
    generator = np.random.default_rng(3)
    for _ in range(5):
        root = generator.normal(size=(7, 3))
        matrix = root @ root.T
        lower, upper = correlation_maximum(matrix)
        signs = np.array(np.meshgrid(*[[-1, 1]] * 7)).reshape(7, -1)
        assert np.einsum("tk,ts,sk->k", signs, matrix, signs).max() <= lower * (1 + 1e-7)
        assert lower <= upper <= lower * (1 + 2e-6)


def test_gradient_change_of_a_record_or_agent_follows_from_the_clip():
    assert gradient_change("record", 1.5) == 3.0
    assert gradient_change("record", 1.5, records=6) == 0.5
    assert gradient_change("agent", 1.5, records=6) == 3.0


# --- Invalid input ----------------------------------------------------------------------------


def test_unusable_input_is_named():
    W = floats(metropolis(path(3)))
    system = noised_descent(W, 2)
    cases = [
        ("observer.members", lambda: mu(system, agent(3), 0, Free())),
        ("observer.members", lambda: mu(system, Coalition(()), 0, Free())),
        ("observer.members", lambda: mu(system, Coalition((0, 1, 2)), 0, Free())),
        ("observer.of", lambda: mu(system, FinalModels(of=(7,)), 0, Free())),
        ("victim", lambda: mu(system, agent(0), 0, Free())),
        ("mixing", lambda: gossip(np.array([W, W]), 2)),
        ("noise", lambda: noised_descent(W, 2, noise=0.0)),
        ("noise", lambda: muffliato_gd(W, 2, 2, noise=0.0)),
        ("observer", lambda: mu(noised_descent(np.eye(3), 2), agent(0), 1, Free())),
        ("changes.size", lambda: mu(system, agent(0), 1, Free(np.ones(3)))),
        ("horizon", lambda: noised_descent(W, 0)),
    ]
    for key, call in cases:
        with pytest.raises(InvalidInput) as error:
            call()
        assert error.value.key == key


def test_a_message_without_noise_has_infinite_mu_for_neighbours():
    """Only a neighbour receives the exact input, since the last message has no noise."""
    system = noised_descent(floats(metropolis(path(3))), 2, noise=[1.0, 0.0])
    assert mu(system, agent(1), 0, Free()).upper == np.inf
    assert mu(system, agent(1), 0, Free()).lower == np.inf
    assert mu(system, agent(2), 0, Free()).upper < np.inf


def test_two_secure_sums_that_differ_in_one_agent_reveal_its_message():
    """The mu of both secure sums equals the mu of the coalition of agents 0 and 1."""
    graph = complete(4)
    graph[1, 3] = graph[3, 1] = False
    system = noised_descent(floats(metropolis(graph)), 3)
    pair = mu(system, SecureSums((0, 1)), 3, Free())
    agrees(pair, mu(system, Coalition((0, 1)), 3, Free()).upper ** 2)


def test_mu_with_last_states_is_at_least_mu_with_noiseless_rounds():
    """Five agents run three noisy rounds and then gossip, as in Stage II of Showkatbakhsh et al."""
    W = floats(metropolis(path(5)))
    quiet = np.array([1, 1, 1, 0, 0], dtype=float)
    stage_one = noised_descent(W, 3)
    longer = mu(noised_descent(W, 5, gain=quiet, noise=quiet), agent(0), 2, Free(quiet))
    bare = mu(stage_one, agent(0), 2, Free())
    with_last_states = mu(stage_one, Coalition((0,), last_states=True), 2, Free())
    assert bare.upper < longer.lower <= longer.upper <= with_last_states.upper * (1 + 1e-9)
    sums = mu(stage_one, SecureSums((0,), last_states=True), 2, Free())
    assert mu(stage_one, secure_agent(0), 2, Free()).upper < sums.lower <= with_last_states.upper


def test_mu_with_last_states_agrees_with_exact_elimination():
    W = metropolis(lopsided())
    one_round = mu(noised_descent(floats(W), 1), Coalition((0,), last_states=True), 4, Constant())
    agrees(one_round, 1)
    two_rounds = mu(noised_descent(floats(W), 2), Coalition((0,), last_states=True), 4, Constant())
    rows = descent_rows(W, 2, [1, 1], 4, unknown=range(1, 7))
    received = [rows[0][1], rows[0][2], *rows[1][1:]]
    agrees(two_rounds, energy([noise for noise, _ in received], [moved for _, moved in received]))


def test_gossip_on_a_random_graph_reveals_every_noisy_value():
    """The view has more scalars than agents, and full rank modulo a prime."""
    generator = np.random.default_rng(4)
    graph = ring(24)
    for i in range(24):
        j = int(generator.integers(24))
        graph[i, j] = graph[j, i] = j != i or graph[i, j]
    system = gossip(floats(metropolis(graph)), 16, noise=0.5)
    values = all_victims(system, agent(0), Constant())
    assert determines_noise(system, agent(0))
    assert all(b.lower == pytest.approx(2, rel=1e-8) for b in values.values())
    assert all(b.upper == pytest.approx(2, rel=1e-8) for b in values.values())


def test_determines_noise_is_false_for_symmetric_views():
    """Leaves of a star are indistinguishable to another leaf, unlike agents of a path."""
    long = gossip(floats(metropolis(path(7))), 6)
    assert determines_noise(long, agent(0))
    leaves = gossip(floats(metropolis(star(7))), 8)
    assert not determines_noise(leaves, agent(1))
    agrees(mu(leaves, agent(1), 4, Constant()), 1 / 5)
    assert not determines_noise(noised_descent(floats(metropolis(path(3))), 3), agent(0))


def test_fixed_point_information_agrees_with_exact_fractions():
    """The view is ill-conditioned: a path of twelve agents with noise in one round."""
    system = gossip(floats(metropolis(path(12))), 11)
    victims = [3, 8, 11]
    covariance, response = exact_view(system, agent(0), np.ones((11, 1)), victims)
    exact = exact_information(covariance, response, 3)
    bits = fixed_point_information(covariance, response, 3)
    for (matrix, _), approximate, radius in zip(exact, bits.matrix, bits.radius, strict=True):
        assert abs(float(matrix[0, 0]) - approximate[0, 0]) <= radius <= 1e-12
    singular = np.array([[1, 1], [1, 1]], dtype=object)
    assert fixed_point_information(singular, np.array([[1], [1]], dtype=object), 1) is None


def test_noise_over_eleven_orders_of_magnitude_is_solved_in_floating_point():
    """Rows are scaled to unit size, since the covariance would be singular to rounding."""
    growing = 8.0 ** np.arange(13)
    system = noised_descent(floats(metropolis(ring(5))), 13, gain=growing, noise=growing)
    basis = np.eye(13)[:, -2:]
    view = linear_view(system, agent(0), basis, [1, 2])
    assert np.linalg.cond(view.covariance) > 1e16
    information = certified_information(view)
    assert information.is_tight
    exact = exact_information(*exact_view(system, agent(0), basis, [1, 2]), 2)
    for matrix, (truth, _) in zip(information.matrix, exact, strict=True):
        assert matrix == pytest.approx(truth.astype(float), rel=1e-7, abs=1e-12)
