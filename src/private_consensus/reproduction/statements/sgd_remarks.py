"""Ding, chapter 4: conclusions of the remarks on the theorems on Q-DPSGD.

The theorems hold the noise fixed while T grows. By Remarks 6 and 10 the variance grows in
proportion to T at a fixed budget. The descriptions state the rates at that variance too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from private_consensus.core.algorithms.families.sgd_theorems import theorem11_sigma
from private_consensus.privacy import Budget, fixed_batches, noisy_mean
from private_consensus.privacy.brackets import lower_bound

from .base import StatementResult, bound, conclude, falls_as, grows_as
from .sgd import HORIZONS, epsilon_of_q_dpsgd_2, mean_square_error

NEARLY_HALF = 0.49
"""delta tilde close to 1/2."""
FAR = np.geomspace(1e110, 1e130, 13)
"""Horizons at which the effect of the start, exp(-4 T^(1 - 2 delta tilde)), is negligible."""
QUANTISED, PRIVATE = 0.1, 0.5
"""Standard deviations of quantisation and of the private noise."""


def _errors(
    in_state: bool,
    sizes: Callable[[float], tuple[float, float]],
    horizons: Iterable[float] = HORIZONS,
) -> np.ndarray:
    """Return the mean square errors of Q-DPSGD-1 (noise in the state) or Q-DPSGD-2."""
    errors = [mean_square_error(T, in_state, sizes(T), NEARLY_HALF) for T in horizons]
    return np.array(errors)


def _by_source(in_state: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the errors due to quantisation and due to private noise, at a fixed variance."""
    noiseless = _errors(in_state, lambda T: (0.0, 0.0))
    return (
        _errors(in_state, lambda T: (QUANTISED, 0.0)) - noiseless,
        _errors(in_state, lambda T: (0.0, PRIVATE)) - noiseless,
    )


def _at_a_budget(T: float) -> tuple[float, float]:
    """Return the standard deviations of Remark 6 at epsilon 1, delta 1e-5 and 1,000 records."""
    return QUANTISED, 4 * math.sqrt(T * (2 * math.log(1e5) + 1)) / 1000


def _exponent_at_a_budget(in_state: bool) -> float:
    """Return the exponent of T in the inverse error at the variance of Remark 6."""
    errors = _errors(in_state, _at_a_budget, FAR)
    return falls_as("", FAR, errors, NEARLY_HALF).measured


def remark_5() -> StatementResult:
    """Test the rates of Q-DPSGD-1 at a fixed variance: O(1/sqrt T), and those of its terms."""
    quantised, private = _by_source(True)
    late_rate, usual_rate = (
        falls_as("exponent of T", T, _errors(True, lambda _: (QUANTISED, PRIVATE), T), NEARLY_HALF)
        for T in (FAR, HORIZONS)
    )
    return conclude(
        late_rate,
        falls_as("exponent of T, part of quantisation", HORIZONS, quantised, NEARLY_HALF),
        falls_as("exponent of T, part of the private noise", HORIZONS, private, 2 * NEARLY_HALF),
        description="Four agents on a ring, different quadratics, exact moments at T from 1e110 "
        "to 1e130, delta tilde = 0.49: the start fades as exp(-4 T^0.02), so that no usual T is "
        f"large enough (the exponent is {usual_rate.measured:.2f} at 1e4 to 1e10). With a fixed "
        "variance both terms decay as stated. With that of Remark 6, in proportion to T, what "
        "the private noise adds does not decay, and the exponent is "
        f"{_exponent_at_a_budget(True):.2g}.",
    )


def remark_6() -> StatementResult:
    """Test the privacy with batches of B records, and the order of the error after the stated T.

    An attack's epsilon with the published sigma: short runs have little noise for one record of a
    batch (errata E4.8a). What the noise adds after the stated T, four agents on a ring, at four
    numbers of records, budgets and dimensions, against the order of the risk.
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
            _errors(True, lambda T, noise=noise: (0.0, noise), [T])[0] for noise in (private, 0.0)
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


def remark_9() -> StatementResult:
    """Test the rate O(1/sqrt T) of Q-DPSGD-2, and the slower decay of its private noise."""
    _, first = _by_source(True)
    _, second = _by_source(False)
    last_half = slice(len(HORIZONS) // 2, None)
    slopes = [
        -np.polyfit(np.log(HORIZONS[last_half]), np.log(errors[last_half]), 1)[0]
        for errors in (first, second)
    ]
    fixed_variance_errors = _errors(False, lambda T: (QUANTISED, PRIVATE), FAR)
    return conclude(
        bound("exponent of the private noise, Q-DPSGD-2", slopes[0], slopes[1]),
        falls_as("exponent of T", FAR, fixed_variance_errors, NEARLY_HALF),
        description="The test is that of Remark 5, at a fixed variance. The variance of Remark 10 "
        "is proportional to T, since the step of the grid does not diminish. The exponent of T is "
        f"then {_exponent_at_a_budget(False):.2g}.",
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
