"""Ding, chapter 4: conclusions of the remarks on the theorems on Q-DPSGD."""

from __future__ import annotations

import math

import numpy as np

from private_consensus.core.algorithms.families.sgd_theorems import theorem11_sigma
from private_consensus.privacy import Budget, fixed_batches, noisy_mean
from private_consensus.privacy.brackets import lower_bound

from .base import StatementResult, bound, conclude, grows_as
from .sgd import epsilon_of_q_dpsgd_2, mean_square_error

NEARLY_HALF = 0.49
"""delta tilde close to 1/2."""


def remark_6() -> StatementResult:
    """Test the privacy with batches of B records, and the order of the error after the stated T.

    An attack's epsilon with the published sigma: short runs have little noise for one record of a
    batch (errata E4.8a). What the noise adds after the stated T, four agents on a ring, at four
    numbers of records, budgets and dimensions, against the order of the risk. This T is far below
    that from which on Theorem 12 holds (errata E4.14).
    """
    epsilon, delta, records = 1.0, 1e-5, 1000
    attained_epsilons = [
        lower_bound(
            noisy_mean(fixed_batches(20), records).releases(
                theorem11_sigma(Budget(epsilon, delta), records, T), T
            ),
            delta,
        ).epsilon
        for T in (10, 100, 1000)
    ]
    pairs = []
    for m, budget, p in ((10**3, 1.0, 1), (10**3, 0.3, 1), (10**4, 1.0, 1), (10**4, 1.0, 10)):
        weight = 2 * math.log(1 / delta) / budget + 1
        T = (m**2 * budget / (weight * p)) ** 2  # K = mu = 1
        variance = 16 * T * weight / (m**2 * budget)
        private = math.sqrt(p * variance)
        noisy_error, noiseless_error = (
            mean_square_error(T, (0.0, noise), NEARLY_HALF) for noise in (private, 0.0)
        )
        pairs.append((weight * p / (m**2 * budget), noisy_error - noiseless_error))
    return conclude(
        bound("epsilon 1, T = 10, 100, 1000, batches of 20", epsilon, attained_epsilons),
        grows_as("exponent of the noise's part in its order", *np.array(pairs).T, 1.0),
        compound=True,
    )


def remark_8() -> StatementResult:
    """Test that the privacy loss by one use of a record falls as the step sizes fall.

    Step sizes for T from 1e4 to 1e10. With smaller steps a record affects more messages (errata
    E4.8b), but each of them by less.
    """
    eta, p, batch, K = 1e-3, 10, 20, 1.0
    T = np.geomspace(1e4, 1e10, 13)
    alpha, averaging = T**-0.2, T**-0.6
    published = (2 * K * alpha * averaging / batch + 2 * eta * math.sqrt(p)) ** 2
    retained = 1 - averaging * 2 / 3  # w_ii = 1/3
    exact_cost = (2 * K * alpha * averaging / batch) ** 2 / (1 - retained**2)
    return conclude(
        bound("loss at smaller steps, Theorem 15", published[:-1], published[1:]),
        bound("loss at smaller steps, all messages", exact_cost[:-1], exact_cost[1:]),
    )


def remark_10() -> StatementResult:
    """Compare the orders of the risk of both methods, and test the privacy of Q-DPSGD-2."""
    m, epsilon, p = (
        axis.ravel() for axis in np.meshgrid([1e2, 1e3, 1e4], [0.1, 1.0, 10.0], [1, 10, 1e4])
    )
    is_feasible = m * epsilon / p >= 1  # T of Remark 10, up to constants
    first, second = p / (m * epsilon) ** 2, (p / (m * epsilon)) ** (4 / 3)
    return conclude(
        bound("risk of Q-DPSGD-1", second[is_feasible], first[is_feasible]),
        bound("epsilon 1 over 1,000 rounds", 1.0, epsilon_of_q_dpsgd_2(1000)),
        description=f"The published orders at {int(is_feasible.sum())} numbers of records, "
        "budgets and dimensions at which T is at least 1: the bound of Q-DPSGD-2 is the larger "
        "one (ding_c20 tests losses). The attack on the privacy is that of Theorem 15 (errata "
        "E4.8b).",
        compound=True,
    )
