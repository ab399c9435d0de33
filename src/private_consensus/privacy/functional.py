r"""Sensitivities of the polynomial perturbed by the functional mechanism (paper 004, section 5).

A record adds :math:`v \otimes x` to linear coefficients and :math:`\frac18 x x^T` to quadratic
ones, with :math:`x \ge 0`, :math:`\|x\|_2 \le 1`, and v from a finite set of weights, a pair where
the fairness term is a block of its own. One record replaces another.

Where the mean of the protected attribute is computed from the data, the replaced record moves it by
1/n in n terms, which adds :math:`\|\sum_i x_i\|/n`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from private_consensus.errors import require

FAIRNESS = ("off", "perrec", "plus", "penal")
COEFFICIENTS = ("ordered", "unique")


@dataclass(frozen=True)
class Sensitivity:
    r"""Tight sensitivities of the coefficients of one record.

    Parameters
    ----------
    dim : int
        d.
    fair : {"off", "perrec", "plus", "penal"}
        ``off``: weights :math:`\frac12 - y`. ``perrec``: :math:`\frac12 - y + |z - \bar z|`.
        ``plus``: :math:`\frac12 - y + z - \bar z`. ``penal``: both as blocks of their own.
    mean : float
        :math:`\bar z`.
    public_mean : bool
        Whether it is public; if not, the bounds hold for every mean and count its own change.
    coefficients : {"ordered", "unique"}
        All :math:`d^2` products, or one coefficient a monomial, which doubles products of two.
    """

    dim: int
    fair: str = "off"
    mean: float = 0.5
    public_mean: bool = True
    coefficients: str = "ordered"

    def __post_init__(self):
        require(self.fair in FAIRNESS, "algorithm.fair", self.fair, f"one of {', '.join(FAIRNESS)}")
        require(
            self.coefficients in COEFFICIENTS,
            "algorithm.coeffs",
            self.coefficients,
            f"one of {', '.join(COEFFICIENTS)}",
        )

    @cached_property
    def _weights(self) -> tuple[np.ndarray, ...]:
        """The sets of weights v, [weights, blocks]; both bounds are convex in the mean."""
        means = (self.mean,) if self.public_mean else (0.0, 1.0)
        return tuple(weights(self.fair, mean) for mean in means)

    @property
    def _drift(self) -> float:
        return 0.0 if self.public_mean or self.fair == "off" else 1.0

    @property
    def l1(self) -> float:
        r"""Twice the largest record, :math:`2(\|v\|_1\sqrt d + d/8)`."""
        return self._linear_l1(self.dim) + 2 * self.dim / 8

    @property
    def l2(self) -> float:
        r"""The largest change, attained for ordered coefficients.

        .. math:: \Delta_2^2 = \max_{v,v'} |v|^2 + |v'|^2 + \tfrac{\kappa}{32}
            + \max_{0 \le u \le 1} \bigl(-2 v \cdot v'\,u - \tfrac{\kappa}{32} u^2\bigr)

        with :math:`u = x \cdot x'`, :math:`\kappa = 1`, or 2 where products of two are doubled: all
        terms are largest for rows of norm one.
        """
        extra = 1 / 32 if self.coefficients == "ordered" else 2 / 32
        worst = max(
            _pair(first, second, extra)
            for options in self._weights
            for first, second in product(options, repeat=2)
        )
        return math.sqrt(worst) + self._drift

    @property
    def same_row_l2(self) -> float:
        r"""Change between two records of one row, :math:`\max\|v-v'\|_2`: of a row along an axis,
        in one column alone."""
        return max(
            float(np.linalg.norm(first - second))
            for first, second in product(self._weights[0], repeat=2)
        )

    def _linear_l1(self, columns: int) -> float:
        largest = max(float(np.abs(options).sum(1).max()) for options in self._weights)
        return (2 * largest + self._drift) * math.sqrt(columns)

    def part_l1(self, columns: int) -> float:
        """Bound on the change of the coefficients that involve some ``columns``."""
        return self._linear_l1(columns) + 2 * _largest_products(self.dim, columns) / 8

    def rest_l1(self, columns: int) -> float:
        """Bound on the change of the coefficients that involve none of some ``columns``."""
        rest = self.dim - columns
        return self._linear_l1(rest) + 2 * rest / 8

    @property
    def known(self) -> bool:
        """Return True if pairs are known that attain a fraction of the bound; False if the mean
        of the data or doubled products matter.
        """
        return self.coefficients == "ordered" and (self.public_mean or self.fair == "off")

    def reached_laplace_loss(self, part_scale: float, rest_scale: float, columns: int) -> float:
        """Largest loss of some pair of :func:`pair_l1`, under the larger of the two scales or among
        columns that have the second."""
        if not self.known:
            return 0.0
        found = []
        for first, second in product(self._weights[0], repeat=2):
            for width, scale in (
                (self.dim, max(part_scale, rest_scale) if columns else rest_scale),
                (self.dim - columns, rest_scale),
            ):
                changes = (pair_l1(width, k, first, second) for k in range(1, width + 1))
                found.append(max(changes) / scale)
        return max(found)

    def laplace_loss(self, part_scale: float, rest_scale: float, columns: int) -> float:
        """Bound on the privacy loss with one Laplace scale for some columns, one for the rest.

        The loss is linear in the changes of both groups, each and their sum bounded.
        """
        total, part, rest = self.l1, self.part_l1(columns), self.rest_l1(columns)
        if columns == 0:
            return total / rest_scale
        if part_scale <= rest_scale:
            part = min(part, total)
            return part / part_scale + min(rest, total - part) / rest_scale
        rest = min(rest, total)
        return rest / rest_scale + min(part, total - rest) / part_scale

    def gaussian_loss(self, part_scale: float, rest_scale: float, columns: int) -> float:
        r""":math:`\mu` of Gaussian DP: the largest change may lie in the group with less noise."""
        return self.l2 / (min(part_scale, rest_scale) if columns else rest_scale)


def weights(fair: str, mean: float) -> np.ndarray:
    """Weights v that a record can have, [weights, blocks]."""
    outcomes = np.array(list(product((0.0, 1.0), repeat=2)))
    label, group = 0.5 - outcomes[:, 0], outcomes[:, 1] - mean
    if fair == "off":
        return np.unique(label)[:, None]
    if fair == "perrec":
        return (label + np.abs(group))[:, None]
    return (label + group)[:, None] if fair == "plus" else np.column_stack([label, group])


def _pair(first: np.ndarray, second: np.ndarray, extra: float) -> float:
    opposed = max(0.0, -float(first @ second))
    u = min(1.0, opposed / extra)
    return float(first @ first + second @ second) + extra + 2 * opposed * u - extra * u * u


def pair_l1(columns: int, width: int, first, second, *, quadratic: float = 1 / 8) -> float:
    r"""Change in l1 from :math:`v \otimes x` to :math:`v' \otimes x'` and of the products.

    x is even on the first ``width`` of some columns and x' on the last, both of norm one; products
    count ``quadratic`` times.
    """
    shared = max(0, 2 * width - columns)
    alone = (width - shared) * float(np.abs(first).sum() + np.abs(second).sum())
    together = shared * float(np.abs(np.subtract(first, second)).sum())
    products = 2 * quadratic * (width**2 - shared**2) / width
    return (alone + together) / math.sqrt(width) + products


def _largest_products(dim: int, columns: int) -> float:
    r"""Largest sum of :math:`x_j x_l` over pairs that involve ``columns``: an eigenvalue."""
    return (columns + math.sqrt(columns**2 + 4 * columns * (dim - columns))) / 2


def covariance_l1(dim: int, mean: float, *, public_mean: bool = True) -> float:
    r"""l1 sensitivity of :math:`\sum_i (z_i - \bar z) x_i` alone; 2d is printed for the box."""
    largest = max(mean, 1.0 - mean) if public_mean else 1.0
    return (2 * largest + (0.0 if public_mean else 1.0)) * math.sqrt(dim)
