"""Test edge cases of observers: two agents, one round, isolated agents and directed graphs.

Random systems are compared with exact elimination. Further tests cover extreme floating-point
numbers and invalid input.
"""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from dense_views import brute_force, complete, energy, floats, forward_view, metropolis, path, ring

from private_consensus.common.errors import InvalidInput
from private_consensus.privacy.observers import (
    Coalition,
    Constant,
    Cyclic,
    Eavesdropper,
    FinalModels,
    Free,
    LinearSystem,
    Once,
    Round,
    SecureSums,
    agent,
    all_victims,
    chebyshev_gossip,
    decor,
    gossip,
    gradient_change,
    light_cone_bound,
    mu,
    noised_descent,
    secure_agent,
    zip_dl,
)


def square(system, observer, victim, changes=None):
    """Return mu^2 after a check that its lower and upper bound agree to 1e-9."""
    mu_bounds = mu(system, observer, victim, changes or Constant())
    assert mu_bounds.gap <= 1e-9
    return mu_bounds.upper**2


# --- Small cases by hand ----------------------------------------------------------------------


@pytest.mark.parametrize("horizon", [1, 7])
@pytest.mark.parametrize("observer", [Eavesdropper(), agent(0), secure_agent(0)])
def test_mu_squared_of_two_agents_adds_up_over_rounds(horizon, observer):
    """Each message is a known state plus input and fresh noise, so mu^2 adds up over rounds."""
    system = noised_descent(floats(metropolis(path(2))), horizon, gain=0.5, noise=0.25)
    assert square(system, observer, 1) == pytest.approx(4 * horizon, rel=1e-9)


def test_after_one_round_an_observer_learns_only_about_its_neighbours():
    system = noised_descent(floats(metropolis(ring(6))), 1)
    mu_bounds = all_victims(system, agent(0), Free())
    assert [mu_bounds[u].upper for u in (2, 3, 4)] == [0.0] * 3
    assert [mu_bounds[u].upper for u in (1, 5)] == pytest.approx([1.0] * 2, rel=1e-9)
    half = all_victims(system, secure_agent(0), Free())
    assert [half[u].upper ** 2 for u in (1, 5)] == pytest.approx([0.5] * 2, rel=1e-9)


def test_an_isolated_agent_is_hidden_from_other_agents_and_cannot_observe():
    mixing = np.eye(4)
    mixing[:3, :3] = floats(metropolis(ring(3)))
    system = noised_descent(mixing, 3)
    assert mu(system, agent(0), 3, Constant()).upper == 0.0
    assert square(system, Eavesdropper(), 3) == pytest.approx(3, rel=1e-9)
    for observer, victim in ((agent(3), 0), (Coalition((0, 1, 2)), 3)):
        with pytest.raises(InvalidInput, match="who receives messages in 3 rounds"):
            mu(system, observer, victim, Constant())


def test_mu_on_a_directed_cycle_equals_exact_elimination():
    """In a directed cycle, agent 0 receives from 2, agent 2 from 1, and agent 1 from 0."""
    half = Fraction(1, 2)
    W = [[half, 0, half], [half, half, 0], [0, half, half]]
    for horizon in (1, 2, 4):
        for victim, sender in ((1, 2), (2, 2)):
            system = noised_descent(floats(W), horizon)
            truth = brute_force(W, horizon, [1] * horizon, victim, [sender], known_agents=[0])
            mu_bounds = mu(system, agent(0), victim, Constant())
            assert mu_bounds.upper**2 == pytest.approx(float(truth), rel=1e-9)
    assert mu(noised_descent(floats(W), 1), agent(0), 1, Constant()).upper == 0.0


def test_all_other_agents_together_equal_the_eavesdropper_on_a_weighted_graph():
    generator = np.random.default_rng(5)
    mixing = generator.uniform(0.1, 1.0, (5, 5)) * complete(5) + np.eye(5)
    system = noised_descent(mixing / mixing.sum(1, keepdims=True), 4)
    eavesdropper_square = square(system, Eavesdropper(), 2)
    assert square(system, Coalition((4, 1, 0, 3)), 2) == pytest.approx(
        eavesdropper_square, rel=1e-9
    )
    assert eavesdropper_square == pytest.approx(4, rel=1e-9)


def test_a_zero_change_or_zero_gain_has_mu_zero():
    mixing = floats(metropolis(ring(4)))
    for mu_bounds in (
        mu(noised_descent(mixing, 3), agent(0), 1, Constant(0.0)),
        mu(noised_descent(mixing, 3, gain=0.0), agent(0), 1, Free()),
    ):
        assert (mu_bounds.lower, mu_bounds.upper) == (0.0, 0.0)


# --- Random systems ---------------------------------------------------------------------------


def fractions(generator, *shape):
    """Return floating-point fractions with small denominators, many of them 0."""
    top, bottom = generator.integers(-2, 3, shape), generator.integers(1, 4, shape)
    return top / bottom


def random_system(seed: int, noisy: bool) -> tuple[LinearSystem, np.random.Generator]:
    """Return a random system of two or three agents with two states and shared noise.

    Parameters
    ----------
    noisy : bool
        If true, every message has fresh noise; otherwise some are functions of earlier messages.
    """
    generator = np.random.default_rng(seed)
    n, horizon = int(generator.integers(2, 4)), int(generator.integers(1, 3))
    states, messages, noises = 2 * n, n + 1, 2 * n
    senders = generator.integers(0, n, messages)
    receives = (generator.random((n, messages)) < 0.7) & (senders != np.arange(n)[:, None])
    owners = generator.random((noises, n)) < 0.4
    rounds = []
    for _ in range(horizon):
        sent = fractions(generator, messages, noises)
        if noisy:
            sent[:, :messages] += 3 * np.eye(messages, min(messages, noises))
        rounds.append(
            Round(
                transition=fractions(generator, states, states),
                inputs=fractions(generator, states, n),
                noise=fractions(generator, states, noises),
                message_transition=fractions(generator, messages, states),
                message_inputs=fractions(generator, messages, n),
                message_noise=sent,
                senders=senders,
                receives=receives,
                uses=receives * np.abs(fractions(generator, n, messages)),
                owners=owners,
            )
        )
    return LinearSystem(rounds, n, fractions(generator, n, states)), generator


@pytest.mark.parametrize("noisy", [True, False], ids=["noised", "clean"])
@pytest.mark.parametrize("seed", range(5))
def test_bounds_on_mu_of_random_systems_enclose_the_exact_value(seed, noisy):
    """Lower and upper bound enclose the exact value for every observer and target agent."""
    system, generator = random_system(1000 * noisy + seed, noisy)
    n = system.n_agents
    member = int(generator.integers(n))
    observers = [
        Eavesdropper(), Eavesdropper((member,)), Coalition((member,)), SecureSums((member,)),
        FinalModels(), FinalModels(mean=True), FinalModels((member,), of=(member,)),
    ]  # fmt: skip
    checked = 0
    for observer in observers:
        for victim in set(range(n)) - set(observer.members):
            noise, moved = forward_view(system, observer, victim)
            if not moved:
                continue
            exact = energy(noise, moved)
            truth = np.inf if exact is None else float(exact) ** 0.5
            mu_bounds = mu(system, observer, victim, Constant())
            assert mu_bounds.lower <= truth * (1 + 1e-12) and truth <= mu_bounds.upper * (1 + 1e-12)
            assert mu_bounds.lower == mu_bounds.upper or mu_bounds.gap < 1e-6
            checked += 1
    assert checked >= n


# --- Invalid input ----------------------------------------------------------------------------

MIXING = floats(metropolis(ring(6)))
PLAIN = noised_descent(MIXING, 3)
REFUSED = {
    "itself": (lambda: mu(PLAIN, agent(0), 0, Constant()), "victim: found"),
    "a member": (lambda: mu(PLAIN, Coalition((0, 1)), 1, Constant()), "not members"),
    "everybody": (lambda: mu(PLAIN, Coalition(tuple(range(6))), 5, Constant()), "agent outside"),
    "twice": (lambda: Coalition((1, 1)), "each agent once"),
    "nobody": (lambda: mu(PLAIN, Coalition(()), 1, Constant()), "at least one agent"),
    "half an agent": (lambda: Coalition((1.5,)), "whole numbers"),
    "no number": (lambda: Coalition(("a",)), "whole numbers"),
    "nan": (lambda: Coalition((float("nan"),)), "whole numbers"),
    "none": (lambda: Coalition(None), "whole numbers"),
    "negative": (lambda: mu(PLAIN, agent(-1), 0, Constant()), "agents 0 to 5"),
    "beyond": (lambda: mu(PLAIN, agent(6), 0, Constant()), "agents 0 to 5"),
    "no victim": (lambda: mu(PLAIN, agent(0), 6, Constant()), "agents 0 to 5"),
    "models of half": (lambda: mu(PLAIN, FinalModels(of=(0.5,)), 1, Constant()), "whole numbers"),
    "models of nobody": (lambda: mu(PLAIN, FinalModels(of=()), 1, Constant()), "at least one"),
    "no observer": (lambda: mu(PLAIN, "everybody", 1, Constant()), "an observer: "),
    "no changes": (lambda: mu(PLAIN, agent(0), 1, 2.0), "a set of changes: "),
    "words": (lambda: mu(PLAIN, agent(0), 1, Constant("a")), "changes.size: found"),
    "endless change": (lambda: mu(PLAIN, agent(0), 1, Once(np.inf)), "changes.size: found inf"),
    "negative change": (lambda: mu(PLAIN, agent(0), 1, Free(-1.0)), "changes.size: found -1"),
    "no period": (lambda: Cyclic(1.0, period=0), "changes.period: found 0"),
    "no noise": (lambda: noised_descent(MIXING, 3, noise=0.0), "noise: found 0.0"),
    "endless noise": (lambda: noised_descent(MIXING, 3, noise=np.inf), "noise: found inf"),
    "too much noise": (lambda: noised_descent(MIXING, 3, noise=1e200), "from 1e-60 to 1e"),
    "too little noise": (lambda: noised_descent(MIXING, 3, noise=1e-200), "from 1e-60 to 1e"),
    "endless gossip": (lambda: gossip(MIXING, 3, noise=np.inf), "noise: found inf"),
    "endless chebyshev": (
        lambda: chebyshev_gossip(MIXING, 3, weight=1.5, noise=np.inf), "noise: found inf"
    ),
    "endless pairs": (
        lambda: decor(MIXING, 3, own_noise=1.0, pair_noise=np.inf), "pair_noise: found inf"
    ),
    "no own noise": (
        lambda: decor(MIXING, 3, own_noise=0.0, pair_noise=1.0), "own_noise: found 0.0"
    ),
    "one way": (lambda: zip_dl(np.triu(np.ones((3, 3))), 2), "symmetric weights"),
    "one agent": (lambda: noised_descent(np.ones((1, 1)), 3), "at least 2 agents"),
    "weights too large": (lambda: noised_descent(1e80 * MIXING, 3), "weights of at most"),
    "graphs too few": (lambda: noised_descent(np.stack([MIXING] * 2), 3), "3 of them"),
    "no round": (lambda: noised_descent(MIXING, 0), "horizon: found 0"),
    "half a round": (lambda: noised_descent(MIXING, 2.5), "horizon: found 2.5"),
    "no records": (lambda: gradient_change("record", 1.0, 0), "records: found 0"),
    "half a record": (lambda: gradient_change("record", 1.0, 1.5), "records: found 1.5"),
    "endless clip": (lambda: gradient_change("record", np.inf), "clip: found inf"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_input_raises_a_one_line_error(name):
    call, message = REFUSED[name]
    with pytest.raises(InvalidInput) as caught:
        call()
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_an_overflowing_system_is_refused():
    """A state that grows by 1e50 per round overflows and is refused instead of giving NaN."""
    system = noised_descent(MIXING, 12, transition=1e50 * MIXING)
    with pytest.raises(InvalidInput, match="numbers too large"):
        mu(system, agent(0), 3, Constant())


@pytest.mark.parametrize("scale", [1e-50, 1e50])
def test_bounds_are_invariant_under_joint_scaling_of_gain_and_noise(scale):
    unit_bounds, scaled_bounds = (
        mu(noised_descent(MIXING, 3, gain=unit, noise=unit), agent(0), 2, Constant())
        for unit in (1.0, scale)
    )
    assert (
        scaled_bounds.upper == pytest.approx(unit_bounds.upper, rel=1e-9)
        and scaled_bounds.gap <= 1e-9
    )
    cones = [
        light_cone_bound(noised_descent(MIXING, 3, gain=unit, noise=unit), agent(0), 2, Free())
        for unit in (1.0, scale)
    ]
    assert cones[1] == pytest.approx(cones[0], rel=1e-12)
    assert cones[0] == pytest.approx(2**0.5, rel=1e-8)


@pytest.mark.parametrize("observer", [agent(0), secure_agent(0)], ids=["messages", "sums"])
def test_peak_memory_is_below_a_tenth_of_a_dense_system_matrix(observer):
    """Bounds for all target agents need less than 1/10 of an (agents x rounds)^2 matrix."""
    agents, horizon = 80, 40
    system = noised_descent(floats(metropolis(ring(agents))), horizon)
    tracemalloc.start()
    mu_bounds = all_victims(system, observer, Constant())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(mu_bounds) == agents - 1
    assert peak < 0.1 * 8 * (agents * horizon) ** 2
