r"""Wang et al.: consensus plus innovation.

Errors are exact moments. Laplace noise of scale :math:`\sigma_t` has variance :math:`2\sigma_t^2`.
The privacy losses are those of an agent's messages, given all earlier messages.
"""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from .base import Part, Parts, at_least, bound, equal, falls_as, grows_as

DELTA, LARGEST_ROW = 0.2, 3.0
"""l1 change of one measurement, and the supremum of H_max in section 5."""
TIMES = np.arange(1.0, 100_001) + 20
"""Times of long runs, without the first steps, which exceed 1 / eigenvalue."""
LATE = np.unique(np.geomspace(100, len(TIMES), 30).astype(int)) - 1
"""Indices of the times at which rates are fitted."""


def _moments(
    steps: np.ndarray, noise_scale: ArrayLike, eigenvalues: Iterable[float] = (0.5, 3.0, 5.0),
    start: Iterable[float] = (3.0, 1.0, 1.0), measurement_variance: float = 0.05,
) -> np.ndarray:  # fmt: skip
    r"""Return the exact :math:`E\,V(t)` of (8) for a constant coupling with given eigenvalues.

    The noise of messages enters with the factor :math:`1 - \alpha\lambda`, that of measurements
    with :math:`\alpha`.
    """
    total = np.zeros(len(steps))
    for eigenvalue, error in zip(eigenvalues, start, strict=True):
        factor = (1 - steps * eigenvalue) ** 2
        added = factor * 2 * np.square(noise_scale) + steps**2 * measurement_variance
        # V(t) = factor(t) V(t-1) + added(t), in logarithms
        with np.errstate(divide="ignore"):
            log_product = np.cumsum(np.log(factor))
            terms = np.append(np.log(error**2), np.log(added) - log_product)
        total += np.exp(log_product + np.logaddexp.accumulate(terms)[1:])
    return total


def _vanishes(quantity: str, errors: Iterable[np.ndarray]) -> Part:
    """Test that errors at t = 100,000 are at most half of those at t = 1,000."""
    pairs = [(error[1000] / 2, error[-1]) for error in errors]
    return bound(f"{quantity} at t = 100,000 against half of that at t = 1,000", *np.array(pairs).T)


def loss_of_messages(changed: ArrayLike, epsilon: float, gain: float = 0.0) -> float:
    """Return the privacy loss by all messages of an agent with noise of (4) with equality.

    The measurements before the messages ``changed`` are replaced, and epsilon is that of one
    message. ``gain`` contracts the exact value from which an agent continues; 0 for its noisy one.
    """
    shift = total = 0.0
    for is_changed in np.asarray(changed, float):
        shift = gain * shift + is_changed
        total += epsilon * shift
    return total


def lemma_4_4() -> Parts:
    """Test the l1 change of a message if one measurement changes, for 1,500 random matrices.

    Three rows, alpha = 0.3, delta = 0.2. For one row the bound is reached; for several, the largest
    row sum is sufficient.
    """
    rng, alpha = np.random.default_rng(2), 0.3
    H = rng.normal(size=(1500, 3, 3))
    change = rng.laplace(size=(1500, 3)) * (rng.random((1500, 3)) < 0.5)
    change[:, 0] += 1
    change *= DELTA / np.abs(change).sum(1, keepdims=True)
    first_row = alpha * DELTA * np.abs(H[:, 0]).sum(1)
    largest = np.abs(H).sum(2).max(1)
    return (
        bound("l1 change of x_i(t)", alpha * DELTA * np.abs(H).sum((1, 2)),
              alpha * np.abs(np.vecmat(change, H)).sum(1)),
        equal("l1 change of x_i(t), one row", first_row,
              alpha * np.abs(np.vecmat([DELTA, 0, 0], H)).sum(1)),
        equal("S(H) that the bound needs", np.abs(H).sum((1, 2)), largest).marked("remark", "E3.3"),
    )  # fmt: skip


def theorem_4_5() -> Parts:
    """Test the epsilon of one message for Laplace densities whose means differ as in Lemma 4.4.

    300 random measurement rows, 54 outputs, among them those with the largest log-ratio.
    """
    rng, epsilon, alpha = np.random.default_rng(3), 0.8, 0.5
    row, outputs = rng.normal(size=(300, 1, 2)), rng.laplace(size=(300, 50, 2))
    sigma, shift = alpha * DELTA * np.abs(row).sum(-1) / epsilon, alpha * DELTA * row
    outputs = np.concatenate([outputs, shift + np.eye(2), -shift - np.eye(2)], axis=1)
    ratio = (np.abs(outputs - shift) - np.abs(outputs)).sum(-1) / sigma
    return (bound("epsilon of a message", epsilon, np.abs(ratio).max(1)),)


def theorem_4_11() -> Parts:
    """Test the convergence rates for steps that decrease as a power of t.

    Five agents, complete graph, H_i = h: eta_0 = 5 h^2, and the smallest eigenvalue of the coupling
    is h^2. For h^2 = 0.3 the theorem permits b_0 = 1.5 and then states O(1/t), but the slowest mode
    decreases as t^-0.6. With b_0 <= h^2, which the proof requires, the rates hold.
    """

    def rate(case: str, h2: float, gamma: float, exponent: float) -> Part:
        noise = 0.01 * (TIMES - 1) ** -gamma
        error = _moments(TIMES**-gamma, noise, (h2, 5 + h2), (3.0, 2.0), 0.0)
        return falls_as(f"exponent of t, {case}", TIMES[LATE], error[LATE], exponent)

    return (
        rate("gamma = 0.5", 0.5, 0.5, 0.5),
        rate("gamma = 0.8", 0.5, 0.8, 0.8),
        rate("gamma = 1, b_0 = 0.3 < 1", 0.3, 1.0, 0.3),
        rate("gamma = 1, b_0 = 1.5 > 1 (eta_0 = 1.5)", 0.3, 1.0, 1.0).marked("detail", "E3.5"),
    )


def theorem_4_13() -> Parts:
    """Test that the mean square error vanishes, for steps that decrease at different rates.

    Steps 1/t, t^-0.5, t^-0.2 / 4 and 1/ln^2 t, with noise in proportion to them.
    """
    schedules = (1 / TIMES, TIMES**-0.5, TIMES**-0.2 / 4, 1 / np.log(TIMES) ** 2)
    errors = [_moments(steps, 0.1 * steps) for steps in (np.minimum(s, 0.19) for s in schedules)]
    return (_vanishes("error", errors),)


def theorem_4_15() -> Parts:
    """Test the total epsilon of 20 messages of epsilon 0.5, of which the first contains no data.

    All measurements change, or one. The last part takes an agent that continues from its exact
    value.
    """
    T, epsilon = 20, 0.5
    single = np.arange(T - 1) == 3
    total = loss_of_messages(single, epsilon)
    exact_start = loss_of_messages(single, epsilon, gain=0.8)
    quantity = "epsilon of one measurement"
    return (
        bound("epsilon of a stream", T * epsilon, loss_of_messages(np.ones(T - 1), epsilon)),
        equal(quantity, T * epsilon, total).marked("remark", "E3.1"),
        bound(f"{quantity}, exact own value", total, exact_start).marked("remark", "E3.4"),
    )


def sentence_1() -> Parts:
    """Compare epsilon of all messages if all measurements change with that if one changes.

    100 to 10,000 iterations of epsilon 0.8. Definition 3.1 changes one measurement.
    """
    lengths, epsilon = np.array([100, 1000, 10_000]), 0.8
    streams = [loss_of_messages(np.ones(T), epsilon) for T in lengths]
    single = [loss_of_messages(np.arange(T) == 7, epsilon) for T in lengths]
    return (
        equal("index of a stream over the number of iterations", epsilon, streams / lengths),
        at_least("index of one measurement", np.inf, single).marked("detail", "E3.1"),
    )


def theorem_4_16() -> Parts:
    """Compare the limit of E V(t) with its bound, as published and corrected.

    q = 0.4, p = 0.8, little noise; c at 0.001, 0.01, 0.1 and 0.9 of its largest permitted value.
    Large permitted steps multiply the error.
    """
    q, p, delta, measurement_variance, h2 = 0.4, 0.8, 1e-3, 1e-8, 0.5
    start = np.array([2.0, 1.0, 1.0, 1.0, 1.0])
    norm, gamma_0, b_0 = 5.0, 5 * h2, h2
    curvature, messages = 2 * norm**2 + 2 * gamma_0**2, 2 * 5 * delta**2 * h2
    t, eigenvalues = np.arange(200), np.append(h2, np.full(4, norm + h2))

    def compare(quantity: str, largest: float, sign: float, first: float) -> Part:
        pairs = []
        for c in np.array([0.001, 0.01, 0.1, 0.9]) * largest:
            noise = np.where(t > 0, c * p**t * delta * math.sqrt(h2), 0.0)
            limit = _moments(c * q ** (t + 1.0), noise, eigenvalues, start, measurement_variance)
            exponent = 2 * b_0 * c * first * (1 + q) - curvature * (c * first) ** 2
            stated = (
                math.exp(sign * exponent / (1 - q**2)) * (start**2).sum()
                + 3 * c**2 * messages / (1 - p**2)
                + 3 * c**2 * q**2 * gamma_0 * 5 * measurement_variance / (1 - q**2)
                + 3 * c**4 * q**2 * (norm + gamma_0) ** 2 * messages / (1 - q**2 * p**2)
            )
            pairs.append((stated, limit[-1]))
        return bound(quantity, *np.array(pairs).T)

    limit = curvature / 2 / b_0
    return (
        compare("limit of E V(t), corrected sign, first step and range", 1 / limit, -1, q),
        compare("limit of E V(t), as published", limit, 1, 1).marked("detail", "E3.6"),
    )


def theorem_4_17() -> Parts:
    """Test the published total epsilon, a geometric sum over the messages that contain data.

    Four pairs of q and p. The sum begins at t = 1 and is q/(p-q), one less than published.
    """
    q, p = np.array([(0.4, 0.8), (0.1, 0.9), (0.79, 0.8), (0.5, 0.6)]).T
    total = ((q / p) ** np.arange(1, 5000)[:, None]).sum(0)
    return (
        bound("total epsilon", p / (p - q), total),
        equal("total epsilon, q = 0.4, p = 0.8", 2.0, total[0]).marked("remark", "E3.2"),
    )


def remark_4_6() -> Parts:
    """Test convergence if the noise decreases as a power of t, or exponentially.

    gamma = 0.6, 0.8 and 1 with the steps that (4) gives for epsilon 0.8; c = 0.6 and q = 0.4 as in
    the simulation, with a constant epsilon.
    """
    powers = [TIMES**-gamma for gamma in (0.6, 0.8, 1.0)]
    steps = [np.minimum(0.8 * power / (DELTA * LARGEST_ROW), 0.19) for power in powers]
    errors = [_moments(*pair) for pair in zip(steps, powers, strict=True)]
    noise = 0.6 * 0.4 ** np.arange(1.0, 401)
    exponential = _moments(0.4 * noise, noise)
    return (
        _vanishes("error, sigma_t = t^-gamma,", errors),
        at_least("error at t = 400 over that at t = 50, sigma_t = c q^t", 1.0,
                 exponential[399] / exponential[49]),
    )  # fmt: skip


def _noisy_errors(gamma: float, epsilons: Iterable[float]) -> list[np.ndarray]:
    """Return the errors for steps t^-gamma and noise of (4) with equality, for each epsilon."""
    steps = np.minimum(TIMES**-gamma, 0.19)
    return [_moments(steps, DELTA * LARGEST_ROW / epsilon * steps) for epsilon in epsilons]


def remark_4_7() -> Parts:
    """Compare the error at equality in (4) with that at noise 1.5 and 4 times as large.

    Steps t^-0.8, epsilon from 0.1 to 3.2. The noise falls as 1/epsilon by (4).
    """
    epsilons = np.array([0.1, 0.8, 3.2])
    equality, *larger = (
        np.array(_noisy_errors(0.8, epsilons / factor))[:, -1] for factor in (1.0, 1.5, 4.0)
    )
    return (at_least("error with larger noise over that at equality", 1.0, larger / equality),)


def remark_4_8() -> Parts:
    """Test the conditions of Assumption A4 for steps 1/t^gamma, from t = 1 and at t = 0.

    gamma = 0.1, 0.5 and 1. A4 starts at t = 0; 1/(t+1)^gamma satisfies it.
    """
    t = np.arange(1.0, 1_000_001)
    sums = np.array([np.cumsum(t**-gamma) for gamma in (0.1, 0.5, 1.0)])
    return (
        at_least("sum of the steps over ln(t + 1)", 1.0, sums / np.log(t + 1)),
        bound("alpha(0)", 1.0, np.inf).marked("detail", "E3.3"),
    )


def remark_4_12() -> Parts:
    """Test that the error grows as 1/epsilon^2 and that its rate in t does not depend on epsilon.

    Steps t^-0.6 and t^-0.8, epsilon from 0.1 to 0.8, t from 10,000 to 100,000.
    """
    epsilons, times, results = np.array([0.1, 0.2, 0.4, 0.8]), TIMES[LATE[-10:]], []
    for gamma in (0.6, 0.8):
        errors = np.array(_noisy_errors(gamma, epsilons))[:, LATE[-10:]]
        slopes = np.polyfit(np.log(times), np.log(errors.T), 1)[0]
        results += [
            grows_as(f"exponent of 1/epsilon, gamma = {gamma:g}", 1 / epsilons, errors[:, -1], 2.0),
            equal(f"exponent of t over that at epsilon = 0.8, gamma = {gamma:g}", 1.0,
                  slopes[:-1] / slopes[-1], 0.03),
        ]  # fmt: skip
    return tuple(results)


def remark_4_14() -> Parts:
    """Test that estimates converge with noise, and that noise increases the error at each time.

    Steps t^-0.6 and 1/t, epsilon 0.1 and 0.8.
    """
    errors = np.array([_noisy_errors(gamma, (0.1, 0.8, np.inf)) for gamma in (0.6, 1.0)])
    noisy, noiseless = errors[:, :2], errors[:, 2:]
    return (
        _vanishes("error with noise", noisy.reshape(4, -1)),
        at_least("error with noise over error without", 1.0, (noisy / noiseless)[..., LATE]),
    )
