"""Derivations of a guarantee in words and numbers, from the releases to epsilon."""

import math
from collections.abc import Sequence

from .accounting import account, epsilon_by_method, gaussian_dp
from .conversions import gaussian_mu
from .releases import Release
from .safe_digits import rounded_up

METHODS = {
    "pure": "Sum of pure epsilons",
    "gaussian": "Gaussian differential privacy, exact for Gaussian noise",
    "zcdp": "Zero-concentrated differential privacy",
    "rdp": "Renyi divergences",
    "pld": "Privacy loss distributions",
}
"""Description of each accountant."""
BUDGET_TOLERANCE = 1e-3
"""Relative difference of epsilon and claim up to which they count as equal."""


def conclusion(epsilon: float, delta: float, claimed: float, proven: bool) -> str:
    """Return one sentence with a guarantee and its comparison with the claimed epsilon.

    ``claimed`` is infinite if nothing is claimed, and ``proven`` is True if all sensitivities are.
    Epsilon is rounded up.
    """
    noun = "Guarantee" if proven else "Unproven guarantee"
    text = f"{noun}: epsilon {rounded_up(epsilon)} at delta {delta:g}"
    if math.isinf(epsilon):
        text = "No guarantee: epsilon is infinite"
    if math.isinf(claimed):
        return f"{text}; the algorithm claims none."
    if epsilon > claimed * (1 + BUDGET_TOLERANCE):
        return f"{text}, above the claimed epsilon {rounded_up(claimed)}: the claim is not proven."
    if epsilon < claimed * (1 - BUDGET_TOLERANCE):
        return f"{text}, below the claimed epsilon {rounded_up(claimed)}, which permits less noise."
    return f"{text}, as claimed."


def derive(releases: Sequence[Release], delta: float, claimed: float) -> list[str]:
    """Return the conclusion, and the steps from the releases to epsilon, one line per step.

    ``claimed`` is the claimed epsilon at ``delta``.
    """
    guarantee = account(releases, delta)
    lines = [
        conclusion(guarantee.epsilon, delta, claimed, guarantee.proven),
        "Releases of the agent with the largest privacy loss:",
    ]
    lines += [f"  {release}" for release in releases] or ["  none"]
    if not guarantee.proven:
        lines.append(f"Not proven: {guarantee.note or 'a sensitivity is assumed'}.")
    if math.isinf(guarantee.epsilon):
        return lines
    epsilons = epsilon_by_method(releases, delta)
    mu, allowed = gaussian_dp(releases), float(gaussian_mu(claimed, delta))
    if "gaussian" in epsilons:
        lines += [
            f"Composition: mu = root of the sum of squared mu = {mu:.4g}.",
            "Conversion: epsilon solves delta = Phi(mu/2 - epsilon/mu) "
            "- exp(epsilon) Phi(-mu/2 - epsilon/mu).",
        ]
    lines += [f"{METHODS[name]}: epsilon {value:.4g}." for name, value in epsilons.items()]
    if len(epsilons) > 1:
        lines.append(f"The smallest of these upper bounds is that of {guarantee.method}.")
    if 0 < mu < allowed * (1 - BUDGET_TOLERANCE) < math.inf:
        lines.append(
            f"The claim permits mu = {allowed:.4g}; the releases use {(mu / allowed) ** 2:.1%} of "
            f"its square. Noise smaller by the factor {mu / allowed:.4g} would use all of it."
        )
    return lines
