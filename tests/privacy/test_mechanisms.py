"""Test that gamma-norm noise has the declared distribution and scale."""

import numpy as np
from scipy import stats

from private_consensus.privacy import gamma_norm_noise

SIZE = 2000


def rng(seed=7):
    return np.random.default_rng(seed)


def test_noise_has_the_declared_distribution_and_scale(dim=7):
    draws = rng()
    noise = gamma_norm_noise(
        draws.standard_normal((SIZE, dim)), draws.standard_gamma(dim, SIZE), 2.0
    )
    lengths = np.linalg.norm(noise, axis=-1)
    assert stats.kstest(lengths, stats.gamma(dim, scale=2.0).cdf).pvalue > 1e-3
    assert stats.kstest(lengths, stats.gamma(dim, scale=2.0 * 2 / 3).cdf).pvalue < 1e-6
    assert stats.kstest(lengths, stats.gamma(dim, scale=2.0 * 3 / 2).cdf).pvalue < 1e-6


def test_gamma_norm_noise_has_a_uniform_direction():
    draws = rng()
    noise = gamma_norm_noise(
        draws.standard_normal((20_000, 3)), draws.standard_gamma(3, 20_000), 1.0
    )
    height = noise[:, 2] / np.linalg.norm(noise, axis=-1)  # uniform on the sphere (Archimedes)
    assert stats.kstest(height, stats.uniform(-1, 2).cdf).pvalue > 1e-3
    independent = stats.laplace.rvs(size=(20_000, 3), random_state=draws)
    skewed = independent[:, 2] / np.linalg.norm(independent, axis=-1)
    assert stats.kstest(skewed, stats.uniform(-1, 2).cdf).pvalue < 1e-6


def test_noise_of_each_setting_is_a_multiple_of_the_same_unit_draws():
    unit = rng().standard_normal((4, 5, 3))
    scales = np.array([1.0, 3.0])[:, None, None, None]
    radius = rng().standard_gamma(3, (4, 5))
    noise = gamma_norm_noise(unit, radius, scales)
    assert noise.shape == (2, 4, 5, 3)
    np.testing.assert_allclose(noise[1], 3 * noise[0])
    lengths = np.linalg.norm(gamma_norm_noise(unit, radius, 2.0), axis=-1)
    np.testing.assert_allclose(lengths, 2 * radius)
