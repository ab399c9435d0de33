"""Ding, chapter 6: the functional mechanism."""

import math
from itertools import product

import numpy as np

from private_consensus.core.algorithms.families.functional_mechanism import paper_sensitivity
from private_consensus.privacy import (
    Budget,
    extended_gaussian_scale,
    gaussian_delta,
    gaussian_epsilon,
)
from private_consensus.privacy.functional import Sensitivity

from .base import Part, Parts, bound, grid


def _change(norm: int, fair: bool) -> Part:
    """Compare the published sensitivity with the largest change if one record is replaced.

    8,000 pairs of data sets of six records, many at corners of the unit box; d = 1, 2, 5, 13. The
    mean of the protected attribute is that of the data.
    """
    stated, measured, shape = [], [], (2000, 7)
    for dim in (1, 2, 5, 13):
        rng = np.random.default_rng(dim)
        x = rng.uniform(size=(*shape, dim))
        corners = rng.random(shape) < 0.5
        x[corners] = x[corners].round()
        x[:200] = 1.0
        y, z = rng.integers(0, 2, (2, *shape))
        sums = []
        for rows in (slice(0, 6), slice(1, 7)):
            attribute = z[:, rows]
            deviation = np.abs(attribute - attribute.mean(1, keepdims=True))
            weights = 0.5 - y[:, rows] + (deviation if fair else 0)
            linear = np.vecmat(weights, x[:, rows])
            quadratic = x[:, rows].swapaxes(1, 2) @ x[:, rows] / 8
            sums.append(np.concatenate([linear, quadratic.reshape(2000, -1)], axis=1))
        stated.append(paper_sensitivity(f"l{norm}", dim, fair=fair))
        measured.append(np.linalg.norm(sums[0] - sums[1], ord=norm, axis=1).max())
    return bound(f"l{norm} change", stated, measured)


def lemma_21() -> Parts:
    """Test the l1 sensitivity of the coefficients of logistic regression on random data sets."""
    return (_change(1, fair=False),)


def lemma_22() -> Parts:
    """Test the l1 sensitivity with the fairness penalty on random data sets.

    The remark replaces one of ten records, which has no features, d = 13: by the proof, nothing
    changes.
    """
    x, z = np.ones((10, 13)), np.zeros((2, 10))
    x[0], z[1, 0] = 0.0, 1.0
    moved, constant = (
        np.abs(
            np.diff([(row - mean) @ x for row, mean in zip(z, means, strict=True)], axis=0)
        ).sum()
        for means in (z.mean(1), (0.0, 0.0))
    )
    change = bound("l1 change of the covariance, constant mean stated", constant, moved)
    return (_change(1, fair=True), change.marked("remark", "E4.9b"))


def lemma_23() -> Parts:
    """Test the l2 sensitivity of the coefficients of logistic regression on random data sets."""
    return (_change(2, fair=False),)


def lemma_24() -> Parts:
    """Test the l2 sensitivity with the fairness penalty, whose mean depends on the data."""
    return (_change(2, fair=True),)


def theorem_18() -> Parts:
    """Test the stated epsilon of the mechanism with two levels of Laplace noise.

    d = 2 to 41, eps_s over eps_n from 0.01 to 100; bounds on the change of both groups of
    coefficients. The remark has the tight Delta_1, and replaces a record that has the selected
    feature only, (y, z) from (0, 1) to (1, 0), d = 13.
    """
    pairs = []
    for dim, split in product((2, 5, 13, 41), (0.01, 0.1, 1.0, 10.0, 100.0)):
        # From no features to all: 2 per linear coefficient, and 1 by the shift of the others' mean.
        selected = 3 + (2 * dim - 1) / 8
        remaining = 3 * (dim - 1) + (dim - 1) ** 2 / 8
        measured = (split * selected + remaining) / paper_sensitivity("l1", dim, fair=True)
        pairs.append(((split + dim - 1) / dim, measured))
    tight_loss = 10 * 2 / Sensitivity(13, "penal", 0.4).l1
    tight = bound("epsilon over eps_n, tight Delta_1, eps_s = 10 eps_n", 22 / 13, tight_loss)
    return (bound("epsilon over eps_n", *np.array(pairs).T), tight.marked("remark", "E4.9a"))


def theorem_19() -> Parts:
    """Compare the exact epsilon of the extended Gaussian mechanism with 28 budgets.

    The proof fixes Delta_2 = 1 and omits logarithms; the scale is right.
    """
    epsilon, delta = grid((0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 50.0), (0.3, 1e-2, 1e-5, 1e-9))
    scales = [extended_gaussian_scale(Budget(e, d)) for e, d in zip(epsilon, delta, strict=True)]
    return (bound("epsilon", epsilon, gaussian_epsilon(1 / np.array(scales), delta)),)


def theorem_20() -> Parts:
    """Compare the stated delta with the delta that a pair of neighbouring data sets requires.

    d = 5 and 13, eps_s over eps_n of 1, 10 and 200, eps_n = 0.05, delta = 1e-5.
    """
    measured, delta, epsilon_n = [], 1e-5, 0.05
    for dim, split in product((5, 13), (1.0, 10.0, 200.0)):
        sigma_s, sigma_n = (
            paper_sensitivity("l2", dim, fair=True) * extended_gaussian_scale(Budget(e, delta))
            for e in (split * epsilon_n, epsilon_n)
        )
        # A record with only the selected feature, (y, z) from (0, 1) to (1, 0), where the mean of
        # z is 0.01: its coefficient changes from 1/2 + 0.99 to -1/2 + 0.01. Or with all features.
        linear, square = 1.98, 1 / 8
        selected = linear**2 + (2 * dim - 1) * square**2
        remaining = (dim - 1) * linear**2 + (dim - 1) ** 2 * square**2
        mu = [linear / sigma_s, math.sqrt(selected / sigma_s**2 + remaining / sigma_n**2)]
        measured += list(gaussian_delta(np.array(mu), epsilon_n * (split + dim - 1) / dim))
    inequality = bound("delta at the claimed epsilon", 1 - (1 - delta) ** 2, measured)
    return (inequality.marked("main", "E4.9c"),)


def attribute_loss(dim: int, epsilon_selected: float) -> float:
    """Return the largest privacy loss in PDFC if one record changes in the selected attribute.

    A change of x_s from 0 to 1 moves its linear coefficient by at most 3/2 and each of 2d - 1
    quadratic ones by 1/8. Their noise has the scale Delta_1 / eps_s.
    """
    change = 1.5 + (2 * (dim - 1) + 1) / 8
    return epsilon_selected * change / paper_sensitivity("l1", dim, fair=True)


def sentence_4() -> Parts:
    """Compare the privacy loss by the selected attribute with that at equal noise levels.

    d = 5, 13 and 41, eps_s over eps_n of 0.01 to 0.5, the total of Theorem 18 equal to 1. The
    observer knows the other attributes.
    """
    dims, splits = grid((5, 13, 41), (0.01, 0.1, 0.5))
    stated = attribute_loss(dims, 1.0)
    measured = attribute_loss(dims, splits * dims / (splits + dims - 1))
    quantity = "loss of x_s at an equal total epsilon, smaller eps_s over an equal split"
    return (bound(quantity, stated, measured),)
