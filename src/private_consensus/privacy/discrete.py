r"""Discrete Gaussian on the integers.

:math:`P(k) \propto e^{-k^2/(2\sigma^2)}`. Adding it to an integer query of l2 sensitivity
:math:`\Delta` is :math:`\Delta^2/(2\sigma^2)`-zCDP in any dimension. On a grid of spacing g use
:math:`\sigma^2/g^2` here and multiply the integers by g.

References
----------
Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from private_consensus.common.errors import arguments

MAX_VARIANCE = 1e30


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
    expected = f"a number above 0 and at most {MAX_VARIANCE:g}"
    variance = arguments.number("variance", variance, expected, lambda v: 0 < v <= MAX_VARIANCE)
    k = arguments.array("k", k, "whole numbers", lambda v: v == np.floor(v))
    return np.exp(-np.square(k) / (2 * variance)) / _normaliser(variance)


def _normaliser(variance: float) -> float:
    """Return the sum of exp(-k^2/(2 variance)) over the integers.

    A variance of 1 or more uses Poisson summation.
    """
    k = np.arange(1, 9)
    if variance < 1:
        return 1 + 2 * float(np.sum(np.exp(-(k**2) / (2 * variance))))
    ripple = 2 * float(np.sum(np.exp(-2 * np.pi**2 * variance * k**2)))
    return math.sqrt(2 * math.pi * variance) * (1 + ripple)
