"""Sparse vector technique: noisy threshold tests with a privacy cost per answer "above".

References
----------
Lyu, Su, Li, "Understanding the sparse vector technique for differential privacy", PVLDB 2017:
Algorithm 7, whose case of two equal budgets and no numeric answers is Algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import comb

from private_consensus.common.errors import InvalidInput, arguments, require

from .releases import MAX_COUNT, Release, pure

REDRAWS = ("once", "after_release", "each")
CELLS = 2000
"""Number of cells of the threshold's noise."""


def sparse_vector_release(
    sensitivity: float,
    threshold_scale: float,
    query_scale: float,
    *,
    count: int,
    tests: int,
    redrawn: str,
    **options: Any,
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
    **options
        Further fields of the release.

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
        return pure(min(threshold, query), count=tests, **options)
    draws = count if redrawn == "after_release" else 1
    return pure(draws * threshold + 2 * count * query, **options)


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


@contextmanager
def _broadcasting(**arrays: np.ndarray) -> Generator[None]:
    """Raise ``InvalidInput`` if arrays do not broadcast together."""
    try:
        np.broadcast_shapes(*(array.shape for array in arrays.values()))
        yield
    except ValueError as error:
        shapes = tuple(array.shape for array in arrays.values())
        raise InvalidInput(", ".join(arrays), shapes, "shapes that broadcast") from error


def _loss(sensitivity: float, scale: float) -> float:
    return float(sensitivity / scale) if scale > 0 else math.inf


@dataclass(frozen=True)
class Answers:
    """Answers of the sparse vector technique.

    Parameters
    ----------
    answered : ndarray of bool, shape (..., n)
        False for all queries after the last allowed "above".
    above : ndarray of bool, shape (..., n)
        False if not answered.
    values : ndarray, shape (..., n)
        Noisy query if above and the budget includes numbers, else NaN.
    """

    answered: np.ndarray
    above: np.ndarray
    values: np.ndarray

    def __post_init__(self):
        for key in ("answered", "above"):
            value = getattr(self, key)
            is_bool = isinstance(value, np.ndarray) and value.dtype == bool
            require(is_bool, f"answers.{key}", value, "an array of bool")
        is_float = isinstance(self.values, np.ndarray) and self.values.dtype == float
        require(is_float, "answers.values", self.values, "an array of float")
        shapes = tuple(np.shape(getattr(self, key)) for key in ("answered", "above", "values"))
        require(len(set(shapes)) == 1, "answers", shapes, "arrays of one shape")


@dataclass(frozen=True)
class SparseVector:
    r"""Noise scales and privacy cost of the sparse vector technique.

    The threshold's noise is sampled once, the noise of each query separately. The technique stops
    after ``count`` answers "above". With c = ``count`` and sensitivity :math:`\Delta` the noises
    are Laplace of scale :math:`\Delta/\epsilon_1` (threshold), :math:`2c\Delta/\epsilon_2` (query;
    half of it if queries are monotonic) and :math:`c\Delta/\epsilon_3` (number).

    Parameters
    ----------
    sensitivity : float
        Sensitivity of each query, given all earlier answers. A query that uses an unreleased value
        computed from the data has no such bound.
    count : int
        Largest number of answers "above", at least 1.
    epsilon_threshold, epsilon_queries, epsilon_numbers : float
        Budgets of threshold, queries and released numbers; the last is 0 if only "above" or
        "below" is released.
    monotonic : bool
        True if all queries change in the same direction between neighbours.

    Raises
    ------
    InvalidInput
        With key ``sparse_vector.<field>``.
    """

    sensitivity: float
    count: int
    epsilon_threshold: float
    epsilon_queries: float
    epsilon_numbers: float = 0.0
    monotonic: bool = False

    def __post_init__(self):
        arguments.whole("sparse_vector.count", self.count, 1, MAX_COUNT)
        arguments.flag("sparse_vector.monotonic", self.monotonic)
        for name in ("sensitivity", "epsilon_threshold", "epsilon_queries"):
            key, value = f"sparse_vector.{name}", getattr(self, name)
            arguments.number(key, value, "a finite number above 0", lambda v: 0 < v < math.inf)
        key, value = "sparse_vector.epsilon_numbers", self.epsilon_numbers
        arguments.number(key, value, "a finite number >= 0", lambda v: 0 <= v < math.inf)

    @classmethod
    def split(
        cls,
        epsilon: float,
        *,
        sensitivity: float,
        count: int,
        monotonic: bool = False,
        equal: bool = False,
    ) -> SparseVector:
        """Split ``epsilon`` between threshold and queries, without numbers.

        The parts are 1 : (2c)^(2/3), or 1 : c^(2/3) if monotonic, or equal. The first split has the
        smallest variance of query minus threshold noise; equal parts are Algorithm 1.

        Parameters
        ----------
        epsilon : float
            Total pure epsilon, above 0.
        sensitivity : float
            Sensitivity of each query.
        count : int
            c, largest number of answers "above".
        monotonic : bool
            True if all queries move in one direction between neighbours.
        equal : bool
            True for equal parts.

        Returns
        -------
        SparseVector
        """
        key, expected = "sparse_vector.epsilon", "a finite number above 0"
        arguments.number(key, epsilon, expected, lambda v: 0 < v < math.inf)
        arguments.whole("sparse_vector.count", count, 1, MAX_COUNT)
        arguments.flag("sparse_vector.monotonic", monotonic)
        arguments.flag("sparse_vector.equal", equal)
        ratio = 1.0 if equal else (count if monotonic else 2 * count) ** (2 / 3)
        first = epsilon / (1 + ratio)
        return cls(sensitivity, count, first, epsilon - first, monotonic=monotonic)

    @property
    def epsilon(self) -> float:
        """Pure epsilon of all answers together."""
        return self.epsilon_threshold + self.epsilon_queries + self.epsilon_numbers

    @property
    def threshold_scale(self) -> float:
        """Laplace scale of the threshold's noise."""
        return self.sensitivity / self.epsilon_threshold

    @property
    def query_scale(self) -> float:
        """Laplace scale of each query's noise."""
        moves = 1 if self.monotonic else 2
        return moves * self.count * self.sensitivity / self.epsilon_queries

    @property
    def number_scale(self) -> float:
        """Laplace scale of the released numbers; infinite if the budget includes none."""
        if self.epsilon_numbers == 0:
            return np.inf
        return self.count * self.sensitivity / self.epsilon_numbers

    def release(self, **options: Any) -> Release:
        """Return the technique as a release for the accountant."""
        return pure(self.epsilon, **options)

    def above(self, query: Any, noisy_threshold: Any, unit: Any) -> Any:
        """Perform one test, for callers whose next query depends on the answer.

        The caller counts the answers "above".

        Parameters
        ----------
        query : float or ndarray
            Query before noise.
        noisy_threshold : float or ndarray
            Threshold plus :attr:`threshold_scale` times one Laplace draw, identical in all tests.
        unit : float or ndarray
            Fresh Laplace draws of scale 1.

        Returns
        -------
        bool or ndarray of bool
        """
        query, unit, noisy_threshold = (
            arguments.array(key, value, "numbers")
            for key, value in (
                ("query", query), ("unit", unit), ("noisy_threshold", noisy_threshold)
            )
        )  # fmt: skip
        with _broadcasting(query=query, unit=unit, noisy_threshold=noisy_threshold):
            return query + self.query_scale * unit >= noisy_threshold

    def run(
        self,
        queries: np.ndarray,
        threshold: Any,
        unit_threshold: np.ndarray,
        unit_queries: np.ndarray,
        unit_numbers: np.ndarray | None = None,
    ) -> Answers:
        """Return all answers to queries that are known beforehand.

        Parameters
        ----------
        queries : ndarray, shape (..., n)
            Queries before noise, in the order of the tests.
        threshold : float or ndarray
            Broadcast against ``queries``.
        unit_threshold : ndarray, shape (...)
            Laplace draws of scale 1, one per run.
        unit_queries, unit_numbers : ndarray, shape (..., n)
            Laplace draws of scale 1; the latter are required if the budget includes numbers.

        Returns
        -------
        Answers
        """
        queries = arguments.array("queries", queries, "an array (..., n) of numbers")
        require(queries.ndim >= 1, "queries", queries.shape, "a shape (..., n)")
        threshold = arguments.array("threshold", threshold, "numbers")
        unit_threshold = arguments.array("unit_threshold", unit_threshold, "numbers")
        with _broadcasting(threshold=threshold, unit_threshold=unit_threshold[..., None]):
            noisy_threshold = threshold + self.threshold_scale * unit_threshold[..., None]
        above = self.above(queries, noisy_threshold, unit_queries)
        answered = np.cumsum(above, axis=-1) - above < self.count
        above = above & answered
        values = np.full(above.shape, np.nan)
        if self.epsilon_numbers > 0:
            expected = "numbers, as epsilon_numbers is above 0"
            unit_numbers = arguments.array("unit_numbers", unit_numbers, expected)
            with _broadcasting(queries=queries, unit_numbers=unit_numbers):
                numbers = np.broadcast_to(queries + self.number_scale * unit_numbers, above.shape)
            values[above] = numbers[above]
        return Answers(answered, above, values)


def _laplace_quantile(probability: np.ndarray) -> np.ndarray:
    centred = probability - 0.5
    return np.sign(centred) * -np.log1p(-2.0 * np.abs(centred))


def _laplace_tail(x: np.ndarray) -> np.ndarray:
    """Return the probability that a Laplace variable of scale 1 exceeds x."""
    far = np.exp(-np.abs(x)) / 2.0
    return np.where(x > 0, far, 1.0 - far)
