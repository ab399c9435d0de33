"""Test randomly sampled views against the formula, with noise correlated over rounds."""

import numpy as np
import pytest
from dense_views import floats, lopsided, metropolis, path, ring

from private_consensus.common.errors import InvalidInput
from private_consensus.privacy.observers import (
    Coalition,
    Constant,
    Eavesdropper,
    FinalModels,
    Once,
    agent,
    decor,
    gossip,
    mu,
    noised_descent,
    secure_agent,
    zip_dl,
)
from private_consensus.privacy.observers.sampling import (
    discriminant_mu,
    sampled_views,
    standard_error,
)
from private_consensus.privacy.observers.single_losses import gossip_sum
from private_consensus.privacy.observers.temporal import error_gram, noise_energy, optimal_factor

RUNS = 40_000
LOPSIDED = floats(metropolis(lopsided()))


@pytest.mark.parametrize(
    ("system", "observer", "victim"),
    [
        (noised_descent(LOPSIDED, 4), agent(0), 3),
        (noised_descent(LOPSIDED, 4), secure_agent(2), 4),
        (noised_descent(LOPSIDED, 3), Coalition((0, 5)), 3),
        (noised_descent(LOPSIDED, 4), FinalModels((1,), of=(1,)), 0),
        (decor(LOPSIDED, 2, own_noise=0.6, pair_noise=1.0), Eavesdropper((1,)), 3),
        (zip_dl(LOPSIDED, 2, noise=2.0), agent(3), 0),
    ],
    ids=["agent", "secure", "coalition", "final", "decor", "zip_dl"],
)
def test_a_learned_discriminant_attains_mu(system, observer, victim):
    """The estimate equals mu within four standard errors."""
    expected = mu(system, observer, victim, Constant()).upper
    change = np.ones(system.horizon)
    views = sampled_views(system, observer, victim, change, RUNS, np.random.default_rng(5))
    attained = discriminant_mu(*views)
    assert abs(attained - expected) < 4 * standard_error(expected, RUNS // 2) + 0.01


def test_a_discriminant_attains_mu_with_the_observers_noise_known():
    """The estimate equals the mu that treats the observer's noise as known."""
    system = noised_descent(floats(metropolis(ring(8))), 2)
    right = mu(system, agent(0), 2, Once()).upper
    views = sampled_views(system, agent(0), 2, np.array([1.0, 0]), RUNS, np.random.default_rng(6))
    attained = discriminant_mu(*views)
    assert attained == pytest.approx(right, abs=4 * standard_error(right, RUNS // 2))


def test_simulated_views_refute_the_sum_of_single_losses():
    """For a ring of eight, three rounds and three hops, mu is 1, but the sum gives 0.23."""
    W = floats(metropolis(ring(8)))
    views = sampled_views(
        gossip(W, 3), agent(0), 3, np.array([1.0, 0, 0]), RUNS, np.random.default_rng(7)
    )
    attained = discriminant_mu(*views)
    summed_mu = np.sqrt(gossip_sum(W, 3, 0)[3])
    assert summed_mu < 0.24 < 0.9 < attained < 1 + 4 * standard_error(1, RUNS // 2)


def test_the_optimal_noise_factor_has_the_smallest_error_on_a_ring_of_ten():
    """At equal privacy, errors are 77 (independent), 247 (differences) and 48 (optimum)."""
    gram = error_gram(floats(metropolis(ring(10))), 8)
    best = optimal_factor(gram)
    errors = [noise_energy(gram, C) for C in (np.eye(8), np.tril(np.ones((8, 8))), best)]
    assert errors == pytest.approx([77, 247, 48], abs=1)
    assert np.array_equal(best, np.tril(best))
    assert (best**2).sum(0) == pytest.approx(np.ones(8), rel=1e-9)


def test_the_error_gram_equals_the_sum_of_model_responses():
    W = floats(metropolis(ring(5)))
    total = np.zeros((3, 3))
    for i in range(5):  # unit noise of agent i in round s, models W y_r of all rounds
        responses = np.zeros((3, 3, 5))
        for s in range(3):
            for r in range(s, 3):
                responses[s, r] = np.linalg.matrix_power(W, r - s + 1)[:, i]
        total += np.einsum("srj,trj->st", responses, responses)
    assert error_gram(W, 3) == pytest.approx(total, rel=1e-12)


def test_the_optimal_factor_satisfies_its_optimality_condition():
    """X^{-1} G X^{-1} is diagonal, and no perturbation of C with unit columns is better."""
    gram = error_gram(floats(metropolis(path(5))), 6)
    best = optimal_factor(gram)
    inverse = np.linalg.inv(best.T @ best)
    dual = inverse @ gram @ inverse
    assert np.abs(dual - np.diag(np.diag(dual))).max() < 1e-6 * dual.max()
    generator = np.random.default_rng(2)
    least = noise_energy(gram, best)
    for _ in range(20):
        moved = np.tril(best + 0.05 * generator.normal(size=best.shape))
        assert noise_energy(gram, moved / np.linalg.norm(moved, axis=0)) >= least


def test_noise_optimal_for_the_eavesdropper_increases_the_loss_to_distant_agents():
    """Far pairs have 2.8 times the mu^2 at equal global mu, for a path of six and T = 12."""
    W = floats(metropolis(path(6)))
    tuned = np.linalg.inv(optimal_factor(error_gram(W, 12)))
    tuned = np.tril(tuned)
    plain, shaped = noised_descent(W, 12), noised_descent(W, 12, filter=tuned)
    assert mu(plain, Eavesdropper(), 5, Once()).upper == pytest.approx(1, rel=1e-9)
    assert mu(shaped, Eavesdropper(), 5, Once()).upper == pytest.approx(1, rel=1e-6)
    far = [mu(system, agent(0), 5, Once()).upper ** 2 for system in (plain, shaped)]
    assert far[1] / far[0] == pytest.approx(2.8, abs=0.1)


def test_unusable_input_is_named():
    W = floats(metropolis(path(3)))
    with pytest.raises(InvalidInput) as error:
        error_gram(np.array([[0.5, 0.5], [0.2, 0.8]]), 3)
    assert error.value.key == "mixing"
    with pytest.raises(InvalidInput) as error:
        sampled_views(
            noised_descent(W, 2, filter=np.eye(2)), agent(0), 1, np.ones(2), 10,
            np.random.default_rng(0),
        )  # fmt: skip
    assert error.value.key == "filter"
