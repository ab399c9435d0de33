"""Errata of Ding, chapter 4: decentralized SGD (E4.8)."""

from __future__ import annotations

import math

import numpy as np

from private_consensus.core.algorithms.families.sgd_theorems import theorem11_sigma
from private_consensus.privacy import (
    Batches,
    Budget,
    account,
    deadline_batches,
    discrete_gaussian_pmf,
    fixed_batches,
    noisy_mean,
)
from private_consensus.privacy.brackets import lower_bound

from ..concentrated import renyi_divergence
from ..sgd import epsilon_of_q_dpsgd_2
from .base import ErratumResult, erratum, finding

DELTA, RECORDS = 1e-5, 1000


@erratum("E4.8a")
def random_batches() -> ErratumResult:
    """Test Theorem 11 in short and long runs, for batches whose size a deadline determines."""
    deadline, constant = deadline_batches(0.4), fixed_batches(20)
    short_runs = (1.0, 100, deadline), (1.5, 500, deadline), (1.5, 44, constant)
    longer_runs = (1.0, 300, deadline), (1.5, 700, deadline), (1.5, 60, constant)
    attained = [_attained(*run) for run in short_runs]
    accounted = [_accounted(*run) for run in longer_runs]
    poisson_epsilon = _accounted(1.0, 100, deadline, sampling="poisson")
    is_exceeded = all(epsilon > run[0] for epsilon, run in zip(attained, short_runs, strict=True))
    is_accounted = all(
        epsilon <= run[0] for epsilon, run in zip(accounted, longer_runs, strict=True)
    )
    description = (
        f"m = {RECORDS}, delta = {DELTA:g}, sigma by Theorem 11, deadline of 0.4, replacement of "
        "one record, public batch sizes: an attack on 100 rounds reaches epsilon "
        f"{attained[0]:.2f} where 1 is claimed, on 500 rounds {attained[1]:.2f} where 1.5 is. "
        "Longer runs have more "
        f"noise: the accountant has {accounted[0]:.2f} for 300 rounds at 1, "
        f"{accounted[1]:.2f} for 700 at 1.5. With batches of 20 always an attack on 44 "
        f"rounds reaches {attained[2]:.2f} where 1.5 is claimed, and 60 rounds cost "
        f"{accounted[2]:.2f}. Among neighbours that have a record more or less, and with "
        f"each record sampled on its own (Lemma 8), 100 rounds at 1 cost {poisson_epsilon:.2f}."
    )
    holds = is_exceeded and is_accounted and poisson_epsilon <= 1.0
    return finding("epsilon", short_runs[1][0], attained[1], holds, description)


def _attained(epsilon: float, rounds: int, batches: Batches) -> float:
    """Return a lower bound on epsilon, reached by an attack, at Theorem 11's noise."""
    sigma = theorem11_sigma(Budget(epsilon, DELTA), RECORDS, rounds)
    return lower_bound(noisy_mean(batches, RECORDS).releases(sigma, rounds), DELTA).epsilon


def _accounted(
    epsilon: float, rounds: int, batches: Batches, sampling: str = "fixed_size"
) -> float:
    """Return an upper bound on epsilon, by the accountant, at Theorem 11's noise."""
    sigma = theorem11_sigma(Budget(epsilon, DELTA), RECORDS, rounds)
    releases = noisy_mean(batches, RECORDS, sampling=sampling).releases(sigma, rounds)
    return float(account(releases, DELTA).epsilon)


@erratum("E4.8b")
def reused_model() -> ErratumResult:
    """Bound the epsilon of all messages at the sigma of Remark 10 from below."""
    short, long = (epsilon_of_q_dpsgd_2(rounds) for rounds in (1000, 10_000))
    description = (
        "One record has the gradient K or -K, all others 0; p = 1, m = 1,000, B = 20, w_ii = 1/2, "
        "resolution 1e-6, alpha = T^(-1/6), e = T^(-1/2), delta = 1e-5, sigma of Remark 10 for "
        "epsilon 1. An agent keeps 1 - e/2 of its own exact model, so that a record that is used "
        "once shifts all later messages. An attack on the sum of the messages reaches epsilon "
        f"{short:.2f} in 1,000 rounds and {long:.0f} in 10,000 (Chernoff's inequality). With the "
        "published sigma and the parameters of the figures, the question is open."
    )
    return finding("epsilon", 1.0, short, short > 1, description)


@erratum("E4.8c")
def discrete_gaussian() -> ErratumResult:
    """Compare Renyi divergences of discrete with those of continuous Gaussian noise."""
    variance = 4.0
    k = np.arange(-60, 61)
    largest_ratio, orders = 0.0, np.array([1.5, 2.0, 4.0])
    for shift in (1, 2, 3):
        p, q = discrete_gaussian_pmf(k, variance), discrete_gaussian_pmf(k - shift, variance)
        divergences = renyi_divergence(np.log(p), np.log(q), orders)
        largest_ratio = max(largest_ratio, (divergences / (orders * shift**2 / 2 / variance)).max())
    description = (
        f"For variance {variance:g}, shifts 1 to 3 and orders 1.5 to 4, the ratio of the "
        f"divergences is at most {largest_ratio:.6f}."
    )
    holds = largest_ratio <= 1 + 1e-9
    return finding(
        "Renyi divergence / (alpha Delta^2 / 2 sigma^2)", 1.0, largest_ratio, holds, description
    )


@erratum("E4.14")
def least_rounds() -> ErratumResult:
    """Compute the number of rounds from which on Theorem 12 holds, by (32)."""
    digits = math.exp(1 / (1 - 2 * 0.4)) / math.log(10)
    largest = (1 - 1 / math.log(80 * math.log(10))) / 2
    description = (
        f"At delta = 0.4, T must be at least e^(e^5) = 1e{digits:.1f}. T up to 1e80 permits delta "
        f"up to {largest:.3f}; Remarks 5 and 9 set delta close to 1/2."
    )
    return finding("largest delta with T up to 1e80", 0.5, largest, largest < 0.45, description)
