"""Test that dp_accounting and this package agree on epsilon for the same releases."""

import math

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from private_consensus.privacy import (
    Release,
    Sampling,
    dp_events,
    epsilon,
    exact,
    fixed_batches,
    gaussian_epsilon,
    noisy_mean,
    pure,
)

DELTA = 1e-5
REPLACE = dp.NeighboringRelation.REPLACE_ONE


def theirs(accountant, releases):
    return accountant.compose(dp_events(releases)).get_epsilon(DELTA)


def test_pld_accountant_of_gaussians_agrees_with_gaussian_differential_privacy():
    scales = np.array([2.0, 3.0, 4.0])
    releases = [Release("gaussian", [1.0, 1.0, 2.0], scales, count=7), Release("gaussian", 1.0, 9)]
    mu = math.sqrt(7 * (1 / 4 + 1 / 9 + 4 / 16) + 1 / 81)
    accounted_epsilon = theirs(PLDAccountant(), releases)
    assert accounted_epsilon == pytest.approx(gaussian_epsilon(mu, DELTA), rel=1e-3)


@pytest.mark.parametrize(
    "releases",
    [
        [Release("laplace", 1.0, [3.0, 5.0], count=20)],
        [Release("gamma_norm", 1.0, 5.0, count=20)],
        [Release("laplace", 1.0, 2.0, count=30, sampling=Sampling("poisson", 0.1))],
        [Release("gaussian", 1.0, 1.5, count=40, sampling=Sampling("poisson", 0.05))],
        [Release("gaussian", 1.0, 4.0, count=9), Release("laplace", 1.0, 6.0)],
    ],
)
def test_pld_accountants_of_both_libraries_agree(releases):
    assert theirs(PLDAccountant(), releases) == pytest.approx(
        epsilon(releases, DELTA, "pld"), rel=2e-3
    )


@pytest.mark.parametrize(
    ("releases", "gain"),
    [
        ([Release("discrete_gaussian", [1.0, 2.0], 9.0, count=5)], 1.01),
        ([Release("discrete_gaussian", 1.0, 9.0), Release("laplace", 1.0, 9.0)], 1.01),
        ([Release("gaussian", 1.0, 1.5, count=40, sampling=Sampling("poisson", 0.05))], 1.02),
        ([Release("discrete_gaussian", [1.0, 2.0], 9.0, count=5), pure(0.3, count=4)], 1.2),
        ([pure(1.0, count=9, sampling=Sampling("fixed_size", 0.1))], 2.0),
        ([Release("gaussian", 1.0, 2.0, count=40, sampling=Sampling("fixed_size", 0.05))], 2.0),
    ],
)
def test_renyi_accountant_is_at_most_that_of_the_library(releases, gain):
    """It is smaller for pure mechanisms, and for samples of fixed size."""
    fixed = any(r.sampling and r.sampling.kind == "fixed_size" for r in releases)
    relation = REPLACE if fixed else dp.NeighboringRelation.ADD_OR_REMOVE_ONE
    accounted_epsilon = theirs(RdpAccountant(neighboring_relation=relation), releases)
    ours = epsilon(releases, DELTA, "rdp")
    assert accounted_epsilon / gain <= ours <= accounted_epsilon * (1 + 1e-3)


def test_profiles_are_unsupported_and_noiseless_releases_have_infinite_epsilon():
    profiled = noisy_mean(fixed_batches(5), 50).releases(1.0, 3)
    for accountant in (PLDAccountant(), RdpAccountant()):
        with pytest.raises(dp.UnsupportedEventError):
            accountant.compose(dp_events([*profiled, Release("laplace", 1.0, 2.0)]))
        noisy = Release("gaussian", 1.0, 5.0)
        assert theirs(accountant, [noisy, exact()]) == math.inf
    assert theirs(RdpAccountant(), [exact(0), Release("laplace", 0.0, 1.0)]) == 0
    assert isinstance(dp_events([]), dp.NoOpDpEvent)
