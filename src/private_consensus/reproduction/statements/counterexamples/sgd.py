"""Paper 004, section 4: decentralized SGD (E4.8)."""

from __future__ import annotations

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
from .base import ErratumResult, erratum, finding

DELTA, RECORDS = 1e-5, 1000


@erratum("E4.8a")
def random_batches() -> ErratumResult:
    """Test Theorem 11 with batches that a deadline determines, for short and long runs."""
    deadline, constant = deadline_batches(0.4), fixed_batches(20)
    broken = (1.0, 100, deadline), (1.5, 500, deadline), (1.5, 44, constant)
    longer_runs = (1.0, 300, deadline), (1.5, 700, deadline), (1.5, 60, constant)
    least = [_attained(*run) for run in broken]
    granted = [_granted(*run) for run in longer_runs]
    poisson = _granted(1.0, 100, deadline, sampling="poisson")
    exceeded = all(epsilon > run[0] for epsilon, run in zip(least, broken, strict=True))
    longer = all(epsilon <= run[0] for epsilon, run in zip(granted, longer_runs, strict=True))
    description = (
        f"m = {RECORDS}, delta = {DELTA:g}, sigma by Theorem 11, deadline of 0.4, replacement of "
        f"one record: an attack on 100 rounds reaches epsilon {least[0]:.2f} where 1 is claimed, "
        f"on 500 rounds {least[1]:.2f} where 1.5 is. Longer runs have more noise: the accountant "
        f"has {granted[0]:.2f} for 300 rounds at 1, {granted[1]:.2f} for 700 at 1.5. With batches "
        f"of 20 always an attack on 44 rounds reaches {least[2]:.2f} where 1.5 is claimed, and 60 "
        f"rounds cost {granted[2]:.2f}. Among neighbours that have a record more or less, and with "
        f"each record sampled on its own (Lemma 8), 100 rounds at 1 cost {poisson:.2f}."
    )
    return finding(
        "epsilon", broken[1][0], least[1], exceeded and longer and poisson <= 1.0, description
    )


def _attained(epsilon: float, rounds: int, law: Batches) -> float:
    """Compute the epsilon that an attack reaches where Theorem 11 states ``epsilon``; a lower
    bound.
    """
    sigma = theorem11_sigma(Budget(epsilon, DELTA), RECORDS, rounds)
    return lower_bound(noisy_mean(law, RECORDS).releases(sigma, rounds), DELTA).epsilon


def _granted(epsilon: float, rounds: int, law: Batches, sampling: str = "fixed_size") -> float:
    """Compute the accountant's epsilon where Theorem 11 states ``epsilon``; an upper bound."""
    sigma = theorem11_sigma(Budget(epsilon, DELTA), RECORDS, rounds)
    releases = noisy_mean(law, RECORDS, sampling=sampling).releases(sigma, rounds)
    return float(account(releases, DELTA).epsilon)


@erratum("E4.8b")
def reused_model() -> ErratumResult:
    """Sum the losses of all messages that a record shifts which is used once."""
    keep, rounds = 0.95, 200
    x = np.zeros(2)
    shifts = np.empty(rounds)
    for t in range(rounds):
        gradient = np.array([0.5, -0.5]) / 4 if t == 0 else np.zeros(2)
        x = keep * x - 0.02 * gradient
        shifts[t] = abs(x[0] - x[1])
    claimed, actual = (shifts[0] ** 2, float(np.sum(shifts**2)))
    description = (
        f"One agent that keeps {keep:g} of its own exact model; a record is used in round 1 only: "
        f"{rounds} messages shift by {keep:g}^k of the first; together they cost "
        f"{actual / claimed:.2f} times the message that Theorem 15 counts."
    )
    return finding(
        "rho of one use of a record, relative",
        1.0,
        actual / claimed,
        actual > 2 * claimed,
        description,
    )


@erratum("E4.8c")
def discrete_gaussian() -> ErratumResult:
    """Compare the Renyi divergence of discrete and continuous Gaussian noise."""
    variance = 4.0
    k = np.arange(-60, 61)
    worst, orders = 0.0, np.array([1.5, 2.0, 4.0])
    for shift in (1, 2, 3):
        p, q = discrete_gaussian_pmf(k, variance), discrete_gaussian_pmf(k - shift, variance)
        divergences = renyi_divergence(np.log(p), np.log(q), orders)
        worst = max(worst, (divergences / (orders * shift**2 / 2 / variance)).max())
    return finding(
        "Renyi divergence / (alpha Delta^2 / 2 sigma^2)",
        1.0,
        worst,
        worst <= 1 + 1e-9,
        f"variance {variance:g}, shifts 1 to 3, orders 1.5 to 4: at most {worst:.6f}.",
    )
