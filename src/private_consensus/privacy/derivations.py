"""Derivations of a guarantee in words and numbers, from the releases to epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .accounting import account, epsilon_by_method, gaussian_dp
from .budget import Budget
from .conversions import gaussian_mu
from .releases import NORMS, Release

METHODS = {
    "pure": "sum of pure epsilons",
    "gaussian": "Gaussian differential privacy, exact for Gaussian noise",
    "gaussian+pure": "Gaussian differential privacy plus the sum of pure epsilons",
    "zcdp": "zero-concentrated differential privacy",
    "rdp": "Renyi divergences",
    "pld": "privacy loss distributions",
}
"""Description of each accountant."""
BUDGET_TOLERANCE = 1e-3
"""Relative difference of epsilon and budget up to which the budget counts as used completely."""


def derive(releases: Sequence[Release], budget: Budget) -> list[str]:
    """Return the steps from the releases to epsilon, and the comparison with the budget.

    Parameters
    ----------
    budget : Budget
        Budget for which the noise was calibrated; epsilon is stated at its delta.

    Returns
    -------
    list of str
        One line per step.
    """
    guarantee = account(releases, budget.delta)
    lines = ["Releases of the agent with the largest privacy loss:"]
    lines += [f"  {_release_line(release)}" for release in releases] or ["  none"]
    if math.isinf(guarantee.epsilon):
        lines.append("A value that depends on the records is released without noise.")
        return [*lines, "No guarantee: epsilon is infinite."]
    epsilons = epsilon_by_method(releases, budget.delta)
    if "gaussian" in epsilons and math.isfinite(mu := gaussian_dp(releases)):
        lines += [
            f"Composition: mu = root of the sum of squared mu = {mu:.4g}.",
            "Conversion: epsilon solves delta = Phi(mu/2 - epsilon/mu) "
            "- exp(epsilon) Phi(-mu/2 - epsilon/mu).",
        ]
    lines += [f"{_method(name)}: epsilon {value:.4g}." for name, value in epsilons.items()]
    if len(epsilons) > 1:
        lines.append(f"The smallest of these upper bounds is that of {guarantee.method}.")
    if not guarantee.proven:
        lines.append(f"Not proven: {guarantee.note or 'a sensitivity is assumed'}.")
    lines.append(f"Guarantee: epsilon {guarantee.epsilon:.4g} at delta {budget.delta:g}.")
    return [*lines, _comparison(releases, guarantee.epsilon, budget)]


def _method(name: str) -> str:
    text = METHODS[name]
    return text[0].upper() + text[1:]


def _release_line(release: Release) -> str:
    """Return mechanism, number, sensitivity, noise and loss of a release in one line."""
    losses = release.losses()
    number = len(losses) * release.count
    columns = [f"{number} x {release.mechanism}"]
    norm = NORMS[release.mechanism]
    if norm is not None:
        columns.append(f"{norm} sensitivity {_range(release.sensitivity)}")
        columns.append(f"noise scale {_range(release.scale)}")
    if release.sampling is not None:
        kind = release.sampling.kind.replace("_", " ")
        columns.append(f"{kind} sampling with rate {release.sampling.rate:.4g}")
    if release.mechanism != "profile":
        symbol = "mu" if "gaussian" in release.mechanism else "epsilon"
        columns.append(f"{symbol} {_range(losses)}")
    return ", ".join(columns)


def _range(values: object) -> str:
    """Return the text of a number, or of the smallest and largest number of an array."""
    array = np.atleast_1d(np.asarray(values, float))
    low, high = float(array.min()), float(array.max())
    return f"{low:.4g}" if math.isclose(low, high, rel_tol=1e-9) else f"{low:.4g} to {high:.4g}"


def _comparison(releases: Sequence[Release], epsilon: float, budget: Budget) -> str:
    """Return one sentence that compares epsilon with the budget."""
    if not budget.private:
        return "The budget is infinite: the noise does not depend on it."
    if epsilon > budget.epsilon * (1 + BUDGET_TOLERANCE):
        return (
            f"This exceeds the budget of epsilon {budget.epsilon:g}: the claim of the algorithm "
            "does not follow from its releases."
        )
    if epsilon >= budget.epsilon * (1 - BUDGET_TOLERANCE):
        return f"This is the whole budget of epsilon {budget.epsilon:g}."
    text = f"The budget is epsilon {budget.epsilon:g}, so that a part of it is not used."
    mu, allowed = gaussian_dp(releases), float(gaussian_mu(budget.epsilon, budget.delta))
    if math.isfinite(mu) and 0 < mu < allowed:
        text += (
            f" It permits mu = {allowed:.4g}; the releases use {(mu / allowed) ** 2:.1%} of its "
            f"square. Noise smaller by the factor {mu / allowed:.4g} would use all of it."
        )
    return text
