"""Information of a view in exact rational arithmetic.

If a message has no independent noise, whether a change can be hidden depends on the range of a
singular matrix. Floating point can fail unsafely here: pseudo-inverses drop small singular values,
that is, observations. This module decides by exact zeros.

Zeros are those of the algorithm if its numbers are known exactly: fractions, and any scale of
noise and inputs (:func:`in_fractions`). Products of rounded numbers, and irrational weights, do not
cancel exactly. A lower bound must not rely on what they reveal then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import Any

import numpy as np

from .linear_view import _Backward, dense, stored_values
from .systems import LinearSystem, Round
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


def rational(matrix: Any, unit: float = 1.0) -> np.ndarray:
    """Convert floating-point numbers to the fractions that they represent, as an array of objects.

    A number within two roundings of a fraction of denominator up to ``LARGEST_DENOMINATOR`` is
    replaced by that fraction, as for weights 1/(1 + d). Any other number is converted exactly, to a
    multiple of a power of two.

    Parameters
    ----------
    matrix : ndarray or csr_array
        Returned if its numbers are fractions.
    unit : float
        Number of which all numbers are multiples by fractions, such as the scale of noise.

    Returns
    -------
    ndarray of Fraction or int
    """
    matrix = dense(matrix)
    if matrix.dtype == object:
        return matrix
    values, inverse = np.unique(matrix, return_inverse=True)
    exact_unit = _rational(unit)
    fractions = [_rational(float(value / unit)) * exact_unit for value in values]
    return np.array(fractions, dtype=object)[inverse].reshape(matrix.shape)


def are_fractions(matrix: Any, unit: float = 1.0) -> bool:
    """Return True if all numbers are multiples of the unit by fractions of small denominator.

    Parameters
    ----------
    matrix : ndarray or csr_array
        Floating-point numbers.
    unit : float
        Unit of :func:`rational`.

    Returns
    -------
    bool
    """
    multiples = (_rational(float(value / unit)) for value in np.unique(stored_values(matrix)))
    return all(multiple.denominator <= LARGEST_DENOMINATOR for multiple in multiples)


@lru_cache(maxsize=2)
def in_fractions(system: LinearSystem) -> LinearSystem:
    """Return the system with rounds of fractions; equal rounds remain one object."""
    if system.exact is not None:
        return system.exact()
    rounds = {id(round_): _in_fractions(round_) for round_ in system.rounds}
    return replace(system, rounds=[rounds[id(round_)] for round_ in system.rounds])


def _in_fractions(round_: Round) -> Round:
    units = _units(round_).items()
    return replace(round_, **{name: rational(getattr(round_, name), unit) for name, unit in units})


@lru_cache(maxsize=2)
def is_exact(system: LinearSystem) -> bool:
    """Return True if :func:`in_fractions` has the numbers of the algorithm without rounding.

    All numbers are then fractions of small denominator, relative to the scales of noise and inputs
    in a round.
    """
    if system.exact is not None:
        return True
    others = [matrix for matrix in (system.filter, system.output) if matrix is not None]
    return all(map(are_fractions, others)) and all(
        are_fractions(getattr(round_, name), unit)
        for round_ in {id(round_): round_ for round_ in system.rounds}.values()
        for name, unit in _units(round_).items()
    )


def _units(round_: Round) -> dict[str, float]:
    """Return the unit of each matrix of a round: the largest number of its inputs or noise."""
    units = dict.fromkeys(("transition", "message_transition"), 1.0)
    for kind in ("inputs", "noise"):
        names = kind, f"message_{kind}"
        numbers = [np.abs(stored_values(getattr(round_, name))) for name in names]
        largest = max(float(values.max(initial=0.0)) for values in numbers)
        units |= dict.fromkeys(names, largest or 1.0)
    return units


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
    blocks = _Backward(in_fractions(system), observer, rational)
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
