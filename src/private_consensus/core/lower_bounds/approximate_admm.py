r"""Attacks on ADMM with approximate minimisations: PP-ADMM, its proven variant and IPP-ADMM.

A pair of records changes the exact minimiser by a fraction of :math:`\Delta_2/m` for every noise in
the objective. Approximate minimisers change by at least that, minus :math:`2\beta/m`.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import comb
from scipy.stats import laplace

from private_consensus.privacy import Release
from private_consensus.privacy.loss_distributions import Pair
from private_consensus.privacy.releases import PrivacyProfile

CELLS = 2000
"""Number of cells of the threshold's noise."""


@dataclass(frozen=True)
class RandomCount(PrivacyProfile):
    r"""Gaussian releases of one :math:`\mu` whose random number K is observed.

    K = 0, 1, ... has ``probabilities`` that do not depend on the data. The profile describes an
    attack: no upper bound is known.
    """

    mu: float
    probabilities: tuple[float, ...]

    def mu_if_sampled(self) -> float:
        r"""Return the :math:`\mu` of a single release, 0 if K is always 0."""
        return self.mu if any(self.probabilities[1:]) else 0.0

    def pair(self) -> Pair:
        r"""Return the pair of the attack; K releases are one release with :math:`\sqrt K\mu`."""
        counted = enumerate(self.probabilities)
        mixture = tuple((p, 1.0, float(np.sqrt(k)) * self.mu) for k, p in counted if p > 0)
        return Pair("gaussian", mixture)


def _shift(algorithm, problem, network) -> float | None:
    r"""Return the change of :math:`\hat x_i` in every iteration, times the curvature m."""
    convexity = np.min(problem.strong_convexity)
    penalty = np.min(algorithm.penalty(network, 1))
    curvature = penalty + max(float(algorithm.ridge) - float(convexity), 0.0)
    fraction = problem.attained_minimiser_share("l2", curvature)
    if fraction is None:
        return None
    change = fraction * problem.record_change("l2")
    return float(max(change - 2.0 * algorithm.beta, 0.0))


def _ratio(algorithm, problem, network) -> float | None:
    r"""Return the ratio of shift to noise that a pair of records attains in a message.

    The records change the minimiser by :math:`g/m` for every noise :math:`b_{i1}`. Along the
    row, a message is :math:`1/m`-Lipschitz in :math:`b_{i1}`, and :math:`b_{i2}` is added. By
    the Gaussian isoperimetric inequality, an attack then distinguishes the messages at least as
    well as a shift by :math:`g/m` of a Gaussian with standard deviation
    :math:`\sqrt{\sigma_1^2 + (m\sigma_2)^2}/m`.
    """
    shift = _shift(algorithm, problem, network)
    if shift is None:
        return None
    return float(shift / np.hypot(algorithm.noise, algorithm.output_noise))


def _messages(algorithm, problem, network, horizon, releases):
    if not algorithm.noisy:
        return releases
    if algorithm.perturbed == "output":
        shift = _shift(algorithm, problem, network)
        attained = None if shift is None else shift / releases[0].sensitivity
        return [replace(releases[0], attained=attained)]
    ratio = _ratio(algorithm, problem, network)
    if ratio is None:
        return releases
    count = releases[0].count
    attack = Release("gaussian", ratio, 1.0, count=count, attained=1)
    return [replace(releases[0], attack=attack), *releases[1:]]


def _tested_messages(algorithm, problem, network, horizon, releases):
    """Return the releases with the attack of PP-ADMM on the sent messages.

    All rows of the data but one are 0. Without the clipped loss of this record, all queries of
    the tests would be 0, and the number of messages would have a known distribution. With it, a
    query changes by at most :math:`C_{loss}/|D_i|` for every minimiser. The probability of the
    messages changes by at most the factor exp(epsilon) of tests with this sensitivity.
    """
    ratio = _ratio(algorithm, problem, network) if algorithm.noisy else None
    if ratio is None:
        return releases
    largest = int(algorithm.c)
    if algorithm.decision == "coin":
        probabilities, log_tolerance = capped_binomial(0.5, largest, horizon), 0.0
    else:
        tests = algorithm.mechanisms(problem, network, horizon)["test"]
        probabilities = least_answers(
            float(algorithm.alpha),
            float(algorithm.threshold_noise),
            float(algorithm.query_noise),
            count=largest,
            tests=horizon,
            redrawn=algorithm.threshold_drawn,
        )
        change = problem.clipped_loss_change(algorithm.C_loss)
        (changed,) = replace(tests, sensitivity=change).releases(horizon)
        log_tolerance = changed.count * changed.epsilon
    attack = Release(
        "profile",
        profile=RandomCount(ratio, tuple(probabilities.tolist())),
        attained=1.0,
        log_tolerance=log_tolerance,
    )
    return [replace(releases[0], attack=attack), *releases[1:]]


def least_answers(
    level: float,
    threshold_scale: float,
    query_scale: float,
    *,
    count: int,
    tests: int,
    redrawn: str,
) -> np.ndarray:
    """Return probabilities of 0, ..., ``count`` answers "above" that bound their number from below.

    The distribution is stochastically at most the true one if all queries are 0 and the threshold
    is ``level`` before its noise. The scales are those of Laplace noise. ``redrawn`` states when
    the threshold's noise is sampled, see :func:`.sparse_vector_release`. This noise is rounded up
    to the ends of :data:`CELLS` intervals of equal probability, the last of which never gives
    "above".
    """
    noise = _laplace_quantile(np.arange(1, CELLS) / CELLS)
    thresholds = level + threshold_scale * noise
    above = (thresholds <= 0).astype(float)
    if query_scale > 0:
        above = laplace.sf(thresholds / query_scale)
    above = np.append(above, 0.0)
    if redrawn == "after_release":
        return _renewals(above, count, tests)
    rates = np.array([above.mean()]) if redrawn == "each" else above
    return capped_binomial(rates, count, tests)


def capped_binomial(rates: float | np.ndarray, count: int, tests: int) -> np.ndarray:
    """Return the distribution of min(``count``, binomial), averaged over ``rates``."""
    k, rates = np.arange(count), np.reshape(rates, (-1, 1))
    probabilities = (comb(tests, k) * rates**k * (1.0 - rates) ** np.maximum(tests - k, 0)).mean(0)
    return np.append(probabilities, max(1.0 - probabilities.sum(), 0.0))


def _renewals(above: np.ndarray, count: int, tests: int) -> np.ndarray:
    """Return the distribution of the number of answers, if each redraws the threshold's noise."""
    waits = np.arange(tests)[:, None]
    waiting = ((1 - above) ** waits * above).mean(-1)  # by tests to the first answer
    reached = np.zeros(tests + 1)
    reached[0] = 1.0
    at_least = [1.0]
    for _ in range(count):
        reached = np.convolve(reached, np.append(0.0, waiting))[: tests + 1]
        at_least.append(float(reached.sum()))
    return -np.diff(at_least, append=0.0)


def _laplace_quantile(probability: np.ndarray) -> np.ndarray:
    centred = probability - 0.5
    return np.sign(centred) * -np.log1p(-2.0 * np.abs(centred))
