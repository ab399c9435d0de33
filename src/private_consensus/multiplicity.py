r"""What verdicts are worth when many claims are judged at once: Holm's step-down method.

A percentile interval [value - d, value + e] at level 95 %, shared among k parts, is carried to
another level by the ratio of normal quantiles,

.. math:: d(\alpha) = d \; \Phi^{-1}(1 - \alpha / 2k) / \Phi^{-1}(1 - 0.05 / 2k),

which keeps its lopsidedness and reaches levels that no affordable number of resamples resolves. The
``p`` of a verdict is the smallest :math:`\alpha` at which it still stands. Holm's method gives the
i-th smallest of m verdicts the level :math:`0.05 / (m - i + 1)` and goes on while they stand, so
that the probability of any wrong one is at most 5 %, however they depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr, ndtri

ALPHA = 0.05
EXACT = 0.0
NEVER = 1.0
"""``p`` of what no run varies, and of what does not stand at all."""


def widening(alpha: float | np.ndarray, parts: int) -> np.ndarray:
    """Width of an interval at a level, over that at 95 %, both shared among ``parts``."""
    parts = max(1, parts)
    return ndtri(np.asarray(alpha) / (2 * parts)) / ndtri(ALPHA / (2 * parts))


def widened(value: float, low: float, high: float, alpha: float, parts: int) -> tuple:
    """An interval at 95 %, carried to the level ``1 - alpha``; an exact number stays exact."""
    if low == high:
        return low, high
    factor = float(widening(alpha, parts))
    return value - factor * max(value - low, 0.0), value + factor * max(high - value, 0.0)


def persistence(distance: float, width: float, parts: int) -> float:
    """Smallest level at which an interval of a one-sided width at 95 % stays within a distance."""
    if distance < 0:
        return NEVER
    if width <= 0 or np.isinf(distance):
        return EXACT
    parts = max(1, parts)
    return float(min(NEVER, 2 * parts * ndtr(ndtri(ALPHA / (2 * parts)) * distance / width)))


def p_of(elements: Sequence) -> float:
    """Smallest level at which the verdict on a claim's elements still is what it is at 95 %.

    Parameters
    ----------
    elements : sequence of :class:`private_consensus.claims.Element`
        Held: all must stay confirmed. Held in part: one must. Did not hold: one must stay
        contradicted. What cannot be tested has no ``p`` below 1.
    """
    states = [element.state for element in elements]
    if not states or set(states) == {"undecided"}:
        return NEVER
    wanted = "confirmed" if "confirmed" in states else "contradicted"
    found = [_p_of(e, len(elements)) for e, s in zip(elements, states, strict=True) if s == wanted]
    return max(found) if set(states) == {"confirmed"} else min(found)


def _p_of(element, parts: int) -> float:
    with np.errstate(invalid="ignore"):  # infinite means: their distance says it
        below, above = element.value - element.low, element.high - element.value
    lowest, highest = element.accept
    if element.state == "confirmed":
        return max(
            persistence(element.value - lowest, below, parts),
            persistence(highest - element.value, above, parts),
        )
    if element.high < lowest:
        return persistence(lowest - element.value, above, parts)
    return persistence(element.value - highest, below, parts)


def holm(p: Sequence[float], alpha: float = ALPHA) -> tuple[np.ndarray, np.ndarray]:
    """Holm-adjusted p-values, and the level at which each verdict is asked, in the order given."""
    p = np.asarray(p, float)
    order = np.argsort(p, kind="stable")
    factors = len(p) - np.arange(len(p))
    adjusted, levels = np.empty_like(p), np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * factors))
    levels[order] = alpha / factors
    return adjusted, levels
