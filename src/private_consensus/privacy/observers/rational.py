"""Information of a view in exact rational arithmetic.

If a message has no independent noise, whether a change can be hidden depends on the range of a
singular matrix. Floating point can fail unsafely here: pseudo-inverses drop small singular values,
that is, observations. This module decides by exact zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

import numpy as np

from .linear_view import _Backward, dense
from .systems import LinearSystem
from .views import Observer

LARGEST_DENOMINATOR = 10_000
MAX_ROWS = 48
"""Largest number of rows of a view that is eliminated exactly, within seconds."""
MAX_EXACT_ENTRIES = 20_000
"""Largest product of rows and states for which a view is formed exactly."""

_NEAR = 4 * 2.0**-52

Pairs = list[tuple[Fraction | None, np.ndarray]]
"""Weights and rows of a quadratic form; None is an infinite weight."""


def _rational(value: float) -> Fraction | int:
    exact = Fraction(value)
    near = exact.limit_denominator(LARGEST_DENOMINATOR)
    fraction = near if abs(near - exact) <= _NEAR * abs(near) else exact
    return fraction.numerator if fraction.denominator == 1 else fraction


def rational(matrix: np.ndarray) -> np.ndarray:
    """Convert floating-point numbers to the fractions that they represent, as an array of objects.

    A number within two roundings of a fraction of denominator up to ``LARGEST_DENOMINATOR`` is
    replaced by that fraction, as for weights 1/(1 + d). Any other number is converted exactly, to a
    multiple of a power of two.
    """
    matrix = dense(matrix)
    if matrix.dtype == object:
        return matrix
    values, inverse = np.unique(matrix, return_inverse=True)
    fractions = np.array([_rational(float(value)) for value in values], dtype=object)
    return fractions[inverse].reshape(matrix.shape)


def exact_view(
    system: LinearSystem, observer: Observer, basis: np.ndarray, victims: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return C [rows, rows] and A times the basis [rows, victims * k] as fractions.

    Parameters
    ----------
    system : LinearSystem
        Algorithm.
    observer : Observer
        Observing agents or eavesdropper.
    basis : ndarray, [T, k]
        Changes of a private input over the rounds.
    victims : sequence of int
        Target agents.

    Returns
    -------
    covariance : ndarray of Fraction, [rows, rows]
    response : ndarray of Fraction, [rows, victims * k]
    """
    blocks = _Backward(system, observer, rational)
    covariance, response, _ = blocks.sums(rational(basis), victims)
    return covariance + Fraction(0), response.reshape(len(response), -1) + Fraction(0)


def exact_information(
    covariance: np.ndarray, response: np.ndarray, victims: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Compute :math:`M = (B^+A)^T(B^+A)` exactly for the basis changes of each target agent.

    The result also states which changes leave the range of B.

    Parameters
    ----------
    covariance, response : ndarray of Fraction
        Results of :func:`exact_view`.
    victims : int
        Number of target agents.

    Returns
    -------
    list of (ndarray of Fraction [k, k], ndarray of bool [k])
        Rows and columns of changes out of range are not meaningful.
    """
    pairs = eliminate(covariance, response)
    k = response.shape[1] // victims
    blocks = [slice(victim * k, (victim + 1) * k) for victim in range(victims)]
    return [_gram(pairs, response.shape[1], block) for block in blocks]


def eliminate(covariance: np.ndarray, response: np.ndarray) -> Pairs:
    r"""Apply the fraction-free :math:`L D L^T` of a positive semidefinite matrix to ``response``.

    Bareiss, "Sylvester's identity and multistep integer-preserving Gaussian elimination", 1968. A
    zero pivot of a positive semidefinite matrix has a zero row: the row of the view follows from
    the earlier ones, and so must the response.

    Parameters
    ----------
    covariance : ndarray of Fraction, [rows, rows]
        C.
    response : ndarray of Fraction, [rows, columns]
        Right-hand sides.

    Returns
    -------
    list of (weight, row)
        :math:`a^T C^+ a' = \sum w\,r\,r'`; weight infinity (None) if a response that is not 0
        has no noise.
    """
    joined = np.concatenate([covariance, response], axis=1)
    scale = [lcm(*(value.denominator for value in row)) for row in joined]
    scale = np.array(scale, dtype=object)
    c = _integers(covariance * np.multiply.outer(scale, scale))
    a = _integers(response * scale[:, None])
    pairs: Pairs = []
    previous = 1
    for i in range(len(c)):
        pivot = c[i, i]
        if pivot == 0:
            pairs.append((None, a[i]))
            continue
        pairs.append((Fraction(1, previous * pivot), a[i].copy()))
        below, column = slice(i + 1, None), c[i + 1 :, i].copy()
        c[below, below] = (c[below, below] * pivot - np.multiply.outer(column, column)) // previous
        a[below] = (a[below] * pivot - np.multiply.outer(column, a[i])) // previous
        previous = pivot
    return pairs


def _integers(matrix: np.ndarray) -> np.ndarray:
    return np.vectorize(int, otypes=[object])(matrix)


def _gram(pairs: Pairs, width: int, columns: slice) -> tuple[np.ndarray, np.ndarray]:
    outside = np.zeros(width, dtype=bool)[columns]
    total = np.zeros((len(outside),) * 2, dtype=object)
    for weight, row in pairs:
        entries = row[columns]
        if weight is None:
            outside |= entries != 0
        elif entries.any():
            total = total + np.multiply.outer(entries, entries) * weight
    return total, outside
