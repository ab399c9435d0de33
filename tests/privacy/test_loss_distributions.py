"""Test loss distributions on a grid against closed forms and high-precision arithmetic."""

import itertools
import math
import time
import tracemalloc

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_consensus.core.algorithms.q_dpsgd_2 import noisy_message
from private_consensus.privacy import (
    Budget,
    Release,
    account,
    calibrate,
    deadline_batches,
    fixed_batches,
    gaussian_epsilon,
    noisy_mean,
)
from private_consensus.privacy.loss_distributions import Pair, epsilon
from private_consensus.privacy.subsampling import noisy_sum

DELTA = 1e-5


def parts(kind, loss, count=1, rate=1.0, sampling=None):
    return [(Pair(kind, ((1.0, rate, loss),), sampling), count)]


# --- One release ------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-12, 1e-5, 1e-3])
@pytest.mark.parametrize("mu", [1e-3, 0.05, 0.7, 3.3, 50.0])
def test_epsilon_of_one_gaussian_release_is_at_most_0_01_percent_above_exact(mu, delta):
    exact = gaussian_epsilon(mu, delta)
    assert exact <= epsilon(parts("gaussian", mu), delta) <= exact * (1 + 1e-4)


@pytest.mark.parametrize("loss", [1e-4, 1e-3, 0.03, 2.0, 40.0])
def test_epsilon_of_one_laplace_release_is_at_most_0_1_percent_of_the_loss_above_exact(loss):
    r"""Compare with :math:`\delta(\epsilon) = 1 - e^{(\epsilon-\ell)/2}`."""
    exact = loss + 2 * np.log1p(-DELTA)
    assert exact <= epsilon(parts("laplace", loss), DELTA) <= exact + 1e-3 * loss


def sampled_delta(rate, mu, bound, *, added):
    """Return delta of one sampled Gaussian release in high precision, for all real ``bound``."""
    mean, factor = mpmath.mpf(mu), mpmath.exp(bound)
    if added:
        weight = 1 - (1 - rate) * factor
        if weight <= 0:
            return mpmath.mpf(0)
        loss = mpmath.log(rate * factor / weight)
        first = mpmath.ncdf(mean / 2 - loss / mean)
        return weight * (first - mpmath.exp(loss) * mpmath.ncdf(-mean / 2 - loss / mean))
    excess = 1 + (factor - 1) / rate
    if excess <= 0:
        return 1 - factor
    loss = mpmath.log(excess)
    first = mpmath.ncdf(mean / 2 - loss / mean)
    return rate * (first - excess * mpmath.ncdf(-mean / 2 - loss / mean))


def exact_delta(rate, mu, bound, count):
    """Return delta of one or two sampled Gaussian releases: the larger of both directions."""
    nodes, weights = np.polynomial.legendre.leggauss(150)
    deltas = []
    for added in (False, True):

        def remaining(x, added=added):
            loss = mpmath.log1p(rate * mpmath.expm1(mu * x - mpmath.mpf(mu) ** 2 / 2))
            mixed = (1 - rate) * mpmath.npdf(x) + rate * mpmath.npdf(x - mu)
            if added:
                return mpmath.npdf(x) * sampled_delta(rate, mu, bound + loss, added=True)
            return mixed * sampled_delta(rate, mu, bound - loss, added=False)

        if count == 1:
            deltas.append(sampled_delta(rate, mu, bound, added=added))
        else:
            # the remaining delta has a kink at the smallest loss of the second release
            kink = -bound - math.log1p(-rate) if added else bound - math.log1p(-rate)
            ratio = math.expm1(kink) / rate
            ends = [-13.0, 13.0 + mu]
            if ratio > -1 and -13 < (x := math.log1p(ratio) / mu + mu / 2) < 13 + mu:
                ends.insert(1, x)
            total = mpmath.mpf(0)
            for low, high in itertools.pairwise(ends):
                values = [remaining(low + (high - low) * (node + 1) / 2) for node in nodes]
                total += (high - low) / 2 * mpmath.fdot(weights.tolist(), values)
            deltas.append(total)
    return max(deltas)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    ("rate", "mu", "delta"),
    [
        (0.01, 1.0, 1e-6),
        (1e-4, 2.5, 1e-7),
        (0.3, 0.2, 1e-9),
        (0.9, 3.0, 1e-12),
        (0.2, 1.0, 1e-3),
        (0.01, 2.0, 6e-3),
    ],
)
def test_sampled_gaussians_have_delta_below_the_target_and_above_it_at_a_smaller_epsilon(
    rate, mu, delta, count
):
    bound = epsilon(parts("gaussian", mu, count, rate, "poisson"), delta)
    with mpmath.workdps(30):
        assert exact_delta(rate, mu, bound, count) <= delta
        assert exact_delta(rate, mu, 0.998 * bound, count) > delta


# --- Many releases ----------------------------------------------------------------------------


def binomial_delta(loss, count, bound):
    """Return delta of composed randomised responses in high precision."""
    with mpmath.workdps(40):
        loss, bound = mpmath.mpf(loss), mpmath.mpf(bound)
        log_true, log_false = -mpmath.log1p(mpmath.exp(-loss)), -mpmath.log1p(mpmath.exp(loss))
        total, truths = mpmath.mpf(0), int((bound / loss + count) / 2) + 1
        for k in range(truths, count + 1):
            ways = mpmath.loggamma(count + 1) - mpmath.loggamma(k + 1)
            ways -= mpmath.loggamma(count - k + 1)
            mass = mpmath.exp(ways + k * log_true + (count - k) * log_false)
            term = -mass * mpmath.expm1(bound - (2 * k - count) * loss)
            total += term
            if k > truths + 50 and term < total * mpmath.mpf(10) ** -20:
                break
        return total


@pytest.mark.parametrize(
    ("loss", "count", "delta"),
    [
        (0.5, 10, 1e-5),
        (0.1, 100, 1e-12),
        (3.0, 4, 1e-12),
        (1e-6, 1000, 1e-5),
        (0.003, 10**4, 1e-9),
        (0.0625, 10**5, 1e-12),
        (0.01, 10**6, 1e-12),
        (1e-4, 10**6, 1e-3),
    ],
)
def test_composed_randomised_responses_have_delta_below_the_binomial_target(loss, count, delta):
    bound = epsilon(parts("response", loss, count), delta)
    assert binomial_delta(loss, count, bound) <= delta
    assert binomial_delta(loss, count, bound - 2e-3 * bound) > delta


def test_transforms_are_accurate_relative_to_a_small_delta():
    """Losses on grid points have no other error; a grid of 1e6 releases has 2^-20 and 1e-4 left."""
    loss, count, delta = 2.0**-7, 10**6, 1e-12
    bound = epsilon(parts("response", loss, count), delta)
    assert 1 - 1e-4 <= binomial_delta(loss, count, bound) / delta <= 1


@pytest.mark.parametrize("count", [10**4, 10**6])
def test_composed_gaussians_are_at_most_0_2_percent_above_exact(count):
    loss = 3 / math.sqrt(count)
    for delta in (1e-12, 1e-5, 1e-3):
        exact = gaussian_epsilon(3.0, delta)
        assert exact <= epsilon(parts("gaussian", loss, count), delta) <= 1.002 * exact


# --- Limits -----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 16, 1000, 10**6])
@pytest.mark.parametrize("mechanism", ["laplace", "gamma_norm", "pure"])
def test_noise_for_an_epsilon_far_below_delta_needs_little_time_and_memory(mechanism, count):
    def releases(scale):
        if mechanism == "pure":
            return [Release("pure", epsilon=1 / scale, count=count)]
        return [Release(mechanism, 1.0, scale, count=count)]

    tracemalloc.start()
    start = time.process_time()
    scale = calibrate(releases, Budget(1e-6, 1e-5))
    seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert account(releases(scale), 1e-5).epsilon <= 1e-6
    assert seconds < 10 and peak < 300e6
    if count >= 1000:  # the mean of the positive part of a normal loss is 0.4 deviations
        assert 0.4 * math.sqrt(count) / scale == pytest.approx(1e-5, rel=0.1)


def mechanism_at(kind, scale, count, rate):
    name, _, sampling = kind.partition(" ")
    if sampling:
        noise = noisy_sum(fixed_batches(round(rate * 10**6)), 10**6, sampling=sampling)
        return noise.releases(scale, count)
    if name == "batch":
        return noisy_mean(deadline_batches(0.4), 1000).releases(0.1 * scale, min(count, 1000))
    if name == "message":
        message = {"step": 0.1, "resolution": 0.01, "dim": 4, "clip": 1.0}
        noise = noisy_message(deadline_batches(0.4), 1000, **message)
        return noise.releases(scale, min(count, 1000))
    if name == "mixture":
        return [
            Release("laplace", 1.0, scale, count=count),
            Release("gaussian", 1.0, 2 * scale, count=count),
            Release("pure", epsilon=0.01),
        ]
    if name == "series":
        return [Release("laplace", np.geomspace(0.1, 1, 70), scale)]
    if name == "pure":
        return [Release("pure", epsilon=1 / scale, count=count)]
    return [Release(name, 1.0, scale, count=count)]


KINDS = (
    "gaussian", "laplace", "gamma_norm", "pure", "discrete_gaussian", "mixture", "series", "batch",
    "message", "gaussian poisson", "gaussian fixed_size",
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.floats(-1, 6).map(lambda power: 10**power),
    st.floats(-9, 0).map(lambda power: 1 + 10**power),
    st.floats(0, 5).map(lambda power: int(10**power)),
    st.floats(-6, 0).map(lambda power: 10**power),
    st.floats(-12, -1).map(lambda power: 10**power),
)
def test_epsilon_never_rises_with_the_scale_of_the_noise(kind, scale, factor, count, rate, delta):
    smaller, larger = (
        account(mechanism_at(kind, value, count, rate), delta).epsilon
        for value in (scale, factor * scale)
    )
    assert larger <= smaller


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.floats(-1, 4).map(lambda power: 10**power),
    st.integers(1, 1000),
    st.floats(-4, 0).map(lambda power: 10**power),
    st.floats(-12, -1).map(lambda power: 10**power),
)
def test_epsilon_never_falls_with_the_count_or_rises_with_delta(kind, scale, count, rate, delta):
    reference, more, larger_delta = (
        account(mechanism_at(kind, scale, n, rate), d).epsilon
        for n, d in ((count, delta), (2 * count, delta), (count, 2 * delta))
    )
    assert larger_delta <= reference <= more


def test_a_mixture_of_batch_sizes_is_at_most_the_largest_and_at_least_the_mean_of_deltas():
    (release,) = noisy_mean(deadline_batches(0.4), 1000).releases(0.2, 1)
    components = release.profile.pair().components
    bound = epsilon([(Pair("gaussian", components, "fixed_size"), 1)], DELTA)
    single = [
        epsilon([(Pair("gaussian", ((1.0, rate, mu),), "fixed_size"), 1)], DELTA)
        for _, rate, mu in (components[0], components[-1])
    ]
    assert min(single) < bound < max(single)
    total = math.fsum(
        p * float(sampled_delta(rate, mu, bound, added=False)) for p, rate, mu in components
    )
    assert 0.999 * DELTA <= total <= DELTA
