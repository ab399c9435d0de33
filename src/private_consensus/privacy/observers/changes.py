r"""Sets of changes of a private input between neighbouring data sets, and their largest mu.

The neighbouring relation is represented by this set only. ``size`` is the largest change of a round
in l2. For gradients of records clipped to C, it is 2C for the sum and 2C/m for the mean over m
records, if one record is replaced (:func:`gradient_change`). For an agent's whole gradient clipped
to C, it is 2C if all its data are replaced. A set turns information M, with
:math:`\mu^2(\Delta) = \sum_{s,t} M_{st}\langle\Delta_s,\Delta_t\rangle`, into bounds on its largest
value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from private_consensus.common.errors import arguments, require

from .systems import checked_number, per_round, positive_integer

UNITS = ("record", "agent")
_NEARLY = 1e-8
_ASCENT = {"maxiter": 3000, "maxfun": 6000, "maxcor": 12, "ftol": 0.0, "gtol": 1e-9}


@dataclass(frozen=True, eq=False)
class Changes(ABC):
    """Set of allowed changes of a private input between neighbouring data sets.

    Parameters
    ----------
    size : float or ndarray [T]
        Largest l2 norm of the change of each round, or gain of the single vector that changes.
    """

    size: ArrayLike = 1.0

    def basis(self, horizon: int) -> np.ndarray:
        """Return the changes [T, k] that generate the set; by default one change per round."""
        return np.diag(per_round(self.size, horizon, "changes.size"))

    def patterns(self, horizon: int) -> list[np.ndarray]:
        """Return the largest norms of the changes of all rounds [T], per participation pattern."""
        return [per_round(self.size, horizon, "changes.size")]

    @abstractmethod
    def maximum(self, matrix: np.ndarray, radius: float) -> tuple[float, float]:
        r"""Return a lower and an upper bound on :math:`\mu^2` over all allowed changes.

        Parameters
        ----------
        matrix : ndarray, [k, k]
            Information in the basis of this set.
        radius : float
            M is within ``radius`` of ``matrix`` in spectral norm.

        Returns
        -------
        lower, upper : float
        """


@dataclass(frozen=True, eq=False)
class Constant(Changes):
    """Constant change: the same vector in every round, times ``size``.

    Examples are a mean, a label and a linear term.
    """

    def basis(self, horizon: int) -> np.ndarray:
        return per_round(self.size, horizon, "changes.size")[:, None].copy()

    def maximum(self, matrix: np.ndarray, radius: float) -> tuple[float, float]:
        r"""Return a lower and an upper bound on :math:`\mu^2` over all allowed changes.

        Parameters
        ----------
        matrix : ndarray, [1, 1]
            Information in the basis of this set.
        radius : float
            M is within ``radius`` of ``matrix`` in spectral norm.

        Returns
        -------
        lower, upper : float
        """
        return matrix[0, 0] - radius, matrix[0, 0] + radius


@dataclass(frozen=True, eq=False)
class Once(Changes):
    """Change in a single round, the most costly one: one participation, or a one-shot average."""

    def patterns(self, horizon: int) -> list[np.ndarray]:
        return list(self.basis(horizon))

    def maximum(self, matrix: np.ndarray, radius: float) -> tuple[float, float]:
        r"""Return a lower and an upper bound on :math:`\mu^2` over all allowed changes.

        Parameters
        ----------
        matrix : ndarray, [T, T]
            Information in the basis of this set.
        radius : float
            M is within ``radius`` of ``matrix`` in spectral norm.

        Returns
        -------
        lower, upper : float
        """
        largest = np.diag(matrix).max()
        return largest - radius, largest + radius


@dataclass(frozen=True, eq=False)
class Free(Changes):
    r"""Change in every round up to ``size``, in independent directions: full-batch gradients.

    In any dimension of at least T this is :math:`\max \mathrm{tr}(M X)` over correlation matrices
    X; the bound holds in every dimension. The lower bound is by ascent over unit vectors, the upper
    bound by the dual: :math:`\mathrm{diag}(\lambda) \succeq M` gives :math:`\sum_t \lambda_t`. In
    one dimension the maximum is over signs; the two agree if all of M is >= 0.
    """

    def maximum(self, matrix: np.ndarray, radius: float) -> tuple[float, float]:
        r"""Return a lower and an upper bound on :math:`\mu^2` over all allowed changes.

        Parameters
        ----------
        matrix : ndarray, [T, T]
            Information in the basis of this set.
        radius : float
            M is within ``radius`` of ``matrix`` in spectral norm.

        Returns
        -------
        lower, upper : float
        """
        lower, upper = correlation_maximum(matrix)
        return lower - radius * len(matrix), upper + radius * len(matrix)


@dataclass(frozen=True, eq=False)
class Cyclic(Changes):
    """Changes in rounds s, s + period, ... for one s, in independent directions: cyclic batches.

    Parameters
    ----------
    period : int
        Rounds from one use of a record to the next, at least 1.
    """

    period: int = 1

    def __post_init__(self) -> None:
        expected = "a whole number above 0"
        require(
            isinstance(self.period, int) and self.period >= 1,
            *("changes.period", self.period, expected),
        )

    def patterns(self, horizon: int) -> list[np.ndarray]:
        sizes = per_round(self.size, horizon, "changes.size")
        phases = np.arange(horizon) % self.period
        return [np.where(phases == s, sizes, 0.0) for s in range(min(self.period, horizon))]

    def maximum(self, matrix: np.ndarray, radius: float) -> tuple[float, float]:
        r"""Return a lower and an upper bound on :math:`\mu^2` over all allowed changes.

        Parameters
        ----------
        matrix : ndarray, [T, T]
            Information in the basis of this set.
        radius : float
            M is within ``radius`` of ``matrix`` in spectral norm.

        Returns
        -------
        lower, upper : float
        """
        bounds = [
            Free().maximum(matrix[s :: self.period, s :: self.period], radius)
            for s in range(min(self.period, len(matrix)))
        ]
        return max(low for low, _ in bounds), max(high for _, high in bounds)


def gradient_change(unit: str, clip: float, records: int | None = None) -> float:
    """Return the largest l2 change of a clipped full-batch gradient, by replacement.

    Parameters
    ----------
    unit : {"record", "agent"}
        ``record``: gradients of records are clipped to C one by one. ``agent``: the agent's whole
        gradient is clipped, and all of its data may change.
    clip : float
        Clipping norm C.
    records : int, optional
        m, number of records, if the gradient is the mean over records; without it, the gradient is
        a sum.

    Returns
    -------
    float
        2C, or 2C/m for a record of a mean.

    Raises
    ------
    InvalidInput
        For an unknown unit, a clip that is not above 0, and less than one record.
    """
    arguments.choice("unit", unit, UNITS)
    clip = checked_number(clip, "clip")
    count = 1 if records is None else positive_integer(records, "records")
    return 2.0 * clip / count if unit == "record" else 2.0 * clip


def correlation_maximum(matrix: np.ndarray) -> tuple[float, float]:
    r"""Return bounds on :math:`\max \mathrm{tr}(M X)` over correlation matrices X, for M >= 0.

    X satisfies :math:`X \succeq 0,\ X_{tt} = 1`.

    With :math:`X = V V^T` and unit rows (Burer, Monteiro, 2003), by quasi-Newton ascent. At a
    solution :math:`\lambda_t = |(M V)_t|`. If :math:`\mathrm{diag}(\lambda)-M` is not definite, the
    missing amount is added, so that the second bound holds wherever the ascent stopped.
    """
    matrix = (matrix + matrix.T) / 2
    total, size = float(matrix.sum()), float(np.abs(matrix).sum())
    largest = size * (1 + 1e-14 * len(matrix))
    if size - total <= _NEARLY * size:
        return total, largest
    vectors = _ascended(matrix / size * len(matrix), _start(matrix))
    value = float(np.einsum("ti,ts,si->", vectors, matrix, vectors, optimize=True))
    lengths = np.linalg.norm(matrix @ vectors, axis=1)
    return max(value, total), min(_dual(matrix, lengths), largest)


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
