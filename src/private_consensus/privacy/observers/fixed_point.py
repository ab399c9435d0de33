r"""Information of an ill-conditioned view, in fixed-point arithmetic of hundreds of bits.

An approximate inverse X of the exact covariance C is verified after it was found:
:math:`\|I - C X\|_\infty = \theta < 1` proves that C is definite with
:math:`\lambda_{\min}(C) \ge (1-\theta)/\|X\|_\infty`, and the residual of :math:`\Lambda = X A`
bounds what M can differ by, as in
:mod:`~private_consensus.privacy.observers.certificates`. Both are evaluated in exact integers.
"""

from __future__ import annotations

import numpy as np

from .certificates import Information

BITS = (256, 768)


def fixed_point_information(
    covariance: np.ndarray, response: np.ndarray, victims: int
) -> Information | None:
    """Compute the information from exact C and A; None if C is not provably definite.

    Parameters
    ----------
    covariance : ndarray of Fraction, [rows, rows]
        C.
    response : ndarray of Fraction, [rows, victims * k]
        A times the basis changes of each target agent.
    victims : int
        Number of target agents.

    Returns
    -------
    Information or None
    """
    for bits in BITS:
        c, a = _scaled(covariance, bits), _scaled(response, bits)
        inverse = _inverse(c, bits)
        information = None if inverse is None else _verified(c, a, inverse, bits, victims)
        if information is not None and information.is_tight:
            return information
    return None


def _scaled(matrix: np.ndarray, bits: int) -> np.ndarray:
    """Return the entries times 2**bits, rounded down to integers."""
    return np.vectorize(
        lambda value: (value.numerator << bits) // value.denominator, otypes=[object]
    )(matrix)


def _inverse(c: np.ndarray, bits: int) -> np.ndarray | None:
    """Invert a definite matrix by elimination without pivoting; None at a pivot <= 0."""
    n = len(c)
    unit = np.zeros((n, n), dtype=object)
    np.fill_diagonal(unit, 1 << bits)
    table = np.concatenate([c, unit], axis=1)
    for i in range(n):
        pivot = table[i, i]
        if pivot <= 0:
            return None
        row = (table[i] << bits) // pivot
        factors = table[:, i].copy()
        factors[i] = 0
        table = table - (np.multiply.outer(factors, row) >> bits)
        table[i] = row
    return table[:, n:]


def _verified(
    c: np.ndarray, a: np.ndarray, inverse: np.ndarray, bits: int, victims: int
) -> Information | None:
    """Return the information with an error radius; None if the inverse proves no definiteness.

    Entries of C, A and the products are within one unit of 2**-bits of the exact values.
    """
    n = len(c)
    inverse = (inverse + inverse.T) >> 1
    unit = np.zeros((n, n), dtype=object)
    np.fill_diagonal(unit, 1 << 2 * bits)
    size = max(sum(abs(value) for value in row) for row in inverse)
    missed = max(sum(abs(value) for value in row) for row in unit - c @ inverse)
    theta = _float(missed + n * size + n, 2 * bits)
    if not theta < 0.5:
        return None
    smallest = (1 - theta) / (_float(size, bits) * (1 + 1e-12))
    weights = (inverse @ a) >> bits
    residual = np.abs((a << bits) - c @ weights) + np.abs(weights).sum(0) + (1 << bits)
    k = a.shape[1] // victims
    values, weighed, missed_response = (
        _floats(array, shift).reshape(n, victims, k)
        for array, shift in ((a, bits), (weights, bits), (residual, 2 * bits))
    )
    matrix = _products(a, weights, bits, victims)
    norms = [np.sqrt((array**2).sum((0, 2))) for array in (values, weighed, missed_response)]
    radius = norms[1] * norms[2] + norms[2] ** 2 / smallest
    radius += 2.0**-50 * np.abs(matrix).sum((1, 2)) + np.sqrt(n * k) * 2.0**-bits * norms[1]
    return Information(matrix, radius * (1 + 1e-6), np.zeros((victims, k), dtype=bool))


def _products(a: np.ndarray, weights: np.ndarray, bits: int, victims: int) -> np.ndarray:
    """Compute A^T Lambda of each target agent, summed in integers."""
    blocks = zip(np.split(a, victims, axis=1), np.split(weights, victims, axis=1), strict=True)
    products = np.array([_floats(block.T @ weight, 2 * bits) for block, weight in blocks])
    return (products + products.transpose(0, 2, 1)) / 2


def _float(value: int, bits: int) -> float:
    return value / (1 << bits)


def _floats(matrix: np.ndarray, bits: int) -> np.ndarray:
    return np.vectorize(lambda value: value / (1 << bits), otypes=[float])(matrix)
