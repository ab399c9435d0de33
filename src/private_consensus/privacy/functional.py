r"""Sensitivities of the functional mechanism's perturbed polynomial (Ding, section 5).

A record adds :math:`v \otimes x` to linear coefficients and :math:`\frac18 x x^T` to quadratic
ones, with :math:`x \ge 0`, :math:`\|x\|_2 \le 1`, and v from a finite set of weights. v has two
entries if the fairness term has separate coefficients. One record replaces another.

If the mean of the protected attribute is computed from the data, the replaced record moves it by
1/n in n terms, which adds :math:`\|\sum_i x_i\|/n`.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from private_consensus.common.errors import arguments

FAIRNESS = ("off", "penal")


@dataclass(frozen=True)
class Sensitivity:
    r"""Tight sensitivities of the coefficients of one record.

    Parameters
    ----------
    dim : int
        Number of features d.
    fair : {"off", "penal"}
        ``off``: weights :math:`\frac12 - y`. ``penal``: also :math:`z - \bar z`, as a separate
        block.
    mean : float
        Mean :math:`\bar z` of the protected attribute.
    public_mean : bool
        True if the mean is public. If False, the bounds hold for every mean and count its change.
    """

    dim: int
    fair: str = "off"
    mean: float = 0.5
    public_mean: bool = True

    def __post_init__(self):
        arguments.choice("algorithm.fair", self.fair, FAIRNESS)

    @cached_property
    def _weights(self) -> tuple[np.ndarray, ...]:
        """Sets of weights v, [weights, blocks]; both bounds are convex in the mean."""
        means = (self.mean,) if self.public_mean else (0.0, 1.0)
        return tuple(weights(self.fair, mean) for mean in means)

    @property
    def _drift(self) -> float:
        return 0.0 if self.known else 1.0

    @property
    def l1(self) -> float:
        r"""l1 sensitivity of all coefficients, :math:`2(\|v\|_1\sqrt d + d/8)`."""
        return self._linear_l1(self.dim) + 2 * self.dim / 8

    @property
    def l2(self) -> float:
        r"""l2 sensitivity of all coefficients, which is attained.

        .. math:: \Delta_2^2 = \max_{v,v'} |v|^2 + |v'|^2 + \tfrac1{32}
            + \max_{0 \le u \le 1} \bigl(-2 v \cdot v'\,u - \tfrac1{32} u^2\bigr)

        with :math:`u = x \cdot x'`: all terms are largest for rows of norm one.
        """
        worst = max(
            _pair(first, second)
            for options in self._weights
            for first, second in product(options, repeat=2)
        )
        return math.sqrt(worst) + self._drift

    @property
    def same_row_l2(self) -> float:
        r"""Largest change between two records with equal row, :math:`\max\|v-v'\|_2`.

        For a row along an axis the change is in one column only.
        """
        return max(
            float(np.linalg.norm(first - second))
            for first, second in product(self._weights[0], repeat=2)
        )

    def _linear_l1(self, columns: int) -> float:
        largest = max(float(np.abs(options).sum(1).max()) for options in self._weights)
        return (2 * largest + self._drift) * math.sqrt(columns)

    def part_l1(self, columns: int) -> float:
        """Return a bound on the l1 change of the coefficients with some ``columns``."""
        return self._linear_l1(columns) + 2 * _largest_products(self.dim, columns) / 8

    def rest_l1(self, columns: int) -> float:
        """Return a bound on the l1 change of the coefficients without some ``columns``."""
        remaining = self.dim - columns
        return self._linear_l1(remaining) + 2 * remaining / 8

    @property
    def known(self) -> bool:
        """Return True if pairs of records are known that attain a fraction of the bound.

        The result is False if the mean is computed from the data.
        """
        return self.public_mean or self.fair == "off"

    def reached_laplace_loss(self, part_scale: float, rest_scale: float, columns: int) -> float:
        """Return a lower bound on the Laplace loss, from the known pairs of :func:`pair_l1`.

        The pairs are evaluated under the larger of the two scales, or restricted to the columns
        that have the second scale.
        """
        losses = []
        for first, second in product(self._weights[0], repeat=2):
            for width, scale in (
                (self.dim, max(part_scale, rest_scale) if columns else rest_scale),
                (self.dim - columns, rest_scale),
            ):
                changes = (pair_l1(width, k, first, second) for k in range(1, width + 1))
                losses.append(max(changes) / scale)
        return max(losses)

    def laplace_loss(self, part_scale: float, rest_scale: float, columns: int) -> float:
        """Return a bound on the privacy loss of Laplace noise with two scales.

        The loss is linear in the changes of both groups of coefficients. Each change and their sum
        are bounded. ``part_scale`` is that of the coefficients that involve some ``columns``.
        """
        total, part_change, rest_change = self.l1, self.part_l1(columns), self.rest_l1(columns)
        if columns == 0:
            return total / rest_scale
        if part_scale <= rest_scale:
            part_change = min(part_change, total)
            return part_change / part_scale + min(rest_change, total - part_change) / rest_scale
        rest_change = min(rest_change, total)
        return rest_change / rest_scale + min(part_change, total - rest_change) / part_scale

    def gaussian_loss(self, part_scale: float, rest_scale: float, columns: int) -> float:
        r"""Return :math:`\mu` of Gaussian noise with two standard deviations.

        The largest change may affect only coefficients with less noise. ``part_scale`` is that of
        the coefficients that involve some ``columns``.
        """
        return self.l2 / (min(part_scale, rest_scale) if columns else rest_scale)


def weights(fair: str, mean: float) -> np.ndarray:
    r"""Return the weights v that a record can have, [weights, blocks].

    ``mean`` is the mean :math:`\bar z` of the protected attribute.
    """
    outcomes = np.array(list(product((0.0, 1.0), repeat=2)))
    label, group = 0.5 - outcomes[:, 0], outcomes[:, 1] - mean
    if fair == "off":
        return np.unique(label)[:, None]
    return np.column_stack([label, group])


def _pair(first: np.ndarray, second: np.ndarray) -> float:
    extra = 1 / 32
    opposed = max(0.0, -float(first @ second))
    u = min(1.0, opposed / extra)
    return float(first @ first + second @ second) + extra + 2 * opposed * u - extra * u * u


def pair_l1(columns: int, width: int, first, second, *, quadratic: float = 1 / 8) -> float:
    r"""Return the l1 change of :math:`v \otimes x` and of the products between two records.

    x has equal entries in the first ``width`` columns, and x' in the last; both have l2 norm one.
    ``first`` and ``second`` are the weights v and v', [blocks].
    """
    shared = max(0, 2 * width - columns)
    separate = (width - shared) * float(np.abs(first).sum() + np.abs(second).sum())
    common = shared * float(np.abs(np.subtract(first, second)).sum())
    products = 2 * quadratic * (width**2 - shared**2) / width
    return (separate + common) / math.sqrt(width) + products


def _largest_products(dim: int, columns: int) -> float:
    """Return the largest sum of :math:`x_j x_l` over pairs with ``columns``: an eigenvalue."""
    return (columns + math.sqrt(columns**2 + 4 * columns * (dim - columns))) / 2


def covariance_l1(dim: int, mean: float, *, public_mean: bool = True) -> float:
    r"""Return the l1 sensitivity of :math:`\sum_i (z_i - \bar z) x_i`, of dimension d.

    The paper states 2d for the box. If the mean :math:`\bar z` of the protected attribute is not
    public, its change is counted.
    """
    largest = max(mean, 1.0 - mean) if public_mean else 1.0
    return (2 * largest + (0.0 if public_mean else 1.0)) * math.sqrt(dim)
