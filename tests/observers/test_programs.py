"""Test linear systems of algorithms against closed forms and execution with unit noise."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from dense_views import (
    complete,
    energy,
    floats,
    forward_view,
    graph,
    lopsided,
    metropolis,
    path,
    ring,
    star,
)
from other_systems import clean_state, dimension_exchange, quadratic_admm, tracking

from private_consensus.common.errors import InvalidInput
from private_consensus.core.networks import laplacian, laplacian_mixing
from private_consensus.privacy.observers import (
    Coalition,
    Constant,
    Eavesdropper,
    FinalModels,
    Free,
    Inputs,
    Once,
    SecureSums,
    agent,
    all_victims,
    chebyshev_gossip,
    decor,
    gossip,
    laplace,
    laplace_epsilon,
    mu,
    noised_descent,
    pairwise,
    statement,
    zip_dl,
)
from private_consensus.privacy.observers.absorption import _ratio, own_ratio_table
from private_consensus.privacy.observers.laplace import laplace_epsilons
from private_consensus.privacy.observers.linear_view import linear_view, noise_matrix
from private_consensus.privacy.observers.single_losses import descent_sum, gossip_sum

RING = floats(metropolis(ring(6)))


def square(system, observer, victim, changes=None):
    bracket = mu(system, observer, victim, changes or Constant())
    assert bracket.gap < 1e-6
    return bracket.upper**2


def test_chebyshev_gossip_has_the_same_mu_as_plain_gossip():
    W = floats(metropolis(lopsided()))
    for rounds in (1, 3, 5):
        fast = all_victims(chebyshev_gossip(W, rounds, weight=1.4), agent(0), Constant())
        plain = all_victims(gossip(W, rounds), agent(0), Constant())
        for u in range(1, 7):
            assert fast[u].upper == pytest.approx(plain[u].upper, rel=1e-9)


@pytest.mark.parametrize("output", ["model", "message"])
def test_lower_bounds_do_not_rely_on_rounded_products(output):
    """A secure sum on a graph with a symmetry reveals no more with an irrational weight."""
    W, observer = floats(metropolis(graph(4, [(0, 1), (0, 2), (0, 3), (1, 3)]))), SecureSums((0,))
    fast = chebyshev_gossip(W, 3, weight=1.347597274707782, output=output)
    bracket, plain = (mu(x, observer, 2, Constant()) for x in (fast, gossip(W, 3)))
    assert plain.upper == pytest.approx(1 / np.sqrt(3))
    assert bracket.lower == pytest.approx(plain.lower) and bracket.gap < 1e-9


def test_lower_bounds_hold_for_irrational_weights():
    """Eigenvectors of the Laplacian decide what a view reveals, for any step in I - step L."""
    adjacency = graph(6, [(0, 1), (0, 2), (0, 4), (1, 2), (2, 4), (3, 5), (4, 5)])
    rational_weights = np.eye(6) - laplacian(adjacency) / 16
    exact = all_victims(gossip(rational_weights, 5), SecureSums((0,)), Constant())
    rounded = all_victims(gossip(laplacian_mixing(adjacency), 5), SecureSums((0,)), Constant())
    for u, bracket in rounded.items():
        assert 0.99 * exact[u].lower < bracket.lower <= exact[u].upper <= bracket.upper
    system, fixed = gossip(laplacian_mixing(adjacency), 5), Inputs(react=False)
    assert statement(system, SecureSums((0,)), 5, Constant(), fixed).rule == "upper_bound"


@pytest.mark.parametrize("weight", [1.25, 1.347597274707782, 1.9])
@pytest.mark.parametrize(("victim", "squared"), [(0, 1 / 8), (3, 55 / 56)])
def test_final_models_omit_the_kernel_of_an_odd_polynomial(weight, victim, squared):
    """The kernel of W on a star is u = (7, -1, ..., -1) / sqrt(56); mu^2 of agent i is 1 - u_i^2.

    After an odd number of rounds, the models are an odd polynomial of W, for every weight. The
    polynomial that is evaluated here by its recursion has the same information.
    """
    W = floats(metropolis(star(8)))
    bracket = mu(chebyshev_gossip(W, 3, weight=weight), FinalModels(), victim, Constant())
    assert bracket.gap < 1e-9 and bracket.upper**2 == pytest.approx(squared)
    cubic = weight * W @ (weight * W @ W + (1 - weight) * np.eye(8)) + (1 - weight) * W
    rows = np.linalg.svd(cubic)[2][np.linalg.svd(cubic)[1] > 1e-9]
    assert len(rows) == 7 and (rows[:, victim] ** 2).sum() == pytest.approx(squared)


def test_noise_that_cancels_does_so_at_every_scale():
    W = np.array([[2, 1, 0], [1, 1, 1], [0, 1, 2]]) / 3
    for noise in (1.0, 0.7, np.sqrt(0.5), 1.234567890123):
        mean_of_models = mu(zip_dl(W, 2, noise=noise), FinalModels(mean=True), 1, Once())
        assert mean_of_models.lower == mean_of_models.upper == np.inf


@pytest.mark.parametrize(("step", "noise"), [(np.sqrt(1 / 8), np.sqrt(2)), (0.35355, 1.41421)])
def test_two_messages_with_one_noise_are_no_proof_of_an_infinite_loss(step, noise):
    W = np.array([[2, 1, 0], [1, 1, 1], [0, 1, 2]]) / 3
    system = tracking(W, 1, step=step, noise=noise)
    for observer in (agent(0), Eavesdropper()):
        bracket = mu(system, observer, 1, Once())
        assert bracket.lower == pytest.approx(1 / noise) and bracket.upper >= bracket.lower


def test_mu_squared_of_dimension_exchange_halves_per_dimension():
    system = dimension_exchange(16)
    values = [square(system, agent(0), u) for u in range(1, 16)]
    assert values == pytest.approx([2.0 ** -int(np.log2(u)) for u in range(1, 16)], rel=1e-9)
    assert sum(values) == pytest.approx(4, rel=1e-9)


def test_noise_on_messages_only_has_a_larger_loss_than_the_sum_of_rounds():
    assert square(clean_state(RING, 6), Eavesdropper(), 1, Free()) == pytest.approx(11.5, abs=0.05)
    assert square(noised_descent(RING, 6), Eavesdropper(), 1, Free()) == pytest.approx(6)
    reacting = statement(clean_state(RING, 3), agent(0), 2, Free(), Inputs())
    assert reacting.rule == "refused" and reacting.mu == np.inf


def test_gradient_tracking_has_a_larger_loss_to_distant_agents_than_descent():
    system = tracking(RING, 6, step=1.0)
    assert square(tracking(RING, 2, step=1.0), Eavesdropper(), 3) == pytest.approx(2, rel=1e-9)
    assert square(system, agent(0), 3) == pytest.approx(2.2, abs=0.01)
    assert square(noised_descent(RING, 6), agent(0), 3) == pytest.approx(0.28, abs=0.005)


@pytest.mark.parametrize(("local_std", "pair_std"), [(0.5, 2.0), (1.0, 0.1)])
def test_mu_of_pair_noise_on_a_ring_has_its_fourier_closed_form(local_std, pair_std):
    angles = 2 * np.pi * np.arange(6) / 6
    mu_squared_per_round = (1 / (local_std**2 + pair_std**2 * (2 - 2 * np.cos(angles)))).mean()
    system = decor(RING, 3, own_noise=local_std, pair_noise=pair_std)
    assert square(system, Eavesdropper(), 4, Free()) == pytest.approx(
        3 * mu_squared_per_round, rel=1e-9
    )


def test_mu_of_pair_noise_follows_from_the_laplacian_of_the_remaining_agents():
    """If the secrets of agent 0 are known, the Laplacian is that of the graph without it."""
    graph = lopsided()
    W = floats(metropolis(graph))
    system = decor(W, 2, gain=[1.0, 0.5], own_noise=0.7, pair_noise=1.3)
    remaining_graph = np.delete(np.delete(graph, 0, 0), 0, 1)
    inverse = np.linalg.inv(0.49 * np.eye(6) + 1.69 * laplacian(remaining_graph))
    # Agent 0 knows the noise that it shares with neighbours, so its edges hide nothing.
    for u in range(1, 7):
        expected = 1.25 * inverse[u - 1, u - 1]
        assert square(system, Eavesdropper((0,)), u, Free()) == pytest.approx(expected, rel=1e-9)
    n, local_std, pair_std = 5, 0.6, 1.5
    full = decor(floats(metropolis(complete(n))), 1, own_noise=local_std, pair_noise=pair_std)
    expected = 1 / n / local_std**2 + (1 - 1 / n) / (local_std**2 + n * pair_std**2)
    assert square(full, Eavesdropper(), 2) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("graph", "degree"), [(ring(6), 2), (complete(4), 3)])
def test_zip_dl_noise_protects_less_against_the_eavesdropper_than_against_an_agent(graph, degree):
    system = zip_dl(floats(metropolis(graph)), 1)
    assert square(system, agent(0), 1) == pytest.approx((degree + 1) / degree, rel=1e-9)
    assert square(system, Eavesdropper(), 1) == pytest.approx(degree * (degree + 1), rel=1e-9)


def test_the_mean_of_zip_dl_models_has_infinite_mu():
    system = zip_dl(floats(metropolis(ring(5))), 2)
    assert mu(system, FinalModels(mean=True), 1, Constant()).upper == np.inf


def test_mu_of_quadratic_admm_to_the_eavesdropper_is_its_gain_over_noise():
    graph, q, eta = lopsided(), np.arange(1.0, 8.0), 0.3
    system = quadratic_admm(graph, 4, curvature=q, penalty=eta, noise=0.5)
    for u in (0, 3, 6):
        gain = 1 / (q[u] + 2 * eta * graph[u].sum())
        assert square(system, Eavesdropper(), u, Free()) == pytest.approx(4 * (gain / 0.5) ** 2)
        if u:
            assert square(system, agent(0), u, Free()) < 4 * (gain / 0.5) ** 2


def zip_loop(W, noises, inputs):
    """Run Zip-DL one agent at a time and return each round's messages by (sender, receiver)."""
    n, x, sent = len(W), np.zeros(len(W)), []
    for drawn, p in zip(noises, inputs, strict=True):
        x = x + p
        messages = {}
        for a in range(n):
            near = np.flatnonzero(W[a])
            mean = sum(W[a, j] * drawn[a, j] for j in near)
            for v in near:
                messages[a, v] = x[a] + drawn[a, v] - mean / (len(near) * W[a, v])
        weighted_messages = [
            [W[v, a] * messages[a, v] for a in np.flatnonzero(W[v])] for v in range(n)
        ]
        x = np.array([sum(terms) for terms in weighted_messages])
        sent.append([messages[a, v] for a, v in sorted(messages) if a != v])
    return np.array(sent), x


def admm_loop(graph, q, eta, noises, inputs):
    n, degrees = len(graph), graph.sum(1)
    x, a, sent = np.zeros(n), np.zeros(n), []
    for drawn, b in zip(noises, inputs, strict=True):
        c = (x + graph @ x / degrees) / 2
        D = 2 * eta * degrees
        x = (b - a + D * c) / (q + D) + drawn
        a = a + eta * (degrees * x - graph @ x)
        sent.append(x)
    return np.array(sent), x


def tracking_loop(W, step, noises, inputs):
    x = v = before = np.zeros(len(W))
    sent = []
    for drawn, g in zip(noises, inputs, strict=True):
        v, before = W @ v + g + drawn - before, g + drawn
        half = x - step * v
        x = W @ half
        sent.append(np.concatenate([v, half]))
    return np.array(sent), x


LOOPS = {
    "zip_dl": (
        lambda W: zip_dl(W, 3),
        lambda W, z, p: zip_loop(W, z, p),
        lambda n: (3, n, n),
    ),
    "admm": (
        lambda W: quadratic_admm(ring(5), 3, curvature=2.0, penalty=0.4),
        lambda W, z, p: admm_loop(ring(5), 2.0, 0.4, z, p),
        lambda n: (3, n),
    ),
    "tracking": (
        lambda W: tracking(W, 3, step=0.3),
        lambda W, z, p: tracking_loop(W, 0.3, z, p),
        lambda n: (3, n),
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_linear_systems_match_explicit_loops(name):
    """Compare the covariance of all messages with an execution for unit noises and inputs."""
    W = floats(metropolis(ring(5)))
    make, loop, shape = LOOPS[name]
    system, size = make(W), shape(5)
    eavesdropper = Eavesdropper()
    columns = []
    for k in range(int(np.prod(size))):
        unit = np.zeros(size)
        unit.flat[k] = 1
        columns.append(loop(W, unit, np.zeros((3, 5)))[0].ravel())
    B = noise_matrix(system, eavesdropper)
    measured = np.array(columns).T
    assert np.allclose(B @ B.T, measured @ measured.T, atol=1e-12)
    moved = loop(W, np.zeros(size), np.tile(np.eye(5)[1], (3, 1)))[0].ravel()
    response = linear_view(system, eavesdropper, np.ones((3, 1)), [1]).response[:, 0, 0]
    assert np.allclose(response, moved, atol=1e-12)


# --- Sums of single losses ------------------------------------------------------------------------


def test_the_sum_of_single_losses_does_not_bound_mu_of_a_pair():
    eight, six = floats(metropolis(ring(8))), floats(metropolis(path(6)))
    assert gossip_sum(eight, 3, 0)[3] == pytest.approx(0.053, abs=5e-4)
    assert square(gossip(eight, 3), agent(0), 3) == pytest.approx(1, rel=1e-9)
    assert gossip_sum(six, 5, 0)[5] == pytest.approx(0.0006, abs=5e-5)
    assert square(gossip(six, 5), agent(0), 5) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("graph", [ring(8), lopsided(), star(6)], ids=["ring", "lopsided", "star"])
def test_the_total_of_single_loss_sums_bounds_the_total_mu_squared(graph):
    W = floats(metropolis(graph))
    degree = int(graph[0].sum())
    for rounds in (1, 2, 4):
        exact = all_victims(gossip(W, rounds), agent(0), Constant())
        total = sum(bracket.upper**2 for bracket in exact.values())
        summed = gossip_sum(W, rounds, 0)
        assert summed.sum() == pytest.approx(rounds * degree)
        assert total <= summed.sum() * (1 + 1e-9)


def test_the_corrected_sum_bounds_mu_squared_with_fresh_noise():
    W = floats(metropolis(lopsided()))
    exact = all_victims(noised_descent(W, 6), agent(0), Free())
    summed = descent_sum(W, 6, 0)
    assert all(exact[u].upper ** 2 <= summed[u] * (1 + 1e-9) for u in range(1, 7))


# --- All pairs, Laplace noise ---------------------------------------------------------------------


def test_pairwise_bounds_are_tight_and_match_mu_of_a_pair():
    W = floats(metropolis(lopsided()))
    system = noised_descent(W, 4)
    for secure in (False, True):
        lower, upper = pairwise(system, Free(), secure=secure)
        assert np.isnan(np.diag(upper)).all()
        off = ~np.eye(7, dtype=bool)
        assert (upper[off] - lower[off] <= 1e-6 * upper[off]).all()
    assert pairwise(system, Free())[1][5, 0] == mu(system, agent(0), 5, Free()).upper


def test_laplace_epsilon_decreases_with_distance():
    W = floats(metropolis(path(4)))
    system = noised_descent(W, 4, noise=2.0)
    assert laplace_epsilon(system, agent(0), 1, Once()) == pytest.approx(0.5, rel=1e-9)
    near, far = (laplace_epsilon(system, agent(0), u, Constant()) for u in (2, 3))
    assert far < near <= 3 / 2
    assert laplace_epsilon(noised_descent(W, 2), agent(0), 3, Once()) == 0


def test_a_cached_linear_program_is_rescaled_for_other_noise_units(monkeypatch):
    """A cached linear program and a newly solved one give equal results."""
    monkeypatch.setattr(laplace, "_SHIFTS", {})
    W = floats(metropolis(path(3)))
    unit_system, scaled_system = (
        noised_descent(W, 3, noise=scale * np.ones(3)) for scale in (1.0, 0.3)
    )
    first = laplace_epsilon(unit_system, agent(2), 0, Constant())
    solved = len(laplace._SHIFTS)
    cached_epsilon = laplace_epsilon(scaled_system, agent(2), 0, Constant())
    assert solved and len(laplace._SHIFTS) == solved
    assert cached_epsilon == pytest.approx(first / 0.3, rel=1e-9)
    laplace._SHIFTS.clear()
    assert laplace_epsilon(scaled_system, agent(2), 0, Constant()) == cached_epsilon


def test_laplace_epsilon_on_a_path_of_three_uses_the_cheaper_noise():
    """The noise of agent 0 (cost 1) or agent 1 (cost 1/3) can hide the change of agent 0."""
    W = floats(metropolis(path(3)))
    value = laplace_epsilon(noised_descent(W, 2), agent(2), 0, Constant())
    assert value == pytest.approx(1 / 3, rel=1e-9)


@pytest.mark.parametrize("changes", [Once(), Constant(), Free()])
@pytest.mark.parametrize("observer", [agent(3), Coalition((0, 4)), SecureSums((1,))])
def test_skipped_laplace_programs_do_not_change_epsilon(changes, observer):
    """Compare epsilon of each target agent with linear programs solved for every change."""
    system = noised_descent(floats(metropolis(path(5))), 4, noise=2.0, gain=[4.0, 1.0, 3.0, 2.0])
    victims = [u for u in range(5) if u not in observer.members]
    together = sum if isinstance(changes, Free) else max
    for victim, epsilon in laplace_epsilons([system], observer, victims, changes).items():
        view = linear_view(system, observer, changes.basis(4), [victim])
        noise, smallest = noise_matrix(system, observer), laplace._smallest_eigenvalue(view)
        ratios = own_ratio_table(system, observer, [victim])[:, 0]
        costs = [
            min(
                laplace._absorbed(change, ratios, view.arrives[:, 0]),
                laplace._shifted(noise, view, smallest, 0, k),
            )
            for k, change in enumerate(changes.basis(4).T)
        ]
        assert epsilon == together(costs) == laplace_epsilon(system, observer, victim, changes)


def test_the_ratio_of_gain_and_noise_is_computed_in_exact_fractions():
    inputs = np.array([[0.1, 0.0, 0.3, 0.1, 0.0, 0.3], [0.0, 0.0, 0.6, 0.3, 0.5, 0.9]])
    noise = np.array([[0.7, 1.0, 0.1, 0.1, 0.2, 0.1], [0.0, 0.0, 0.2, 0.3, 0.0, 0.3]])
    ratios = [_ratio(*pair) for pair in zip(inputs.T, noise.T, strict=True)]
    # 0.3 and 0.9 are rounded separately, so they are no multiples of 0.1 and 0.3.
    first_ratio, third_ratio = Fraction(0.1) / Fraction(0.7), Fraction(0.3) / Fraction(0.1)
    assert ratios == [float(first_ratio), 0.0, float(third_ratio), 1.0, np.inf, np.inf]
    assert _ratio(np.array([0.2, 0.0]), np.array([0.1, 0.3])) == np.inf
    assert _ratio(-2 * inputs[:, 3], noise[:, 3]) == 2.0


def test_unusable_input_is_named():
    W = floats(metropolis(path(3)))
    cases = [
        ("noise", lambda: zip_dl(W, 2, noise=0.0)),
        ("own_noise", lambda: decor(W, 2, own_noise=0.0)),
        ("mixing", lambda: zip_dl(np.array([[0.5, 0.5], [0.4, 0.6]]), 1)),
        ("weight", lambda: chebyshev_gossip(W, 2, weight=0.0)),
        ("victim", lambda: laplace_epsilon(noised_descent(W, 2), agent(0), 0, Once())),
        ("observer.members", lambda: mu(decor(W, 2), Coalition((5,)), 0, Free())),
    ]
    for key, call in cases:
        with pytest.raises(InvalidInput) as error:
            call()
        assert error.value.key == key


PROGRAMS = {
    "descent": lambda W: noised_descent(W, 3, gain=[1, 0.5, 1], noise=[1, 2, 0.5]),
    "silent": lambda W: noised_descent(W, 3, gain=[1, 0, 0.5], noise=[1, 0, 2]),
    "clean_state": lambda W: clean_state(W, 2),
    "tracking": lambda W: tracking(W, 2, step=0.5),
    "decor": lambda W: decor(W, 2, own_noise=0.5, pair_noise=2.0),
    "zip_dl": lambda W: zip_dl(W, 1),
}
OBSERVERS = [
    Eavesdropper((1,)),
    Coalition((1, 3)),
    SecureSums((1, 3)),
    FinalModels(),
    FinalModels(mean=True),
    FinalModels((1,), of=(1,)),
]


@pytest.mark.parametrize("name", PROGRAMS)
def test_bounds_for_every_system_and_observer_enclose_the_exact_value(name):
    """Bounds for a triangle with a tail enclose the exact value and are tight."""
    system = PROGRAMS[name](floats(metropolis(graph(4, [(0, 1), (1, 2), (2, 0), (2, 3)]))))
    for observer in OBSERVERS:
        for victim in {0, 2}:
            mu_bounds = mu(system, observer, victim, Constant())
            square_ = energy(*forward_view(system, observer, victim))
            truth = np.inf if square_ is None else float(square_) ** 0.5
            assert mu_bounds.lower <= truth * (1 + 1e-12) and truth <= mu_bounds.upper * (1 + 1e-12)
            assert mu_bounds.lower == mu_bounds.upper or mu_bounds.gap < 1e-6


@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_final_gossip_models_include_one_mixing_step_after_the_last_message(rounds):
    W, last, target = floats(metropolis(path(6))), FinalModels(of=(0,)), rounds
    power = np.linalg.matrix_power(W, rounds)[0]
    noise = 2.0
    for build in (gossip, partial(chebyshev_gossip, weight=1.0)):
        model = build(W, rounds, noise=noise)
        exact = power[target] ** 2 / (noise**2 * (power**2).sum())
        assert square(model, last, target) == pytest.approx(exact, rel=1e-9)
        assert exact > 1e-4
        message = build(W, rounds, noise=noise, output="message")
        assert square(message, last, target) == pytest.approx(0.0, abs=1e-12)


def test_unknown_outputs_and_last_states_of_mixed_models_are_refused():
    W = floats(metropolis(path(4)))
    with pytest.raises(InvalidInput, match="output: found 'state', expected model or message"):
        gossip(W, 2, output="state")
    with pytest.raises(InvalidInput, match="last message"):
        mu(gossip(W, 2), Coalition((0,), last_states=True), 2, Constant())


def test_a_last_round_without_received_messages_adds_nothing():
    """Agents 0 and 2 exchange with 1 and 3 in round 1, with each other in round 2."""
    brackets = all_victims(dimension_exchange(4), Coalition((0, 2)), Once(1.0))
    assert set(brackets) == {1, 3}
    for bracket in brackets.values():
        assert bracket.lower == pytest.approx(1.0) and bracket.upper == pytest.approx(1.0)
