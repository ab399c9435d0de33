"""Test that dp_accounting and this package agree on epsilon for the same mechanisms."""

import dp_accounting as dp
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from private_consensus.privacy import Release, account, fixed_batches
from private_consensus.privacy.subsampling import noisy_sum

DELTA = 1e-5


def zcdp(sensitivity, scale):
    return dp.ZCDpEvent((sensitivity / scale) ** 2 / 2)


def sampled(kind, sigma):
    """Return 40 Gaussian releases of 5 percent of the records, of sensitivity 1 or 2."""
    return noisy_sum(fixed_batches(50), 1000, sampling=kind).releases(sigma, 40)


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
        (sampled("poisson", 1.5), [repeated(poisson(dp.GaussianDpEvent(1.5), 0.05), 40)]),
        (
            [Release("gaussian", 1.0, 4.0, count=9), Release("laplace", 1.0, 6.0)],
            [repeated(dp.GaussianDpEvent(4.0), 9), dp.LaplaceDpEvent(6.0)],
        ),
    ],
)
def test_loss_distributions_of_both_libraries_agree(releases, events):
    theirs = PLDAccountant().compose(dp.ComposedDpEvent(events)).get_epsilon(DELTA)
    guarantee = account(releases, DELTA)
    assert guarantee.method == "pld" and guarantee.epsilon == pytest.approx(theirs, rel=2e-3)


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
            [*sampled("poisson", 1.5), Release("discrete_gaussian", 1.0, 9.0)],
            [repeated(poisson(dp.GaussianDpEvent(1.5), 0.05), 40), zcdp(1.0, 9.0)],
            1.02,
        ),
        (
            [*sampled("fixed_size", 4.0), Release("discrete_gaussian", 1.0, 9.0)],
            [repeated(fixed_size(dp.GaussianDpEvent(2.0), 0.05), 40), zcdp(1.0, 9.0)],
            2.0,
        ),
    ],
)
def test_renyi_accountant_is_at_most_that_of_the_library(releases, events, gain):
    """It is smaller for samples of fixed size."""
    is_fixed = any(isinstance(e.event, dp.SampledWithoutReplacementDpEvent)
                   for e in events if isinstance(e, dp.SelfComposedDpEvent))  # fmt: skip
    relation = dp.NeighboringRelation
    accountant = RdpAccountant(
        neighboring_relation=relation.REPLACE_ONE if is_fixed else relation.ADD_OR_REMOVE_ONE
    )
    theirs = accountant.compose(dp.ComposedDpEvent(events)).get_epsilon(DELTA)
    guarantee = account(releases, DELTA)
    assert guarantee.method in ("rdp", "zcdp")
    assert theirs / gain <= guarantee.epsilon <= theirs * (1 + 1e-3)


def test_pure_releases_cost_at_most_a_zcdp_bound_of_the_library():
    releases = [
        Release("discrete_gaussian", [1.0, 2.0], 9.0, count=5),
        Release("pure", epsilon=0.3, count=4),
    ]
    events = [repeated(zcdp(change, 9.0), 5) for change in (1.0, 2.0)]
    events.append(repeated(dp.ZCDpEvent(0.3**2 / 2), 4))
    theirs = RdpAccountant().compose(dp.ComposedDpEvent(events)).get_epsilon(DELTA)
    assert theirs / 1.2 <= account(releases, DELTA).epsilon <= theirs * (1 + 1e-3)
