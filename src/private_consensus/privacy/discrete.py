r"""Discrete Gaussian on the integers, sampled exactly.

:math:`P(k) \propto e^{-k^2/(2\sigma^2)}`. Adding it to an integer query of l2 sensitivity
:math:`\Delta` is :math:`\Delta^2/(2\sigma^2)`-zCDP in any dimension. On a grid of spacing g use
:math:`\sigma^2/g^2` here and multiply the draws by g.

The sampler uses integers only, so that no probability is rounded. Its only source of randomness
is the generator's uniform integers. Its running time depends on the draws.

References
----------
Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020,
Algorithms 1-3.
"""

from __future__ import annotations

import math
import numbers
from fractions import Fraction

import numpy as np

from private_consensus.common.errors import InvalidInput, arguments, require

_WORD = 2**32
_INT64_LIMIT = 2**62  # products below this fit a 64-bit integer
MAX_VARIANCE = 1e30
"""Largest variance of the sampler, whose draws are 64-bit integers."""
MAX_SUPPORT_VARIANCE = 1e10
"""Largest variance whose support is enumerated."""
MAX_DRAWS = 10**9


def discrete_gaussian(
    rng: np.random.Generator, variance: int | float | Fraction, size: int | tuple[int, ...]
) -> np.ndarray:
    r"""Sample exactly from the discrete Gaussian with parameter :math:`\sigma^2` = ``variance``.

    A discrete Laplace draw Y of scale :math:`t = \lfloor\sigma\rfloor + 1` is accepted with
    probability :math:`\exp(-(|Y| - \sigma^2/t)^2/(2\sigma^2))`.

    Parameters
    ----------
    rng : Generator
        Source of the uniform integers.
    variance : int, float or Fraction
        Positive; a float is converted to the binary fraction that it represents. Ratios of small
        integers are fastest.
    size : int or tuple
        Shape of the result.

    Returns
    -------
    ndarray of int64
    """
    arguments.instance("rng", rng, np.random.Generator, "a numpy.random.Generator")
    numerator, denominator = _ratio(variance)
    total = _checked_size(size)
    drawn: list[np.ndarray] = []
    missing = total
    while missing > 0:
        accepted = _accepted(rng, numerator, denominator, missing + missing // 2 + 16)
        drawn.append(accepted)
        missing -= accepted.size
    flat = np.concatenate(drawn) if drawn else np.empty(0, dtype=np.int64)
    return flat[:total].reshape(size)


def discrete_gaussian_pmf(k: np.ndarray, variance: float | Fraction) -> np.ndarray:
    r"""Return the probability of each integer ``k``.

    Parameters
    ----------
    k : ndarray
        Integers.
    variance : float or Fraction
        :math:`\sigma^2 > 0`.

    Returns
    -------
    ndarray
        With the shape of ``k``.
    """
    _ratio(variance)
    variance = float(variance)
    k = arguments.array("k", k, "whole numbers", lambda v: v == np.floor(v))
    return np.exp(-np.square(k) / (2 * variance)) / _normaliser(variance)


def discrete_gaussian_from_uniform(uniform: np.ndarray, variance: float | Fraction) -> np.ndarray:
    r"""Return discrete Gaussian quantiles, so that settings can share their uniform draws.

    For simulation only: a double has 53 bits, so that probabilities have errors of about 1e-16, and
    no value exceeds 9 standard deviations. For a private release use :func:`discrete_gaussian`.

    Parameters
    ----------
    uniform : ndarray
        Numbers in [0, 1).
    variance : float or Fraction
        :math:`\sigma^2 > 0`, at most :data:`MAX_SUPPORT_VARIANCE`.

    Returns
    -------
    ndarray of int
        With the shape of ``uniform``.
    """
    _ratio(variance, MAX_SUPPORT_VARIANCE)
    expected = "numbers in [0, 1)"
    uniform = arguments.array("uniform", uniform, expected, lambda v: (v >= 0) & (v < 1))
    reach = math.ceil(9 * math.sqrt(variance)) + 1
    support = np.arange(-reach, reach + 1)
    cumulative = np.cumsum(discrete_gaussian_pmf(support, variance))
    index = np.searchsorted(cumulative, uniform, side="right")
    return support[np.minimum(index, support.size - 1)]


def _normaliser(variance: float) -> float:
    """Return the sum of exp(-k^2/(2 variance)) over the integers.

    A variance of 1 or more uses Poisson summation.
    """
    k = np.arange(1, 9)
    if variance < 1:
        return 1 + 2 * float(np.sum(np.exp(-(k**2) / (2 * variance))))
    ripple = 2 * float(np.sum(np.exp(-2 * np.pi**2 * variance * k**2)))
    return math.sqrt(2 * math.pi * variance) * (1 + ripple)


def _ratio(variance: int | float | Fraction, max_value: float = MAX_VARIANCE) -> tuple[int, int]:
    expected = f"a number above 0 and at most {max_value:g}"
    arguments.number("variance", variance, expected, lambda v: 0 < v <= max_value)
    exact = isinstance(variance, numbers.Rational)
    return Fraction(variance if exact else float(variance)).as_integer_ratio()


def _checked_size(size: int | tuple[int, ...]) -> int:
    """Return the number of draws of a shape."""
    expected = f"whole numbers >= 0 whose product is at most {MAX_DRAWS:,}"
    lengths = size if isinstance(size, tuple | list) else (size,)
    try:
        total = math.prod(arguments.whole("size", length, 0) for length in lengths)
    except InvalidInput as error:
        raise InvalidInput("size", size, expected) from error
    require(total <= MAX_DRAWS, "size", size, expected)
    return total


def _accepted(rng: np.random.Generator, above: int, below: int, tries: int) -> np.ndarray:
    """Return the accepted samples of some tries, for the variance ``above / below``."""
    scale = math.isqrt(above // below) + 1
    candidate = _discrete_laplace(rng, scale, tries)
    size = np.abs(candidate)
    denominator = 2 * above * below * scale**2
    largest = int(size.max(initial=0)) * below * scale + above
    if max(largest**2, denominator) >= _INT64_LIMIT:
        size = size.astype(object)
    numerator = (size * (below * scale) - above) ** 2
    return candidate[_bernoulli_exp(rng, numerator, denominator)]


def _discrete_laplace(rng: np.random.Generator, scale: int, tries: int) -> np.ndarray:
    """Sample up to ``tries`` values with P(k) proportional to exp(-abs(k)/scale)."""
    remainder = rng.integers(0, scale, tries)
    remainder = remainder[_bernoulli_exp(rng, remainder, scale)]
    quotient = np.zeros_like(remainder)
    active = np.arange(remainder.size)
    while active.size:
        active = active[_bernoulli_exp(rng, np.ones(active.size, np.int64), 1)]
        quotient[active] += 1
    size = remainder + scale * quotient
    negative = rng.integers(0, 2, size.size) == 1
    is_valid = ~(negative & (size == 0))  # else zero would be sampled twice as often
    return np.where(negative, -size, size)[is_valid]


def _bernoulli_exp(rng: np.random.Generator, numerator: np.ndarray, denominator: int) -> np.ndarray:
    """Sample independent Bernoulli(exp(-numerator/denominator)) variables."""
    quotient = numerator // denominator
    true = _bernoulli_exp_unit(rng, numerator - quotient * denominator, denominator)
    active = np.flatnonzero(true & (quotient > 0))
    remaining = quotient[active]
    while active.size:
        again = _bernoulli_exp_unit(rng, np.ones(active.size, np.int64), 1)
        true[active] = again
        active, remaining = active[again], remaining[again] - 1
        active, remaining = active[remaining > 0], remaining[remaining > 0]
    return true


def _bernoulli_exp_unit(
    rng: np.random.Generator, numerator: np.ndarray, denominator: int
) -> np.ndarray:
    """Sample Bernoulli(exp(-x)) variables for x = numerator/denominator <= 1.

    The result is true if the number of successive successes of Bernoulli(x/1), Bernoulli(x/2), ...
    is even.
    """
    true = np.zeros(numerator.size, dtype=bool)
    active = np.arange(numerator.size)
    trial = 1
    while active.size:
        success = _bernoulli(rng, numerator[active], denominator * trial)
        true[active[~success]] = trial % 2 == 1
        active = active[success]
        trial += 1
    return true


def _bernoulli(rng: np.random.Generator, numerator: np.ndarray, denominator: int) -> np.ndarray:
    """Sample Bernoulli(numerator/denominator), digit by digit for a large denominator."""
    if denominator < _INT64_LIMIT:
        return rng.integers(0, denominator, numerator.size) < numerator
    true = np.zeros(numerator.size, dtype=bool)
    active, remainder = np.arange(numerator.size), numerator.astype(object)
    while active.size:
        digit = rng.integers(0, _WORD, active.size).astype(object)
        bound = remainder * _WORD // denominator
        true[active] = digit < bound
        tie = (digit == bound).astype(bool)
        active, remainder = active[tie], (remainder * _WORD - bound * denominator)[tie]
    return true
