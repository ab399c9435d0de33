"""Test that dp_accounting and this package agree on epsilon for the same mechanisms."""

import dp_accounting as dp
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from private_consensus.privacy import Release, Sampling, epsilon

DELTA = 1e-5


def zcdp(sensitivity, scale):
    return dp.ZCDpEvent((sensitivity / scale) ** 2 / 2)


def repeated(event, count):
    return dp.SelfComposedDpEvent(event, count)


def poisson(event, rate):
    return dp.PoissonSampledDpEvent(rate, event)


def fixed_size(event, rate):
    return dp.SampledWithoutReplacementDpEvent(1.0, rate, event)


@pytest.mark.parametrize(
    ("releases", "events"),
    [
        (
            [Release("laplace", 1.0, [3.0, 5.0], count=20)],
            [repeated(dp.LaplaceDpEvent(scale), 20) for scale in (3.0, 5.0)],
        ),
        # Laplace noise of the same ratio dominates the other noise.
        (
            [Release("gamma_norm", 1.0, 5.0, count=20)],
            [repeated(dp.LaplaceDpEvent(5.0), 20)],
        ),
        (
            [Release("laplace", 1.0, 2.0, count=30, sampling=Sampling("poisson", 0.1))],
            [repeated(poisson(dp.LaplaceDpEvent(2.0), 0.1), 30)],
        ),
        (
            [Release("gaussian", 1.0, 1.5, count=40, sampling=Sampling("poisson", 0.05))],
            [repeated(poisson(dp.GaussianDpEvent(1.5), 0.05), 40)],
        ),
        (
            [Release("gaussian", 1.0, 4.0, count=9), Release("laplace", 1.0, 6.0)],
            [repeated(dp.GaussianDpEvent(4.0), 9), dp.LaplaceDpEvent(6.0)],
        ),
    ],
)
def test_loss_distributions_of_both_libraries_agree(releases, events):
    theirs = PLDAccountant().compose(dp.ComposedDpEvent(events)).get_epsilon(DELTA)
    assert epsilon(releases, DELTA, "pld") == pytest.approx(theirs, rel=2e-3)


@pytest.mark.parametrize(
    ("releases", "events", "gain"),
    [
        (
            [Release("discrete_gaussian", [1.0, 2.0], 9.0, count=5)],
            [repeated(zcdp(change, 9.0), 5) for change in (1.0, 2.0)],
            1.01,
        ),
        (
            [Release("discrete_gaussian", 1.0, 9.0), Release("laplace", 1.0, 9.0)],
            [zcdp(1.0, 9.0), dp.LaplaceDpEvent(9.0)],
            1.01,
        ),
        (
            [Release("gaussian", 1.0, 1.5, count=40, sampling=Sampling("poisson", 0.05))],
            [repeated(poisson(dp.GaussianDpEvent(1.5), 0.05), 40)],
            1.02,
        ),
        (
            [Release("gaussian", 1.0, 2.0, count=40, sampling=Sampling("fixed_size", 0.05))],
            [repeated(fixed_size(dp.GaussianDpEvent(2.0), 0.05), 40)],
            2.0,
        ),
    ],
)
def test_renyi_accountant_is_at_most_that_of_the_library(releases, events, gain):
    """It is smaller for samples of fixed size."""
    is_fixed = any(r.sampling and r.sampling.kind == "fixed_size" for r in releases)
    relation = dp.NeighboringRelation
    accountant = RdpAccountant(
        neighboring_relation=relation.REPLACE_ONE if is_fixed else relation.ADD_OR_REMOVE_ONE
    )
    theirs = accountant.compose(dp.ComposedDpEvent(events)).get_epsilon(DELTA)
    ours = epsilon(releases, DELTA, "rdp")
    assert theirs / gain <= ours <= theirs * (1 + 1e-3)


def test_pure_releases_cost_at_most_a_zcdp_bound_of_the_library():
    releases = [
        Release("discrete_gaussian", [1.0, 2.0], 9.0, count=5),
        Release("pure", epsilon=0.3, count=4),
    ]
    events = [repeated(zcdp(change, 9.0), 5) for change in (1.0, 2.0)]
    events.append(repeated(dp.ZCDpEvent(0.3**2 / 2), 4))
    theirs = RdpAccountant().compose(dp.ComposedDpEvent(events)).get_epsilon(DELTA)
    assert theirs / 1.2 <= epsilon(releases, DELTA, "rdp") <= theirs * (1 + 1e-3)
