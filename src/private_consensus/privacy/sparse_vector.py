"""Sparse vector technique: noisy threshold tests with a privacy cost per answer "above".

References
----------
Lyu, Su, Li, "Understanding the sparse vector technique for differential privacy", PVLDB 2017:
Algorithm 7, whose case of two equal budgets and no numeric answers is Algorithm 1.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import comb

from private_consensus.common.errors import arguments

from .releases import MAX_COUNT, Release

REDRAWS = ("once", "after_release", "each")
CELLS = 2000
"""Number of cells of the threshold's noise."""


def sparse_vector_scales(epsilon: float, *, sensitivity: float, count: int) -> tuple[float, float]:
    r"""Return the Laplace scales of threshold and queries that cost a pure ``epsilon`` in total.

    The threshold's noise is sampled once, the noise of each query separately. With c = ``count``
    and sensitivity :math:`\Delta` the scales are :math:`\Delta/\epsilon_1` and
    :math:`2c\Delta/\epsilon_2`. The parts :math:`\epsilon_1 : \epsilon_2 = 1 : (2c)^{2/3}` have the
    smallest variance of the difference of both noises.

    Parameters
    ----------
    epsilon : float
        :math:`\epsilon_1 + \epsilon_2`, above 0.
    sensitivity : float
        :math:`\Delta` of each query, given all earlier answers, above 0. A query that uses an
        unreleased value computed from the data has no such bound.
    count : int
        Largest number of answers "above", at least 1.

    Returns
    -------
    threshold_scale, query_scale : float
    """
    for key, value in {"epsilon": epsilon, "sensitivity": sensitivity}.items():
        key, expected = f"sparse_vector.{key}", "a finite number above 0"
        arguments.number(key, value, expected, lambda v: 0 < v < math.inf)
    arguments.whole("sparse_vector.count", count, 1, MAX_COUNT)
    threshold_epsilon = epsilon / (1 + (2 * count) ** (2 / 3))
    query_epsilon = epsilon - threshold_epsilon
    return sensitivity / threshold_epsilon, 2 * count * sensitivity / query_epsilon


def sparse_vector_release(
    sensitivity: float,
    threshold_scale: float,
    query_scale: float,
    *,
    count: int,
    tests: int,
    redrawn: str,
) -> Release:
    r"""Return the release of noisy threshold tests that stop after ``count`` answers "above".

    With :math:`\Delta` the sensitivity, :math:`s_1, s_2` the Laplace scales of threshold and
    queries, c answers "above" at most, and T tests:

    ``once``
        :math:`\Delta/s_1 + 2c\Delta/s_2`. Increase the threshold's noise by :math:`\Delta`, at the
        cost :math:`\Delta/s_1`. Each "below" is then at least as likely on the neighbouring data,
        and each "above" needs a change of its query's noise by at most :math:`2\Delta`.
    ``after_release``
        :math:`c\,(\Delta/s_1 + 2\Delta/s_2)`. Between two draws this is the case above with one
        "above". After the c-th no test is made, so that there are at most c draws.
    ``each``
        :math:`T\Delta/\max(s_1, s_2)`. Every answer depends on a query with both noises, of which
        the larger one is changed by :math:`\Delta`.

    Parameters
    ----------
    sensitivity : float
        :math:`\Delta`, of each query for all earlier answers.
    threshold_scale, query_scale : float
        :math:`s_1`, :math:`s_2`; 0 for no noise.
    count, tests : int
        c and T.
    redrawn : {"once", "after_release", "each"}
        When the threshold's noise is sampled: before the first test only; again after each "above";
        or before every test.

    Returns
    -------
    Release
        A pure release; T of them if the threshold's noise is sampled at each test.

    Raises
    ------
    InvalidInput
        With key ``sparse_vector.redrawn``.
    """
    arguments.choice("sparse_vector.redrawn", redrawn, REDRAWS)
    sensitivity, threshold_scale, query_scale = (
        arguments.number(f"sparse_vector.{key}", value, "a number >= 0", lambda v: v >= 0)
        for key, value in (
            ("sensitivity", sensitivity),
            ("threshold_scale", threshold_scale),
            ("query_scale", query_scale),
        )
    )
    arguments.whole("sparse_vector.count", count, 0, MAX_COUNT)
    arguments.whole("sparse_vector.tests", tests, 0, MAX_COUNT)
    threshold, query = (_loss(sensitivity, scale) for scale in (threshold_scale, query_scale))
    if redrawn == "each":
        return Release("pure", epsilon=min(threshold, query), count=tests)
    draws = count if redrawn == "after_release" else 1
    return Release("pure", epsilon=draws * threshold + 2 * count * query)


def least_answers(
    level: float,
    threshold_scale: float,
    query_scale: float,
    *,
    count: int,
    tests: int,
    redrawn: str,
) -> np.ndarray:
    """Return a distribution that bounds the number of answers "above" from below.

    It is stochastically at most the true one if all queries are 0 and the threshold is ``level``.
    The threshold's noise is rounded up to the ends of :data:`CELLS` intervals of equal probability,
    the last of which never gives "above".

    Parameters
    ----------
    level : float
        Threshold before noise.
    threshold_scale, query_scale : float
        Laplace scales of threshold and queries; 0 for no noise.
    redrawn : {"once", "after_release", "each"}
        When the threshold's noise is sampled, see :func:`sparse_vector_release`.

    Returns
    -------
    ndarray, shape (count + 1,)
        Probabilities of 0, ..., ``count`` answers.
    """
    arguments.choice("sparse_vector.redrawn", redrawn, REDRAWS)
    noise = _laplace_quantile(np.arange(1, CELLS) / CELLS)
    thresholds = level + threshold_scale * noise
    above = (
        _laplace_tail(thresholds / query_scale)
        if query_scale > 0
        else (thresholds <= 0).astype(float)
    )
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


def _loss(sensitivity: float, scale: float) -> float:
    return float(sensitivity / scale) if scale > 0 else math.inf


def _laplace_quantile(probability: np.ndarray) -> np.ndarray:
    centred = probability - 0.5
    return np.sign(centred) * -np.log1p(-2.0 * np.abs(centred))


def _laplace_tail(x: np.ndarray) -> np.ndarray:
    """Return the probability that a Laplace variable of scale 1 exceeds x."""
    far = np.exp(-np.abs(x)) / 2.0
    return np.where(x > 0, far, 1.0 - far)
