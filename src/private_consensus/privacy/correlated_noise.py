r"""Gaussian noise correlated over rounds: optimal correlation and privacy loss (MAFALDA-SGD).

Each agent adds :math:`\sigma\,(C^{-1}z)_t` in round t, C lower triangular. The privacy loss to an
eavesdropper who receives every message is :math:`|C\Delta|^2/\sigma^2` for the changes
:math:`\Delta` of the rounds. The effect of the noise on the models of all rounds after mixing, at
equal privacy, is

.. math::
    \mathrm{sens}(C)^2\,\mathrm{tr}(G\,X^{-1}), \qquad X = C^T C, \qquad
    G_{st} = \sum_i (A_i^T A_i)_{st} = \sum_{r\ge\max(s,t)} \sum_k \lambda_k(W)^{2r-s-t+2}

for symmetric W with eigenvalues :math:`\lambda_k` and models :math:`W y_r`. No matrix with agents
times rounds rows is needed (objective: Bellet, Cyffers, Frey, Gaudel, Lereverend, Taiani, ICLR
2026, arXiv 2510.17480; this form of G is derived here).
"""

import numpy as np
from scipy.linalg import cholesky
from scipy.optimize import minimize

_STEPS = 500
_TOLERANCE = 1e-12
_OUTSIDE = 1e6
"""Penalty of a matrix that is not positive definite, relative to the error at the start."""
_NEARLY = 1e-8
_ASCENT = {"maxiter": 3000, "maxfun": 6000, "maxcor": 12, "ftol": 0.0, "gtol": 1e-9}


def error_gram(mixing: np.ndarray, horizon: int) -> np.ndarray:
    """Return G, [T, T], of a symmetric mixing matrix W, [N, N], and T rounds."""
    powers = (np.linalg.eigvalsh(mixing)[:, None] ** np.arange(2 * horizon + 1)).sum(0)
    s, t, r = np.ogrid[:horizon, :horizon, :horizon]
    later = r >= np.maximum(s, t)
    return np.where(later, powers[np.where(later, 2 * r - s - t + 2, 0)], 0.0).sum(-1)


def cyclic_factor(gram: np.ndarray, period: int) -> np.ndarray:
    r"""Return a C, [T, T], of small error for records that participate in rounds s, s + period, ...

    C is lower triangular, with :math:`|C\Delta| \le 1` for all changes of at most 1 in these
    rounds. It minimises :math:`\mathrm{tr}(G X^{-1})` over :math:`X = C^T C` with :math:`X_{st} =
    0` for two rounds of one record and :math:`\sum_t X_{tt} = 1` over its rounds (Bellet et al.,
    2026): then :math:`|C\Delta|^2 = \sum_t X_{tt}|\Delta_t|^2`, for all directions. L-BFGS starts
    from independent noise, so that the result is never worse.
    """
    size = len(gram)
    phase = np.arange(size) % period
    counts = np.bincount(phase, minlength=period)
    rows, columns = np.nonzero(np.triu(phase[:, None] != phase))

    def matrix(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weights = np.exp(flat[:size] - flat[:size].max())
        diagonal = weights / np.bincount(phase, weights, minlength=period)[phase]
        x = np.diag(diagonal)
        x[rows, columns] = x[columns, rows] = flat[size:]
        return x, diagonal

    def error(flat: np.ndarray) -> tuple[float, np.ndarray]:
        x, diagonal = matrix(flat)
        try:
            np.linalg.cholesky(x)
        except np.linalg.LinAlgError:
            return _OUTSIDE * start_error, np.zeros_like(flat)
        inverse = np.linalg.inv(x)
        slope = -inverse @ gram @ inverse
        diagonal_slope = np.diag(slope)
        mean = np.bincount(phase, diagonal_slope * diagonal, minlength=period)[phase]
        slopes = np.concatenate([diagonal * (diagonal_slope - mean), 2 * slope[rows, columns]])
        return float(np.trace(gram @ inverse)), slopes

    start = np.zeros(size + len(rows))
    start_error = float((np.diag(gram) * counts[phase]).sum())
    options = {"maxiter": _STEPS, "ftol": _TOLERANCE, "gtol": 1e-10}
    solution = minimize(error, start, jac=True, method="L-BFGS-B", options=options)
    best = solution.x if error(solution.x)[0] <= start_error else start
    return cholesky(matrix(best)[0][::-1, ::-1], lower=False)[::-1, ::-1].copy()


def cyclic_sensitivity(factor: np.ndarray, period: int) -> float:
    r"""Return an upper bound on :math:`|C\Delta|` over the changes by one record.

    The record changes the rounds s, s + period, ... by at most 1 each, in any directions.
    """
    information = factor.T @ factor
    starts = range(min(period, len(information)))
    blocks = (information[s::period, s::period] for s in starts)
    return float(np.sqrt(max(correlation_maximum(block) for block in blocks)))


def correlation_maximum(matrix: np.ndarray) -> float:
    r"""Return an upper bound on :math:`\max \mathrm{tr}(M X)` over correlation matrices X.

    M is positive semidefinite, and X satisfies :math:`X \succeq 0,\ X_{tt} = 1`.

    With :math:`X = V V^T` and unit rows (Burer, Monteiro, 2003), by quasi-Newton ascent. At a
    solution :math:`\lambda_t = |(M V)_t|`. If :math:`\mathrm{diag}(\lambda)-M` is not definite, the
    missing amount is added, so that the bound holds wherever the ascent stopped.
    """
    matrix = (matrix + matrix.T) / 2
    size = float(np.abs(matrix).sum())
    largest = size * (1 + 1e-14 * len(matrix))
    if size - float(matrix.sum()) <= _NEARLY * size:
        return largest
    vectors = _ascended(matrix / size * len(matrix), _start(matrix))
    return min(_dual(matrix, np.linalg.norm(matrix @ vectors, axis=1)), largest)


def _ascended(matrix: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return unit rows at which tr(V^T M V) is stationary."""

    def unit(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows_ = flat.reshape(rows.shape)
        lengths = np.linalg.norm(rows_, axis=1, keepdims=True)
        return rows_ / lengths, lengths

    def descent(flat: np.ndarray) -> tuple[float, np.ndarray]:
        vectors, lengths = unit(flat)
        pulls = matrix @ vectors
        projections = (vectors * pulls).sum(1, keepdims=True)
        return -float(projections.sum()), (-2 * (pulls - vectors * projections) / lengths).ravel()

    solution = minimize(descent, rows.ravel(), jac=True, method="L-BFGS-B", options=_ASCENT)
    return unit(solution.x)[0]


def _start(matrix: np.ndarray) -> np.ndarray:
    """Return unit rows near the leading eigenvectors, as many as a solution needs."""
    rank = int(np.ceil(np.sqrt(2 * len(matrix)))) + 1
    values, vectors = np.linalg.eigh(matrix)
    rows = vectors[:, ::-1][:, :rank] * np.sqrt(np.maximum(values[::-1][:rank], 0))
    rows = rows + 1e-3 * np.cos(np.arange(rows.size)).reshape(rows.shape)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _dual(matrix: np.ndarray, multipliers: np.ndarray) -> float:
    """Return the smallest computed sum of multipliers that dominates the matrix.

    Rounding errors are included.
    """
    size = len(matrix)
    rounding = 8 * size * 2.0**-52 * (np.abs(matrix).sum(1).max() + multipliers.max())
    smallest = np.linalg.eigvalsh(np.diag(multipliers) - matrix)[0]
    added = multipliers.sum() + size * (max(-smallest, 0.0) + rounding)
    if multipliers.min() <= 0:
        return float(added)
    roots = np.sqrt(multipliers)
    factor = np.linalg.eigvalsh(matrix / np.multiply.outer(roots, roots))[-1]
    scaled = multipliers.sum() * max(factor, 0.0) * (1 + 1e-12) + size * rounding
    return float(min(added, scaled))
