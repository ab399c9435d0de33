r"""The discrete Gaussian on the integers, sampled exactly.

:math:`P(k) \propto e^{-k^2/(2\sigma^2)}`. Adding it to an integer query of l2 sensitivity
:math:`\Delta` is :math:`\Delta^2/(2\sigma^2)`-zCDP in any dimension. On a grid of spacing g take
:math:`\sigma^2/g^2` here and multiply the draws by g.

The sampler uses whole numbers only, so that no probability is rounded; its one source of randomness
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

from private_consensus.errors import InvalidInput, arguments, require

_WORD = 2**32
_ROOM = 2**62  # products below this fit a 64-bit integer
MAX_VARIANCE = 1e30
"""Largest variance of the sampler, whose draws are 64-bit integers."""
MAX_SUPPORT_VARIANCE = 1e10
"""Largest variance whose support is enumerated."""
MAX_DRAWS = 10**9


def discrete_gaussian(
    rng: np.random.Generator, variance: int | float | Fraction, size: int | tuple[int, ...]
) -> np.ndarray:
    r"""Exact draws with parameter :math:`\sigma^2` = ``variance``.

    A discrete Laplace draw Y of scale :math:`t = \lfloor\sigma\rfloor + 1` is accepted with
    probability :math:`\exp(-(|Y| - \sigma^2/t)^2/(2\sigma^2))`.

    Parameters
    ----------
    rng : Generator
    variance : int, float or Fraction
        Positive; a float stands for the binary fraction that it is. Ratios of small whole numbers
        are quickest.
    size : int or tuple

    Returns
    -------
    ndarray of int64
    """
    arguments.instance("rng", rng, np.random.Generator, "a numpy.random.Generator")
    above, below = _ratio(variance)
    wanted = _checked_size(size)
    drawn: list[np.ndarray] = []
    missing = wanted
    while missing > 0:
        kept = _accepted(rng, above, below, missing + missing // 2 + 16)
        drawn.append(kept)
        missing -= kept.size
    flat = np.concatenate(drawn) if drawn else np.empty(0, dtype=np.int64)
    return flat[:wanted].reshape(size)


def discrete_gaussian_pmf(k: np.ndarray, variance: float | Fraction) -> np.ndarray:
    """Probability of each integer ``k``."""
    _ratio(variance)
    variance = float(variance)
    k = arguments.array("k", k, "whole numbers", lambda v: v == np.floor(v))
    return np.exp(-np.square(k) / (2 * variance)) / _normaliser(variance)


def discrete_gaussian_from_uniform(uniform: np.ndarray, variance: float | Fraction) -> np.ndarray:
    """Quantiles at ``uniform`` in [0, 1): quick, and pairs settings that share their draws.

    For simulating utility; a double has 53 bits, so the law is right to about 1e-16 only and no
    draw lies further out than 9 standard deviations. For a release use :func:`discrete_gaussian`.
    """
    _ratio(variance, MAX_SUPPORT_VARIANCE)
    expected = "numbers in [0, 1)"
    uniform = arguments.array("uniform", uniform, expected, lambda v: (v >= 0) & (v < 1))
    reach = math.ceil(9 * math.sqrt(variance)) + 1
    support = np.arange(-reach, reach + 1)
    cumulative = np.cumsum(discrete_gaussian_pmf(support, variance))
    found = np.searchsorted(cumulative, uniform, side="right")
    return support[np.minimum(found, support.size - 1)]


def _normaliser(variance: float) -> float:
    """Sum of exp(-k^2/(2 variance)) over the integers; by Poisson summation where it is wide."""
    k = np.arange(1, 9)
    if variance < 1:
        return 1 + 2 * float(np.sum(np.exp(-(k**2) / (2 * variance))))
    ripple = 2 * float(np.sum(np.exp(-2 * np.pi**2 * variance * k**2)))
    return math.sqrt(2 * math.pi * variance) * (1 + ripple)


def _ratio(variance: int | float | Fraction, most: float = MAX_VARIANCE) -> tuple[int, int]:
    expected = f"a number above 0 and at most {most:g}"
    arguments.number("variance", variance, expected, lambda v: 0 < v <= most)
    exact = isinstance(variance, numbers.Rational)
    return Fraction(variance if exact else float(variance)).as_integer_ratio()


def _checked_size(size: int | tuple[int, ...]) -> int:
    """Return the number of draws of a shape."""
    expected = f"whole numbers >= 0 whose product is at most {MAX_DRAWS:,}"
    lengths = size if isinstance(size, tuple | list) else (size,)
    try:
        wanted = math.prod(arguments.whole("size", length, 0) for length in lengths)
    except InvalidInput as error:
        raise InvalidInput("size", size, expected) from error
    require(wanted <= MAX_DRAWS, "size", size, expected)
    return wanted


def _accepted(rng: np.random.Generator, above: int, below: int, tries: int) -> np.ndarray:
    scale = math.isqrt(above // below) + 1
    candidate = _discrete_laplace(rng, scale, tries)
    size = np.abs(candidate)
    denominator = 2 * above * below * scale**2
    largest = int(size.max(initial=0)) * below * scale + above
    if max(largest**2, denominator) >= _ROOM:
        size = size.astype(object)
    numerator = (size * (below * scale) - above) ** 2
    return candidate[_bernoulli_exp(rng, numerator, denominator)]


def _discrete_laplace(rng: np.random.Generator, scale: int, tries: int) -> np.ndarray:
    """Up to ``tries`` draws of P(k) proportional to exp(-|k|/scale)."""
    rest = rng.integers(0, scale, tries)
    rest = rest[_bernoulli_exp(rng, rest, scale)]
    whole = np.zeros_like(rest)
    alive = np.arange(rest.size)
    while alive.size:
        alive = alive[_bernoulli_exp(rng, np.ones(alive.size, np.int64), 1)]
        whole[alive] += 1
    size = rest + scale * whole
    negative = rng.integers(0, 2, size.size) == 1
    keep = ~(negative & (size == 0))  # else zero would be drawn twice as often
    return np.where(negative, -size, size)[keep]


def _bernoulli_exp(rng: np.random.Generator, numerator: np.ndarray, denominator: int) -> np.ndarray:
    """True with probability exp(-numerator/denominator), each on its own."""
    whole = numerator // denominator
    true = _bernoulli_exp_unit(rng, numerator - whole * denominator, denominator)
    alive = np.flatnonzero(true & (whole > 0))
    left = whole[alive]
    while alive.size:
        again = _bernoulli_exp_unit(rng, np.ones(alive.size, np.int64), 1)
        true[alive] = again
        alive, left = alive[again], left[again] - 1
        alive, left = alive[left > 0], left[left > 0]
    return true


def _bernoulli_exp_unit(
    rng: np.random.Generator, numerator: np.ndarray, denominator: int
) -> np.ndarray:
    """Sample Bernoulli(exp(-numerator/denominator)) for numerator <= denominator: the number of
    successes at x/1, x/2, ... is even.
    """
    true = np.zeros(numerator.size, dtype=bool)
    alive = np.arange(numerator.size)
    turn = 1
    while alive.size:
        success = _bernoulli(rng, numerator[alive], denominator * turn)
        true[alive[~success]] = turn % 2 == 1
        alive = alive[success]
        turn += 1
    return true


def _bernoulli(rng: np.random.Generator, numerator: np.ndarray, denominator: int) -> np.ndarray:
    """True with probability numerator/denominator, compared digit by digit where it is long."""
    if denominator < _ROOM:
        return rng.integers(0, denominator, numerator.size) < numerator
    true = np.zeros(numerator.size, dtype=bool)
    alive, rest = np.arange(numerator.size), numerator.astype(object)
    while alive.size:
        digit = rng.integers(0, _WORD, alive.size).astype(object)
        bound = rest * _WORD // denominator
        true[alive] = digit < bound
        tie = (digit == bound).astype(bool)
        alive, rest = alive[tie], (rest * _WORD - bound * denominator)[tie]
    return true
