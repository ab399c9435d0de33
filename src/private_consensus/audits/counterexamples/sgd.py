"""Paper 004, section 4: decentralized SGD (E4.8)."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from ...privacy import (
    Budget,
    account,
    deadline_batches,
    discrete_gaussian_pmf,
    fixed_batches,
    noisy_mean,
    theorem11_sigma,
)
from ...privacy.brackets import lower_bound
from .base import Finding, finding

DELTA, RECORDS = 1e-5, 1000


def random_batches(epsilon: float = 1.5, rounds: int = 100) -> Finding:
    """E4.8a: Theorem 11 with batches that a deadline decides."""
    law = deadline_batches(0.4)
    sigma = theorem11_sigma(Budget(epsilon, DELTA), RECORDS, rounds)
    least = lower_bound(noisy_mean(law, RECORDS).releases(sigma, rounds), DELTA).epsilon
    releases = noisy_mean(fixed_batches(20), RECORDS).releases(sigma, rounds)
    fixed = float(account(releases, DELTA).epsilon)
    return finding(
        "epsilon",
        epsilon,
        least,
        least > epsilon > fixed,
        f"m = {RECORDS}, T = {rounds}, delta = {DELTA:g}, sigma = {sigma:.3f} "
        f"by Theorem 11, deadline",
        f"of 0.4, replacement of one record: an attack reaches epsilon {least:.2f}.",
        f"With batches of 20 records always, the accountant has {fixed:.2f}: "
        f"the claim holds there.",
    )


def reused_model(keep: float = 0.95, rounds: int = 200) -> Finding:
    """E4.8b: a record used once shifts every later message."""
    x = np.zeros(2)
    apart = np.empty(rounds)
    for t in range(rounds):
        gradient = np.array([0.5, -0.5]) / 4 if t == 0 else np.zeros(2)
        x = keep * x - 0.02 * gradient
        apart[t] = abs(x[0] - x[1])
    claimed, actual = (apart[0] ** 2, float(np.sum(apart**2)))
    return finding(
        "rho of one use of a record, relative",
        1.0,
        actual / claimed,
        actual > 2 * claimed,
        f"One agent that keeps {keep:g} of its own exact model; a record is used in round 1 only:",
        f"{rounds} messages shift by {keep:g}^k of the first; together they cost "
        f"{actual / claimed:.2f} times the message that Theorem 15 counts.",
    )


def discrete_gaussian(variance: float = 4.0) -> Finding:
    """E4.8c: the discrete Gaussian has the Renyi divergence of the continuous one at most."""
    k = np.arange(-60, 61)
    worst = 0.0
    for shift in (1, 2, 3):
        p, q = discrete_gaussian_pmf(k, variance), discrete_gaussian_pmf(k - shift, variance)
        for order in (1.5, 2.0, 4.0):
            divergence = float(logsumexp(order * np.log(p) + (1 - order) * np.log(q))) / (order - 1)
            worst = max(worst, divergence / (order * shift**2 / 2 / variance))
    return finding(
        "Renyi divergence / (alpha Delta^2 / 2 sigma^2)",
        1.0,
        worst,
        worst <= 1 + 1e-9,
        f"variance {variance:g}, shifts 1 to 3, orders 1.5 to 4: at most {worst:.6f}.",
    )
