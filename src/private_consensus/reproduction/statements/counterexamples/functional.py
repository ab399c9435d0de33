"""Errata of Ding, chapter 6: the functional mechanism (E4.9)."""

from __future__ import annotations

import math

import numpy as np

from private_consensus.core.algorithms.families.functional_mechanism import paper_sensitivity
from private_consensus.privacy import (
    Budget,
    extended_gaussian_scale,
    gaussian_delta,
    gaussian_epsilon,
)
from private_consensus.privacy.functional import Sensitivity

from .base import ErratumResult, erratum, finding

DIM, MEAN = 13, 0.4
PUBLIC_MEANS = 0.48, 0.67
"""Means of sex in the US and the Adult data, which the experiments treat as public."""


@erratum("E4.9a")
def average_share() -> ErratumResult:
    """Test the averaged epsilon of Theorem 18 at the tight and the published sensitivity."""
    split = 10.0
    # x = x' = e_s, (y, z) from (0, 1) to (1, 0): only coefficients of w_s change, by 1 and by 1.
    change = 2.0
    claimed = split / DIM + (DIM - 1) / DIM
    tight_loss = split * change / Sensitivity(DIM, "penal", MEAN).l1
    published_loss = split * change / paper_sensitivity("l1", DIM, fair=True)
    description = (
        f"d = {DIM}, eps_s = {split:g}, eps_n = 1: the replacement of one record with a single "
        f"feature changes the coefficients by {change:g}, all of it in w_s. The loss is "
        f"{published_loss:.2f} with the published Delta_1 = "
        f"{paper_sensitivity('l1', DIM, fair=True):g} (claimed {claimed:.2f}): the claim holds by "
        f"slack. With the tight Delta_1 = {Sensitivity(DIM, 'penal', MEAN).l1:.2f}, the loss is "
        f"{tight_loss:.2f}."
    )
    holds = tight_loss > claimed >= published_loss
    return finding("epsilon (eps_n = 1)", claimed, tight_loss, holds, description, partly=True)


@erratum("E4.9b")
def moving_mean() -> ErratumResult:
    """Compute the change of the covariance if the mean of the protected attribute changes."""
    records = 10
    x = np.ones((records, DIM))
    x[0] = 0.0
    z = np.zeros((2, records))
    z[1, 0] = 1.0
    sums = [(row - row.mean()) @ x for row in z]
    change = float(np.abs(sums[0] - sums[1]).sum())
    constant = float(np.abs((z[1, 0] - z[0, 0]) * x[0]).sum())
    description = (
        f"{records} records, d = {DIM}; the replaced record has no features. With a constant mean, "
        f"no coefficient changes. With the mean of the data, the coefficients change by {change:g} "
        f"= d(n-1)/n. The published Delta_1 = {paper_sensitivity('l1', DIM, fair=True):g} is large "
        "enough for this change."
    )
    holds = change > constant and change <= paper_sensitivity("l1", DIM, fair=True)
    return finding("l1 change of the covariance", constant, change, holds, description, partly=True)


@erratum("E4.9c")
def l2_share() -> ErratumResult:
    """Compute the loss by the coefficients of w_s, which have more than 1/d of Delta_2."""
    split = 50.0
    block_norm = math.sqrt(9 + (2 * DIM - 1) / 16)
    sensitivity = paper_sensitivity("l2", DIM, fair=True)
    tight = Sensitivity(DIM, "penal", MEAN).l2
    change = math.sqrt(2.0)  # of the pair of E4.9a, all of it in w_s
    claimed = split / DIM + (DIM - 1) / DIM
    loss, loss_tight = split * change / sensitivity, split * change / tight
    signed, separate, absolute = (
        min(
            _breaks_at(Sensitivity(DIM, form, mean).same_row_l2, sensitivity)
            for mean in PUBLIC_MEANS
        )
        for form in ("plus", "penal", "perrec")
    )
    near_zero = _breaks_at(Sensitivity(DIM, "perrec", 0.01).same_row_l2, sensitivity)
    description = (
        f"d = {DIM}: the block has {block_norm / sensitivity:.3f} of the bound in the unit box, "
        f"not {1 / DIM:.3f}. At eps_s = {split:g} eps_n, the loss of one pair is {loss:.1f} with "
        f"the published Delta_2 and {loss_tight:.1f} with a tight one; the claim is {claimed:.1f}. "
        "By the exact delta (eps_n = 0.01, delta = 1e-5, public means 0.48 and 0.67 of the "
        f"experiments), the claim with the published Delta_2 holds up to eps_s = {signed:.0f} "
        f"eps_n if the covariance has one sign, up to {separate:.0f} eps_n if it is a separate "
        "block, and for every ratio with the sum of absolute values. With this sum, the claim "
        f"fails from {near_zero:.0f} eps_n if the mean is 0.01."
    )
    holds = (
        block_norm / sensitivity > 1 / DIM
        and loss_tight > claimed
        and signed < separate < math.inf == absolute
    )
    return finding("loss relative to eps_n", claimed, loss_tight, holds, description, partly=True)


def _breaks_at(change: float, sensitivity: float) -> float:
    """Return the smallest eps_s over eps_n at which a change in w_s violates the claimed delta.

    eps_n is 0.01 and delta is 1e-5.
    """
    eps_n, delta = 0.01, 1e-5
    for split in np.geomspace(1.0, 3000.0, 300):
        eps_s = split * eps_n
        mu = change / (sensitivity * extended_gaussian_scale(Budget(eps_s, delta)))
        claimed = eps_s / DIM + eps_n * (DIM - 1) / DIM
        if float(gaussian_delta(mu, claimed)) > 1 - (1 - delta) ** 2:
            return float(split)
    return math.inf


@erratum("E4.9d")
def extended_gaussian() -> ErratumResult:
    """Compare the exact epsilon of the extended Gaussian mechanism with 18 claimed budgets."""
    largest_ratio = max(
        float(gaussian_epsilon(1 / extended_gaussian_scale(Budget(e, d)), d)) / e
        for e in (0.1, 0.5, 1.0, 3.0, 10.0, 50.0)
        for d in (1e-3, 1e-5, 1e-9)
    )
    x = np.full(DIM, 1 / math.sqrt(DIM))
    products = np.outer(x, x) / 8
    merged = np.concatenate([np.diag(products), 2 * products[np.triu_indices(DIM, 1)]])
    ordered_norm, monomial_norm = float(np.linalg.norm(products)), float(np.linalg.norm(merged))
    description = (
        f"18 pairs of epsilon and delta: the exact epsilon is at most {largest_ratio:.3f} of the "
        f"claimed epsilon. The quadratic coefficients of one record have the norm "
        f"{ordered_norm:.3f} as d^2 products and {monomial_norm:.3f} as monomials, so that Delta_2 "
        "depends on the representation."
    )
    holds = largest_ratio <= 1 and monomial_norm > 1.1 * ordered_norm
    return finding("exact epsilon / claimed", 1.0, largest_ratio, holds, description)
