"""Test epsilon of Poisson-sampled Gaussians against brackets computed with dp_accounting."""

import time

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from private_consensus.privacy import Budget, account, calibrate, fixed_batches
from private_consensus.privacy.subsampling import noisy_sum

# Rate, scale, number of releases and delta. Lower bound: optimistic losses of dp_accounting up to
# 1000 releases, else lower bounds of this package. Upper bound: pessimistic losses of dp_accounting
# with a step of 0.05 standard deviations of a release, or less. Ratio: epsilon of dp_accounting
# with its default step, over epsilon of this package; below 1 it may be smaller than the exact one.
TABLE = (
    (1e-6, 0.3, 10**5, 1e-5, 3.4583, 3.50261, 1.000),
    (1e-6, 1.0, 10**5, 1e-9, 0.00174875, 0.00178407, 7.192),
    (1e-4, 0.3, 1000, 1e-3, 3.40495, 3.4093, 1.000),
    (1e-4, 0.6, 1000, 1e-9, 1.38278, 1.38437, 1.000),
    (1e-4, 1.0, 10**6, 1e-5, 0.457814, 0.459313, 1.053),
    (1e-4, 5.0, 10**6, 1e-9, 0.0536727, 0.101543, 2.026),
    (1e-4, 30.0, 10**6, 1e-9, 0.00403661, 0.0155901, 5.215),
    (1e-2, 0.3, 1, 1e-5, 10.5482, 10.5482, 1.000),
    (1e-2, 0.6, 1000, 1e-5, 7.43291, 7.43376, 1.000),
    (1e-2, 5.0, 10**5, 1e-5, 2.62668, 2.62751, 0.9989),
    (1e-2, 30.0, 10**6, 1e-5, 1.26571, 1.27186, 1.007),
    (0.3, 0.6, 30, 1e-3, 20.9818, 20.9874, 1.000),
    (0.3, 1.0, 30, 1e-9, 17.2019, 17.2027, 1.000),
    (0.3, 30.0, 1000, 1e-5, 1.20131, 1.20137, 1.000),
    (1.0, 1.0, 30, 1e-9, 47.1774, 47.1774, 1.000),
)
QUICK = [row for row in TABLE if row[0] >= 1e-2 and 1 < row[2] <= 1000 and row[1:3] != (0.6, 1000)]
DIGITS = 1e-5
"""Rounding of the numbers of the table."""


def sampled(rate, scale, count):
    noise = noisy_sum(fixed_batches(round(rate * 10**6)), 10**6, sampling="poisson")
    return noise.releases(scale, count)


@pytest.mark.parametrize(("rate", "scale", "count", "delta", "low", "high", "ratio"), TABLE)
def test_epsilon_is_within_its_bracket_and_needs_at_most_two_seconds(
    rate, scale, count, delta, low, high, ratio
):
    start = time.process_time()
    epsilon = account(sampled(rate, scale, count), delta).epsilon
    assert time.process_time() - start < 2
    assert low * (1 - DIGITS) <= epsilon <= max(1.002 * high, 1e-4 + high)


@pytest.mark.parametrize(("rate", "scale", "count", "delta", "low", "high", "ratio"), QUICK)
def test_the_library_reproduces_the_table(rate, scale, count, delta, low, high, ratio):
    def epsilon(**options):
        loss = pld.from_gaussian_mechanism(scale, sampling_prob=rate, **options)
        return loss.self_compose(count).get_epsilon_for_delta(delta)

    ours = account(sampled(rate, scale, count), delta).epsilon
    assert epsilon() == pytest.approx(ratio * ours, rel=2e-3)
    assert epsilon(value_discretization_interval=high / 20_000) == pytest.approx(high, rel=1e-4)
    optimistic = epsilon(
        value_discretization_interval=1e-3 * high / count,
        pessimistic_estimate=False,
        use_connect_dots=False,
    )
    assert optimistic <= ours


@pytest.mark.parametrize(("rate", "scale", "count", "delta", "low", "high", "ratio"), TABLE[1::6])
def test_calibrated_noise_is_at_most_1_percent_above_that_of_the_bracket(
    rate, scale, count, delta, low, high, ratio
):
    """The noise of the table meets the upper end of its bracket."""
    calibrated = calibrate(lambda value: sampled(rate, value, count), Budget(high, delta))
    assert calibrated <= 1.01 * scale
    assert account(sampled(rate, calibrated, count), delta).epsilon <= high
