"""Test the probabilities of the discrete Gaussian."""

import numpy as np
import pytest

from private_consensus.common.errors import InvalidInput
from private_consensus.privacy import discrete_gaussian_pmf


@pytest.mark.parametrize("variance", [0.01, 0.3, 0.999, 1.0, 4.5, 1e4])
def test_probabilities_add_up_to_one(variance):
    support = np.arange(-2000, 2001)
    total = np.exp(-(support**2) / (2 * variance)).sum()
    assert discrete_gaussian_pmf(support, variance).sum() == pytest.approx(1, abs=1e-14)
    assert discrete_gaussian_pmf(0, variance) == pytest.approx(1 / total, rel=1e-13)


@pytest.mark.parametrize(("variance", "shift"), [(0.5, 1), (4, 1), (4, 3)])
def test_renyi_divergence_is_at_most_the_zcdp_bound(variance, shift):
    support = np.arange(-400, 401)
    p, q = (-((support - move) ** 2) / (2 * variance) for move in (0, shift))
    normaliser = np.log(np.sum(np.exp(p)))
    for order in (1.1, 2.0, 2.5, 7.3):
        moment = np.logaddexp.reduce(order * p + (1 - order) * q) - normaliser
        bound = order * shift**2 / (2 * variance)
        assert 0.5 * bound < moment / (order - 1) <= bound + 1e-12


@pytest.mark.parametrize("variance", [0, -1, float("inf"), float("nan")])
def test_a_variance_must_be_positive_and_finite(variance):
    with pytest.raises(InvalidInput, match="variance"):
        discrete_gaussian_pmf(np.arange(3), variance)
